/*
 * crew.h - the probe's side of its processes: starts them, gives them orders, waits for them, ends them.
 *
 * Nothing is waited for without an end: a worker that dies, hangs or cannot start ends the wait with an error, and
 * closing the crew ends every process, asked first and killed then. One thread uses a crew, the same that opened it:
 * the workers die with it.
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
	const char *const *environment; /* "NAME=value" to set, "NAME" to take away; NULL-ended; for all its workers */
	int signal_fd;                  /* readable when the probe is to end: waits return -EINTR; -1: none */
	uint64_t order_within_ns;       /* for an order, and for the end; 0: a minute and the order's own time, 3 s */
};

/* No process yet. */
int ll_probe_crew_open(const struct ll_probe_crew_config *config, struct ll_probe_crew **ret_crew, struct ll_err *err);
void ll_probe_crew_close(struct ll_probe_crew *crew); /* NULL is fine */

/*
 * Starts one more worker and waits until it has its context or has been refused one: the driver's words are then in
 * ll_probe_crew_refusal. -EIO: it died or did not answer in time.
 */
int ll_probe_crew_add(struct ll_probe_crew *crew, struct ll_err *err);
size_t ll_probe_crew_count(const struct ll_probe_crew *crew);

/* "make a context: CUDA_ERROR_DEVICE_UNAVAILABLE (46)": of the first worker that was refused, among the first count;
 * NULL when none was. The crew's. */
const char *ll_probe_crew_refusal(const struct ll_probe_crew *crew, size_t count);

/* Of the first worker: SMs of its card as its context sees them. */
uint32_t ll_probe_crew_sms(const struct ll_probe_crew *crew);

/*
 * Has an order carried out. *ret_kernels: one account for each launch, in the order's order; the crew's, until the next
 * one. -EIO: a driver call failed, a worker died, or the deadline passed (the order's own time on the card, one party
 * after the other, and a generous while).
 */
int ll_probe_crew_run(struct ll_probe_crew *crew, const struct ll_probe_order *order,
		      const struct ll_probe_kernel **ret_kernels, struct ll_err *err);

#endif
