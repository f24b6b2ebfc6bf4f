/*
 * mismatch.h - whether what a job reports agrees with what the driver says (machine.h).
 *
 * Memory: the driver counts the memory of each process on a card. That of a job's processes must not be above what the
 * job's page says, with a tolerance of 1 GiB for each process and 2 %: the library estimates contexts, or leaves them
 * out (--count-context=no), and does not charge the code of kernels (doc/run.md). On one H100 the driver counted 84 MiB
 * more for a product of matrices in PyTorch. A process of the job without the library has no memory in the page, so it
 * is found here. One reading may be of another moment than the page; so two rounds in a row must say so.
 *
 * A process of a job that is on a card and has no claim there is beyond the job's limits, whatever the sums say.
 *
 * With `mismatch: {action: stop}` of the configuration a job whose memory does not agree is stopped (job_stop.h), and
 * one with a process that has no claim. A job that has neither a place in the queue nor a control group is reported
 * alone.
 *
 * Time: a job's GPU time in a period must not be above the time in which the card had work of anybody. The period is 20
 * s or more, and the tolerance 20 % of it, since NVML counts in samples. The opposite cannot be told: the driver's
 * utilisation is of the whole card, and reads too high beside other contexts (doc/facts.md).
 */
#ifndef LOADLINE_DAEMON_MACHINE_MISMATCH_H
#define LOADLINE_DAEMON_MACHINE_MISMATCH_H

#include <stdbool.h>
#include <stdint.h>

struct ll_server;
struct ll_message_sense_process;
struct ll_job_card;

/* Of a job on a card. Zeroed when the job joins the card. */
struct ll_mismatch {
	uint64_t driver_bytes;  /* of the last round; 0: unknown */
	unsigned memory_rounds; /* rounds in a row in which the memory did not agree */
	bool is_time_wrong;
	uint64_t begin_ns, gpu_ns, busy_ns; /* at the beginning of the present period; begin_ns 0: there is none */
	uint64_t checked_ns, checked_gpu_ns, checked_busy_ns; /* the last period: its length, and the two differences */
};

/* A round of the sensor has arrived: checks all jobs, and logs what has begun not to agree. */
void ll_mismatch_look(struct ll_server *server);

/* A process of a job that has no claim was seen twice: stops the job if that is configured. */
void ll_mismatch_stop(struct ll_server *server, const struct ll_message_sense_process *process);

/* Whether the job's memory or time on the card does not agree. */
bool ll_mismatch_has_memory(const struct ll_job_card *card);
bool ll_mismatch_has_time(const struct ll_job_card *card);

#endif
