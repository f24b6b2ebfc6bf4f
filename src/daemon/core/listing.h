/*
 * listing.h - makes the messages that list the books, one at a time. The books may change between two messages. A row
 * that is added or removed meanwhile may be listed or not. No row is listed twice.
 */
#ifndef LOADLINE_DAEMON_CORE_LISTING_H
#define LOADLINE_DAEMON_CORE_LISTING_H

#include "daemon/core/server.h"

struct ll_listing {
	uint64_t job, tenant; /* numbers of the last listed ones */
	uint32_t cards;       /* number of listed cards of that job; the job itself is listed if `job` is its number */
	uint32_t slot;        /* slots of the last card below this one are listed */
	uint32_t process;     /* number of listed processes of the job that have no claim */
	uint64_t user;        /* number of the last listed user with claims */
	uint32_t tenants, jobs, processes;
};

/* Makes the next message. Returns false if it is the last one. */
bool ll_listing_next(const struct ll_server *server, struct ll_listing *listing, union ll_message *ret_message);

#endif
