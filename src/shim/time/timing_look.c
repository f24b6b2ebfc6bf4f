#include "shim/time/timing_state.h"

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
	return timing->sliced_by && track->typical.mean_ns ? track->typical.mean_ns : track->mean_ns;
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
				lasts_longer(ret_running, track->open.seen_for_ns, track->open.launches);
			continue;
		}
		if (!has_begun(timing, track, now_ns))
			continue;
		/* A batch without a start event may be waiting for another stream. Its time counts only from the last
		 * progress of any stream. */
		bool is_waiting = !track->has_begun && timing->progress_ns > track->since_ns;
		uint64_t ns = now_ns - (is_waiting ? timing->progress_ns : track->since_ns);
		lasts_longer(ret_running, ns, track->batches[track->first].launches);
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
