/*
 * liveness.h - whether the owner of something in the ledger still lives. A lock tells, the owner's process
 * (base/process_id.h), or the age of what it wrote. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_LIVENESS_H
#define LOADLINE_LEDGER_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/process_id.h"

/*
 * Locks on one byte of a file. An open file description holds such a lock.
 *
 * The kernel frees the lock when the last descriptor of the description is closed, so when the process has ended at the
 * latest. Two descriptions exclude each other, within one process too. Two threads that use one description do not.
 */

enum { LL_LOCK_HIGH_FD = 512 };

/* Opens a new description of a file by its path: /proc/self/fd/N for a file that is open. The descriptor is 512 or
 * higher if the limit allows it, because programs close or reuse low ones. -errno. */
int ll_lock_open(const char *path);

/* Takes the lock. 0; -EAGAIN: another description has it; another -errno. */
int ll_lock_try(int fd, off_t byte);

/* Takes the lock so that other descriptions may share it, but none has it alone. */
int ll_lock_try_shared(int fd, off_t byte);

/* Whether no other description has the lock, shared or alone. False if that cannot be told. */
bool ll_lock_is_free(int fd, off_t byte);

/* Tries for as long as wait_ms. -ETIMEDOUT. */
int ll_lock_wait(int fd, off_t byte, unsigned wait_ms);

/* Takes all bytes from `byte` on, for this description alone. 0; -EAGAIN: another description has one of them; another
 * -errno. */
int ll_lock_try_all(int fd, off_t byte);

void ll_lock_free(int fd, off_t byte);

/*
 * The age of what another process wrote.
 */

/* Times in the ledger are of CLOCK_MONOTONIC, which all processes share. A time that is ahead of it by more than this
 * is damaged. */
#define LL_CONTENDER_AHEAD_NS UINT64_C(1000000000)
/* No account is larger than the time since the machine started, plus this margin. A larger one is damaged. */
#define LL_CONTENDER_MARGIN_NS UINT64_C(3600000000000)

/* How long ago that was. UINT64_MAX: the time is damaged, and nobody shall wait for it. */
uint64_t ll_contender_elapsed_ns(uint64_t since_ns, uint64_t now_ns);

#endif
