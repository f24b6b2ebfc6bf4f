#include "shim/time/timing_state.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "rules/share/visits.h"
#include "shim/interpose/real.h"
#include "shim/interpose/stream.h"
#include "shim/link/port.h"

/* Only a thread itself can time its own default stream. While fewer batches than this are in flight there, every launch
 * ends a batch. */
enum { EVENTED_AHEAD = 2 };

/* A stream has room for about a thousand operations (doc/facts.md). If a tail has at most this many launches, there is
 * room for a timing event behind it, even if the program has queued other operations between the launches. */
enum { ROOM_LAUNCHES = 128 };

/* The longest time that the host needs to launch a large graph. */
#define LAUNCH_MOST_NS (2 * LL_NS_PER_MS)

/* At most 1 / UNSTEADY_PARTS of a batch may be work of kernels whose duration varies. */
enum { UNSTEADY_PARTS = 5 };

struct ll_timing *ll_timing_new(struct ll_timing_lock *lock, ll_timing_charge_fn *charge, void *of)
{
	struct ll_timing *timing = aligned_alloc(alignof(struct ll_timing), sizeof *timing);
	if (!timing)
		return NULL;
	memset(timing, 0, sizeof *timing); /* a compound literal would be on the stack of the launching thread */
	ll_timing_clock_init(&timing->clock, lock);
	timing->every_ns = LL_TIMING_EVERY_NS;
	timing->parts = 1;
	timing->charge = charge;
	timing->charge_of = of;
	return timing;
}

static void destroy_events(const struct ll_timing_track *track)
{
	for (uint32_t i = 0; i < track->count; i++) {
		const struct ll_timing_batch *batch = &track->batches[(track->first + i) % LL_TIMING_BATCHES];
		if (batch->start.handle)
			ll_real()->cuEventDestroy_v2(batch->start.handle);
		if (batch->end.handle && !batch->is_end_shared)
			ll_real()->cuEventDestroy_v2(batch->end.handle);
	}
	if (track->open.start.handle)
		ll_real()->cuEventDestroy_v2(track->open.start.handle);
	if (track->closing.start.handle)
		ll_real()->cuEventDestroy_v2(track->closing.start.handle);
}

void ll_timing_free(struct ll_timing *timing, bool destroys_events)
{
	if (!timing)
		return;
	while (timing->tracks) {
		struct ll_timing_track *track = timing->tracks;
		if (destroys_events)
			destroy_events(track);
		timing->tracks = track->next;
		free(track);
	}
	ll_timing_clock_fini(&timing->clock, destroys_events);
	free(timing);
}

void ll_timing_set_every(struct ll_timing *timing, uint64_t every_ns)
{
	timing->every_ns = every_ns;
}

void ll_timing_set_parts(struct ll_timing *timing, unsigned parts)
{
	timing->parts = parts;
}

void ll_timing_set_patience(struct ll_timing *timing, uint64_t patience_ns)
{
	timing->patience_ns = patience_ns;
}

void ll_timing_set_watched(struct ll_timing *timing, bool is_watched)
{
	timing->is_watched = is_watched;
}

static struct ll_timing_track *add_track(struct ll_timing *timing, struct ll_timing_stream name)
{
	struct ll_timing_track *track = timing->tracks;
	while (track && track->is_used)
		track = track->next;
	if (!track) {
		track = calloc(1, sizeof *track);
		if (!track)
			return NULL;
		track->next = timing->tracks;
		timing->tracks = track;
	}
	*track = (struct ll_timing_track){.name = name, .is_used = true, .next = track->next};
	return track;
}

static uint64_t guess_ns(const struct ll_timing_track *track, const struct ll_kernel_estimate *estimate)
{
	if (estimate->ns)
		return estimate->ns;
	return track->mean_ns ? track->mean_ns : LL_TIMING_FIRST_GUESS_NS;
}

static void add_launches(struct ll_timing_track *track, const struct ll_kernel_estimate *estimate, uint32_t count)
{
	struct ll_timing_batch *open = &track->open;
	open->kernel_key = !open->launches || open->kernel_key == estimate->key ? estimate->key : 0;
	open->launches += count;
	open->ahead = count - 1;
	open->guess_ns += count * guess_ns(track, estimate);
	track->unheld_ns += count * guess_ns(track, estimate);
	open->unsteady_ns += ll_kernel_estimate_is_steady(estimate) ? 0 : count * guess_ns(track, estimate);
	track->is_left = false;
}

