/*
 * decision_listing.h - what was decided of a card, as messages, one at a time. Between two of them decisions may come,
 * and the oldest go: then numbers are missing, and who reads them asks again.
 */
#ifndef LOADLINE_DAEMON_DECISION_LISTING_H
#define LOADLINE_DAEMON_DECISION_LISTING_H

#include "daemon/cards.h"
#include "protocol/message.h"

struct ll_decision_listing {
	char uuid[LL_CARD_UUID_SIZE]; /* of the card */
	bool has_state;               /* the state was sent */
	uint64_t number;              /* of the last decision */
	unsigned jobs;                /* so many of its jobs were sent */
};

/* Makes the next message. False: it is the last one. */
bool ll_decision_listing_next(const struct ll_cards *cards, struct ll_decision_listing *listing,
			      union ll_message *ret_message);

#endif
