/*
 * drive.h - turns a target into a duty cycle: which kernel on how many SMs, and the closed loop that sets the duty.
 *
 *   util       one block of one warp, duty = target + trim (util_trim.h); fill mode adds to what others take
 *              (fill_level.h)
 *   sm         one warp on every SM, duty by level_loop.h on GPM's SM utilisation
 *   occupancy  all warp slots of every SM, duty by level_loop.h on GPM's occupancy
 *   tensor     products on the tensor cores of every SM, duty by level_loop.h on GPM's tensor reading
 *   dram       reads of memory from every SM, duty by level_loop.h on GPM's reading of the memory bandwidth
 *   power      multiply-adds on as many SMs as the target needs, duty by level_loop.h on NVML's power
 *
 * Time (duty) and space (SMs) are independent. loadline sets the space once and then only moves the duty, which is
 * exact to a microsecond. For power alone it sets the space again, once or twice, when it has learned what the SMs
 * draw. One thread at a time; nothing allocates. Clock: ll_now_ns().
 */
#ifndef LOADLINE_HOLD_DRIVE_H
#define LOADLINE_HOLD_DRIVE_H

#include <stdint.h>

#include "hold/config.h"
#include "hold/payload.h"
#include "rules/hold/fill_level.h"
#include "rules/hold/level_loop.h"
#include "rules/hold/util_trim.h"

/* What an H200 draws with an idle context, and with the FMA kernel all the time. The loop starts from these guesses
 * (doc/facts.md). */
#define LL_DRIVE_FLOOR_WATTS 120.0
#define LL_DRIVE_CEILING_WATTS 480.0

struct ll_drive {
	enum ll_metric metric;
	enum ll_hold_mode mode;
	enum ll_kernel kernel;
	uint32_t sm_count;
	uint32_t blocks;
	uint32_t threads;
	bool is_running;
	struct ll_util_trim trim;
	struct ll_fill_level fill;
	struct ll_level_loop loop;
	double target;         /* the loop's; NAN before the first command */
	unsigned replans_left; /* power: how often the space may still be set again for this target */
};

/* One finished reading of the metric. */
struct ll_drive_sample {
	uint64_t start_ns;
	uint64_t end_ns;
	double level;      /* ratio or watts */
	double own_ratio;  /* share of the window in which own kernels ran; NAN: unknown */
	bool is_disturbed; /* foreign work ran in the window, or the card was not held for all of it */
};

/* sm_count 0: unknown. 132 are assumed then (an H200), and the loop corrects the duty. */
void ll_drive_init(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count);

/* The same for a new context. What readings have told of other programs stays. */
void ll_drive_restart(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count);

/* Returns the duty (0..1) to order now for this target (ratio or watts). Call it at every tick while holding. */
double ll_drive_command(struct ll_drive *drive, uint64_t now_ns, double target);

/* Says that no kernel runs from now on until the next command. */
void ll_drive_pause(struct ll_drive *drive, uint64_t now_ns);

/* Feeds a reading to the loop. A reading of a time in which nothing runs only counts for util in fill mode: it tells
 * what others take. */
void ll_drive_add_sample(struct ll_drive *drive, const struct ll_drive_sample *sample);

/* Whether the payload reaches the target. If it does not, *ret_reach is the level that it reaches. */
enum ll_level_state ll_drive_state(const struct ll_drive *drive, double *ret_reach);

#endif
