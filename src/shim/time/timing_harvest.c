#include "shim/time/timing_state.h"

#include "base/clock.h"
#include "rules/share/batch.h"

/* ---- the work that is left ---- */

struct ll_timing_track *ll_timing_track_find(struct ll_timing *timing, struct ll_timing_stream name)
{
	for (struct ll_timing_track *track = timing->tracks; track; track = track->next) {
		if (track->is_used && !track->is_gone && ll_timing_stream_is(track->name, name))
			return track;
	}
	return NULL;
}

bool ll_timing_track_has_tail(const struct ll_timing_track *track)
{
	return track->is_used && !track->is_gone && !track->count && !track->is_in_driver && track->open.launches &&
	       !track->is_left && !track->name.thread;
}

static void add_batch(struct ll_timing_queue *queue, const struct ll_timing_batch *batch)
{
	queue->ns += batch->guess_ns;
	queue->launches += batch->launches;
}

struct ll_timing_queue ll_timing_queued(const struct ll_timing *timing)
{
	struct ll_timing_queue queue = {0};
	for (const struct ll_timing_track *track = timing->tracks; track; track = track->next) {
		if (!track->is_used || timing->clock.is_blind)
			continue;
		for (uint32_t i = 0; i < track->count; i++)
			add_batch(&queue, &track->batches[(track->first + i) % LL_TIMING_BATCHES]);
		add_batch(&queue, &track->closing);
		if (!track->is_left)
			add_batch(&queue, &track->open);
	}
	return queue;
}

uint64_t ll_timing_track_mean_ns(const struct ll_timing *timing, const struct ll_timing_track *track)
{
	return timing->is_sampled && track->typical.mean_ns ? track->typical.mean_ns : track->mean_ns;
}

uint64_t ll_timing_mean_ns(const struct ll_timing *timing)
{
	uint64_t mean_ns = 0;
	for (const struct ll_timing_track *track = timing->tracks; track; track = track->next) {
		uint64_t track_ns = ll_timing_track_mean_ns(timing, track);
		if (track->is_used && track_ns > mean_ns)
			mean_ns = track_ns;
	}
	return mean_ns;
}

/* Returns whether the oldest batch is known to have begun. A batch without a start event follows another batch, so it
 * has begun. */
static bool has_begun(struct ll_timing *timing, struct ll_timing_track *track, uint64_t now_ns)
{
	struct ll_cu_event *start = track->batches[track->first].start.handle;
	if (!track->since_ns || track->watched != track->settled) {
		track->watched = track->settled;
		track->since_ns = now_ns;
		track->has_begun = false;
	}
	if (start && !track->has_begun && ll_timing_has_ended(&timing->clock, start)) {
		track->has_begun = true;
		track->since_ns = now_ns;
	}
	return !start || track->has_begun;
}

static void lasts_longer(struct ll_timing_running *running, uint64_t ns, uint32_t launches)
{
	if (ns && ns >= running->ns)
		*running = (struct ll_timing_running){ns, launches};
}

/* While a stream waits, copies or runs a host function, its kernels do not run. */
static uint64_t without_gaps_ns(const struct ll_timing_batch *batch, uint64_t ns)
{
	return batch->has_gap && batch->guess_ns < ns ? batch->guess_ns : ns;
}

void ll_timing_longest(struct ll_timing *timing, uint64_t now_ns, struct ll_timing_running *ret_running)
{
	*ret_running = (struct ll_timing_running){0};
	if (timing->watched != timing->settled) {
		timing->watched = timing->settled;
		timing->progress_ns = now_ns;
	}
	for (struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind; track = track->next) {
		if (!track->is_used || !track->count) {
			track->since_ns = 0;
			if (ll_timing_track_has_tail(track))
				lasts_longer(ret_running, without_gaps_ns(&track->open, track->open.seen_for_ns),
					     track->open.launches);
			continue;
		}
		if (!has_begun(timing, track, now_ns))
			continue;
		/* A batch without a start event may be waiting for another stream. Its time counts only from the last
		 * progress of any stream. */
		bool is_waiting = !track->has_begun && timing->progress_ns > track->since_ns;
		uint64_t ns = now_ns - (is_waiting ? timing->progress_ns : track->since_ns);
		const struct ll_timing_batch *oldest = &track->batches[track->first];
		lasts_longer(ret_running, without_gaps_ns(oldest, ns), oldest->launches);
	}
}

