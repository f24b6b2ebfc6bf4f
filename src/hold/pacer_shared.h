/*
 * pacer_shared.h - the page of a lane, shared by governor and worker: orders one way, reports and finished kernels
 * back.
 *
 * The page is a memfd that both map. It is kept from one worker process to the next, so counters go on. Either side may
 * be killed at any instruction: the lock is robust, and half-written data under it does no harm. eventfds wake, not
 * condition variables, because a process that is killed in one leaves the others hanging. The page has no pointers.
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
#include "protocol/place.h"

enum { LL_PACER_INTERVALS = 8192 }; /* 8 s at the shortest period; the oldest are dropped */

/* Who uses a lane (worker.h). */
enum ll_lane_state {
	LL_LANE_FREE,   /* nothing of the lane is on the card */
	LL_LANE_ASKED,  /* the pacer asks for a context, and no worker has started on it */
	LL_LANE_SERVED, /* a worker makes, runs or closes the context, until it frees the lane or ends */
};

/* What to run. It changes only while the lane is free. */
struct ll_pacer_work {
	char card_uuid[LL_UUID_SIZE]; /* empty: the payload needs no card */
	char payload_name[16];
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	bool may_go_alone; /* if this payload cannot work on the card, the pacer has another one, in another worker */
	struct ll_places jobs_places; /* of loadlined; an empty name: none */
	char jobs_uuid[LL_UUID_SIZE];
};

struct ll_pacer_shared {
	uint64_t magic;
	pid_t governor_pid;
	struct ll_pacer_work work;
	struct ll_parking parking; /* of the lane's thread in the worker */

	pthread_mutex_t lock; /* guards everything below; never held over a system or driver call */
	enum ll_lane_state lane;
	bool is_ending; /* the worker is to close the lane's context */
	struct ll_pacer_order order;
	struct ll_pacer_report report;
	uint32_t halted_generation; /* the generation of orders in which the load stopped itself; 0: none */
	struct ll_interval intervals[LL_PACER_INTERVALS];
	uint64_t intervals_head, intervals_tail;
};

/* Makes a page. The caller unmaps it, and closes *ret_fd, its memfd. */
int ll_pacer_shared_new(struct ll_pacer_shared **ret_shared, int *ret_fd, struct ll_err *err);

/* Maps the page behind fd, which stays open. -EINVAL: fd is not such a page. */
int ll_pacer_shared_map(int fd, struct ll_pacer_shared **ret_shared, struct ll_err *err);

void ll_pacer_shared_unmap(struct ll_pacer_shared *shared); /* NULL is fine */

/* Sets the state, and the error if why is not NULL. Takes the lock. */
void ll_pacer_shared_state(struct ll_pacer_shared *shared, enum ll_pacer_state state, const struct ll_err *why);

/* Makes an ASKED lane SERVED. False: the lane was not ASKED. Takes the lock. */
bool ll_pacer_shared_take_lane(struct ll_pacer_shared *shared);

/* Makes the lane FREE, whose context and kernels are gone; its state CLOSED if it was to end. Call with the lock held.
 */
void ll_pacer_shared_free_lane(struct ll_pacer_shared *shared);

/*
 * Whether the lane failed because its payload cannot work on the card, and the pacer has another payload. As soon as
 * the lane is free, its thread ends and the pacer takes the page to another worker. Call with the lock held.
 */
bool ll_pacer_shared_goes_alone(const struct ll_pacer_shared *shared);

/* Sleeps until ll_pacer_wake was called for this eventfd since the last sleep, at most timeout_ms; -1: without a limit.
 */
void ll_pacer_sleep(int fd, int timeout_ms);

/* Wakes the thread that sleeps on this eventfd or polls it. -1 is fine. */
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
