/*
 * crew.h - the processes that do the probe's work: starts them, gives them orders, waits for them and ends them.
 *
 * Every wait has a deadline: a worker that dies, hangs or cannot start ends the wait with an error. Closing the crew
 * asks every process to end, and then kills it. Only the thread that opened a crew may use it. The workers are killed
 * when that thread ends.
 */
#ifndef LOADLINE_PROBE_CREW_H
#define LOADLINE_PROBE_CREW_H

#include <stddef.h>
#include <stdint.h>

#include "driver/cards.h"
#include "probe/page.h"

struct ll_err;
struct ll_probe_crew;

struct ll_probe_crew_config {
	const struct ll_card *card;
	const char *const *environment; /* "NAME=value" sets, "NAME" removes; NULL-ended; for all workers */
	int signal_fd;                  /* readable when the probe is to end: waits then return -EINTR; -1: none */
	uint64_t order_within_ns; /* for an order, and for the end; 0: the order's own time and a minute, and 3 s */
};

/* Makes a crew without processes. config is copied; what it points to must outlive the crew. */
int ll_probe_crew_open(const struct ll_probe_crew_config *config, struct ll_probe_crew **ret_crew, struct ll_err *err);
void ll_probe_crew_close(struct ll_probe_crew *crew); /* NULL is fine */

/*
 * Starts one more worker, and waits until it has a context or the driver has refused it one; ll_probe_crew_refusal then
 * has the driver's words. -EIO: the worker died or did not answer in time.
 */
int ll_probe_crew_add(struct ll_probe_crew *crew, struct ll_err *err);
/* Returns the number of workers. */
size_t ll_probe_crew_count(const struct ll_probe_crew *crew);

/* Returns why the first refused worker among the first count was refused: "make a context:
 * CUDA_ERROR_DEVICE_UNAVAILABLE (46)". NULL: none was. The text is the crew's. */
const char *ll_probe_crew_refusal(const struct ll_probe_crew *crew, size_t count);

/* Returns the number of SMs that the first worker's context sees. */
uint32_t ll_probe_crew_sms(const struct ll_probe_crew *crew);

/*
 * Runs an order. *ret_kernels: what each launch's kernel saw, in the sequence of the order; the crew's, valid until the
 * next order. -EIO: a driver call failed, a worker died, or the deadline passed: the order's own time on the card, one
 * party after the other, and a minute.
 */
int ll_probe_crew_run(struct ll_probe_crew *crew, const struct ll_probe_order *order,
		      const struct ll_probe_kernel **ret_kernels, struct ll_err *err);

#endif
