#include "shim/time/timing_clock.h"

#include <time.h>

#include "base/clock.h"
#include "base/scope.h"
#include "rules/share/batch.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"

/* ---- the lock ---- */

/* The agent holds the mutex for some us in each ms. A thread that launches meanwhile spins on the mutex, because this
 * takes less time than a sleep. */
static void init_mutex(pthread_mutex_t *mutex)
{
	pthread_mutexattr_t attr;
	pthread_mutexattr_init(&attr);
#ifdef PTHREAD_ADAPTIVE_MUTEX_INITIALIZER_NP /* not in musl */
	pthread_mutexattr_settype(&attr, PTHREAD_MUTEX_ADAPTIVE_NP);
#endif
	pthread_mutex_init(mutex, &attr);
	pthread_mutexattr_destroy(&attr);
}

void ll_timing_lock_init(struct ll_timing_lock *lock)
{
	pthread_condattr_t attr;
	init_mutex(&lock->mutex);
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	pthread_cond_init(&lock->done, &attr);
	pthread_condattr_destroy(&attr);
	lock->recording = 0;
}

void ll_timing_lock_fini(struct ll_timing_lock *lock)
{
	pthread_cond_destroy(&lock->done);
	pthread_mutex_destroy(&lock->mutex);
}

void ll_timing_lock_let_go(struct ll_timing_lock *lock)
{
	if (!lock)
		return;
	lock->recording++;
	pthread_mutex_unlock(&lock->mutex);
}

void ll_timing_lock_take_back(struct ll_timing_lock *lock)
{
	if (!lock)
		return;
	pthread_mutex_lock(&lock->mutex);
	lock->recording--;
	pthread_cond_broadcast(&lock->done);
}

bool ll_timing_lock_wait(struct ll_timing_lock *lock, uint64_t until_ns)
{
	LL_SCOPE_NO_CANCEL;
	struct timespec until = {.tv_sec = (time_t)(until_ns / LL_NS_PER_S), .tv_nsec = (long)(until_ns % LL_NS_PER_S)};
	return lock && pthread_cond_timedwait(&lock->done, &lock->mutex, &until) == 0;
}

void ll_timing_lock_settle(struct ll_timing_lock *lock)
{
	uint64_t until_ns = ll_now_ns() + LL_TIMING_LOCK_WAIT_NS;
	while (lock->recording && ll_timing_lock_wait(lock, until_ns))
		;
}

/* ---- the clock ---- */

/* At this distance from the base, a time in ms as a float is exact to 8 ns. */
#define REBASE_NS (100 * LL_NS_PER_MS)

/* Time between two rows. After this time a host that was too slow for a row may be fast enough. */
#define ROW_EVERY_NS (20 * LL_NS_PER_MS)

/* The card time of the first base. Any number with enough room below it is good, because work of other streams may have
 * ended long before the card reaches the first timing event. */
#define ORIGIN_NS (1000000 * LL_NS_PER_S)

void ll_timing_clock_init(struct ll_timing_clock *clock, struct ll_timing_lock *lock)
{
	*clock = (struct ll_timing_clock){.lock = lock, .base_ns = ORIGIN_NS, .event_ns = LL_BATCH_EVENT_NS};
}

static void drop_row(struct ll_timing_clock *clock)
{
	for (size_t i = 0; i < LL_EVENT_ROW; i++) {
		ll_timing_drop(clock, clock->row.events[i]);
		clock->row.events[i] = NULL;
	}
	clock->row.is_recorded = false;
}

void ll_timing_clock_fini(struct ll_timing_clock *clock, bool destroys_events)
{
	if (destroys_events)
		drop_row(clock);
	for (size_t i = 0; destroys_events && i < clock->free_count; i++)
		ll_real()->cuEventDestroy_v2(clock->free_events[i]);
	if (destroys_events && clock->base)
		ll_real()->cuEventDestroy_v2(clock->base);
	ll_timing_clock_init(clock, clock->lock);
}

