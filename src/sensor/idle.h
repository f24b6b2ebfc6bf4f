/*
 * idle.h - since when a card has had no work, and when a process on it last had some. Arithmetic alone.
 *
 * NVML does not tell processes apart (doc/facts.md): its samples are of the card, of 200 ms each on an H200, in whole
 * percents. So work of less than 2 ms in a sample is not seen. A process had the card's work if it was the only one on
 * the card. Otherwise only the time since then is known: the process's last work is not later than the card's.
 * Times are ll_boot_ns, which goes on while the machine sleeps.
 */
#ifndef LOADLINE_SENSOR_IDLE_H
#define LOADLINE_SENSOR_IDLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

/* A sample older than this does not tell about now: the slowest refresh of NVML is 1 s. */
#define LL_IDLE_FRESH_NS UINT64_C(2500000000)

struct ll_idle_sample {
	uint64_t end_ns, window_ns;
	double percent;
};

/* A card. Zeroed before the first sample. */
struct ll_idle_card {
	uint64_t watched_ns; /* since when it is watched without a gap; 0: it is not */
	uint64_t work_ns;    /* end of the last sample with work since then; 0: none */
	uint64_t seen_ns;    /* end of the newest sample */
	uint64_t busy_ns;    /* sum of work: windows by their percents. Never goes back */
};

/* A process on a card. first_ns: its start, or when it was first seen, whichever is known to be earlier. */
struct ll_idle_process {
	uint64_t own_ns;   /* end of the last work that was certainly its own; 0: none */
	uint64_t maybe_ns; /* end of the last work of the card that may have been its own; 0: none */
};

/* Takes new samples, oldest first. */
void ll_idle_card_take(struct ll_idle_card *card, const struct ll_idle_sample *samples, size_t count);

/* Whether the card had work in its newest sample. Returns false too if that is not fresh. */
bool ll_idle_card_is_busy(const struct ll_idle_card *card, uint64_t now_ns);

/* How long the card has had no work; 0: it has some, or is not watched. */
uint64_t ll_idle_card_idle_ns(const struct ll_idle_card *card, uint64_t now_ns);

/* After the card has taken samples. since_ns: when that was done before. is_alone: no other process was on the card
 * between. */
void ll_idle_process_take(struct ll_idle_process *process, const struct ll_idle_card *card, uint64_t since_ns,
			  bool is_alone);

/* When the process last had work; *ret_ns as in SENSE_PROCESS. start_ns: of the process. */
enum ll_sense_last ll_idle_process_last(const struct ll_idle_process *process, const struct ll_idle_card *card,
					uint64_t start_ns, bool is_alone, uint64_t now_ns, uint64_t *ret_ns);

#endif
