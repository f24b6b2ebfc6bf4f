#include "trace/preload/preload.h"

#include <stdlib.h>

#include "base/clock.h"
#include "shim/interpose/real.h"

enum { FIRST_TRIES = 5, DRIFT_PPM = 50, ROUNDING_NS = 1000 };

#define RENEW_NS (100 * LL_NS_PER_MS)
#define SPIN_NS (50 * LL_NS_PER_US) /* an idle card needs less time */
#define POLL_NS (100 * LL_NS_PER_US)
#define GIVE_UP_NS (1 * LL_NS_PER_S)

/* An unknown time between these two. */
struct bracket {
	uint64_t from_ns, to_ns;
};

struct ll_trace_anchor {
	struct ll_cu_event *event;
	struct bracket at;
	uint32_t users;
	struct ll_trace_anchor *next;
};

/* Waits for the event. It spins first and then polls, because kernels of another context may come first. */
static bool wait_for_event(struct ll_cu_event *event, uint64_t from_ns)
{
	for (;;) {
		ll_cu_result status = ll_real()->cuEventQuery(event);
		uint64_t now_ns = ll_now_ns();
		if (status != LL_CUDA_ERROR_NOT_READY || now_ns - from_ns > GIVE_UP_NS)
			return status == LL_CUDA_SUCCESS;
		if (now_ns - from_ns > SPIN_NS)
			ll_sleep_until_ns(now_ns + POLL_NS);
	}
}

static bool record_anchor(const struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor,
			  struct bracket *ret_bracket)
{
	ret_bracket->from_ns = ll_now_ns();
	if (ll_real()->cuEventRecord(anchor->event, anchors->stream) != LL_CUDA_SUCCESS ||
	    !wait_for_event(anchor->event, ret_bracket->from_ns))
		return false;
	ret_bracket->to_ns = ll_now_ns();
	return true;
}

static struct ll_trace_anchor *make_anchor(void)
{
	struct ll_trace_anchor *anchor = calloc(1, sizeof *anchor);
	if (anchor && ll_real()->cuEventCreate(&anchor->event, LL_CU_EVENT_DEFAULT) == LL_CUDA_SUCCESS)
		return anchor;
	free(anchor);
	return NULL;
}

static void destroy_anchors(struct ll_trace_anchor *anchor)
{
	while (anchor) {
		struct ll_trace_anchor *next = anchor->next;
		ll_real()->cuEventDestroy_v2(anchor->event);
		free(anchor);
		anchor = next;
	}
}

void ll_trace_anchors_fini(struct ll_trace_anchors *anchors)
{
	if (anchors->newest)
		anchors->newest->next = NULL;
	destroy_anchors(anchors->newest);
	destroy_anchors(anchors->spare);
	ll_real()->cuStreamDestroy_v2(anchors->stream);
	*anchors = (struct ll_trace_anchors){.made_ns = 0};
}

/* Asks the driver for the time between two events. It is negative if `to` came first. */
static ll_cu_result find_elapsed(struct ll_cu_event *from, struct ll_cu_event *to, int64_t *ret_ns)
{
	float ms = 0;
	ll_cu_result status = ll_real()->cuEventElapsedTime(&ms, from, to);
	if (status == LL_CUDA_SUCCESS)
		*ret_ns = (int64_t)((double)ms * (double)LL_NS_PER_MS);
	return status;
}

ll_cu_result ll_trace_anchor_time(const struct ll_trace_anchor *anchor, struct ll_cu_event *event, uint64_t *ret_ns)
{
	int64_t since_ns;
	ll_cu_result status = find_elapsed(anchor->event, event, &since_ns);
	if (status == LL_CUDA_SUCCESS)
		*ret_ns = anchor->at.from_ns + (anchor->at.to_ns - anchor->at.from_ns) / 2 + (uint64_t)since_ns;
	return status;
}

/* Narrows the bracket of an anchor by the earlier anchor's bracket, the elapsed time between the two, and the largest
 * drift of the card's clock in that time. If the two brackets do not overlap, it returns the measured one. */
static struct bracket narrow_bracket(const struct bracket *seen, const struct bracket *before, uint64_t since_ns)
{
	uint64_t drift_ns = since_ns / 1000000 * DRIFT_PPM + ROUNDING_NS;
	uint64_t from_ns = before->from_ns + since_ns - drift_ns, to_ns = before->to_ns + since_ns + drift_ns;
	struct bracket both = {from_ns > seen->from_ns ? from_ns : seen->from_ns,
			       to_ns < seen->to_ns ? to_ns : seen->to_ns};
	return both.from_ns <= both.to_ns ? both : *seen;
}

/* Records the anchor, and narrows its bracket by that of `before`. */
static bool record_next(const struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor,
			const struct ll_trace_anchor *before)
{
	struct bracket seen;
	int64_t since_ns;
	if (!record_anchor(anchors, anchor, &seen))
		return false;
	if (find_elapsed(before->event, anchor->event, &since_ns) == LL_CUDA_SUCCESS && since_ns >= 0)
		anchor->at = narrow_bracket(&seen, &before->at, (uint64_t)since_ns);
	else
		anchor->at = seen;
	return true;
}

/* Records the two first anchors alternately some times, so that each narrows the next. */
static bool record_first(struct ll_trace_anchors *anchors)
{
	if (!record_anchor(anchors, anchors->newest, &anchors->newest->at))
		return false;
	for (int i = 0; i < FIRST_TRIES; i++) {
		struct ll_trace_anchor *before = anchors->newest;
		if (!record_next(anchors, anchors->spare, before))
			return false;
		anchors->newest = anchors->spare;
		anchors->spare = before;
	}
	return true;
}

bool ll_trace_anchors_init(struct ll_trace_anchors *anchors)
{
	if (ll_real()->cuStreamCreate(&anchors->stream, LL_CU_STREAM_NON_BLOCKING) != LL_CUDA_SUCCESS)
		return false;
	anchors->newest = make_anchor();
	anchors->spare = make_anchor();
	anchors->made_ns = ll_now_ns();
	return anchors->newest && anchors->spare && record_first(anchors);
}

void ll_trace_anchors_renew(struct ll_trace_anchors *anchors, pthread_mutex_t *lock)
{
	if (ll_now_ns() - anchors->made_ns < RENEW_NS)
		return;
	anchors->made_ns = ll_now_ns();
	pthread_mutex_lock(lock);
	struct ll_trace_anchor *old = anchors->newest, *anchor = anchors->spare;
	if (anchor)
		anchors->spare = anchor->next;
	pthread_mutex_unlock(lock);
	if (!anchor)
		anchor = make_anchor();
	if (!anchor)
		return;
	bool is_good = record_next(anchors, anchor, old);
	pthread_mutex_lock(lock);
	if (is_good) {
		anchor->users = 0;
		anchors->newest = anchor;
		anchor = old->users ? NULL : old;
	}
	if (anchor) {
		anchor->next = anchors->spare;
		anchors->spare = anchor;
	}
	pthread_mutex_unlock(lock);
}

struct ll_trace_anchor *ll_trace_anchor_join(struct ll_trace_anchors *anchors)
{
	anchors->newest->users++;
	return anchors->newest;
}

void ll_trace_anchor_leave(struct ll_trace_anchors *anchors, struct ll_trace_anchor *anchor)
{
	if (--anchor->users || anchor == anchors->newest)
		return;
	anchor->next = anchors->spare;
	anchors->spare = anchor;
}
