#include "rules/share/batch.h"

/* A guess is wrong if the seen time is over one and a half times the guess plus this. */
#define SLACK_NS UINT64_C(20000)
/* A launch that is this many times as long as the host's time is a sample, whatever the host did. */
enum { LONG_TIMES = 32 };

static uint64_t subtract_to_zero(uint64_t ns, uint64_t by_ns)
{
	return ns > by_ns ? ns - by_ns : 0;
}

/* Whether each launch is longer than the time in which nobody looked at the stream. Then it worked in that time too. */
static bool is_little_unseen(const struct ll_batch *batch, uint64_t seen_ns)
{
	return batch->launches && seen_ns / batch->launches >= batch->span_ns - seen_ns;
}

static struct ll_batch_verdict judge_guess(const struct ll_batch *batch)
{
	struct ll_batch_verdict verdict = {.busy_ns = batch->guess_ns};
	if (verdict.busy_ns < batch->end_wait_ns)
		verdict.busy_ns = batch->end_wait_ns;
	if (verdict.busy_ns < batch->seen_ns)
		verdict.busy_ns = batch->seen_ns;
	if (verdict.busy_ns > batch->span_ns)
		verdict.busy_ns = batch->span_ns;
	if (verdict.busy_ns > batch->guess_ns + batch->guess_ns / 2 + SLACK_NS) {
		verdict.lesson = LL_BATCH_LONGER;
		if (is_little_unseen(batch, verdict.busy_ns))
			verdict.busy_ns = batch->span_ns;
	}
	return verdict;
}

/* Whether the last event was recorded right after the last launch. */
static bool is_close(const struct ll_batch *batch)
{
	return batch->tail_ns <= LL_BATCH_TAIL_NS && batch->end_call_ns <= LL_BATCH_CALL_NS;
}

/* Whether the card still worked on the batch when the last event was recorded. */
static bool ends_with_work(const struct ll_batch *batch)
{
	return is_close(batch) || batch->end_wait_ns > LL_BATCH_TAIL_NS;
}

/*
 * Whether the timing events of a single launch of that length are usable: no call was interrupted, or the launch is
 * much longer than all calls together.
 */
static bool is_well_timed(const struct ll_batch *batch, uint64_t busy_ns)
{
	uint64_t end_ns = batch->tail_ns + batch->end_call_ns;
	bool ends_well = end_ns <= LL_BATCH_CALL_NS || end_ns <= busy_ns / 2;
	bool is_calm = batch->start_call_ns <= LL_BATCH_CALL_NS && batch->launch_ns <= LL_BATCH_LAUNCH_NS && ends_well;
	return is_calm || busy_ns >= LONG_TIMES * (batch->host_ns + end_ns);
}

static enum ll_batch_lesson lesson_of_sample(const struct ll_batch *batch, uint64_t busy_ns)
{
	bool has_waited = batch->end_wait_ns >= LL_BATCH_SURE_WAIT_NS && !batch->is_behind;
	return has_waited || busy_ns >= LL_BATCH_LONG_NS ? LL_BATCH_SAMPLE : LL_BATCH_ROUGH;
}

/* Returns the time from the first event to the start of the launch. */
static uint64_t late_ns(const struct ll_batch *batch)
{
	uint64_t host_ns = batch->launch_ns + batch->start_call_ns * LL_BATCH_RECORD_PERCENT / 100;
	uint64_t ns = subtract_to_zero(host_ns, batch->start_wait_ns);
	return ns < LL_BATCH_FOLLOW_NS ? LL_BATCH_FOLLOW_NS : ns;
}

static uint64_t busy_of_sample(const struct ll_batch *batch)
{
	return subtract_to_zero(batch->span_ns + LL_BATCH_EVENT_BUSY_NS, batch->event_ns + late_ns(batch));
}

struct ll_batch_verdict ll_batch_judge(const struct ll_batch *batch)
{
	if (!ends_with_work(batch))
		return judge_guess(batch);
	if (batch->start_wait_ns >= batch->host_ns) {
		uint64_t busy_ns = subtract_to_zero(batch->span_ns, batch->event_ns);
		return (struct ll_batch_verdict){busy_ns, is_close(batch) ? LL_BATCH_QUEUED : LL_BATCH_ROUGH};
	}
	if (batch->launches == 1 && batch->has_start) {
		uint64_t busy_ns = busy_of_sample(batch);
		if (is_well_timed(batch, busy_ns))
			return (struct ll_batch_verdict){busy_ns, lesson_of_sample(batch, busy_ns)};
	}
	return judge_guess(batch);
}

uint64_t ll_batch_each_ns(struct ll_batch_verdict verdict, uint32_t launches)
{
	uint64_t each_ns = verdict.busy_ns / launches;
	if (verdict.lesson == LL_BATCH_QUEUED)
		each_ns += LL_BATCH_IDLE_NS;
	return each_ns > LL_BATCH_LEAST_NS ? each_ns : LL_BATCH_LEAST_NS;
}
