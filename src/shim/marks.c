#include "shim/marks_state.h"

#include <stdlib.h>

#include "base/clock.h"
#include "control/batch.h"
#include "ledger/turn.h"
#include "shim/capturing.h"
#include "shim/real.h"

/* Batches in flight below which every launch ends one, where only its thread can mark it. */
enum { MARKED_AHEAD = 2 };

/* Launches of a tail behind which there is room for its mark, whatever else the program has queued between them: some
 * thousand operations fit (doc/facts.md). */
enum { ROOM_LAUNCHES = 128 };

/* A queue of less tells little: where others' work came in between, that is most of it. */
#define QUEUED_LEAST_NS (50 * LL_NS_PER_US)

/* What a launch is taken to last before anything is known. */
#define FIRST_GUESS_NS (1 * LL_NS_PER_MS)

struct ll_marks *ll_marks_new(struct ll_mark_lock *lock, ll_marks_charge_fn *charge, void *of)
{
	struct ll_marks *marks = calloc(1, sizeof *marks);
	if (!marks)
		return NULL;
	ll_mark_clock_init(&marks->clock, lock);
	marks->every_ns = LL_MARK_EVERY_NS;
	marks->charge = charge;
	marks->charge_of = of;
	return marks;
}

static void destroy_events(const struct ll_mark_track *track)
{
	for (uint32_t i = 0; i < track->count; i++) {
		const struct ll_mark_batch *batch = &track->batches[(track->first + i) % LL_MARK_BATCHES];
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

void ll_marks_free(struct ll_marks *marks, bool destroys_events)
{
	if (!marks)
		return;
	while (marks->tracks) {
		struct ll_mark_track *track = marks->tracks;
		if (destroys_events)
			destroy_events(track);
		marks->tracks = track->next;
		free(track);
	}
	ll_mark_clock_fini(&marks->clock, destroys_events);
	free(marks);
}

void ll_marks_set_every(struct ll_marks *marks, uint64_t every_ns)
{
	marks->every_ns = every_ns;
}

void ll_marks_set_shared(struct ll_marks *marks, bool is_shared)
{
	marks->is_shared = is_shared;
}

static struct ll_mark_track *find_track(struct ll_marks *marks, struct ll_mark_stream name)
{
	for (struct ll_mark_track *track = marks->tracks; track; track = track->next) {
		if (track->is_used && !track->is_gone && ll_mark_stream_is(track->name, name))
			return track;
	}
	return NULL;
}

static struct ll_mark_track *add_track(struct ll_marks *marks, struct ll_mark_stream name)
{
	struct ll_mark_track *track = marks->tracks;
	while (track && track->is_used)
		track = track->next;
	if (!track) {
		track = calloc(1, sizeof *track);
		if (!track)
			return NULL;
		track->next = marks->tracks;
		marks->tracks = track;
	}
	*track = (struct ll_mark_track){.name = name, .is_used = true, .next = track->next};
	return track;
}

static uint64_t guess_ns(const struct ll_mark_track *track, const struct ll_kind *kind)
{
	if (kind && kind->ns)
		return kind->ns;
	return track->mean_ns ? track->mean_ns : FIRST_GUESS_NS;
}

static void add_launches(struct ll_mark_track *track, const struct ll_kind *kind, uint32_t count)
{
	struct ll_mark_batch *open = &track->open;
	open->kind = !open->launches || open->kind == kind->name ? kind->name : 0;
	open->launches += count;
	open->guess_ns += count * guess_ns(track, kind);
	track->is_left = false;
}

/* Ends the closing batch with this event. A full ring: the last one in it grows, and is no longer of one kind. */
static void push_batch(struct ll_marks *marks, struct ll_mark_track *track, struct ll_mark_event end)
{
	struct ll_mark_batch *closing = &track->closing;
	closing->end = end;
	if (track->count == LL_MARK_BATCHES) {
		struct ll_mark_batch *last = &track->batches[(track->first + LL_MARK_BATCHES - 1) % LL_MARK_BATCHES];
		ll_mark_drop(&marks->clock, last->end.handle); /* the start of the next one, where that has any */
		last->end = end;
		last->is_end_shared = closing->is_end_shared;
		last->launched_ns = closing->launched_ns;
		last->launches += closing->launches;
		last->guess_ns += closing->guess_ns;
		last->kind = 0;
	} else {
		track->batches[(track->first + track->count++) % LL_MARK_BATCHES] = *closing;
	}
	*closing = (struct ll_mark_batch){0};
}

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
	if (batch->launches && span_ns / batch->launches < track->mean_ns)
		learn_mean(track, span_ns / batch->launches);
}

/* Of samples that were taken for what an event had been thought to take, all are too long or too short. */
static void note_event_time(struct ll_marks *marks)
{
	if (marks->event_ns && marks->event_ns != marks->clock.event_ns)
		ll_kinds_forget(&marks->kinds);
	marks->event_ns = marks->clock.event_ns;
}

static void learn(struct ll_marks *marks, struct ll_mark_track *track, const struct ll_mark_batch *batch,
		  struct ll_batch_verdict verdict)
{
	struct ll_kind *kind = batch->kind ? ll_kinds_find(&marks->kinds, batch->kind) : NULL;
	if (verdict.lesson == LL_BATCH_UNTOLD || !batch->launches ||
	    (marks->is_shared && (!kind || kind->learned || kind->rough)))
		return;
	uint64_t each_ns = ll_batch_each_ns(verdict, batch->launches);
	learn_mean(track, each_ns);
	bool is_alone = verdict.lesson == LL_BATCH_QUEUED && batch->launches == 1; /* an event on either side of it */
	if ((verdict.lesson == LL_BATCH_SAMPLE || is_alone) && kind)
		ll_kind_learn_sample(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_ROUGH && kind)
		ll_kind_learn_rough(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_QUEUED && kind && (!kind->learned || batch->guess_ns >= QUEUED_LEAST_NS))
		ll_kind_learn_queued(kind, each_ns);
	else if (verdict.lesson == LL_BATCH_LONGER)
		ll_kinds_doubt(&marks->kinds, kind, each_ns);
}

/* Where nothing was marked, for what is known is not worth it: no earlier than an event that was recorded then. */
static struct ll_mark_stamp start_on_idle(struct ll_marks *marks, const struct ll_mark_track *track, uint64_t host_ns)
{
	uint64_t card_ns = ll_mark_card_ns(&marks->clock, host_ns);
	return (struct ll_mark_stamp){.card_ns = card_ns > track->end.card_ns ? card_ns : track->end.card_ns};
}

/* When the batch began, on the card's clock; what that waited; when it was recorded. */
static struct ll_mark_stamp read_start(struct ll_marks *marks, const struct ll_mark_track *track,
				       const struct ll_mark_batch *batch, uint64_t *ret_host_ns)
{
	if (batch->idle_at_ns) {
		*ret_host_ns = batch->idle_at_ns;
		return start_on_idle(marks, track, batch->idle_at_ns);
	}
	*ret_host_ns = batch->start.handle ? batch->start.host_ns : track->end_host_ns;
	if (!batch->start.handle)
		return track->end;
	struct ll_mark_stamp start = ll_mark_read(&marks->clock, &batch->start);
	ll_mark_drop_ended(&marks->clock, batch->start.handle, start.card_ns);
	return start;
}

/* What other streams have told already is left out: what remains is the end of it. */
static void charge(struct ll_marks *marks, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t ns = ll_busy_add(&marks->busy, start_ns, end_ns);
	uint64_t host_ns = ll_mark_host_ns(&marks->clock, end_ns);
	if (ns)
		marks->charge(marks->charge_of, host_ns - ns, host_ns);
}

static void settle(struct ll_marks *marks, struct ll_mark_track *track, const struct ll_mark_batch *batch)
{
	uint64_t host_ns;
	struct ll_mark_stamp start = read_start(marks, track, batch, &host_ns);
	struct ll_mark_stamp end = ll_mark_read(&marks->clock, &batch->end);
	struct ll_batch facts = {
	    .span_ns = end.card_ns > start.card_ns ? end.card_ns - start.card_ns : 0,
	    .start_wait_ns = start.wait_ns,
	    .end_wait_ns = end.wait_ns,
	    .host_ns = batch->launched_ns - host_ns,
	    .start_call_ns = batch->start.call_ns,
	    .launch_ns = batch->launched_ns - batch->started_ns,
	    .tail_ns = batch->end.host_ns - batch->launched_ns,
	    .end_call_ns = batch->end.call_ns,
	    .seen_ns = ll_mark_batch_seen_ns(batch),
	    .event_ns = marks->clock.event_ns,
	    .guess_ns = batch->guess_ns,
	    .launches = batch->launches,
	    .has_start = batch->start.handle,
	    .is_behind = batch->is_behind,
	};
	struct ll_batch_verdict verdict = ll_batch_judge(&facts);
	note_event_time(marks);
	learn(marks, track, batch, verdict);
	if (verdict.lesson == LL_BATCH_UNTOLD)
		bound_mean(track, batch, facts.span_ns);
	uint64_t begun_ns = batch->idle_at_ns ? end.card_ns - verdict.busy_ns : start.card_ns;
	charge(marks, begun_ns, begun_ns + verdict.busy_ns);
	track->end = end;
	track->end_host_ns = batch->end.host_ns;
	track->settled++;
	marks->settled++;
	if (!batch->is_end_shared)
		ll_mark_drop_ended(&marks->clock, batch->end.handle, end.card_ns);
}

static void harvest_track(struct ll_marks *marks, struct ll_mark_track *track)
{
	while (track->count && ll_mark_clock_runs(&marks->clock) &&
	       ll_mark_has_ended(&marks->clock, track->batches[track->first].end.handle)) {
		struct ll_mark_batch batch = track->batches[track->first];
		track->first = (track->first + 1) % LL_MARK_BATCHES;
		track->count--;
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
			harvest_track(marks, track);
	}
}

static uint64_t launches_in_flight(const struct ll_mark_track *track)
{
	uint64_t launches = 0;
	for (uint32_t i = 0; i < track->count; i++)
		launches += track->batches[(track->first + i) % LL_MARK_BATCHES].launches;
	return launches;
}

/* Few are in flight, or as many launches have come since as are; or all of them have ended, and the clock alone does
 * not run yet. */
static bool has_few_marks(struct ll_marks *marks, const struct ll_mark_track *track)
{
	if (track->count < LL_MARKS_FREE || track->open.launches >= launches_in_flight(track))
		return true;
	uint32_t last = (track->first + track->count - 1) % LL_MARK_BATCHES;
	return ll_mark_has_ended(&marks->clock, track->batches[last].end.handle);
}

/* What is not marked now is marked with what comes next, or by the agent. */
static bool may_mark(struct ll_marks *marks, const struct ll_mark_track *track)
{
	return ll_mark_can_record(&marks->clock) && !track->is_in_driver && has_few_marks(marks, track);
}

/* Records a mark behind the open batch, which is closing then. What others launch meanwhile is a new one's. */
static bool record(struct ll_marks *marks, struct ll_mark_track *track, struct ll_mark_event *ret_event)
{
	track->closing = track->open;
	track->open = (struct ll_mark_batch){0};
	track->is_in_driver = true;
	bool is_recorded = ll_mark_record(&marks->clock, track->name.handle, ret_event);
	track->is_in_driver = false;
	if (is_recorded)
		track->marked_ns = ret_event->host_ns + ret_event->call_ns;
	return is_recorded;
}

/* The launch to come is timed from here; what was launched before ends here. */
static void mark_start(struct ll_marks *marks, struct ll_mark_track *track)
{
	struct ll_mark_event start;
	bool is_behind = track->count;
	if (!may_mark(marks, track) || !record(marks, track, &start))
		return;
	if (track->closing.launches) {
		track->closing.is_end_shared = true;
		push_batch(marks, track, start);
	}
	track->open.start = start;
	track->open.started_ns = track->marked_ns;
	track->open.is_behind = is_behind;
}

static void close_open(struct ll_marks *marks, struct ll_mark_track *track)
{
	struct ll_mark_event end;
	if (track->open.launches && may_mark(marks, track) && record(marks, track, &end))
		push_batch(marks, track, end);
}

/* Of launches that take now so long and now so long a batch of many would be guesswork. */
static uint64_t every_ns(const struct ll_marks *marks, const struct ll_kind *kind)
{
	return ll_kind_is_steady(kind) || marks->every_ns < LL_MARK_EVERY_NS ? marks->every_ns : LL_MARK_EVERY_NS;
}

/* So many of the kind go into the open batch before one of them fills it, or shall be timed by itself. */
static uint32_t count_room(const struct ll_marks *marks, const struct ll_mark_track *track, const struct ll_kind *kind)
{
	uint64_t room_ns = every_ns(marks, kind), guess_ns = track->open.guess_ns;
	if (!kind->ns || ll_kind_wants_sample(&marks->kinds, kind) || guess_ns + kind->ns >= room_ns)
		return 0;
	uint64_t room = (room_ns - guess_ns - 1) / kind->ns, to_sample = kind->next - kind->seen;
	return (uint32_t)(room < to_sample ? room : to_sample);
}

struct ll_marks_queue ll_marks_count(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name,
				     uint64_t now_ns, uint32_t most)
{
	struct ll_mark_track *track = marks->clock.is_blind || name.thread ? NULL : find_track(marks, name);
	if (!track || !track->open.launches || track->is_left || track->is_in_driver)
		return (struct ll_marks_queue){0};
	struct ll_kind *kind = ll_kinds_find(&marks->kinds, kind_name);
	uint32_t room = count_room(marks, track, kind), count = room < most ? room : most;
	if (!count)
		return (struct ll_marks_queue){0};
	add_launches(track, kind, count);
	track->open.launched_ns = now_ns;
	kind->seen += count;
	return (struct ll_marks_queue){.ns = count * kind->ns, .launches = count};
}

void ll_marks_uncount(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name, uint32_t count)
{
	struct ll_mark_track *track = find_track(marks, name);
	if (!track || track->open.launches <= count)
		return;
	struct ll_kind *kind = ll_kinds_find(&marks->kinds, kind_name);
	uint64_t ns = count * guess_ns(track, kind);
	track->open.launches -= count;
	track->open.guess_ns -= ns < track->open.guess_ns ? ns : track->open.guess_ns;
	kind->seen -= count < kind->seen ? count : kind->seen;
}

/* A mark stands before or behind a launch, or nobody could tell whose work lies between two of them. Where it waits for
 * room a launch into the same stream has to, too. */
static struct ll_mark_track *find_calm_track(struct ll_marks *marks, struct ll_mark_stream name)
{
	struct ll_mark_track *track = find_track(marks, name);
	if (!track || !track->is_in_driver)
		return track;
	uint64_t until_ns = ll_now_ns() + LL_MARK_LOCK_WAIT_NS;
	while (track && track->is_in_driver && ll_mark_lock_wait(marks->clock.lock, until_ns))
		track = find_track(marks, name);
	return track;
}

void ll_marks_begin(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name)
{
	if (marks->clock.is_blind)
		return;
	struct ll_mark_track *track = find_calm_track(marks, name);
	if (!track)
		track = add_track(marks, name);
	if (!track) {
		marks->clock.is_blind = true;
		return;
	}
	harvest_track(marks, track);
	/* a start that waits for its launch is as good: another thread, or a launch that failed */
	if (marks->clock.is_blind || (track->open.start.handle && !track->open.launches))
		return;
	struct ll_kind *kind = ll_kinds_find(&marks->kinds, kind_name);
	if (track->is_left || (track->count < LL_MARKS_BEHIND && ll_kind_wants_sample(&marks->kinds, kind)))
		mark_start(marks, track);
	else if (!track->count && !track->open.launches &&
		 !track->open.idle_at_ns) /* or another thread's is under way */
		track->open.idle_at_ns = ll_now_ns();
}

/* Only a thread itself can mark its own default stream: no agent ends what it leaves open. */
static bool is_full(const struct ll_marks *marks, const struct ll_mark_track *track, const struct ll_kind *kind)
{
	return track->open.guess_ns >= every_ns(marks, kind) || (track->name.thread && track->count < MARKED_AHEAD);
}

void ll_marks_end(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name, uint64_t launched_ns)
{
	struct ll_mark_track *track = marks->clock.is_blind || !launched_ns ? NULL : find_track(marks, name);
	if (!track)
		return;
	struct ll_kind *kind = ll_kinds_find(&marks->kinds, kind_name);
	add_launches(track, kind, 1);
	track->open.launched_ns = launched_ns > track->marked_ns ? launched_ns : ll_now_ns();
	bool is_sample =
	    track->open.launches == 1 && track->open.start.handle && ll_kind_wants_sample(&marks->kinds, kind);
	if (is_sample)
		ll_kind_note_sample(&marks->kinds, kind);
	kind->seen++;
	if (is_sample || is_full(marks, track, kind))
		close_open(marks, track);
}

void ll_marks_add_unmarked(struct ll_marks *marks, struct ll_mark_stream name, uint32_t launches)
{
	struct ll_mark_track *track = marks->clock.is_blind ? NULL : find_track(marks, name);
	if (!track)
		return;
	track->open.kind = 0;
	track->open.launches += launches;
	track->open.guess_ns += launches * guess_ns(track, NULL);
	track->open.launched_ns = ll_now_ns();
	track->is_left = false;
}

/* By either of its names. */
static bool is_legacy(const struct ll_mark_track *track)
{
	return !track->name.handle || track->name.handle == LL_CU_STREAM_LEGACY;
}

static bool works(const struct ll_mark_track *track)
{
	return track->is_used && (track->count || track->is_in_driver || (track->open.launches && !track->is_left));
}

/* A mark in the legacy stream holds back what other streams do: only where no other stream works. */
static bool can_close_tail(const struct ll_marks *marks, const struct ll_mark_track *track)
{
	for (const struct ll_mark_track *other = marks->tracks; is_legacy(track) && other; other = other->next) {
		if (!is_legacy(other) && works(other))
			return false;
	}
	return !track->name.thread;
}

/* A mark costs the card, and holds up who waits for the stream: whoever does that launches again before this is over.
 */
static bool is_due(const struct ll_marks *marks, const struct ll_mark_track *track, uint64_t now_ns)
{
	const struct ll_mark_batch *open = &track->open;
	uint64_t takes_ns = open->guess_ns < marks->every_ns ? open->guess_ns : marks->every_ns;
	return now_ns >= open->launched_ns + takes_ns;
}

static bool shall_close_tail(const struct ll_marks *marks, const struct ll_mark_track *track, bool at_once)
{
	return ll_mark_track_has_tail(track) && can_close_tail(marks, track) &&
	       (at_once || is_due(marks, track, ll_now_ns()));
}

bool ll_marks_has_tails(const struct ll_marks *marks, bool at_once)
{
	for (const struct ll_mark_track *track = marks->tracks; track && !marks->clock.is_blind; track = track->next) {
		if (shall_close_tail(marks, track, at_once))
			return true;
	}
	return false;
}

/* Who asks about a stream waits for whoever waits for room in it (doc/facts.md): without the lock, as who marks it. */
static ll_cu_result query(struct ll_marks *marks, struct ll_mark_track *track)
{
	track->is_in_driver = true;
	ll_mark_lock_let_go(marks->clock.lock);
	ll_cu_result status = ll_real()->cuStreamQuery(track->name.handle);
	ll_mark_lock_take_back(marks->clock.lock);
	track->is_in_driver = false;
	return status;
}

/* Whether a mark behind the open batch does not wait for room. The context is current. */
static bool has_room(struct ll_marks *marks, struct ll_mark_track *track)
{
	struct ll_mark_batch *open = &track->open;
	if (!open->begun_ns && (!open->start.handle || ll_mark_has_ended(&marks->clock, open->start.handle)))
		open->begun_ns = ll_now_ns();
	if (open->begun_ns && open->launches <= ROOM_LAUNCHES)
		return true;
	ll_cu_result status = query(marks, track);
	if (status == LL_CUDA_ERROR_NOT_READY)
		open->seen_ns = ll_now_ns();
	return status == LL_CUDA_SUCCESS;
}

/* Asked again after the lock was let go: a capture may have begun. */
static bool can_mark_now(struct ll_marks *marks, struct ll_mark_track *track)
{
	return !track->is_in_driver && !ll_stream_is_captured(track->name.handle) && has_room(marks, track) &&
	       !ll_stream_is_captured(track->name.handle);
}

void ll_marks_close_tails(struct ll_marks *marks, bool at_once)
{
	for (struct ll_mark_track *track = marks->tracks; track && !marks->clock.is_blind; track = track->next) {
		if (shall_close_tail(marks, track, at_once) && can_mark_now(marks, track))
			close_open(marks, track);
	}
}

void ll_marks_leave_tails(struct ll_marks *marks)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_mark_track *track = marks->tracks; track; track = track->next) {
		const struct ll_mark_batch *open = &track->open;
		uint64_t since_ns = open->seen_ns > open->launched_ns ? open->seen_ns : open->launched_ns;
		if (track->is_used && !track->count && open->launches && now_ns >= since_ns &&
		    now_ns - since_ns >= LL_TURN_DRAIN_NS) /* as long as a turn waits */
			track->is_left = true;
	}
}

void ll_marks_forget_stream(struct ll_marks *marks, struct ll_mark_stream name, bool can_mark)
{
	struct ll_mark_track *track = find_track(marks, name);
	if (!track)
		return;
	if (can_mark && !marks->clock.is_blind && track->open.launches && can_mark_now(marks, track))
		close_open(marks, track);
	track->is_gone = true;
}
