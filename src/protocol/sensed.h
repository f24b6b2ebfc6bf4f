/*
 * sensed.h - asks loadlined what its sensor reports of the cards and the processes on them.
 */
#ifndef LOADLINE_PROTOCOL_SENSED_H
#define LOADLINE_PROTOCOL_SENSED_H

#include "protocol/client.h"

/* A sensor reports each 5 s. What is older than this does not tell about now. */
#define LL_SENSED_FRESH_NS UINT64_C(15000000000)

struct ll_sensed {
	struct ll_message_sense_card *cards;
	struct ll_message_sense_process *processes;
	size_t card_count, process_count;
	struct ll_message_sense_drained *drained;
	size_t drained_count;
	struct ll_message_sense_end end; /* silent_ns: UINT64_MAX: there is no sensor */
};

/* Reads all rows. Call ll_sensed_fini after success and after failure. -ENOTSUP: an older loadlined. */
int ll_sensed_read(struct ll_sensed *sensed, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err);
void ll_sensed_fini(struct ll_sensed *sensed);

/* Returns the row of a process on a card; NULL: there is none, or the report is not fresh. */
const struct ll_message_sense_process *ll_sensed_find(const struct ll_sensed *sensed, const char *uuid, uint32_t pid);

#endif
