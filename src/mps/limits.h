/*
 * limits.h - what every client of a daemon may have, set and read back.
 *
 * The driver gives these limits to a client when the client starts. A running client keeps its limits.
 */
#ifndef LOADLINE_MPS_LIMITS_H
#define LOADLINE_MPS_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mps/place.h"
#include "mps/servers.h"

struct ll_err;

struct ll_mps_limits {
	double compute_percent; /* active threads of each client; 0: not changed */
	uint64_t memory_bytes;  /* device memory of each client on each card, in whole MiB; 0: not changed */
	const size_t *cards;    /* the cards that the memory limit is for, by the daemon's numbers, from 0 */
	size_t card_count;
};

/*
 * Sets the limits for clients of later servers, and of the servers in list (NULL: none). The daemon answers with status
 * 0 in any case, so each command is followed by a question for the value. -EIO: the daemon has another value. Other
 * errors are those of ll_mps_ask. After an error some limits may be in force. The caller must know that the daemon
 * shows these cards: for a card that it does not show, it drops every limit.
 */
int ll_mps_limits_set(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_limits *limits,
		      const struct ll_mps_list *list, struct ll_err *err);

/* Reads the limits for clients of later servers. A figure that the daemon does not report is 0. Errors of ll_mps_ask.
 * */
int ll_mps_limits_read(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, double *ret_percent,
		       uint64_t *ret_bytes, struct ll_err *err);

struct ll_strbuf;

/*
 * How many SMs a percentage of active threads gives a client. Measured on an H200 with driver 580 (doc/facts.md,
 * "MPS"): a percentage is rounded down to whole pairs of SMs, which are the card's TPCs, and no client gets fewer than
 * eight. Another generation may have another minimum.
 */
enum { LL_MPS_LEAST_SMS = 8 };

/* Returns that number of SMs. sm_count: the card's. */
unsigned ll_mps_share_sms(unsigned sm_count, double percent);

/* Whether a client gets more SMs than the percentage says. */
bool ll_mps_share_is_floor(unsigned sm_count, double percent);

/* Adds "25 % of card 0's 132 SMs: 32 for each client, because MPS rounds down to pairs of SMs". */
void ll_mps_share_add(struct ll_strbuf *out, const char *label, unsigned sm_count, double percent);

#endif
