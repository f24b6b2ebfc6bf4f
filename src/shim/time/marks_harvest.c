#include "shim/time/marks_state.h"

#include "base/clock.h"
#include "control/batch.h"

/* A queue of less tells little: where others' work came in between, that is most of it. */
#define QUEUED_LEAST_NS (50 * LL_NS_PER_US)

static void learn_mean(struct ll_mark_track *track, uint64_t each_ns)
{
	if (!track->mean_ns || each_ns > 2 * track->mean_ns)
		track->mean_ns = each_ns;
	else
		track->mean_ns = (7 * track->mean_ns + each_ns) / 8;
}

/* What nobody can tell takes a launch no longer than the time that they all had. Without this a first guess that was
 * too long would stand for as long as the host is slower than the card, and have every few launches marked. */
static void bound_mean(struct ll_mark_track *track, const struct ll_mark_batch *batch, uint64_t span_ns)
{
	uint64_t mean_ns = track->mean_ns ? track->mean_ns : LL_MARK_FIRST_GUESS_NS;
	if (batch->launches && span_ns / batch->launches < mean_ns)
		learn_mean(track, span_ns / batch->launches);
}

/* Of samples that were taken for what an event had been thought to take, all are too long or too short. */
static void note_event_time(struct ll_marks *marks)
{
	if (marks->event_ns && marks->event_ns != marks->clock.event_ns)
		ll_kernel_estimates_forget(&marks->kinds);
	marks->event_ns = marks->clock.event_ns;
}

static bool is_disturbed(const struct ll_marks *marks)
{
	return marks->is_shared || marks->sliced_by;
}

/* Whether what is seen beside others says anything of a kind. In slices, where it is most of what there is to see, also
 * of one of which little is known: that may have been seen when others had just come. */
static bool is_news_of(const struct ll_marks *marks, const struct ll_kernel_estimate *kind)
{
	return kind && (marks->sliced_by ? !ll_kernel_estimate_is_sure(kind) : !kind->learned && !kind->rough);
}

static void learn(struct ll_marks *marks, struct ll_mark_track *track, const struct ll_mark_batch *batch,
		  struct ll_batch_verdict verdict)
{
	struct ll_kernel_estimate *kind = batch->kind ? ll_kernel_estimates_find(&marks->kinds, batch->kind) : NULL;
	if (verdict.lesson == LL_BATCH_UNTOLD || !batch->launches || (is_disturbed(marks) && !is_news_of(marks, kind)))
		return;
	uint64_t each_ns = ll_batch_each_ns(verdict, batch->launches);
	if (marks->sliced_by) {
		ll_kernel_estimate_learn_least(kind, each_ns);
		return;
	}
	learn_mean(track, each_ns);
	bool is_alone = verdict.lesson == LL_BATCH_QUEUED && batch->launches == 1; /* an event on either side of it */
	if ((verdict.lesson == LL_BATCH_SAMPLE || is_alone) && kind)
		ll_kernel_estimate_learn_sample(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_ROUGH && kind)
		ll_kernel_estimate_learn_rough(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_QUEUED && kind && (!kind->learned || batch->guess_ns >= QUEUED_LEAST_NS))
		ll_kernel_estimate_learn_queued(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_LONGER)
		ll_kernel_estimates_doubt(&marks->kinds, kind, each_ns);
}

/* Of a batch that has ended. */
struct times {
	struct ll_mark_stamp begin, end;
	uint64_t begin_host_ns; /* CLOCK_MONOTONIC, when the begin was recorded, or launched */
};

/* What came to an idle stream, without an event, was there no earlier than one that would have been recorded then. */
static struct times read_times(struct ll_marks *marks, const struct ll_mark_track *track,
			       const struct ll_mark_batch *batch)
{
	struct times times = {.begin = track->end, .begin_host_ns = track->end_host_ns};
	uint64_t first_ns = batch->first_ns ? ll_mark_card_ns(&marks->clock, batch->first_ns) : 0;
	if (batch->start.handle) {
		times.begin = ll_mark_read(&marks->clock, &batch->start);
		times.begin_host_ns = batch->start.host_ns;
		ll_mark_drop_ended(&marks->clock, batch->start.handle, times.begin.card_ns);
	} else if (first_ns > track->end.card_ns) {
		times.begin = (struct ll_mark_stamp){.card_ns = first_ns};
		times.begin_host_ns = batch->first_ns;
	}
	times.end = ll_mark_read(&marks->clock, &batch->end);
	return times;
}

