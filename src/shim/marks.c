#include "shim/marks.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "shim/kinds.h"
#include "shim/real.h"

enum {
	BATCHES = 64, /* of one stream at a time; more are joined to the last */
	SPARE_EVENTS = 256,
	MARKED_AHEAD = 2, /* batches in flight below which every launch ends one, where only its thread can mark it */
};

/* A single-precision count of ms is exact to 8 ns this far from its base. */
#define REBASE_NS (100 * LL_NS_PER_MS)
/* What a launch is taken to last before anything is known, and how much a guess may be wrong before it is cut. */
#define FIRST_GUESS_NS (1 * LL_NS_PER_MS)
#define GUESS_MARGIN 2

struct batch {
	struct ll_cu_event *start; /* NULL: begins where the one before ended */
	struct ll_cu_event *end;
	uint64_t sample; /* the kind that its one launch is timed for; 0: none */
	uint64_t kind;   /* of all its launches; 0: they are of several */
	uint32_t launches;
	bool is_guess;      /* the stream ran empty in it, or before its end was marked: it is shorter than it looks */
	bool is_end_shared; /* the end is also the start of the next one */
	uint64_t guess_ns;
};

struct stream {
	struct ll_mark_stream name;
	bool is_used, is_gone;
	struct batch batches[BATCHES]; /* a ring of those in flight */
	uint32_t first, count;
	struct batch open;        /* launches not yet closed by an event */
	struct ll_cu_event *last; /* without timing, behind the last launch; NULL: never made */
	bool has_last;            /* the last launch is followed by it */
	uint64_t mean_ns;         /* of a launch; 0: not known */
	uint64_t end_ns;          /* card clock of the last batch that ended */
	uint64_t settled;         /* batches that have ended */
	/* what ll_marks_longest has seen: */
	uint64_t watched;  /* settled, then */
	uint64_t since_ns; /* the oldest batch was seen first, or seen to have begun; 0: there was none */
	bool has_begun;    /* its start has been reached */
	struct stream *next;
};

struct ll_marks {
	struct stream *streams;
	struct ll_kinds kinds;
	struct ll_cu_event *spare[SPARE_EVENTS];
	size_t spare_count;
	struct ll_cu_event *base; /* its card time is base_ns */
	uint64_t base_ns;
	bool has_base_ended;
	struct ll_busy busy;
	uint64_t untold_ns;                     /* busy time found since the last harvest */
	uint64_t settled, watched, progress_ns; /* batches of all streams, as for one */
	bool is_blind;
};

struct ll_marks *ll_marks_new(void)
{
	struct ll_marks *marks = calloc(1, sizeof *marks);
	if (marks) /* any origin will do, but differences below it must not be negative */
		marks->base_ns = LL_NS_PER_S;
	return marks;
}

static void drop_event(struct ll_marks *marks, struct ll_cu_event *event, bool destroys)
{
	if (!event)
		return;
	if (destroys && marks->spare_count == SPARE_EVENTS)
		ll_real()->cuEventDestroy_v2(event);
	else if (marks->spare_count < SPARE_EVENTS)
		marks->spare[marks->spare_count++] = event;
}

static void recycle(struct ll_marks *marks, struct ll_cu_event *event)
{
	drop_event(marks, event, true);
}

static void free_streams(struct ll_marks *marks, bool destroys_events)
{
	while (marks->streams) {
		struct stream *stream = marks->streams;
		for (uint32_t i = 0; destroys_events && i < stream->count; i++) {
			struct batch *batch = &stream->batches[(stream->first + i) % BATCHES];
			if (batch->start)
				ll_real()->cuEventDestroy_v2(batch->start);
			if (batch->end)
				ll_real()->cuEventDestroy_v2(batch->end);
		}
		if (destroys_events && stream->open.start)
			ll_real()->cuEventDestroy_v2(stream->open.start);
		if (destroys_events && stream->last)
			ll_real()->cuEventDestroy_v2(stream->last);
		marks->streams = stream->next;
		free(stream);
	}
}

