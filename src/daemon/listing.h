/*
 * listing.h - the books as messages, one at a time. Between two of them the books may change: a row that comes or goes
 * meanwhile is there or not, and no row comes twice.
 */
#ifndef LOADLINE_DAEMON_LISTING_H
#define LOADLINE_DAEMON_LISTING_H

#include "daemon/server.h"

struct ll_listing {
	uint64_t job, tenant; /* numbers of the last ones */
	uint32_t cards;       /* so many of that job's were listed; the job itself was if `job` is its number */
	uint32_t slot;        /* of the last of these: slots below this one were */
	uint32_t process;     /* so many of its processes without a claim were listed */
	uint64_t user;        /* number of the last of those with claims */
	uint32_t tenants, jobs, processes;
};

/* Makes the next message. False: it is the last one. */
bool ll_listing_next(const struct ll_server *server, struct ll_listing *listing, union ll_message *ret_message);

#endif