/* Ends the closing batch with this event and adds it to the ring. If the ring is full, merges it into the last batch,
 * which then has several kernels. */
static void push_batch(struct ll_timing *timing, struct ll_timing_track *track, struct ll_timing_event end)
{
	struct ll_timing_batch *closing = &track->closing;
	closing->end = end;
	if (track->count == LL_TIMING_BATCHES) {
		struct ll_timing_batch *last =
		    &track->batches[(track->first + LL_TIMING_BATCHES - 1) % LL_TIMING_BATCHES];
		ll_timing_drop(&timing->clock, last->end.handle); /* may also be the start of the closing batch */
		last->end = end;
		last->is_end_shared = closing->is_end_shared;
		last->launched_ns = closing->launched_ns;
		last->launches += closing->launches;
		last->ahead = closing->ahead;
		last->guess_ns += closing->guess_ns;
		last->unsteady_ns += closing->unsteady_ns;
		last->is_cut = closing->is_cut;
		last->is_held |= closing->is_held;
		last->has_gap |= closing->has_gap;
		last->kernel_key = 0;
	} else {
		track->batches[(track->first + track->count++) % LL_TIMING_BATCHES] = *closing;
	}
	*closing = (struct ll_timing_batch){0};
}

static uint64_t launches_in_flight(const struct ll_timing_track *track)
{
	uint64_t launches = 0;
	for (uint32_t i = 0; i < track->count; i++)
		launches += track->batches[(track->first + i) % LL_TIMING_BATCHES].launches;
	return launches;
}

/* Returns whether one more event may be in flight: if there are few events, or few for the number of launches since the
 * last event, or if all batches have ended and only the clock does not run yet. */
static bool has_few_events(struct ll_timing *timing, const struct ll_timing_track *track)
{
	if (track->count < LL_TIMING_EVENTS_FREE || track->open.launches * timing->parts >= launches_in_flight(track))
		return true;
	uint32_t last = (track->first + track->count - 1) % LL_TIMING_BATCHES;
	return ll_timing_has_ended(&timing->clock, track->batches[last].end.handle);
}

/* Returns whether an event may be recorded now. If not, the launches are timed together with later launches, or by the
 * agent. */
static bool may_record(struct ll_timing *timing, const struct ll_timing_track *track)
{
	return ll_timing_can_record(&timing->clock) && !track->is_in_driver && has_few_events(timing, track);
}

/* Records a timing event behind the open batch, which becomes the closing batch. Launches that other threads make
 * meanwhile belong to a new batch. */
static bool record_event(struct ll_timing *timing, struct ll_timing_track *track, struct ll_timing_event *ret_event)
{
	track->closing = track->open;
	track->open = (struct ll_timing_batch){0};
	track->is_in_driver = true;
	bool is_recorded = ll_timing_record(&timing->clock, track->name.handle, ret_event);
	track->is_in_driver = false;
	if (is_recorded)
		track->recorded_ns = ret_event->host_ns + ret_event->call_ns;
	return is_recorded;
}

/* Begins the batch of the next launch with an event, which also ends the batch before it. */
static void time_start(struct ll_timing *timing, struct ll_timing_track *track)
{
	struct ll_timing_event start;
	bool is_behind = track->count;
	if (!may_record(timing, track) || !record_event(timing, track, &start))
		return;
	if (track->closing.launches) {
		track->closing.is_end_shared = true;
		push_batch(timing, track, start);
	}
	track->open.start = start;
	track->open.started_ns = track->recorded_ns;
	track->open.is_behind = is_behind;
}

/* Ends the open batch with an event. is_cut: see struct ll_timing_batch. */
static void close_open(struct ll_timing *timing, struct ll_timing_track *track, bool is_cut)
{
	struct ll_timing_event end;
	if (!track->open.launches || !may_record(timing, track) || !record_event(timing, track, &end))
		return;
	track->closing.is_cut = is_cut;
	push_batch(timing, track, end);
}

/* Returns whether the track's stream is the legacy stream, under either of its two names. */
static bool is_legacy(const struct ll_timing_track *track)
{
	return !track->name.handle || track->name.handle == LL_CU_STREAM_LEGACY;
}