void ll_marks_free(struct ll_marks *marks, bool destroys_events)
{
	if (!marks)
		return;
	free_streams(marks, destroys_events);
	for (size_t i = 0; destroys_events && i < marks->spare_count; i++)
		ll_real()->cuEventDestroy_v2(marks->spare[i]);
	if (destroys_events && marks->base)
		ll_real()->cuEventDestroy_v2(marks->base);
	free(marks);
}

static bool is_named(const struct stream *stream, struct ll_mark_stream name)
{
	return stream->is_used && !stream->is_gone && stream->name.handle == name.handle &&
	       stream->name.thread == name.thread;
}

static struct stream *find_stream(struct ll_marks *marks, struct ll_mark_stream name)
{
	for (struct stream *stream = marks->streams; stream; stream = stream->next) {
		if (is_named(stream, name))
			return stream;
	}
	return NULL;
}

static struct stream *add_stream(struct ll_marks *marks, struct ll_mark_stream name)
{
	struct stream *stream = marks->streams;
	while (stream && stream->is_used)
		stream = stream->next;
	if (!stream) {
		stream = calloc(1, sizeof *stream);
		if (!stream)
			return NULL;
		stream->next = marks->streams;
		marks->streams = stream;
	}
	*stream = (struct stream){.name = name, .is_used = true, .last = stream->last, .next = stream->next};
	return stream;
}

static struct ll_cu_event *record(struct ll_marks *marks, struct stream *stream)
{
	struct ll_cu_event *event = NULL;
	if (marks->spare_count)
		event = marks->spare[--marks->spare_count];
	else if (ll_real()->cuEventCreate(&event, LL_CU_EVENT_DEFAULT) != LL_CUDA_SUCCESS)
		event = NULL;
	if (event && ll_real()->cuEventRecord(event, stream->name.handle) == LL_CUDA_SUCCESS)
		return event;
	marks->is_blind = true;
	return NULL;
}

static uint64_t guess_ns(const struct stream *stream, uint32_t launches)
{
	return launches * (stream->mean_ns ? stream->mean_ns : FIRST_GUESS_NS);
}

static struct batch *last_batch(struct stream *stream)
{
	return stream->count ? &stream->batches[(stream->first + stream->count - 1) % BATCHES] : NULL;
}

/* Ends the open batch with this event. A full ring: the last one in it grows. */
static void push_batch(struct ll_marks *marks, struct stream *stream, struct ll_cu_event *end)
{
	stream->open.end = end;
	stream->has_last = false;
	struct batch *last = last_batch(stream);
	if (stream->count == BATCHES && last) {
		recycle(marks, last->end);
		recycle(marks, stream->open.start);
		last->end = end;
		last->launches += stream->open.launches;
		last->guess_ns += stream->open.guess_ns;
	} else {
		stream->batches[(stream->first + stream->count++) % BATCHES] = stream->open;
	}
	stream->open = (struct batch){0};
}

/* The card time of an event that has ended; the base follows so that differences stay exact. */
static uint64_t card_ns(struct ll_marks *marks, struct ll_cu_event *event)
{
	float ms = 0;
	if (ll_real()->cuEventElapsedTime(&ms, marks->base, event) != LL_CUDA_SUCCESS) {
		marks->is_blind = true;
		return marks->base_ns;
	}
	double ns = (double)marks->base_ns + (double)ms * 1e6;
	return ns > 0 ? (uint64_t)ns : 0;
}

static void rebase(struct ll_marks *marks, struct ll_cu_event *event, uint64_t event_ns)
{
	if (event_ns < marks->base_ns + REBASE_NS) {
		recycle(marks, event);
		return;
	}
	recycle(marks, marks->base);
	marks->base = event;
	marks->base_ns = event_ns;
	marks->has_base_ended = true;
}

/* The mean follows at once where it was far off, slowly else. */
static void learn(struct stream *stream, uint64_t ns, uint32_t launches)
{
	uint64_t each_ns = launches ? ns / launches : 0;
	if (!each_ns)
		return;
	bool is_far = each_ns > GUESS_MARGIN * stream->mean_ns || stream->mean_ns > GUESS_MARGIN * each_ns;
	stream->mean_ns = is_far ? each_ns : (3 * stream->mean_ns + each_ns) / 4;
}

