/*
 * sense.h - everything a governor knows from readings: NVML, GPM, the process list, the ledger.
 *
 * Each source has its own rhythm; a tick reads what is due and returns at once. Foreign work is reported as the
 * instant it was last seen and by which sensor. What only the own kernels can see comes from the pacer's report,
 * which is merged here, so that the governor asks one place.
 *
 *   sensor                  sees foreign work after       read every
 *   own kernels (pacer)     ms                            tick
 *   ledger                  us, governed programs only    pacer's tick
 *   process list, memory    arrivals, 200 ms              200 ms
 *   total minus own         200-600 ms, 1.2 s at worst    200 ms to 1 s
 *
 * Two seconds after the last own kernel it rests. Then utilisation is read when the quiet that a resume waits for could
 * be complete, and every 4 s, which brings all windows since the last time; the rest is read in the same wake-ups:
 *
 *   process list, memory, power, Xid   2 s; 4 s beside work that the newest window showed
 *   temperature, slowdown              4 s; 8 s beside work
 *   energy                             30 s
 */
#ifndef LOADLINE_HOLD_SENSE_H
#define LOADLINE_HOLD_SENSE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "control/foreign.h"
#include "control/process_watch.h"
#include "driver/gpm.h"
#include "driver/readings.h"
#include "driver/xid.h"
#include "hold/config.h"
#include "hold/drive.h"
#include "hold/pacer.h"

enum { LL_SENSE_SAMPLES = 64 }; /* of a look: NVML keeps 14 s, 70 windows */

/* What utilisation readings are needed for while holding: how often they are made follows from it. */
enum ll_sense_use {
	LL_SENSE_UTIL_TRIMS,    /* a slow trim, and to be shown: own kernels do the watching */
	LL_SENSE_UTIL_CONTROLS, /* fill: the loop runs on them */
	LL_SENSE_UTIL_WATCHES,  /* an MPS client: foreign work shows in them alone */
};

struct ll_sense_config {
	const struct ll_card *card;
	enum ll_metric metric;
	enum ll_sense_use use;
	uint64_t resume_after_ns; /* the quiet that a resume waits for: resting, utilisation is read for its sake */
	FILE *kernel_log;      /* a line per own kernel: card, start and end on the card's clock, flags; NULL: none */
	bool watches_arrivals; /* yield mode: processes that come count as foreign work */
};

/* Where the last reading of each source stands; NAN: none. */
struct ll_sense_values {
	double util, own_util; /* of one NVML window */
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
	uint64_t samples_due_ns; /* resting: all samples at the latest then */
	uint64_t gpm_start_ns;
	uint64_t readings_seen_ns; /* last good utilisation (or GPM) reading; 0 never */
	uint64_t known_until_ns;   /* end of the newest utilisation window read */
	uint64_t failing_since_ns; /* 0: readings work */
	uint64_t stopped_since_ns; /* since when kernels have not run; now, while they do */
	uint64_t gone_since_ns;    /* 0: the card answers */
	uint64_t missing_since_ns; /* GPM answers without the metric that is held; 0: it has it */
	uint64_t unread_since_ns;  /* GPM does not answer; 0: it does */
	struct ll_err last_err;    /* of the last reading that failed */
	uint64_t foreign_seen_ns;
	enum ll_hold_sensor foreign_sensor;
	struct ll_foreign_verdict foreign_window; /* of the last window that showed foreign work */
	uint64_t pacer_seen_ns;                   /* the pacer's foreign_seen_ns already merged */
	uint64_t memory_before_bytes;             /* used on the card before our context */
	uint64_t memory_settle_ns;                /* own memory is not yet steady before this */
	uint64_t fault_xid;                       /* last Xid, 0 none; the caller clears it */
	uint64_t change_begin_ns;                 /* own context began to open or close then */
	uint64_t process_change_ns;               /* own context opened or closed until then: arrivals are ours */

	struct ll_drive_sample samples[LL_SENSE_SAMPLES]; /* the metric's new readings of this tick */
	size_t sample_count;
};

/* Opens what the metric needs. -ENOSYS: this card has no GPM (the text says which metrics remain). */
int ll_sense_init(struct ll_sense *sense, const struct ll_sense_config *config, struct ll_err *err);
void ll_sense_fini(struct ll_sense *sense);

/* One pass. held_since_ns: since when kernels have been running without a break; 0: they are not. */
void ll_sense_tick(struct ll_sense *sense, struct ll_pacer *pacer, const struct ll_pacer_report *report,
		   uint64_t held_since_ns);

/* No kernel of ours has run for 2 s: then everything is looked at less often. */
bool ll_sense_is_resting(const struct ll_sense *sense, uint64_t now_ns);

/* Resting: when the next tick has something to read. */
uint64_t ll_sense_next_ns(const struct ll_sense *sense);

/* Until when foreign work would have been sensed. now_ns while own kernels run (held) and where no reading tells. */
uint64_t ll_sense_looked_until_ns(const struct ll_sense *sense, uint64_t now_ns, bool is_held);

/* Reads the energy counter now: it is read rarely, and what was used before a start or a stop is another account. */
void ll_sense_read_energy(struct ll_sense *sense);

/* Before our own context is made or destroyed: what changes on the card in the next moments is ours. */
void ll_sense_context_changes(struct ll_sense *sense, bool will_open);

/* The context is there or gone: own memory is measured from here. */
void ll_sense_context_changed(struct ll_sense *sense, bool is_open);

#endif
