/*
 * governed.h - the governed programs on a card, as loadlined lists them.
 */
#ifndef LOADLINE_HOLD_GOVERNED_H
#define LOADLINE_HOLD_GOVERNED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct ll_places;

/* How long a governor waits for the list: longer than a loadlined on a busy host needs, and no hold stalls for it. */
#define LL_GOVERNED_WAIT_NS UINT64_C(100000000)

struct ll_governed {
	pid_t pid;
	char tenant[64];
	bool has_work; /* launches that wait or run */
};

/*
 * Asks loadlined, and waits for wait_ns at most. *ret_list is for free(3). -ECONNREFUSED: nobody
 * serves. -ETIMEDOUT: it does not answer. -ESRCH: it is in another PID namespace, so the process ids mean nothing
 * here. Any other -errno.
 */
int ll_governed_list(const struct ll_places *places, const char *uuid, uint64_t wait_ns, struct ll_governed **ret_list,
		     size_t *ret_count);

#endif