static void learn_kinds(struct ll_marks *marks, const struct batch *batch, uint64_t ns)
{
	if (batch->sample)
		ll_kind_learn_sample(ll_kinds_find(&marks->kinds, batch->sample), ns);
	else if (!batch->start && !batch->is_guess && batch->kind && batch->launches)
		ll_kind_learn_queued(ll_kinds_find(&marks->kinds, batch->kind), ns / batch->launches);
}

static void settle(struct ll_marks *marks, struct stream *stream, struct batch *batch)
{
	uint64_t start_ns = batch->start ? card_ns(marks, batch->start) : stream->end_ns;
	uint64_t end_ns = card_ns(marks, batch->end);
	uint64_t ns = end_ns > start_ns ? end_ns - start_ns : 0;
	if (batch->start)
		ns -= ns > LL_MARK_OVERHEAD_NS ? LL_MARK_OVERHEAD_NS : ns;
	if (batch->is_guess && ns > batch->guess_ns)
		ns = batch->guess_ns;
	else
		learn(stream, ns, batch->launches);
	learn_kinds(marks, batch, ns);
	marks->untold_ns += ll_busy_add(&marks->busy, start_ns, start_ns + ns);
	stream->end_ns = end_ns;
	stream->settled++;
	marks->settled++;
	recycle(marks, batch->start);
	if (!batch->is_end_shared)
		rebase(marks, batch->end, end_ns);
}

static bool has_ended(struct ll_marks *marks, struct ll_cu_event *event)
{
	ll_cu_result status = ll_real()->cuEventQuery(event);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_NOT_READY)
		marks->is_blind = true;
	return status == LL_CUDA_SUCCESS;
}

static void harvest_stream(struct ll_marks *marks, struct stream *stream)
{
	if (stream->count && !marks->has_base_ended)
		marks->has_base_ended = has_ended(marks, marks->base);
	while (stream->count && marks->has_base_ended && !marks->is_blind &&
	       has_ended(marks, stream->batches[stream->first].end)) {
		struct batch batch = stream->batches[stream->first];
		stream->first = (stream->first + 1) % BATCHES;
		stream->count--;
		settle(marks, stream, &batch);
	}
	if (stream->is_gone && !stream->count) {
		recycle(marks, stream->open.start);
		stream->is_used = false;
	}
}

uint64_t ll_marks_harvest(struct ll_marks *marks)
{
	for (struct stream *stream = marks->streams; stream && !marks->is_blind; stream = stream->next) {
		if (stream->is_used)
			harvest_stream(marks, stream);
	}
	uint64_t busy_ns = marks->untold_ns;
	marks->untold_ns = 0;
	return busy_ns;
}

/* The first event of a context is what all others are measured from. */
static void make_base(struct ll_marks *marks, struct stream *stream)
{
	if (!marks->base)
		marks->base = record(marks, stream);
}

/*
 * Ends launches that were left unmarked. A mark that is reached at once says that they had ended before: then what they
 * took is a guess.
 */
static void push_tail(struct ll_marks *marks, struct stream *stream, struct ll_cu_event *end, bool is_end_shared)
{
	stream->open.is_guess |= has_ended(marks, end);
	stream->open.is_end_shared = is_end_shared;
	push_batch(marks, stream, end);
}

/* The stream has run empty, or may have: the launch to come is timed from here. */
static void mark_start(struct ll_marks *marks, struct stream *stream)
{
	make_base(marks, stream);
	struct ll_cu_event *start = marks->is_blind ? NULL : record(marks, stream);
	if (!start)
		return;
	if (stream->open.launches)
		push_tail(marks, stream, start, true);
	stream->open.start = start;
}

/* What follows a launch without ending its batch. */
static void mark_last(struct ll_marks *marks, struct stream *stream)
{
	if (!stream->last && ll_real()->cuEventCreate(&stream->last, LL_CU_EVENT_DISABLE_TIMING) != LL_CUDA_SUCCESS)
		stream->last = NULL;
	stream->has_last =
	    stream->last && ll_real()->cuEventRecord(stream->last, stream->name.handle) == LL_CUDA_SUCCESS;
	marks->is_blind |= !stream->has_last;
}

