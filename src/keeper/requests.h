/*
 * requests.h - checks and does each request (protocol/keeper.h).
 */
#ifndef LOADLINE_KEEPER_REQUESTS_H
#define LOADLINE_KEEPER_REQUESTS_H

#include "keeper/hierarchy.h"

struct sd_bus;

struct ll_keeper {
	struct ll_hierarchy hierarchy;
	struct sd_bus *bus; /* LL_GROUPS_SCOPE; NULL: none now */
	const char *proc;   /* "/proc" */
	uid_t client;       /* of loadlined, whose processes get no signal from outside of a job */
	bool is_simulated;  /* simulated cards have no device files, so these are not looked for */
};

/* pidfd: the request's descriptor; -1: it has none. The caller keeps it. The reply is filled in for success and for
 * refusal. */
void ll_keeper_handle(struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
		      struct ll_keeper_reply *ret_reply);

/* The name of a call, for log lines. NULL: there is no such call. */
const char *ll_keeper_call_name(uint32_t call);

#endif