bool ll_timing_is_idle(const struct ll_timing *timing)
{
	for (const struct ll_timing_track *track = timing->tracks; track; track = track->next) {
		if (track->is_used && (track->count || track->is_in_driver || ll_timing_track_has_tail(track)))
			return timing->clock.is_blind;
	}
	return true;
}

/* Returns whether the stream has work. The open batch began when the batch before it ended, or when it was launched. */
static bool has_work(const struct ll_timing *timing, const struct ll_timing_track *track, uint64_t now_ns)
{
	const struct ll_timing_batch *open = &track->open;
	if (track->count || track->is_in_driver)
		return true;
	if (!open->launches || track->is_left)
		return false;
	uint64_t begun_ns = track->settled ? ll_timing_host_ns(&timing->clock, track->end.card_ns) : 0;
	begun_ns = open->first_ns > begun_ns ? open->first_ns : begun_ns;
	return now_ns < begun_ns + open->guess_ns;
}

bool ll_timing_has_work(const struct ll_timing *timing, uint64_t now_ns)
{
	for (const struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind;
	     track = track->next) {
		if (track->is_used && has_work(timing, track, now_ns))
			return true;
	}
	return false;
}

/* Returns whether a long launch has begun. A batch that contains a wait does not count, because it may be waiting. */
static bool has_begun_long(struct ll_timing *timing, const struct ll_timing_track *track)
{
	const struct ll_timing_batch *head = &track->batches[track->first];
	return track->count && head->start.handle && !head->is_held && head->guess_ns >= LL_TIMING_LONG_NS &&
	       ll_timing_has_ended(&timing->clock, head->start.handle);
}

/* Returns whether the stream's next work does not wait for the gate. The library may have forgotten waits while the
 * gate was open. When the gate is shut, such a wait holds the work again. The wait is then in the next batch or before
 * its start. */
static bool is_free(struct ll_timing *timing, const struct ll_timing_track *track)
{
	const struct ll_timing_batch *next = track->count ? &track->batches[track->first] : &track->open;
	if (next->is_held || (!track->free_batches && track->wait_word))
		return false;
	return !next->start.handle || ll_timing_has_ended(&timing->clock, next->start.handle);
}

bool ll_timing_has_passed_gate(struct ll_timing *timing)
{
	for (struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind; track = track->next) {
		bool has_work = track->is_used && (track->count || (track->open.launches && !track->is_left));
		if (has_work && (is_free(timing, track) || has_begun_long(timing, track)))
			return true;
	}
	return false;
}

bool ll_timing_is_blind(const struct ll_timing *timing)
{
	return timing->clock.is_blind;
}

struct ll_timing_wait ll_timing_last_wait(struct ll_timing *timing, struct ll_timing_stream name)
{
	const struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (!track)
		return (struct ll_timing_wait){.unheld_ns = UINT64_MAX};
	return (struct ll_timing_wait){.unheld_ns = track->unheld_ns, .word = track->wait_word};
}

void ll_timing_forget_waits(struct ll_timing *timing)
{
	for (struct ll_timing_track *track = timing->tracks; track; track = track->next)
		track->wait_word = track->free_batches = 0;
}

/* A batch with less work than this gives no good sample of a known kernel: if other programs' work came in between, it
 * is most of the batch's time. */
#define QUEUED_LEAST_NS (50 * LL_NS_PER_US)

/* ---- work among time slices ---- */

enum { TYPICAL_MOST = sizeof((struct ll_timing_typical *)NULL)->kernel_keys / sizeof(uint64_t) };

void ll_timing_set_shared(struct ll_timing *timing, bool is_shared, unsigned sliced_by, bool is_sampled)
{
	timing->is_shared = is_shared;
	timing->sliced_by = sliced_by;
	timing->is_sampled = is_sampled;
}

/* Computes the mean from the present estimates. Kernels without a good estimate do not count, because their first
 * samples are too long. */
static void find_mean(struct ll_timing *timing, struct ll_timing_typical *typical)
{
	uint64_t sum_ns = 0, known = 0;
	for (uint32_t i = 0; i < TYPICAL_MOST && i < typical->count; i++) {
		const struct ll_kernel_estimate *estimate =
		    ll_kernel_estimates_find(&timing->estimates, typical->kernel_keys[i]);
		if (!ll_kernel_estimate_is_known(estimate))
			continue;
		sum_ns += estimate->ns;
		known++;
	}
	typical->mean_ns = known ? sum_ns / known : 0;
}