/* Whether another thread than the stream's own may mark what was launched last (ll_marks_close_tails). */
static bool can_close_tail(const struct ll_marks *marks, const struct stream *stream);

static void begin_on_idle(struct ll_marks *marks, struct stream *stream, const struct ll_kind *kind)
{
	if (!stream->open.launches || ll_kind_wants_sample(kind))
		mark_start(marks, stream);
	else
		stream->open.is_guess = true;
}

void ll_marks_begin(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name)
{
	if (marks->is_blind)
		return;
	struct stream *stream = find_stream(marks, name);
	if (!stream)
		stream = add_stream(marks, name);
	if (!stream) {
		marks->is_blind = true;
		return;
	}
	harvest_stream(marks, stream);
	if (marks->is_blind || stream->count)
		return;
	/* a start that waits for its launch is as good: another thread, or a launch that failed */
	if (stream->open.start && !stream->open.launches)
		return;
	bool is_idle = !stream->open.launches || !stream->has_last || has_ended(marks, stream->last);
	if (is_idle)
		begin_on_idle(marks, stream, ll_kinds_find(&marks->kinds, kind_name));
}

static void close_open(struct ll_marks *marks, struct stream *stream)
{
	struct ll_cu_event *end = stream->open.launches ? record(marks, stream) : NULL;
	if (end)
		push_batch(marks, stream, end);
}

/* A launch that was let on an idle stream by itself is timed for its kind. */
static bool is_sample(const struct stream *stream, const struct ll_kind *kind)
{
	return stream->open.launches == 1 && stream->open.start && ll_kind_wants_sample(kind);
}

static bool is_full(const struct ll_marks *marks, const struct stream *stream)
{
	if (stream->open.guess_ns >= LL_MARK_EVERY_NS)
		return true;
	return stream->count < MARKED_AHEAD && !can_close_tail(marks, stream);
}

void ll_marks_end(struct ll_marks *marks, struct ll_mark_stream name, uint64_t kind_name, bool is_launched)
{
	struct stream *stream = marks->is_blind || !is_launched ? NULL : find_stream(marks, name);
	if (!stream)
		return;
	struct ll_kind *kind = ll_kinds_find(&marks->kinds, kind_name);
	stream->open.kind = !stream->open.launches || stream->open.kind == kind_name ? kind_name : 0;
	stream->open.launches++;
	stream->open.guess_ns += kind->ns ? kind->ns : guess_ns(stream, 1);
	bool is_timed = is_sample(stream, kind);
	if (is_timed)
		stream->open.sample = kind_name;
	if (is_timed || is_full(marks, stream))
		close_open(marks, stream);
	else
		mark_last(marks, stream);
	kind->seen++;
}

void ll_marks_add_unmarked(struct ll_marks *marks, struct ll_mark_stream name, uint32_t launches)
{
	struct stream *stream = marks->is_blind ? NULL : find_stream(marks, name);
	if (!stream)
		return;
	stream->open.kind = 0;
	stream->open.launches += launches;
	stream->open.guess_ns += guess_ns(stream, launches);
	stream->has_last = false;
}

/* A mark in the legacy stream holds back what other streams do: only where no other stream is known to work. */
static bool is_alone(const struct ll_marks *marks, const struct stream *stream)
{
	for (const struct stream *other = marks->streams; other; other = other->next) {
		if (other != stream && other->is_used)
			return false;
	}
	return true;
}

static bool is_legacy(const struct stream *stream)
{
	return !stream->name.handle || stream->name.handle == LL_CU_STREAM_LEGACY;
}

static bool can_close_tail(const struct ll_marks *marks, const struct stream *stream)
{
	return !stream->name.thread && (!is_legacy(stream) || is_alone(marks, stream));
}

static bool has_tail(const struct ll_marks *marks, const struct stream *stream)
{
	return stream->is_used && !stream->is_gone && !stream->count && stream->open.launches &&
	       can_close_tail(marks, stream);
}

