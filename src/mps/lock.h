/*
 * lock.h - turns among those who change something at one place. Private to src/mps.
 */
#ifndef LOADLINE_MPS_LOCK_H
#define LOADLINE_MPS_LOCK_H

#include <stdint.h>

struct ll_err;

/* An exclusive lock on the folder itself, so that no file is left behind; free when *ret_fd is closed, or its holder
 * dead. -EAGAIN: held by another until deadline_ns. */
int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err);

#endif