void ll_timing_note_typical(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key)
{
	struct ll_timing_track *track = timing->clock.is_blind ? NULL : ll_timing_track_find(timing, name);
	if (!track)
		return;
	struct ll_timing_typical *typical = &track->typical;
	typical->kernel_keys[typical->count++ % TYPICAL_MOST] = kernel_key;
	find_mean(timing, typical);
}

/* If a launch lasts for two time slices of the card (2.09 ms each, doc/facts.md), every sample that is taken beside
 * other programs contains slices of them. So such samples do not give the launch's duration. */
#define SLICED_LONG_NS UINT64_C(4200000)

/* Returns whether the batch has launches of this duration that were never timed without other programs. Then it is
 * charged its span minus the other programs' part of that time (rules/share/slices.h). The estimate is the second
 * shortest sample. */
static bool is_long_unknown(struct ll_timing *timing, const struct ll_timing_batch *batch)
{
	const struct ll_kernel_estimate *estimate =
	    batch->kernel_key ? ll_kernel_estimates_find(&timing->estimates, batch->kernel_key) : NULL;
	return timing->sliced_by && estimate && !estimate->learned && !estimate->rough &&
	       estimate->ns >= SLICED_LONG_NS;
}

/*
 * Returns how long the card worked on a batch that lasted span_ns while other programs shared the card by time slices
 * (timing->sliced_by). The events give only an upper bound. So the batch counts as the sum of its launches' estimates.
 * If there is no estimate, it counts as an equal part of its span. So does a batch with operations that are no kernels.
 */
static uint64_t batch_own_ns(struct ll_timing *timing, const struct ll_timing_track *track,
			     const struct ll_timing_batch *batch, uint64_t span_ns)
{
	const struct ll_kernel_estimate *estimate =
	    batch->kernel_key ? ll_kernel_estimates_find(&timing->estimates, batch->kernel_key) : NULL;
	uint64_t estimate_ns = estimate ? estimate->ns : 0;
	if (!estimate_ns && !ll_timing_track_mean_ns(timing, track))
		return span_ns / (1 + timing->sliced_by);
	uint64_t ns = estimate_ns ? batch->launches * estimate_ns : batch->guess_ns;
	return ns < span_ns ? ns : span_ns;
}

/* ---- samples from ended batches ---- */

static void learn_mean(struct ll_timing_track *track, uint64_t each_ns)
{
	if (!track->mean_ns || each_ns > 2 * track->mean_ns)
		track->mean_ns = each_ns;
	else
		track->mean_ns = (7 * track->mean_ns + each_ns) / 8;
}

/* A batch that gives no sample still gives an upper bound of the mean: its span divided by its launches. Without this
 * bound, a first guess that is too long would stay while the host is slower than the card, and every few launches would
 * be timed. */
static void bound_mean(struct ll_timing_track *track, const struct ll_timing_batch *batch, uint64_t span_ns)
{
	uint64_t mean_ns = track->mean_ns ? track->mean_ns : LL_TIMING_FIRST_GUESS_NS;
	if (batch->launches && span_ns / batch->launches < mean_ns)
		learn_mean(track, span_ns / batch->launches);
}

/* Forgets the estimates if the measured cost of an event has changed, because then all earlier samples are too long or
 * too short. */
static void note_event_time(struct ll_timing *timing)
{
	if (timing->event_ns && timing->event_ns != timing->clock.event_ns)
		ll_kernel_estimates_forget(&timing->estimates);
	timing->event_ns = timing->clock.event_ns;
}

static bool is_disturbed(const struct ll_timing *timing)
{
	return timing->is_shared || timing->sliced_by;
}

/* Returns whether a sample that was taken beside other programs' work is used. It is used for a kernel without samples.
 * While programs share by time slices, most samples are of this sort. Then it is also used for a kernel with few
 * samples, because those may have been taken when the other programs had just started. */
static bool is_news_of(const struct ll_timing *timing, const struct ll_kernel_estimate *estimate)
{
	return estimate &&
	       (timing->sliced_by ? !ll_kernel_estimate_is_sure(estimate) : !estimate->learned && !estimate->rough);
}