static bool is_working(const struct ll_timing_track *track)
{
	return track->is_used && (track->count || track->is_in_driver || (track->open.launches && !track->is_left));
}

/* Returns whether a tail may be timed. An event in the legacy stream would delay other streams, so it is recorded only
 * if no other stream works. */
static bool can_close_tail(const struct ll_timing *timing, const struct ll_timing_track *track)
{
	for (const struct ll_timing_track *other = timing->tracks; is_legacy(track) && other; other = other->next) {
		if (!is_legacy(other) && is_working(other))
			return false;
	}
	return !track->name.thread;
}

/* If a kernel's duration varies, a batch of many launches cannot be split into single durations. So the work of such
 * kernels in a batch is limited to this time. */
static uint64_t most_unsteady_ns(const struct ll_timing *timing)
{
	uint64_t part_ns = timing->every_ns / UNSTEADY_PARTS;
	return part_ns > LL_TIMING_EVERY_NS ? part_ns : LL_TIMING_EVERY_NS;
}

/* Returns how much work of that kernel the open batch has room for; 0: it is full. */
static uint64_t room_ns(const struct ll_timing *timing, const struct ll_timing_track *track,
			const struct ll_kernel_estimate *estimate)
{
	const struct ll_timing_batch *open = &track->open;
	uint64_t has_ns = open->guess_ns > open->seen_for_ns ? open->guess_ns : open->seen_for_ns;
	uint64_t room_ns = timing->every_ns > has_ns ? timing->every_ns - has_ns : 0;
	uint64_t most_ns = ll_kernel_estimate_is_steady(estimate) ? UINT64_MAX : most_unsteady_ns(timing);
	uint64_t unsteady_ns = most_ns > open->unsteady_ns ? most_ns - open->unsteady_ns : 0;
	return room_ns < unsteady_ns ? room_ns : unsteady_ns;
}

/* Returns how many launches of the kernel may be added to the open batch before one of them fills it or must be timed
 * singly. */
static uint32_t count_room(const struct ll_timing *timing, const struct ll_timing_track *track,
			   const struct ll_kernel_estimate *estimate)
{
	uint64_t ns = room_ns(timing, track, estimate);
	if (!estimate->ns || ll_kernel_estimate_wants_sample(&timing->estimates, estimate) || estimate->ns >= ns)
		return 0;
	uint64_t room = (ns - 1) / estimate->ns, to_sample = estimate->next - estimate->seen;
	return (uint32_t)(room < to_sample ? room : to_sample);
}

/* Returns whether the open batch has a start and no launch: another thread is about to make the launch, or the launch
 * failed. */
static bool has_bare_start(const struct ll_timing_track *track)
{
	return track->open.start.handle && !track->open.launches;
}

/* If kernels have a time limit, a launch that never ends must be found. So a timing event follows each launch that no
 * other thread can time later: each launch in a thread's own stream, and each launch in the legacy stream if there are
 * other streams. */
static bool shall_time_each(const struct ll_timing *timing, const struct ll_timing_track *track)
{
	bool is_only = timing->tracks == track && !track->next;
	return timing->is_watched && (track->name.thread || (is_legacy(track) && !is_only));
}

/* A batch without a start event may be running or may be waiting for another stream. If kernels have a time limit, the
 * library must know which. */
static bool shall_time_start(const struct ll_timing *timing, const struct ll_timing_track *track)
{
	return timing->is_watched && (!track->open.launches || shall_time_each(timing, track));
}

static void note_first(struct ll_timing_track *track, uint64_t now_ns)
{
	if (!track->open.launches && !track->open.first_ns) /* otherwise another thread is launching */
		track->open.first_ns = now_ns;
}

struct ll_timing_queue ll_timing_count(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key,
				       uint64_t now_ns, uint32_t most)
{
	struct ll_timing_track *track =
	    timing->clock.is_blind || name.thread ? NULL : ll_timing_track_find(timing, name);
	if (!track || has_bare_start(track) || track->is_left || track->is_in_driver || shall_time_start(timing, track))
		return (struct ll_timing_queue){0};
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&timing->estimates, kernel_key);
	uint32_t room = count_room(timing, track, estimate), count = room < most ? room : most;
	if (!count)
		return (struct ll_timing_queue){0};
	note_first(track, now_ns);
	add_launches(track, estimate, count);
	track->open.launched_ns = now_ns;
	estimate->seen += count;
	return (struct ll_timing_queue){.ns = count * estimate->ns, .launches = count};
}

