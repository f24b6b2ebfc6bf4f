/*
 * governed.h - the governed programs on a card, as loadlined lists them.
 */
#ifndef LOADLINE_HOLD_GOVERNED_H
#define LOADLINE_HOLD_GOVERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

struct ll_places;

struct ll_governed {
	pid_t pid;
	char tenant[64];
	bool has_work; /* launches that wait or run */
};

/*
 * Asks loadlined, and waits for 0.1 s at most. *ret_list is for free(3). -ECONNREFUSED: nobody
 * serves. -ETIMEDOUT: it does not answer. -ESRCH: it is in another PID namespace, so the process ids mean nothing
 * here. Any other -errno.
 */
int ll_governed_list(const struct ll_places *places, const char *uuid, struct ll_governed **ret_list,
		     size_t *ret_count);

#endif
