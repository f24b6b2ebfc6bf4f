/*
 * pacer_shared.h - the page between a governor and its worker: orders one way, reports and finished kernels the other.
 *
 * A memfd, mapped by both and kept from one worker process to the next, so accounts go on. Either side may be killed at
 * any instruction. The lock is robust, and all that is written under it is harmless when half written. Nobody sleeps on
 * a condition variable, for a process that is killed inside one leaves the others hanging: eventfds wake instead.
 *
 * No pointers in it.
 */
#ifndef LOADLINE_HOLD_PACER_SHARED_H
#define LOADLINE_HOLD_PACER_SHARED_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/scope.h"
#include "driver/cards.h"
#include "hold/pacer.h"
#include "hold/parking.h"
#include "ledger/file.h"

enum { LL_PACER_INTERVALS = 8192 }; /* 8 s at the shortest period; the oldest are dropped */

/* Where a lane is between its governor and the worker (worker.h). */
enum ll_lane_state {
	LL_LANE_FREE,   /* nothing of it is on the card */
	LL_LANE_ASKED,  /* a context is asked for and no worker has begun with it; by the pacer */
	LL_LANE_SERVED, /* a worker makes, runs or closes a context; by the worker, until it frees the lane or is gone
			 */
};

/* What to run: never changed but while the lane is free. */
struct ll_pacer_work {
	char card_uuid[LL_UUID_SIZE]; /* empty: the payload needs no card */
	char payload_name[16];
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	bool may_go_alone; /* where this payload cannot work at all, the pacer has another, in another worker */
	char ledger_folder[LL_FOLDER_SIZE]; /* empty: no ledger */
	char ledger_uuid[LL_UUID_SIZE];
};

struct ll_pacer_shared {
	uint64_t magic;
	pid_t governor_pid;
	struct ll_pacer_work work;
	struct ll_parking parking; /* of the lane's thread */

	pthread_mutex_t lock; /* guards all below; never held over a system or driver call */
	enum ll_lane_state lane;
	bool is_ending; /* the worker shall close the lane's context */
	struct ll_pacer_order order;
	struct ll_pacer_report report;
	uint32_t halted_generation; /* the generation the worker stopped itself in, 0 for none */
	struct ll_interval intervals[LL_PACER_INTERVALS];
	uint64_t intervals_head, intervals_tail;
};

/* A fresh page. *ret_fd is its memfd, the caller's to close. */
int ll_pacer_shared_new(struct ll_pacer_shared **ret_shared, int *ret_fd, struct ll_err *err);

/* Maps the page behind fd. -EINVAL: fd is not such a page. */
int ll_pacer_shared_map(int fd, struct ll_pacer_shared **ret_shared, struct ll_err *err);

void ll_pacer_shared_unmap(struct ll_pacer_shared *shared); /* NULL is fine */

/* Sets the state, and with why != NULL the error. Takes the lock. */
void ll_pacer_shared_state(struct ll_pacer_shared *shared, enum ll_pacer_state state, const struct ll_err *why);

/* ASKED becomes SERVED; false: it was not ASKED. Takes the lock. */
bool ll_pacer_shared_take_lane(struct ll_pacer_shared *shared);

/* The lane's context and kernels are gone: it is FREE, and CLOSED if it was told to end. Call with the lock held. */
void ll_pacer_shared_free_lane(struct ll_pacer_shared *shared);

/*
 * Whether the lane failed because its payload cannot work on the card, and there is another. As soon as it is free,
 * its thread ends and the pacer takes the page to another worker. Call with the lock held.
 */
bool ll_pacer_shared_goes_alone(const struct ll_pacer_shared *shared);

/* Sleeps until somebody has waked this eventfd since the last time, for timeout_ms at most; -1: as long as it takes. */
void ll_pacer_sleep(int fd, int timeout_ms);

/* Wakes whoever sleeps on this eventfd, or polls it; -1 is fine. */
void ll_pacer_wake(int fd);

static inline pthread_mutex_t *ll_pacer_shared_lock(struct ll_pacer_shared *shared)
{
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->lock);
	return &shared->lock;
}

/* Locks the page until the end of the scope. */
#define LL_SCOPE_SHARED_LOCK(shared)                                                                                   \
	pthread_mutex_t *scope_lock_ __attribute__((cleanup(ll_scope_unlock), unused)) = ll_pacer_shared_lock(shared)

#endif