/* Between this batch and the next a launch was cut off (is_cut). If it was done in this one, it is charged here. */
static uint64_t over_ns(const struct ll_mark_batch *batch, uint64_t busy_ns)
{
	uint64_t each_ns = batch->launches ? batch->guess_ns / batch->launches : 0;
	bool has_one_more = batch->is_cut && busy_ns > batch->guess_ns + each_ns / 2;
	return has_one_more ? each_ns : 0;
}

/* What other streams have told already is told, and does not count. */
static void charge(struct ll_marks *marks, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t host_ns = ll_mark_host_ns(&marks->clock, end_ns);
	struct ll_marks_stretch stretch = {
	    .start_ns = host_ns - (end_ns - start_ns),
	    .end_ns = host_ns,
	    .fresh_ns = ll_busy_add(&marks->busy, start_ns, end_ns),
	    .is_ours = marks->sliced_by,
	};
	if (stretch.fresh_ns)
		marks->charge(marks->charge_of, &stretch);
}

static void settle(struct ll_marks *marks, struct ll_mark_track *track, const struct ll_mark_batch *batch)
{
	struct times times = read_times(marks, track, batch);
	struct ll_mark_stamp begin = times.begin, end = times.end;
	uint64_t all_launched_ns = batch->ahead ? batch->end.host_ns : batch->launched_ns;
	struct ll_batch facts = {
	    .span_ns = end.card_ns > begin.card_ns ? end.card_ns - begin.card_ns : 0,
	    .start_wait_ns = begin.wait_ns,
	    .end_wait_ns = end.wait_ns,
	    .host_ns = all_launched_ns - times.begin_host_ns,
	    .start_call_ns = batch->start.call_ns,
	    .launch_ns = batch->launched_ns - batch->started_ns,
	    .tail_ns = batch->end.host_ns - batch->launched_ns,
	    .end_call_ns = batch->end.call_ns,
	    .seen_ns = batch->seen_for_ns,
	    .event_ns = marks->clock.event_ns,
	    .guess_ns = batch->guess_ns - (track->over_ns < batch->guess_ns ? track->over_ns : batch->guess_ns),
	    .launches = batch->launches,
	    .has_start = batch->start.handle,
	    .is_behind = batch->is_behind,
	};
	struct ll_batch_verdict verdict = ll_batch_judge(&facts);
	note_event_time(marks);
	bool is_sure =
	    !batch->is_cut && !track->was_cut && !batch->is_held; /* how many launches it had, and in what time */
	if (is_sure)
		learn(marks, track, batch, verdict);
	if (marks->sliced_by)
		verdict.busy_ns = ll_mark_batch_own_ns(marks, track, batch, facts.span_ns);
	else if (is_sure && verdict.lesson == LL_BATCH_UNTOLD)
		bound_mean(track, batch, facts.span_ns);
	charge(marks, end.card_ns - verdict.busy_ns, end.card_ns); /* its last launches came right before its end */
	track->end = end;
	track->end_host_ns = batch->end.host_ns;
	track->was_cut = batch->is_cut;
	track->over_ns = over_ns(batch, verdict.busy_ns);
	track->settled++;
	marks->settled++;
	if (!batch->is_end_shared)
		ll_mark_drop_ended(&marks->clock, batch->end.handle, end.card_ns);
}

void ll_mark_track_harvest(struct ll_marks *marks, struct ll_mark_track *track)
{
	while (track->count && ll_mark_clock_runs(&marks->clock) &&
	       ll_mark_has_ended(&marks->clock, track->batches[track->first].end.handle)) {
		struct ll_mark_batch batch = track->batches[track->first];
		track->first = (track->first + 1) % LL_MARK_BATCHES;
		track->count--;
		track->free_batches -= track->free_batches > 0;
		settle(marks, track, &batch);
	}
	if (track->is_gone && !track->count && !track->is_in_driver) {
		ll_mark_drop(&marks->clock, track->open.start.handle);
		track->is_used = false;
	}
}

void ll_marks_harvest(struct ll_marks *marks)
{
	for (struct ll_mark_track *track = marks->tracks; track && !marks->clock.is_blind; track = track->next) {
		if (track->is_used)
			ll_mark_track_harvest(marks, track);
	}
}
