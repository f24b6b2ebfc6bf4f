#include "shim/mark_clock.h"

#include "base/clock.h"
#include "control/batch.h"
#include "shim/real.h"

/* A single-precision count of ms is exact to 8 ns this far from its base. */
#define REBASE_NS (100 * LL_NS_PER_MS)

/* Events are so much farther apart than the calls that recorded them where the first kept the second waiting. */
#define QUEUED_NS 300
/* What takes longer than this was not an event alone: 2.9 us is the most that was seen (doc/facts.md). */
#define EVENT_MOST_NS 5000

/* Any will do that leaves room below it: other streams may be done long before the first mark of all is reached. */
#define ORIGIN_NS (1000000 * LL_NS_PER_S)

void ll_mark_clock_init(struct ll_mark_clock *clock, struct ll_mark_lock *lock)
{
	*clock = (struct ll_mark_clock){.lock = lock, .base_ns = ORIGIN_NS, .event_ns = LL_BATCH_EVENT_NS};
}

void ll_mark_clock_fini(struct ll_mark_clock *clock, bool destroys_events)
{
	for (size_t i = 0; destroys_events && i < clock->spare_count; i++)
		ll_real()->cuEventDestroy_v2(clock->spare[i]);
	if (destroys_events && clock->base)
		ll_real()->cuEventDestroy_v2(clock->base);
	for (size_t i = 0; destroys_events && i < LL_MARK_GAUGE_EVENTS; i++) {
		if (clock->gauge[i])
			ll_real()->cuEventDestroy_v2(clock->gauge[i]);
	}
	ll_mark_clock_init(clock, clock->lock);
}

static struct ll_cu_event *take(struct ll_mark_clock *clock)
{
	struct ll_cu_event *event = NULL;
	if (clock->spare_count)
		return clock->spare[--clock->spare_count];
	if (ll_real()->cuEventCreate(&event, LL_CU_EVENT_DEFAULT) != LL_CUDA_SUCCESS)
		clock->is_blind = true;
	return clock->is_blind ? NULL : event;
}

bool ll_mark_can_record(const struct ll_mark_clock *clock)
{
	return !clock->is_blind && !clock->is_basing;
}

static ll_cu_result record_base(struct ll_mark_clock *clock, struct ll_cu_stream *stream, struct ll_cu_event *base)
{
	ll_cu_result status = ll_real()->cuEventRecord(base, stream);
	uint64_t before_ns = ll_now_ns();
	for (size_t i = 0; status == LL_CUDA_SUCCESS && i < LL_MARK_GAUGE_EVENTS; i++) {
		status = ll_real()->cuEventRecord(clock->gauge[i], stream);
		uint64_t now_ns = ll_now_ns();
		clock->gauge_ns[i] = now_ns - before_ns;
		before_ns = now_ns;
	}
	return status;
}

/* In the driver the lock is not held. */
static bool record(struct ll_mark_clock *clock, struct ll_cu_stream *stream, struct ll_cu_event *base,
		   struct ll_mark_event *event)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	ll_mark_lock_let_go(clock->lock);
	if (base)
		status = record_base(clock, stream, base);
	event->host_ns = ll_now_ns();
	if (status == LL_CUDA_SUCCESS)
		status = ll_real()->cuEventRecord(event->handle, stream);
	event->call_ns = ll_now_ns() - event->host_ns;
	ll_mark_lock_take_back(clock->lock);
	return status == LL_CUDA_SUCCESS;
}

bool ll_mark_record(struct ll_mark_clock *clock, struct ll_cu_stream *stream, struct ll_mark_event *ret_event)
{
	bool makes_base = !clock->base;
	struct ll_cu_event *base = makes_base ? take(clock) : NULL;
	for (size_t i = 0; makes_base && i < LL_MARK_GAUGE_EVENTS && !clock->gauge[i]; i++)
		clock->gauge[i] = take(clock);
	struct ll_mark_event event = {.handle = take(clock)};
	if (clock->is_blind)
		return false;
	clock->is_basing = makes_base;
	bool is_recorded = record(clock, stream, base, &event);
	if (makes_base) {
		clock->is_basing = false;
		clock->base = base;
	}
	if (is_recorded)
		*ret_event = event;
	else
		clock->is_blind = true;
	return is_recorded;
}

bool ll_mark_has_ended(struct ll_mark_clock *clock, struct ll_cu_event *event)
{
	ll_cu_result status = ll_real()->cuEventQuery(event);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_READY)
		clock->is_blind = true;
	return status == LL_CUDA_SUCCESS;
}