static struct ll_cu_event *take_event(struct ll_timing_clock *clock)
{
	struct ll_cu_event *event = NULL;
	if (clock->free_count)
		return clock->free_events[--clock->free_count];
	if (ll_real()->cuEventCreate(&event, LL_CU_EVENT_DEFAULT) != LL_CUDA_SUCCESS)
		clock->is_blind = true;
	return clock->is_blind ? NULL : event;
}

bool ll_timing_can_record(const struct ll_timing_clock *clock)
{
	return !clock->is_blind && !clock->is_basing;
}

static bool wants_row(const struct ll_timing_clock *clock)
{
	const struct ll_timing_row *row = &clock->row;
	return !row->events[0] && ll_event_gauge_wants_row(&clock->gauge) &&
	       (!row->begun_ns || ll_now_ns() - row->begun_ns >= ROW_EVERY_NS);
}

static bool take_row(struct ll_timing_clock *clock)
{
	for (size_t i = 0; i < LL_EVENT_ROW && !clock->is_blind; i++)
		clock->row.events[i] = take_event(clock);
	return !clock->is_blind;
}

static ll_cu_result record_base(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_cu_event *base)
{
	clock->base_host_ns = ll_now_ns();
	return ll_real()->cuEventRecord(base, stream);
}

static ll_cu_result record_row(struct ll_timing_row *row, struct ll_cu_stream *stream)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	row->begun_ns = ll_now_ns();
	for (size_t i = 0; status == LL_CUDA_SUCCESS && i < LL_EVENT_ROW; i++) {
		status = ll_real()->cuEventRecord(row->events[i], stream);
		row->host_ns[i] = ll_now_ns();
	}
	return status;
}

/* Records the events, with the lock released. A stream that has work gets no row, because its queue may only have room
 * for the next launch. */
static bool record_events(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_cu_event *base,
			  struct ll_timing_row *row, struct ll_timing_event *event)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	ll_timing_lock_let_go(clock->lock);
	bool makes_row = row && ll_stream_is_idle(stream);
	if (base)
		status = record_base(clock, stream, base);
	if (makes_row && status == LL_CUDA_SUCCESS)
		status = record_row(row, stream);
	event->host_ns = ll_now_ns();
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuEventRecord(event->handle, stream);
	event->call_ns = ll_now_ns() - event->host_ns;
	ll_timing_lock_take_back(clock->lock);
	if (row)
		row->is_recorded = makes_row;
	return status == LL_CUDA_SUCCESS;
}

bool ll_timing_record(struct ll_timing_clock *clock, struct ll_cu_stream *stream, struct ll_timing_event *ret_event)
{
	bool makes_base = !clock->base;
	struct ll_cu_event *base = makes_base ? take_event(clock) : NULL;
	struct ll_timing_row *row = wants_row(clock) && take_row(clock) ? &clock->row : NULL;
	struct ll_timing_event event = {.handle = take_event(clock)};
	if (clock->is_blind)
		return false;
	clock->is_basing = makes_base;
	bool is_recorded = record_events(clock, stream, base, row, &event);
	if (makes_base) {
		clock->is_basing = false;
		clock->base = base;
	}
	if (row && !row->is_recorded)
		drop_row(clock);
	if (is_recorded)
		*ret_event = event;
	else
		clock->is_blind = true;
	return is_recorded;
}

bool ll_timing_has_ended(struct ll_timing_clock *clock, struct ll_cu_event *event)
{
	ll_cu_result status = ll_real()->cuEventQuery(event);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_READY)
		clock->is_blind = true;
	return status == LL_CUDA_SUCCESS;
}

/* Returns the time between two events that have ended. It is negative if `end` was reached first. */
static double between_ns(struct ll_timing_clock *clock, struct ll_cu_event *start, struct ll_cu_event *end)
{
	float ms = 0;
	if (ll_real()->cuEventElapsedTime(&ms, start, end) != LL_CUDA_SUCCESS)
		clock->is_blind = true;
	return clock->is_blind ? 0 : (double)ms * 1e6;
}