static bool is_captured(const struct stream *stream)
{
	enum ll_cu_capture_status capture = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	ll_cu_result status = ll_real()->cuStreamIsCapturing(stream->name.handle, &capture);
	return status == LL_CUDA_ERROR_STREAM_CAPTURE_IMPLICIT ||
	       (status == LL_CUDA_SUCCESS && capture != LL_CU_STREAM_CAPTURE_STATUS_NONE);
}

bool ll_marks_has_tails(const struct ll_marks *marks)
{
	for (const struct stream *stream = marks->streams; stream && !marks->is_blind; stream = stream->next) {
		if (has_tail(marks, stream))
			return true;
	}
	return false;
}

void ll_marks_close_tails(struct ll_marks *marks)
{
	for (struct stream *stream = marks->streams; stream && !marks->is_blind; stream = stream->next) {
		if (!has_tail(marks, stream) || is_captured(stream))
			continue;
		struct ll_cu_event *end = record(marks, stream);
		if (end)
			push_tail(marks, stream, end, false);
	}
}

void ll_marks_forget_stream(struct ll_marks *marks, struct ll_mark_stream name)
{
	struct stream *stream = find_stream(marks, name);
	if (!stream)
		return;
	if (!marks->is_blind && !is_captured(stream))
		close_open(marks, stream);
	stream->is_gone = true;
}

uint64_t ll_marks_queued_ns(const struct ll_marks *marks)
{
	uint64_t queued_ns = 0;
	for (const struct stream *stream = marks->streams; stream; stream = stream->next) {
		if (!stream->is_used || marks->is_blind)
			continue;
		for (uint32_t i = 0; i < stream->count; i++)
			queued_ns += stream->batches[(stream->first + i) % BATCHES].guess_ns;
		queued_ns += stream->open.guess_ns;
	}
	return queued_ns;
}

uint64_t ll_marks_mean_ns(const struct ll_marks *marks)
{
	uint64_t mean_ns = 0;
	for (const struct stream *stream = marks->streams; stream; stream = stream->next) {
		if (stream->is_used && stream->mean_ns > mean_ns)
			mean_ns = stream->mean_ns;
	}
	return mean_ns;
}

/* Whether the oldest batch has begun, as far as can be told: one that follows on another has. */
static bool has_begun(struct ll_marks *marks, struct stream *stream, uint64_t now_ns)
{
	struct ll_cu_event *start = stream->batches[stream->first].start;
	if (!stream->since_ns || stream->watched != stream->settled) {
		stream->watched = stream->settled;
		stream->since_ns = now_ns;
		stream->has_begun = false;
	}
	if (start && !stream->has_begun && has_ended(marks, start)) {
		stream->has_begun = true;
		stream->since_ns = now_ns;
	}
	return !start || stream->has_begun;
}

void ll_marks_longest(struct ll_marks *marks, uint64_t now_ns, struct ll_marks_running *ret_running)
{
	*ret_running = (struct ll_marks_running){0};
	if (marks->watched != marks->settled) {
		marks->watched = marks->settled;
		marks->progress_ns = now_ns;
	}
	for (struct stream *stream = marks->streams; stream && !marks->is_blind; stream = stream->next) {
		if (!stream->is_used || !stream->count) {
			stream->since_ns = 0;
			continue;
		}
		if (!has_begun(marks, stream, now_ns))
			continue;
		/* Without a start it may be waiting for another stream: as long as others get on it is not blamed. */
		bool is_waiting = !stream->has_begun && marks->progress_ns > stream->since_ns;
		uint64_t ns = now_ns - (is_waiting ? marks->progress_ns : stream->since_ns);
		if (ns >= ret_running->ns)
			*ret_running = (struct ll_marks_running){ns, stream->batches[stream->first].launches};
	}
}

bool ll_marks_is_idle(const struct ll_marks *marks)
{
	for (const struct stream *stream = marks->streams; stream; stream = stream->next) {
		if (stream->is_used && (stream->count || has_tail(marks, stream)))
			return marks->is_blind;
	}
	return true;
}

bool ll_marks_is_blind(const struct ll_marks *marks)
{
	return marks->is_blind;
}