/* Of two events that have ended; below 0: the other way round. */
static double between_ns(struct ll_mark_clock *clock, struct ll_cu_event *start, struct ll_cu_event *end)
{
	float ms = 0;
	if (ll_real()->cuEventElapsedTime(&ms, start, end) != LL_CUDA_SUCCESS)
		clock->is_blind = true;
	return clock->is_blind ? 0 : (double)ms * 1e6;
}

/* Where the host was the slower one nothing is told. The second closest of the others: when an event is stamped
 * scatters by 0.1 us, and others' work may have come between. */
static void read_gauge(struct ll_mark_clock *clock)
{
	uint64_t least_ns = UINT64_MAX, second_ns = UINT64_MAX;
	for (size_t i = 0; i < LL_MARK_GAUGE_EVENTS; i++) {
		uint64_t ns = (uint64_t)between_ns(clock, i ? clock->gauge[i - 1] : clock->base, clock->gauge[i]);
		if (ns < clock->gauge_ns[i] + QUEUED_NS || ns > EVENT_MOST_NS)
			continue;
		uint64_t more_ns = ns < least_ns ? least_ns : ns;
		second_ns = more_ns < second_ns ? more_ns : second_ns;
		least_ns = ns < least_ns ? ns : least_ns;
	}
	for (size_t i = 0; i < LL_MARK_GAUGE_EVENTS; i++) {
		ll_mark_drop(clock, clock->gauge[i]);
		clock->gauge[i] = NULL;
	}
	if (!clock->is_blind && second_ns != UINT64_MAX && second_ns > clock->event_ns)
		clock->event_ns = second_ns;
}

bool ll_mark_clock_runs(struct ll_mark_clock *clock)
{
	if (!clock->has_base_ended && clock->base && !clock->is_blind) {
		clock->has_base_ended = ll_mark_has_ended(clock, clock->gauge[LL_MARK_GAUGE_EVENTS - 1]);
		if (clock->has_base_ended)
			read_gauge(clock);
	}
	return clock->has_base_ended && !clock->is_blind;
}

static uint64_t card_ns(struct ll_mark_clock *clock, struct ll_cu_event *event)
{
	double ns = (double)clock->base_ns + between_ns(clock, clock->base, event);
	return ns > 0 ? (uint64_t)ns : 0;
}

static uint64_t wait_ns(struct ll_mark_clock *clock, uint64_t host_ns, uint64_t event_ns)
{
	ll_clock_fit_add(&clock->fit, host_ns, event_ns);
	return event_ns - ll_clock_fit_to_card(&clock->fit, host_ns);
}

/* Nothing has waited for longer than since it was recorded: where it seems so, one of the clocks has jumped. */
struct ll_mark_stamp ll_mark_read(struct ll_mark_clock *clock, const struct ll_mark_event *event)
{
	uint64_t event_ns = card_ns(clock, event->handle);
	uint64_t since_ns = wait_ns(clock, event->host_ns, event_ns);
	if (since_ns > ll_now_ns() - event->host_ns) {
		clock->fit.has_fit = false;
		since_ns = wait_ns(clock, event->host_ns, event_ns);
	}
	uint64_t late_ns = event->call_ns > LL_MARK_CALL_NS ? event->call_ns - LL_MARK_CALL_NS : 0;
	return (struct ll_mark_stamp){.card_ns = event_ns, .wait_ns = since_ns > late_ns ? since_ns - late_ns : 0};
}

uint64_t ll_mark_host_ns(const struct ll_mark_clock *clock, uint64_t card_time_ns)
{
	return ll_clock_fit_to_host(&clock->fit, card_time_ns);
}

uint64_t ll_mark_card_ns(const struct ll_mark_clock *clock, uint64_t host_ns)
{
	return ll_clock_fit_to_card(&clock->fit, host_ns);
}

void ll_mark_drop(struct ll_mark_clock *clock, struct ll_cu_event *event)
{
	if (!event)
		return;
	if (clock->spare_count < LL_MARK_SPARE_EVENTS)
		clock->spare[clock->spare_count++] = event;
	else
		ll_real()->cuEventDestroy_v2(event);
}

void ll_mark_drop_ended(struct ll_mark_clock *clock, struct ll_cu_event *event, uint64_t event_ns)
{
	if (event && event_ns >= clock->base_ns + REBASE_NS) {
		ll_mark_drop(clock, clock->base);
		clock->base = event;
		clock->base_ns = event_ns;
		return;
	}
	ll_mark_drop(clock, event);
}