void ll_timing_uncount(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint32_t count)
{
	struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (!track || track->open.launches <= count)
		return;
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&timing->estimates, kernel_key);
	uint64_t ns = count * guess_ns(track, estimate);
	track->open.launches -= count;
	track->open.ahead -= count < track->open.ahead ? count : track->open.ahead;
	track->open.guess_ns -= ns < track->open.guess_ns ? ns : track->open.guess_ns;
	track->open.unsteady_ns -= ns < track->open.unsteady_ns ? ns : track->open.unsteady_ns;
	estimate->seen -= count < estimate->seen ? count : estimate->seen;
}

/* Finds the stream's track, and waits while another thread records an event there. The launch must come before or
 * behind the event. Otherwise the library would not know which launches lie between two events. If the event waits for
 * room in the stream, the launch would have to wait too. */
static struct ll_timing_track *find_calm_track(struct ll_timing *timing, struct ll_timing_stream name)
{
	struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (!track || !track->is_in_driver)
		return track;
	uint64_t until_ns = ll_now_ns() + LL_TIMING_LOCK_WAIT_NS;
	while (track && track->is_in_driver && ll_timing_lock_wait(timing->clock.lock, until_ns))
		track = ll_timing_track_find(timing, name);
	return track;
}

void ll_timing_begin(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key)
{
	if (timing->clock.is_blind)
		return;
	struct ll_timing_track *track = find_calm_track(timing, name);
	if (!track)
		track = add_track(timing, name);
	if (!track) {
		timing->clock.is_blind = true;
		return;
	}
	ll_timing_track_harvest(timing, track);
	track->launching_ns = ll_now_ns();
	if (timing->clock.is_blind || has_bare_start(track)) /* this start is also good for this launch */
		return;
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&timing->estimates, kernel_key);
	bool is_long = track->open.is_held && guess_ns(track, estimate) >= LL_TIMING_LONG_NS;
	if (track->is_left || is_long || shall_time_start(timing, track) ||
	    (track->count < LL_TIMING_EVENTS_BEHIND && ll_kernel_estimate_wants_sample(&timing->estimates, estimate)))
		time_start(timing, track);
	else
		note_first(track, track->launching_ns);
}

/* Returns whether the batch must end after this launch. Only a thread itself can time its own default stream, so the
 * agent cannot end such batches later. */
static bool is_full(const struct ll_timing *timing, const struct ll_timing_track *track,
		    const struct ll_kernel_estimate *estimate)
{
	bool is_own = track->name.thread && track->count < EVENTED_AHEAD;
	return is_own || shall_time_each(timing, track) || !room_ns(timing, track, estimate);
}

void ll_timing_end(struct ll_timing *timing, struct ll_timing_stream name, uint64_t kernel_key, uint64_t launched_ns)
{
	struct ll_timing_track *track = timing->clock.is_blind ? NULL : ll_timing_track_find(timing, name);
	if (!track)
		return;
	track->launching_ns = 0;
	if (!launched_ns)
		return;
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&timing->estimates, kernel_key);
	add_launches(track, estimate, 1);
	track->open.launched_ns = launched_ns > track->recorded_ns ? launched_ns : ll_now_ns();
	bool is_sample = track->open.launches == 1 && track->open.start.handle &&
			 ll_kernel_estimate_wants_sample(&timing->estimates, estimate);
	if (is_sample)
		ll_kernel_estimate_note_sample(&timing->estimates, estimate);
	estimate->seen++;
	if (is_sample || is_full(timing, track, estimate))
		close_open(timing, track, false);
}

void ll_timing_add_untimed(struct ll_timing *timing, struct ll_timing_stream name, uint32_t launches)
{
	struct ll_timing_track *track = timing->clock.is_blind ? NULL : ll_timing_track_find(timing, name);
	if (!track)
		return;
	uint64_t mean_ns = ll_timing_track_mean_ns(timing, track);
	uint64_t each_ns = mean_ns ? mean_ns : LL_TIMING_FIRST_GUESS_NS;
	track->open.kernel_key = 0;
	track->open.launches += launches;
	track->open.ahead = 0;
	track->open.guess_ns += launches * each_ns;
	track->unheld_ns += launches * each_ns;
	track->open.launched_ns = ll_now_ns();
	track->is_left = false;
}

