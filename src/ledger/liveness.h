/*
 * liveness.h - whether the owner of something in the ledger still lives: by a lock, by its process, by how old its
 * words are. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_LIVENESS_H
#define LOADLINE_LEDGER_LIVENESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/*
 * Locks on one byte of a file, held by an open file description.
 *
 * They are freed by the kernel when the last descriptor of the description is closed, so at the latest when its process
 * has ended. Two descriptions exclude each other, within a process too; two threads on one do not.
 */

enum { LL_LOCK_HIGH_FD = 512 };

/* A new description of a file, by path; /proc/self/fd/N for one that is open. Its number is moved up to 512 and above
 * where the limit allows, out of the way of programs that close or reuse low ones. -errno on failure. */
int ll_lock_open(const char *path);

/* 0, -EAGAIN when somebody has it, -errno. */
int ll_lock_try(int fd, off_t byte);

/* The same for a lock that others may share: any number of descriptions, but none that has it alone. */
int ll_lock_try_shared(int fd, off_t byte);

/* Whether nobody else has it, shared or not. False when that cannot be told. */
bool ll_lock_is_free(int fd, off_t byte);

/* Tries for as long as wait_ms. -ETIMEDOUT. */
int ll_lock_wait(int fd, off_t byte, unsigned wait_ms);

/* All bytes from `byte` on, for this description alone: 0, or -EAGAIN when somebody has one of them, -errno. */
int ll_lock_try_all(int fd, off_t byte);

void ll_lock_free(int fd, off_t byte);

/*
 * Which process is it, and is it still there.
 *
 * A pid alone may have been given to somebody else: pid and start time together are unique. Both mean something only
 * within one PID namespace and one time namespace, so a number made from the two goes with them. Where /proc is missing
 * the namespaces are 0 and nothing is ever known to be gone.
 */

struct ll_process_id {
	pid_t pid;
	uint64_t start_ticks;
	uint64_t namespaces;
};

/* What /proc tells of a process, by its number there or "self". -ENOENT or -ESRCH: there is none. */
struct ll_process_stat {
	pid_t pid; /* in the PID namespace of /proc */
	uint64_t start_ticks;
	bool is_dead; /* a zombie */
};
int ll_process_stat(const char *name, struct ll_process_stat *ret_stat);

/* This process. */
struct ll_process_id ll_process_self(void);

/* What identifies the caller's namespaces; 0 when unknown. */
uint64_t ll_process_namespaces(void);

/* Whether /proc has the numbers of the caller's PID namespace: after `unshare --pid --fork` without --mount-proc it has
 * those of the namespace above. */
bool ll_process_has_own_proc(void);

/* True only when it is certain: same namespaces, a /proc of them, and no such process, or a zombie, or one with another
 * start time. */
bool ll_process_is_gone(const struct ll_process_id *process, uint64_t own_namespaces);

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
