/*
 * guest.h - what a library may do in somebody else's program: start a thread, let go of what is its parent's in a
 * forked child, write a file.
 */
#ifndef LOADLINE_BASE_GUEST_H
#define LOADLINE_BASE_GUEST_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- threads ---- */

/*
 * Starts a thread, in which all signals are blocked, so that it handles none of the program's. The signal mask of the
 * caller does not change. stack_bytes: 0: as much as the program's threads have. ret_id: the caller joins the thread;
 * NULL: it is detached. Returns 0 or -errno.
 */
int ll_guest_thread_start(size_t stack_bytes, void *(*entry)(void *), void *arg, pthread_t *ret_id);

/* ---- forks ---- */

/*
 * What a forked child must do at once, such as closing the lock descriptors that it shares with its parent. A lock
 * belongs to the open file description, which a child shares. So the child would keep the parent's claims alive after
 * the parent was killed. An item is a member of the structure that it acts on.
 */
struct ll_fork_item {
	void (*in_child)(struct ll_fork_item *item); /* runs in the child before fork returns: one thread, no locks */
	struct ll_fork_item *next;
	_Atomic bool is_added;
};

/* Between the two calls no thread can fork. So a thread can open a descriptor and store it where in_child finds it.
 * Keep it short. */
void ll_fork_block(void);
void ll_fork_unblock(void);

/* Adds the item, which stays valid until the process ends. If it was added before, this is one load. */
void ll_fork_add(struct ll_fork_item *item);

/* ---- files ---- */

/*
 * Whether a file may have this size. A process that writes past the limit (ulimit -f, RLIMIT_FSIZE) gets SIGXFSZ, which
 * ends it unless it handles the signal. A library sets no handler in another program, so it does not write past the
 * limit. Preserves errno.
 */
bool ll_file_limit_allows(uint64_t bytes);

#endif