void ll_timing_end_unheld(struct ll_timing *timing, struct ll_timing_stream name)
{
	struct ll_timing_track *track = timing->clock.is_blind ? NULL : ll_timing_track_find(timing, name);
	struct ll_timing_event end;
	if (!track || !track->open.launches || track->open.is_held || track->is_left || track->is_in_driver ||
	    !ll_timing_can_record(&timing->clock) || !record_event(timing, track, &end))
		return;
	track->closing.is_cut = track->launching_ns;
	push_batch(timing, track, end);
}

void ll_timing_note_wait(struct ll_timing *timing, struct ll_timing_stream name, uint32_t word)
{
	struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (!track)
		track = add_track(timing, name);
	if (!track)
		return;
	if (!track->wait_word)
		track->free_batches = track->count + (track->open.launches > 0) + track->is_in_driver;
	track->unheld_ns = 0;
	track->wait_word = word;
	track->open.is_held = true;
}

void ll_timing_note_gap(struct ll_timing *timing, struct ll_timing_stream name)
{
	struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (track)
		track->open.has_gap = true;
}

void ll_timing_note_gap_anywhere(struct ll_timing *timing)
{
	for (struct ll_timing_track *track = timing->tracks; track; track = track->next)
		track->open.has_gap = true;
}

/* Returns whether the tail's estimated end and the patience time have passed. An event costs time on the card and
 * delays a program that waits for the stream. Such a program launches again within the patience time. */
static bool is_due(const struct ll_timing *timing, const struct ll_timing_track *track, uint64_t now_ns)
{
	const struct ll_timing_batch *open = &track->open;
	uint64_t takes_ns = open->guess_ns < timing->every_ns ? open->guess_ns : timing->every_ns;
	return now_ns >= open->launched_ns + takes_ns + timing->patience_ns;
}

/* Returns whether a thread is launching in this stream. Its launch may come before or behind an event that is recorded
 * now, and counts as behind it. So no event is recorded meanwhile, unless the launch takes longer than LAUNCH_MOST_NS:
 * then it may be waiting for room or may never return. */
static bool is_launching(const struct ll_timing_track *track, uint64_t now_ns)
{
	return track->launching_ns && now_ns < track->launching_ns + LAUNCH_MOST_NS;
}

static bool shall_tend_tail(const struct ll_timing *timing, const struct ll_timing_track *track, bool at_once)
{
	uint64_t now_ns = ll_now_ns();
	return ll_timing_track_has_tail(track) && !is_launching(track, now_ns) &&
	       (at_once || is_due(timing, track, now_ns));
}

bool ll_timing_has_tails(const struct ll_timing *timing, bool at_once)
{
	for (const struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind;
	     track = track->next) {
		if (shall_tend_tail(timing, track, at_once))
			return true;
	}
	return false;
}

/* Asks the driver whether the stream has work. Releases the lock for the call, because the call waits if another thread
 * waits in the driver for room in this stream (doc/facts.md). */
static ll_cu_result query_stream(struct ll_timing *timing, struct ll_timing_track *track)
{
	track->is_in_driver = true;
	ll_timing_lock_let_go(timing->clock.lock);
	ll_cu_result status = ll_real()->cuStreamQuery(track->name.handle);
	ll_timing_lock_take_back(timing->clock.lock);
	track->is_in_driver = false;
	return status;
}

/* Notes that the tail is running now. It has then run since it was last seen running. A short tail may have ended in
 * between, and the program may have launched again. Then only the time since the last launch counts. */
static void note_seen(struct ll_timing_batch *open, uint64_t now_ns)
{
	uint64_t since_ns = open->seen_ns > open->begun_ns ? open->seen_ns : open->begun_ns;
	if (open->launches <= ROOM_LAUNCHES && open->launched_ns > since_ns)
		since_ns = open->launched_ns;
	if (open->begun_ns && now_ns > since_ns)
		open->seen_for_ns += now_ns - since_ns;
	open->seen_ns = now_ns;
}