static void learn_batch(struct ll_timing *timing, struct ll_timing_track *track, const struct ll_timing_batch *batch,
			struct ll_batch_verdict verdict, uint64_t span_ns)
{
	struct ll_kernel_estimate *estimate =
	    batch->kernel_key ? ll_kernel_estimates_find(&timing->estimates, batch->kernel_key) : NULL;
	if (verdict.lesson == LL_BATCH_UNTOLD || !batch->launches ||
	    (is_disturbed(timing) && !is_news_of(timing, estimate)))
		return;
	uint64_t each_ns = ll_batch_each_ns(verdict, batch->launches);
	if (timing->sliced_by) {
		bool is_lower_bound = verdict.lesson == LL_BATCH_LONGER && verdict.busy_ns < span_ns;
		if (!is_lower_bound) /* the least sample counts, so none may be too short */
			ll_kernel_estimate_learn_least(estimate, each_ns);
		return;
	}
	learn_mean(track, each_ns);
	bool is_alone =
	    verdict.lesson == LL_BATCH_QUEUED && batch->launches == 1; /* an event is on either side of it */
	if ((verdict.lesson == LL_BATCH_SAMPLE || is_alone) && estimate)
		ll_kernel_estimate_learn_sample(estimate, each_ns);
	else if (verdict.lesson == LL_BATCH_ROUGH && estimate)
		ll_kernel_estimate_learn_rough(estimate, each_ns);
	else if (verdict.lesson == LL_BATCH_QUEUED && estimate &&
		 (!estimate->learned || batch->guess_ns >= QUEUED_LEAST_NS))
		ll_kernel_estimate_learn_queued(estimate, each_ns);
	else if (verdict.lesson == LL_BATCH_LONGER)
		ll_kernel_estimates_doubt(&timing->estimates, estimate, each_ns);
}

/* When a batch began and ended. */
struct times {
	struct ll_timing_stamp begin, end;
	uint64_t begin_host_ns; /* CLOCK_MONOTONIC when the start was recorded or the first launch was made */
};

/* Reads when a batch began and ended. If launches came to an idle stream without a start event, they began at the time
 * at which the card would have reached an event recorded then. */
static struct times read_times(struct ll_timing *timing, const struct ll_timing_track *track,
			       const struct ll_timing_batch *batch)
{
	struct times times = {.begin = track->end, .begin_host_ns = track->end_host_ns};
	uint64_t first_ns = batch->first_ns ? ll_timing_card_ns(&timing->clock, batch->first_ns) : 0;
	if (batch->start.handle) {
		times.begin = ll_timing_read(&timing->clock, &batch->start);
		times.begin_host_ns = batch->start.host_ns;
		ll_timing_drop_ended(&timing->clock, batch->start.handle, times.begin.card_ns);
	} else if (first_ns > track->end.card_ns) {
		times.begin = (struct ll_timing_stamp){.card_ns = first_ns};
		times.begin_host_ns = batch->first_ns;
	}
	times.end = ll_timing_read(&timing->clock, &batch->end);
	return times;
}

/* If the batch is_cut, one launch may belong to this batch or to the next. If it ended in this batch, this batch is
 * charged for it. Returns the launch's time, which the next batch must subtract. */
static uint64_t over_ns(const struct ll_timing_batch *batch, uint64_t busy_ns)
{
	uint64_t each_ns = batch->launches ? batch->guess_ns / batch->launches : 0;
	bool has_one_more = batch->is_cut && busy_ns > batch->guess_ns + each_ns / 2;
	return has_one_more ? each_ns : 0;
}

/* Of a kernel that is shorter, some samples are not interrupted by another program's time slice of 2 ms. */
#define SHORT_NS UINT64_C(1500000)

/* Charges a stretch of card time, without the part that other streams have already reported. */
static void charge_stretch(struct ll_timing *timing, uint64_t start_ns, uint64_t end_ns, uint64_t accounted_ns,
			   uint64_t span_ns, uint32_t launches, bool is_ours)
{
	uint64_t host_ns = ll_timing_host_ns(&timing->clock, end_ns);
	struct ll_timing_stretch stretch = {
	    .start_ns = host_ns - (end_ns - start_ns),
	    .end_ns = host_ns,
	    .fresh_ns = ll_busy_add(&timing->busy, start_ns, end_ns),
	    .is_ours = is_ours,
	    .accounted_ns = accounted_ns,
	    .is_short = accounted_ns < launches * SHORT_NS,
	    .fresh_accounted_ns = ll_busy_add(&timing->accounted, end_ns - accounted_ns, end_ns),
	    .span_ns = span_ns,
	    .fresh_span_ns = ll_busy_add(&timing->spans, end_ns - span_ns, end_ns),
	};
	if (stretch.fresh_ns || stretch.fresh_accounted_ns || stretch.fresh_span_ns)
		timing->charge(timing->charge_of, &stretch);
}