static void read_row(struct ll_timing_clock *clock)
{
	struct ll_event_row row = {.host_ns = {clock->row.host_ns[0]}};
	for (size_t i = 1; i < LL_EVENT_ROW; i++) {
		row.host_ns[i] = clock->row.host_ns[i];
		row.card_ns[i] = (uint64_t)between_ns(clock, clock->row.events[0], clock->row.events[i]);
	}
	drop_row(clock);
	if (clock->is_blind)
		return;
	ll_event_gauge_add(&clock->gauge, &row);
	uint64_t ns = ll_event_gauge_ns(&clock->gauge);
	clock->event_ns = ns > LL_BATCH_EVENT_NS ? ns : LL_BATCH_EVENT_NS;
}

bool ll_timing_clock_runs(struct ll_timing_clock *clock)
{
	if (!clock->has_base_ended && clock->base && !clock->is_blind) {
		clock->has_base_ended = ll_timing_has_ended(clock, clock->base);
		if (clock->has_base_ended)
			ll_clock_fit_add(&clock->fit, clock->base_host_ns, clock->base_ns);
	}
	if (clock->has_base_ended && clock->row.is_recorded && !clock->is_blind &&
	    ll_timing_has_ended(clock, clock->row.events[LL_EVENT_ROW - 1]))
		read_row(clock);
	return clock->has_base_ended && !clock->is_blind;
}

static uint64_t card_ns(struct ll_timing_clock *clock, struct ll_cu_event *event)
{
	double ns = (double)clock->base_ns + between_ns(clock, clock->base, event);
	return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t wait_ns(struct ll_timing_clock *clock, uint64_t host_ns, uint64_t event_ns)
{
	ll_clock_fit_add(&clock->fit, host_ns, event_ns);
	return event_ns - ll_clock_fit_to_card(&clock->fit, host_ns);
}

/* An event cannot have waited for longer than the time since it was recorded. If the result says so, one of the clocks
 * has jumped, and the fit starts again. */
struct ll_timing_stamp ll_timing_read(struct ll_timing_clock *clock, const struct ll_timing_event *event)
{
	uint64_t event_ns = card_ns(clock, event->handle);
	uint64_t since_ns = wait_ns(clock, event->host_ns, event_ns);
	if (since_ns > ll_now_ns() - event->host_ns) {
		clock->fit.has_fit = false;
		since_ns = wait_ns(clock, event->host_ns, event_ns);
	}
	uint64_t late_ns = event->call_ns > LL_TIMING_CALL_NS ? event->call_ns - LL_TIMING_CALL_NS : 0;
	return (struct ll_timing_stamp){.card_ns = event_ns, .wait_ns = since_ns > late_ns ? since_ns - late_ns : 0};
}

uint64_t ll_timing_host_ns(const struct ll_timing_clock *clock, uint64_t card_time_ns)
{
	return ll_clock_fit_to_host(&clock->fit, card_time_ns);
}

uint64_t ll_timing_card_ns(const struct ll_timing_clock *clock, uint64_t host_ns)
{
	return ll_clock_fit_to_card_earliest(&clock->fit, host_ns);
}

void ll_timing_drop(struct ll_timing_clock *clock, struct ll_cu_event *event)
{
	if (!event)
		return;
	if (clock->free_count < LL_TIMING_FREE_EVENTS)
		clock->free_events[clock->free_count++] = event;
	else
		ll_real()->cuEventDestroy_v2(event);
}

void ll_timing_drop_ended(struct ll_timing_clock *clock, struct ll_cu_event *event, uint64_t event_ns)
{
	if (event && event_ns >= clock->base_ns + REBASE_NS) {
		ll_timing_drop(clock, clock->base);
		clock->base = event;
		clock->base_ns = event_ns;
		return;
	}
	ll_timing_drop(clock, event);
}
