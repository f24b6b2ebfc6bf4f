/*
 * pacer_loop.h - the loop that launches: one payload context from its making to its end.
 *
 * The only place where foreign work is seen within milliseconds, so in yield mode it stops by itself and tells the
 * governor afterwards. Runs in a worker process (worker.h), there with a
 * thread for each card, and in a thread of the governor's process for tests.
 */
#ifndef LOADLINE_HOLD_PACER_LOOP_H
#define LOADLINE_HOLD_PACER_LOOP_H

struct ll_card;
struct ll_ledger;
struct ll_pacer_shared;
struct ll_payload_ops;

struct ll_pacer_loop_config {
	struct ll_pacer_shared *shared;
	const struct ll_card *card;
	const struct ll_payload_ops *payload_ops;
	const struct ll_ledger *ledger; /* NULL: none */
	int governor_fd;                /* an eventfd, written when the state changes or foreign work is seen; -1 */
	int call_fd;                    /* a non-blocking eventfd: the page has something new for the loop */
};

/*
 * Makes the context, runs it as the page orders, and closes it when told to end or when it is lost; then returns. The
 * page's state is OPEN in between, FAILED or LOST with the error where that is why it returned.
 */
void ll_pacer_loop(const struct ll_pacer_loop_config *config);

#endif
