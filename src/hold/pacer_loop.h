/*
 * pacer_loop.h - the loop that launches: one payload context from open to close.
 *
 * Only this loop sees foreign work within milliseconds. So in yield mode it stops by itself first, and then tells the
 * governor. It runs in a worker process (worker.h), in a thread for each card; in tests in a thread of the governor's
 * process.
 */
#ifndef LOADLINE_HOLD_PACER_LOOP_H
#define LOADLINE_HOLD_PACER_LOOP_H

#include "base/clock.h"

/* A kernel this late has not started: other work has the card. */
#define LL_PACER_STALL_NS (250 * LL_NS_PER_MS)

struct ll_card;
struct ll_pacer_shared;
struct ll_payload_ops;

struct ll_pacer_loop_config {
	struct ll_pacer_shared *shared;
	const struct ll_card *card;
	const struct ll_payload_ops *payload_ops;
	int governor_fd; /* an eventfd, written when the state changes or foreign work is seen; -1: none */
	int call_fd;     /* a non-blocking eventfd, written when the page has something new */
};

/*
 * Makes the context, runs it as the page orders, and closes it when the page says so or when it is lost; then returns.
 * The page's state is OPEN in between. On an error the state is FAILED or LOST, and report.err has the error.
 */
void ll_pacer_loop(const struct ll_pacer_loop_config *config);

#endif
