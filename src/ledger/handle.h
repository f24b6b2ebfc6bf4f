/*
 * handle.h - what a process keeps of a mapped ledger. Private to src/ledger.
 */
#ifndef LOADLINE_LEDGER_HANDLE_H
#define LOADLINE_LEDGER_HANDLE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/fork.h"
#include "ledger/layout.h"

/*
 * A descriptor that we can tell from others. Programs close descriptors that are not theirs, and the number goes
 * to another file, or to another of our own descriptions of the same file, whose locks are not ours. So each
 * description is marked: its file offset, which nothing here uses, is set to a number that no other has.
 */
struct ll_own_fd {
	int fd;
	off_t mark;
};

#define LL_OWN_FD_NONE                                                                                                 \
	(struct ll_own_fd)                                                                                             \
	{                                                                                                              \
		.fd = -1                                                                                               \
	}

struct ll_ledger {
	struct ll_ledger_file *file;
	struct ll_own_fd scan; /* holds a lock only inside a scan, under mutex, because threads share the description */
	struct ll_own_fd joined; /* shares the locks of the tenants' rows that this process has joined; under mutex */
	pthread_mutex_t mutex;
	uint64_t namespaces; /* this process's, see liveness.h */
	dev_t device;
	ino_t inode;
	struct ll_fork_item fork;
	char path[400];
};

struct ll_claim {
	struct ll_ledger *ledger;
	struct ll_ledger_slot *slot; /* NULL in a forked child: the claim is the parent's */
	unsigned index;
	unsigned tenant_row; /* as in the slot, but nobody else writes it: 1 + row, 0 none */
	uint64_t token;
	bool is_hold;
	struct ll_claim *former; /* the lost claim that this one succeeds; NULL */
	pthread_mutex_t
	    own_mutex; /* guards own: a beat may take the lock again while another claim succeeds this one */
	struct ll_own_fd
	    own; /* a description of its own, which holds the lock of the slot, and a hold's the card's hold lock */
	pthread_mutex_t text_mutex;
	struct ll_fork_item fork;
};

/* Whether the claim is still the caller's: it was not cleared, and this is no forked child. */
static inline bool ll_claim_is_ours(const struct ll_claim *claim)
{
	return claim->slot && claim->slot->token == claim->token;
}

/* Opens ledger->scan anew if it is not ours any more; the mutex is held. With a descriptor of another file every claim
 * would look dead. */
bool ll_ledger_has_scan(struct ll_ledger *ledger);

/*
 * Ends the claim in a slot whose lock the caller has, by description lock_fd. It withdraws the token, takes the memory
 * out of the tenant's total, and cleans the slot. If the caller is killed in between, the next process that looks
 * begins again.
 */
void ll_ledger_clear_slot(struct ll_ledger *ledger, unsigned index, int lock_fd);

/* Whether the descriptor is still open, and is still what it was. */
bool ll_own_fd_is_ours(const struct ll_ledger *ledger, const struct ll_own_fd *own);

/* Closes the descriptor if it is still ours, and forgets it. */
void ll_own_fd_close(const struct ll_ledger *ledger, struct ll_own_fd *own);

/* Opens a new description of this ledger's file. -errno: own is untouched. No fork may come in between (base/fork.h).
 */
int ll_own_fd_open(const struct ll_ledger *ledger, struct ll_own_fd *own);

/* Marks a description that was just opened. */
struct ll_own_fd ll_own_fd_mark(int fd);

#endif
