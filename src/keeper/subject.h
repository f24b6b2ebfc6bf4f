/*
 * subject.h - the process that a request is about. A pidfd says which process it is; /proc says the rest. What /proc
 * says holds only if the process lives after it was read, because a later process may have the pid.
 */
#ifndef LOADLINE_KEEPER_SUBJECT_H
#define LOADLINE_KEEPER_SUBJECT_H

#include <stdint.h>
#include <sys/types.h>

#include "protocol/keeper.h"

struct ll_subject {
	int pidfd;
	pid_t pid;
	uint32_t uids[4]; /* real, effective, saved, of the file system */
	char group[LL_GROUP_SIZE];
};

/*
 * Reads the process. proc: "/proc"; tests have a folder of their own. -EBADF: the descriptor is not a pidfd. -ESTALE:
 * it is the pidfd of another process. -ESRCH: the process has ended. Other errors: -errno.
 */
int ll_subject_read(const char *proc, int pidfd, pid_t pid, struct ll_subject *ret_subject);

/* Reads its group again. Errors as above. */
int ll_subject_read_group(const char *proc, struct ll_subject *subject);

/* Whether all its uids are this one. */
bool ll_subject_is_of(const struct ll_subject *subject, uint32_t uid);

#endif
