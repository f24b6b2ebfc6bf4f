/*
 * governor.h - the governor of a card: what it reads, how it turns a target into a duty cycle, and its state.
 */
#ifndef LOADLINE_HOLD_GOVERNOR_H
#define LOADLINE_HOLD_GOVERNOR_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "hold/hold.h"
#include "hold/pacer.h"
#include "hold/payload.h"
#include "rules/hold/foreign.h"
#include "rules/hold/level.h"

struct ll_governor;
struct ll_hold_socket;
struct ll_places;
struct ll_worker;

/* ---- drive ---- */

/*
 * Turns a target into a duty cycle: which kernel on how many SMs, and the closed loop that sets the duty.
 *
 *   util       one block of one warp, duty = target + trim (rules/hold/level.h); fill mode adds to what others take
 *              (rules/hold/level.h)
 *   sm         one warp on every SM, duty by the level loop on GPM's SM utilisation
 *   occupancy  all warp slots of every SM, duty by the level loop on GPM's occupancy
 *   tensor     products on the tensor cores of every SM, duty by the level loop on GPM's tensor reading
 *   dram       reads of memory from every SM, duty by the level loop on GPM's reading of the memory bandwidth
 *   power      multiply-adds on as many SMs as the target needs, duty by the level loop on NVML's power
 *
 * Time (duty) and space (SMs) are independent. loadline sets the space once and then only moves the duty, which is
 * exact to a microsecond. For power alone it sets the space again, once or twice, when it has learned what the SMs
 * draw. One thread at a time; nothing allocates. Clock: ll_now_ns().
 */

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

/* ---- sense ---- */

/*
 * Everything that a governor knows from readings: NVML, GPM, the process list, and the pacer's report.
 *
 * Each source has its own interval. A tick reads the sources that are due, and waits for nothing. Foreign work is
 * reported as the time when it was last seen, and the sensor that saw it. What own kernels and the pages of jobs show
 * comes from the pacer's report, which is merged here.
 *
 *   sensor                  sees foreign work after       read every
 *   own kernels (pacer)     ms                            tick
 *   governed                us, governed programs only    pacer's tick
 *   process list, memory    arrivals, 200 ms              200 ms
 *   total minus own         200-600 ms, 1.2 s at worst    200 ms to 1 s
 *
 * Two seconds after the last own kernel the sensors rest. Utilisation is then read every 4 s, which brings all windows
 * since the last reading, and when the quiet time that a resume waits for may be over. The other sources are read in
 * the same wake-ups:
 *
 *   process list, memory, power, Xid   2 s; 4 s beside work that the newest window showed
 *   temperature, slowdown              4 s; 8 s beside work
 *   energy                             30 s
 */

enum { LL_SENSE_SAMPLES = 64 }; /* at most in one reading; NVML keeps 14 s, 70 windows */

/* What utilisation readings are needed for while holding. It decides how often they are made. */
enum ll_sense_use {
	LL_SENSE_UTIL_TRIMS,    /* for a slow trim and for display; own kernels see foreign work */
	LL_SENSE_UTIL_CONTROLS, /* fill: the loop is closed over them */
	LL_SENSE_UTIL_WATCHES,  /* an MPS client: only they show foreign work */
};

struct ll_sense_config {
	const struct ll_card *card;
	enum ll_metric metric;
	enum ll_sense_use use;
	uint64_t resume_after_ns; /* how long foreign work must be absent before a resume */
	FILE *kernel_log; /* gets a line per own kernel: card, start and end on the card's clock, flags; NULL: none */
	bool watches_arrivals; /* yield mode: a new process on the card counts as foreign work */
};

/* The last reading of each source; NAN: none. */
struct ll_sense_values {
	double util, own_util; /* ratios, over the same NVML window */
	double sm, occupancy, tensor, dram;
	double power_watts;
	double temperature_c;
	bool is_slowdown;
	char slowdown_text[64];
	uint64_t own_memory_bytes;
	double energy_joules; /* the card's counter */
};

struct ll_sense {
	struct ll_sense_config config;
	struct ll_foreign foreign;
	struct ll_process_watch watch;
	struct ll_process_list processes;
	struct ll_util_reader reader;
	struct ll_gpm *gpm;
	struct ll_xid_watch *xid;
	struct ll_sense_values values;

