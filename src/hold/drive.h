/*
 * drive.h - from a target to a duty cycle: which kernel on how many SMs, and the closed loop around it.
 *
 *   util       one block of one warp, duty = target + trim (util_trim.h); in fill mode the total is what is controlled
 *   sm         one warp on every SM, duty by level_loop.h on GPM's SM utilisation
 *   occupancy  all warp slots of every SM, duty by level_loop.h on GPM's occupancy
 *   tensor     products on the tensor cores of every SM, duty by level_loop.h on GPM's tensor reading
 *   dram       reads of memory from every SM, duty by level_loop.h on GPM's reading of the memory bandwidth
 *   power      multiply-adds on as many SMs as the target needs, duty by level_loop.h on NVML's power
 *
 * Time (duty) and space (SMs) are independent; loadline sets space once and moves time, which is exact to a
 * microsecond. Only for power it sets space again, once or twice, when it has learned what the SMs draw. One thread; no
 * allocation.
 */
#ifndef LOADLINE_HOLD_DRIVE_H
#define LOADLINE_HOLD_DRIVE_H

#include <stdint.h>

#include "control/level_loop.h"
#include "control/util_trim.h"
#include "hold/config.h"
#include "hold/payload.h"

/* Watts of an H200 with an open context, and with the FMA kernel all the time: first guesses for the loop
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
	struct ll_level_loop loop;
	double target;         /* the loop's */
	unsigned replans_left; /* power: space may be set again, for this target */
};

/* One finished reading of the metric. */
struct ll_drive_sample {
	uint64_t start_ns;
	uint64_t end_ns;
	double level;      /* ratio or watts */
	double own_ratio;  /* own kernels' share of that window; NAN unknown */
	bool is_disturbed; /* foreign work in it, or partly not held */
};

/* sm_count 0: unknown; a big card's is assumed and the loop corrects it. */
void ll_drive_init(struct ll_drive *drive, const struct ll_hold_config *config, uint32_t sm_count);

/* The duty to order now for this target (ratio or watts). Call at every tick while holding. */
double ll_drive_command(struct ll_drive *drive, uint64_t now_ns, double target);

/* Nothing runs from now on, until the next command. */
void ll_drive_pause(struct ll_drive *drive, uint64_t now_ns);

void ll_drive_sample(struct ll_drive *drive, const struct ll_drive_sample *sample);

/* Whether the target is beyond what this payload reaches; *ret_reach is then what it reaches. */
enum ll_level_state ll_drive_state(const struct ll_drive *drive, double *ret_reach);

#endif