/* Notes whether a tail that must not be timed is still running. */
static void look_at_tail(struct ll_timing *timing, struct ll_timing_track *track)
{
	struct ll_timing_batch *open = &track->open;
	if (ll_stream_is_captured(track->name.handle) || query_stream(timing, track) != LL_CUDA_ERROR_NOT_READY)
		return;
	if (!open->begun_ns)
		open->begun_ns = open->launched_ns;
	note_seen(open, ll_now_ns());
}

/* Returns whether the stream has room for a timing event behind the open batch, so that recording the event does not
 * wait. The context is current. */
static bool has_room(struct ll_timing *timing, struct ll_timing_track *track)
{
	struct ll_timing_batch *open = &track->open;
	if (!open->begun_ns && (!open->start.handle || ll_timing_has_ended(&timing->clock, open->start.handle)))
		open->begun_ns = ll_now_ns();
	if (open->begun_ns && open->launches <= ROOM_LAUNCHES)
		return true;
	ll_cu_result status = query_stream(timing, track);
	if (status == LL_CUDA_ERROR_NOT_READY)
		note_seen(open, ll_now_ns());
	return status == LL_CUDA_SUCCESS;
}

/* has_room releases the lock, and a capture may begin meanwhile. So this checks twice whether the stream is captured.
 */
static bool can_record_now(struct ll_timing *timing, struct ll_timing_track *track)
{
	return !track->is_in_driver && !ll_stream_is_captured(track->name.handle) && has_room(timing, track) &&
	       !ll_stream_is_captured(track->name.handle);
}

void ll_timing_close_tails(struct ll_timing *timing, bool at_once)
{
	for (struct ll_timing_track *track = timing->tracks; track && !timing->clock.is_blind; track = track->next) {
		if (!shall_tend_tail(timing, track, at_once))
			continue;
		if (!can_close_tail(timing, track))
			look_at_tail(timing, track);
		else if (can_record_now(timing, track))
			close_open(timing, track, track->launching_ns);
	}
}

void ll_timing_leave_tails(struct ll_timing *timing)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_timing_track *track = timing->tracks; track; track = track->next) {
		const struct ll_timing_batch *open = &track->open;
		uint64_t since_ns = open->seen_ns > open->launched_ns ? open->seen_ns : open->launched_ns;
		if (track->is_used && !track->count && open->launches && now_ns >= since_ns &&
		    now_ns - since_ns >= LL_VISIT_DRAIN_NS) /* a turn waits for its remaining work for the same time */
			track->is_left = true;
	}
}

void ll_timing_forget_stream(struct ll_timing *timing, struct ll_timing_stream name, bool can_record)
{
	struct ll_timing_track *track = ll_timing_track_find(timing, name);
	if (!track)
		return;
	if (can_record && !timing->clock.is_blind && track->open.launches && can_record_now(timing, track))
		close_open(timing, track, track->launching_ns);
	track->is_gone = true;
}

bool ll_timing_has_work_unseen(struct ll_timing *timing)
{
	bool has_work = false;
	for (struct ll_timing_track *track = timing->tracks; track && !has_work; track = track->next) {
		bool may_ask = track->is_used && !track->is_gone && !track->name.thread && !track->is_in_driver &&
			       !ll_stream_is_captured(track->name.handle);
		has_work = may_ask && query_stream(timing, track) == LL_CUDA_ERROR_NOT_READY;
	}
	return has_work;
}

bool ll_timing_begin_anew(struct ll_timing *timing)
{
	bool is_in_driver = timing->clock.is_basing;
	for (const struct ll_timing_track *track = timing->tracks; track; track = track->next)
		is_in_driver |= track->is_in_driver;
	for (struct ll_timing_track *track = timing->tracks; track && !is_in_driver; track = track->next) {
		destroy_events(track);
		*track = (struct ll_timing_track){.name = track->name,
						  .is_used = track->is_used && !track->is_gone,
						  .launching_ns = track->launching_ns,
						  .mean_ns = track->mean_ns,
						  .next = track->next};
	}
	if (is_in_driver)
		return false;
	ll_timing_clock_fini(&timing->clock, true);
	timing->busy = timing->accounted = timing->spans =
	    (struct ll_busy){0}; /* the spans are in the old clock's time */
	return true;
}