	uint64_t util_due_ns, process_due_ns, power_due_ns, slow_due_ns, energy_due_ns;
	uint64_t samples_due_ns; /* resting: when all samples are read at the latest */
	uint64_t gpm_start_ns;
	uint64_t readings_seen_ns; /* the last good utilisation reading (on a MIG slice: GPM reading); 0: never */
	uint64_t known_until_ns;   /* end of the newest utilisation window that was read */
	uint64_t window_ns;        /* the length of that window */
	uint64_t failing_since_ns; /* utilisation readings fail; 0: they work */
	uint64_t stopped_since_ns; /* since when own kernels have not run; now, while they run */
	uint64_t gone_since_ns;    /* the card does not answer; 0: it does */
	uint64_t missing_since_ns; /* GPM answers without the metric that is held; 0: it has the metric */
	uint64_t unread_since_ns;  /* GPM does not answer; 0: it does */
	struct ll_err last_err;    /* of the last reading that failed */
	uint64_t foreign_seen_ns;
	enum ll_hold_sensor foreign_sensor;
	struct ll_foreign_verdict foreign_window; /* the last window that showed foreign work */
	uint64_t pacer_seen_ns;                   /* the pacer's foreign_seen_ns that was merged last */
	uint64_t memory_before_bytes;             /* used on the card before our context was made */
	uint64_t memory_settle_ns;                /* when own memory is measured; 0: it was, or there is no context */
	uint64_t fault_xid;                       /* the last Xid; 0: none. The caller clears it. */
	uint64_t change_begin_ns;                 /* when our context began to open or close */
	uint64_t process_change_ns;               /* until then new processes may be ours: our context changed */

	struct ll_drive_sample samples[LL_SENSE_SAMPLES]; /* the readings of the metric that this tick brought */
	size_t sample_count;
};

/* Opens the sensors that the metric needs. -ENOSYS: the card has no GPM; err names the metrics that remain. */
int ll_sense_init(struct ll_sense *sense, const struct ll_sense_config *config, struct ll_err *err);
void ll_sense_fini(struct ll_sense *sense);

/* Reads what is due. held_since_ns: since when own kernels have run without a break; 0: they do not run. */
void ll_sense_tick(struct ll_sense *sense, struct ll_pacer *pacer, const struct ll_pacer_report *report,
		   uint64_t held_since_ns);

/* Whether no own kernel has run for 2 s. Everything is then read less often. */
bool ll_sense_is_resting(const struct ll_sense *sense, uint64_t now_ns);

/* Returns when the next reading is due, while the sensors rest. */
uint64_t ll_sense_next_ns(const struct ll_sense *sense);

/* Returns the time up to which foreign work would have been seen. It is now_ns while own kernels run (is_held), and if
 * no reading is available. */
uint64_t ll_sense_looked_until_ns(const struct ll_sense *sense, uint64_t now_ns, bool is_held);

/* Reads the energy counter now. It is otherwise read rarely, and energy before and after a start or stop is booked
 * separately. */
void ll_sense_read_energy(struct ll_sense *sense);

/* Call before our own context is made or closed: changes on the card in the next moments are ours. */
void ll_sense_context_changes(struct ll_sense *sense, bool will_open);

/* Call when the context is open or closed. Own memory is measured soon after. */
void ll_sense_context_changed(struct ll_sense *sense, bool is_open);

/* ---- governor ---- */

/*
 * The thread that decides for one card: sensors -> policy -> controller -> pacer.
 *
 * It ticks 20 times a second while kernels run, and about every 2 s once they have not run for 2 s. The pacer wakes it
 * at once when it has seen something. It puts everything that it decides into the queue of events, and keeps the
 * report of its hold socket up to date.
 */

struct ll_governor_config {
	const struct ll_hold_config *hold;
	const struct ll_card *card;
	const struct ll_places *places; /* where loadlined may be; NULL: nowhere */
	struct ll_hold_socket *hold_socket;
	struct ll_worker *worker; /* shared with other cards; NULL: this card gets one of its own */
	struct ll_event_queue *events;
	uint64_t start_ns; /* of the hold; every time_s counts from here */
};

/* Opens the sensors and makes the pacer. What config points to must outlive the governor. */
int ll_governor_new(const struct ll_governor_config *config, struct ll_governor **ret_governor, struct ll_err *err);

/* Starts the thread. Call it once, after all governors of a shared worker are made, because they add its lanes. */
int ll_governor_start(struct ll_governor *governor, struct ll_err *err);

/* Asks the thread to end its kernels, close the context and put the summary. Returns at once. */
void ll_governor_end(struct ll_governor *governor);

/* Joins the thread and frees. NULL is fine. False: the thread did not end by deadline_ns, because a driver call hangs;
 * nothing is freed then. */
bool ll_governor_free(struct ll_governor *governor, uint64_t deadline_ns);

#endif
