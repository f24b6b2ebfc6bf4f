/* How a program loses its claim for good: it closes its descriptors, and others have all claims of the card before it
 * notices.
 */
#ifndef LOADLINE_TESTS_SHIM_LOST_CLAIM_H
#define LOADLINE_TESTS_SHIM_LOST_CLAIM_H

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "ledger/claim.h"
#include "ledger/ledger.h"

/* The first descriptor of a ledger from that one on; -1: none. */
static inline int next_ledger(int fd)
{
	for (; fd < 1024; fd++) {
		char link[64], target[400];
		snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
		ssize_t length = readlink(link, target, sizeof target - 1);
		target[length < 0 ? 0 : length] = '\0';
		if (strstr(target, ".ledger"))
			return fd;
	}
	return -1;
}

/* The test's own, of all that there are now. */
static inline void note_ledgers(bool ret_kept[1024])
{
	for (int fd = next_ledger(3); fd >= 0; fd = next_ledger(fd + 1))
		ret_kept[fd] = true;
}

/* The program closes descriptors that are not its own, and others have its claim before it notices. `kept` are the
 * test's. */
static inline struct ll_claim *take_from_program(struct ll_ledger *ledger, const bool kept[1024])
{
	struct ll_claim_wish wish = {.priority = LL_PRIORITY_NORMAL, .tenant = "other"};
	struct ll_claim *claim = NULL;
	for (int fd = next_ledger(3); fd >= 0; fd = next_ledger(fd + 1)) {
		if (!kept[fd])
			syscall(SYS_close, fd); /* past the thread sanitizer, which minds that others use them */
	}
	return ll_claim_take(ledger, &wish, "0", &claim, NULL) == 0 ? claim : NULL;
}

#endif
