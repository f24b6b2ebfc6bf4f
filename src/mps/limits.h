/*
 * limits.h - what every client of a daemon may have, set and read back.
 *
 * The driver gives these limits to a client when that starts: one that runs keeps what it began with.
 */
#ifndef LOADLINE_MPS_LIMITS_H
#define LOADLINE_MPS_LIMITS_H

#include <stddef.h>
#include <stdint.h>

#include "mps/place.h"
#include "mps/servers.h"

struct ll_err;

struct ll_mps_limits {
	double compute_percent; /* active threads of each client; 0: as it is */
	uint64_t memory_bytes;  /* device memory of each client on each card; 0: as it is. Whole MiB count */
	const size_t *cards;    /* of the limit of memory: numbers as the daemon shows its cards, from 0 */
	size_t card_count;
};

/*
 * For clients of servers to come, and of the servers in list (NULL: none): each order is followed by asking what
 * holds, for a daemon answers with status 0 in any case. -EIO: the daemon holds another value; errors of ll_mps_ask.
 * Some may be in force
 * then. That the daemon shows these cards is the caller's to know: for one it does not show, it drops every limit.
 */
int ll_mps_limits_set(const struct ll_mps_place *place, uint64_t deadline_ns, const struct ll_mps_limits *limits,
		      const struct ll_mps_list *list, struct ll_err *err);

/* What holds for servers to come. A figure that the daemon does not tell is 0. Errors of ll_mps_ask. */
int ll_mps_limits_read(const struct ll_mps_place *place, uint64_t deadline_ns, size_t card, double *ret_percent,
		       uint64_t *ret_bytes, struct ll_err *err);

#endif
