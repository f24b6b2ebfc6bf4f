/*
 * sensor.h - what loadline-sensor is made of.
 */
#ifndef LOADLINE_SENSOR_SENSOR_H
#define LOADLINE_SENSOR_SENSOR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/message.h"

struct ll_err;
struct ll_sense;

/* ---- sense ---- */

/*
 * Reads the cards and the processes on them, and makes the messages of a round (protocol/message.h).
 *
 * A card is known by its UUID, so what the sensor has seen of it survives a reload of the driver.
 */

/* Gets each message of a round, in their order. Returns 0, or -errno, which ends the round. */
typedef int (*ll_sense_give_fn)(void *data, union ll_message *message, struct ll_err *err);

/* Opens no driver yet. -ENOMEM. */
int ll_sense_new(struct ll_sense **ret_sense);
void ll_sense_free(struct ll_sense *sense); /* NULL is fine */

/*
 * Reads everything and gives the messages, SENSE_END last. Opens the driver if it is not open, and lists the cards anew
 * each minute, and if one does not answer. Without a driver it gives SENSE_END alone, with the reason. Returns what
 * give returned. A call into the driver may hang, and then this function does.
 */
int ll_sense_round(struct ll_sense *sense, ll_sense_give_fn give, void *data, struct ll_err *err);

/* ---- idle ---- */

/*
 * Since when a card has had no work, and when a process on it last had some. Arithmetic alone.
 *
 * NVML does not tell processes apart (doc/facts.md): its samples are of the card, of 200 ms each on an H200, in whole
 * percents. So work of less than 2 ms in a sample is not seen. A process had the card's work if it was the only one on
 * the card. Otherwise only the time since then is known: the process's last work is not later than the card's.
 * Times are ll_boot_ns, which goes on while the machine sleeps.
 */

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

/* ---- trial ---- */

/*
 * Tries whether a card lets a program set its own time on it, as an ordinary user: by two contexts of its
 * own, on a card that is otherwise idle.
 *
 * What a card and its driver do is measured and not concluded from versions: some keep a slice and ignore it, and a
 * later driver may refuse a call. Two processes launch as much as the card takes. Their slices are set as 4 : 1, and
 * their progress is compared. Then one is taken off the card beside the other, then both, and then both are let on
 * again. At the end all that their kernels have computed must be right.
 */

/* How a program can set its own time on the card (src/slices). */
enum ll_trial_lever {
	LL_TRIAL_SLICES = 1,  /* the length of its time slices */
	LL_TRIAL_COMMITS = 2, /* that counts only after a preemption */
	LL_TRIAL_OFF = 4,     /* it can be taken off the card, and let on again */
};

struct ll_trial_result {
	unsigned levers;                /* enum ll_trial_lever */
	double ratio;                   /* of their progress; 4 was asked for */
	bool was_full;                  /* both had work for the card all the time, so that the ratio tells something */
	uint64_t set_ns, off_ns, on_ns; /* how long a call took */
	uint64_t kernels, wrong;        /* kernels, and those with a wrong result */
};

/*
 * Takes some 3 to 5 s. Makes two processes and a context in each; they end with the caller. Call it in a process that
 * has not used CUDA, and has one thread. Errors: no driver, no such card, no context, or a process that does not
 * answer.
 */
int ll_trial_run(const char *uuid, struct ll_trial_result *ret_result, struct ll_err *err);

#endif