/* That others share the card is told late on a busy host, and some of them pause. Others count for this time. */
#define RECENTLY_NS (2 * LL_NS_PER_S)

static bool was_disturbed(struct ll_timing *timing)
{
	uint64_t now_ns = ll_now_ns();
	if (is_disturbed(timing))
		timing->disturbed_ns = now_ns;
	return timing->disturbed_ns && now_ns - timing->disturbed_ns < RECENTLY_NS;
}

/* Returns how long the card worked on the batch, for the accounts; 0: no better than busy_ns. Beside other programs it
 * is the sum of the kernels' shortest samples (kernel_estimates.h), without the switches between contexts. With gaps it
 * is busy_ns: while a stream waits or copies, its context may be on the card. */
static uint64_t accounted_ns(struct ll_timing *timing, const struct ll_timing_batch *batch, uint64_t span_ns,
			     uint64_t busy_ns)
{
	bool is_single =
	    batch->launches == 1 && batch->start.handle && !batch->is_cut && !batch->is_held && !batch->has_gap;
	if (!batch->kernel_key)
		return batch->has_gap ? busy_ns : 0;
	if (is_single)
		ll_shortest_note(&timing->shortest, batch->kernel_key, is_disturbed(timing) ? span_ns : busy_ns);
	uint64_t ns = batch->launches * ll_shortest_ns(&timing->shortest, batch->kernel_key);
	if (!was_disturbed(timing))
		return busy_ns;
	return ns < span_ns ? ns : span_ns;
}

static void settle_batch(struct ll_timing *timing, struct ll_timing_track *track, const struct ll_timing_batch *batch)
{
	struct times times = read_times(timing, track, batch);
	struct ll_timing_stamp begin = times.begin, end = times.end;
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
	    .event_ns = timing->clock.event_ns,
	    .guess_ns = batch->guess_ns - (track->over_ns < batch->guess_ns ? track->over_ns : batch->guess_ns),
	    .launches = batch->launches,
	    .has_start = batch->start.handle,
	    .is_behind = batch->is_behind,
	};
	struct ll_batch_verdict verdict = ll_batch_judge(&facts);
	note_event_time(timing);
	bool is_sure = !batch->is_cut && !track->was_cut && !batch->is_held &&
		       !batch->has_gap; /* it is known how many launches it had, and in what time */
	if (is_sure)
		learn_batch(timing, track, batch, verdict, facts.span_ns);
	bool is_long = is_long_unknown(timing, batch);
	if (is_long)
		verdict.busy_ns = facts.span_ns;
	else if (timing->sliced_by || batch->has_gap)
		verdict.busy_ns = batch_own_ns(timing, track, batch, facts.span_ns);
	else if (is_sure && verdict.lesson == LL_BATCH_UNTOLD)
		bound_mean(track, batch, facts.span_ns);
	charge_stretch(timing, end.card_ns - verdict.busy_ns, end.card_ns,
		       accounted_ns(timing, batch, facts.span_ns, verdict.busy_ns), facts.span_ns, batch->launches,
		       timing->sliced_by && !is_long); /* its work came right before its end */
	track->end = end;
	track->end_host_ns = batch->end.host_ns;
	track->was_cut = batch->is_cut;
	track->over_ns = over_ns(batch, verdict.busy_ns);
	track->settled++;
	timing->settled++;
	if (!batch->is_end_shared)
		ll_timing_drop_ended(&timing->clock, batch->end.handle, end.card_ns);
}

void ll_timing_track_harvest(struct ll_timing *timing, struct ll_timing_track *track)
{
	while (track->count && ll_timing_clock_runs(&timing->clock) &&
	       ll_timing_has_ended(&timing->clock, track->batches[track->first].end.handle)) {
		struct ll_timing_batch batch = track->batches[track->first];
		track->first = (track->first + 1) % LL_TIMING_BATCHES;
		track->count--;
		track->free_batches -= track->free_batches > 0;
		settle_batch(timing, track, &batch);
	}
	if (track->is_gone && !track->count && !track->is_in_driver) {
		ll_timing_drop(&timing->clock, track->open.start.handle);
		track->is_used = false;
	}
}

void ll_timing_harvest(struct ll_timing *timing)
{
	for (struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind; track = track->next) {
		if (track->is_used)
			ll_timing_track_harvest(timing, track);
	}
}
