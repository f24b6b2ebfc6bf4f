/*
 * decision_listing.h - makes the messages that list the decisions of a card, one at a time. Between two messages
 * decisions may be added, and the oldest may be dropped. Numbers are then missing, and the reader sends its request
 * again.
 */
#ifndef LOADLINE_DAEMON_ARBITER_DECISION_LISTING_H
#define LOADLINE_DAEMON_ARBITER_DECISION_LISTING_H

#include "daemon/arbiter/cards.h"
#include "protocol/message.h"

struct ll_decision_listing {
	char uuid[LL_CARD_UUID_SIZE]; /* of the card */
	bool has_state;               /* the state was sent */
	uint64_t number;              /* of the last decision */
	unsigned jobs;                /* number of its jobs that were sent */
	uint32_t uid;                 /* whose the last of these was */
};

/* Makes the next message. Returns false if it is the last one. */
bool ll_decision_listing_next(const struct ll_cards *cards, struct ll_decision_listing *listing,
			      union ll_message *ret_message);

#endif
