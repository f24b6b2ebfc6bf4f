#include "probe/timeline.h"

#include <errno.h>
#include <stdlib.h>

/* Kernels of a stream follow each other in 1.4 us (doc/facts.md); a switch between contexts takes 130. */
#define JOIN_NS UINT64_C(20000)

static int compare_spans(const void *a, const void *b)
{
	const struct ll_span *x = a, *y = b;
	return (x->from_ns > y->from_ns) - (x->from_ns < y->from_ns);
}

/* Adds a kernel's spans, which are the times between its holes. If there are more holes than are listed, nothing is
 * known after the last listed one. */
static void cut_kernel(const struct ll_probe_kernel *kernel, struct ll_lane *lane)
{
	uint64_t from_ns = kernel->start_ns;
	for (uint32_t i = 0; i < ll_probe_listed(kernel); i++) {
		const struct ll_probe_hole *hole = &kernel->holes[i];
		lane->spans[lane->count++] =
		    (struct ll_span){.from_ns = from_ns, .to_ns = hole->at_ns, .is_cut = hole->is_cut};
		from_ns = hole->at_ns + hole->length_ns;
	}
	if (kernel->hole_count <= LL_PROBE_GAPS && from_ns < kernel->end_ns)
		lane->spans[lane->count++] = (struct ll_span){.from_ns = from_ns, .to_ns = kernel->end_ns};
}

static void join_spans(struct ll_lane *lane)
{
	size_t kept = 0;
	qsort(lane->spans, lane->count, sizeof *lane->spans, compare_spans);
	for (size_t i = 1; i < lane->count; i++) {
		struct ll_span *last = &lane->spans[kept];
		const struct ll_span *next = &lane->spans[i];
		if (next->from_ns > last->to_ns + JOIN_NS) {
			lane->spans[++kept] = *next;
		} else if (next->to_ns >= last->to_ns) {
			last->to_ns = next->to_ns;
			last->is_cut = next->is_cut;
		}
	}
	lane->count = lane->count ? kept + 1 : 0;
}

int ll_timeline_make(const struct ll_probe_kernel *kernels, size_t count, size_t lane_count,
		     struct ll_timeline *ret_timeline)
{
	struct ll_timeline timeline = {.lane_count = lane_count};
	size_t room[LL_PROBE_PARTIES] = {0};
	for (size_t i = 0; i < count; i++) {
		if (kernels[i].party >= lane_count || lane_count > LL_PROBE_PARTIES)
			return -EINVAL;
		room[kernels[i].party] += LL_PROBE_GAPS + 1;
	}
	for (size_t i = 0; i < lane_count; i++) {
		timeline.lanes[i].spans = calloc(room[i] + 1, sizeof *timeline.lanes[i].spans);
		if (!timeline.lanes[i].spans) {
			ll_timeline_fini(&timeline);
			return -ENOMEM;
		}
	}
	for (size_t i = 0; i < count; i++) {
		struct ll_lane *lane = &timeline.lanes[kernels[i].party];
		if (lane->spans)
			cut_kernel(&kernels[i], lane);
	}
	for (size_t i = 0; i < lane_count; i++)
		join_spans(&timeline.lanes[i]);
	*ret_timeline = timeline;
	return 0;
}

void ll_timeline_fini(struct ll_timeline *timeline)
{
	for (size_t i = 0; i < timeline->lane_count; i++)
		free(timeline->lanes[i].spans);
	*timeline = (struct ll_timeline){0};
}

/* ---- all lanes in order ---- */

/* Steps through the spans of all lanes by their starts. */
struct walk {
	const struct ll_timeline *timeline;
	size_t next[LL_PROBE_PARTIES];
};

static const struct ll_span *walk_on(struct walk *walk, size_t *ret_lane)
{
	const struct ll_span *first = NULL;
	for (size_t i = 0; i < walk->timeline->lane_count; i++) {
		const struct ll_lane *lane = &walk->timeline->lanes[i];
		if (walk->next[i] == lane->count)
			continue;
		if (!first || lane->spans[walk->next[i]].from_ns < first->from_ns) {
			first = &lane->spans[walk->next[i]];
			*ret_lane = i;
		}
	}
	if (first)
		walk->next[*ret_lane]++;
	return first;
}

struct cover {
	uint64_t from_ns, to_ns, busy_ns, idle_ns;
};

static struct cover cover_of(const struct ll_timeline *timeline)
{
	struct walk walk = {.timeline = timeline};
	struct cover cover = {0};
	size_t lane;
	for (const struct ll_span *span; (span = walk_on(&walk, &lane));) {
		if (!cover.busy_ns && !cover.to_ns) {
			cover.from_ns = cover.to_ns = span->from_ns;
		}
		if (span->to_ns <= cover.to_ns)
			continue;
		if (span->from_ns > cover.to_ns) {
			uint64_t idle_ns = span->from_ns - cover.to_ns;
			cover.idle_ns = idle_ns > cover.idle_ns ? idle_ns : cover.idle_ns;
			cover.to_ns = span->from_ns;
		}
		cover.busy_ns += span->to_ns - cover.to_ns;
		cover.to_ns = span->to_ns;
	}
	return cover;
}

uint64_t ll_timeline_window_ns(const struct ll_timeline *timeline)
{
	struct cover cover = cover_of(timeline);
	return cover.to_ns - cover.from_ns;
}

uint64_t ll_timeline_busy_ns(const struct ll_timeline *timeline)
{
	return cover_of(timeline).busy_ns;
}

uint64_t ll_timeline_idle_ns(const struct ll_timeline *timeline)
{
	return cover_of(timeline).idle_ns;
}

/* A lane's time on the card before a moment. */
static uint64_t lane_ns(const struct ll_lane *lane, uint64_t before_ns)
{
	uint64_t sum_ns = 0;
	for (size_t i = 0; i < lane->count && lane->spans[i].from_ns < before_ns; i++) {
		const struct ll_span *span = &lane->spans[i];
		sum_ns += (span->to_ns < before_ns ? span->to_ns : before_ns) - span->from_ns;
	}
	return sum_ns;
}

double ll_timeline_overlap(const struct ll_timeline *timeline)
{
	uint64_t all_ns = 0, longest_ns = 0;
	for (size_t i = 0; i < timeline->lane_count; i++) {
		uint64_t own_ns = lane_ns(&timeline->lanes[i], UINT64_MAX);
		all_ns += own_ns;
		longest_ns = own_ns > longest_ns ? own_ns : longest_ns;
	}
	if (all_ns == longest_ns)
		return 0;
	return (double)(all_ns - ll_timeline_busy_ns(timeline)) / (double)(all_ns - longest_ns);
}

double ll_timeline_share(const struct ll_timeline *timeline, size_t lane)
{
	uint64_t first_end_ns = UINT64_MAX, all_ns = 0;
	for (size_t i = 0; i < timeline->lane_count; i++) {
		const struct ll_lane *other = &timeline->lanes[i];
		if (other->count && other->spans[other->count - 1].to_ns < first_end_ns)
			first_end_ns = other->spans[other->count - 1].to_ns;
	}
	for (size_t i = 0; i < timeline->lane_count; i++)
		all_ns += lane_ns(&timeline->lanes[i], first_end_ns);
	return all_ns ? (double)lane_ns(&timeline->lanes[lane], first_end_ns) / (double)all_ns : 0;
}

/* ---- turns ---- */

void ll_turns_add(struct ll_turns *turns, const struct ll_timeline *timeline)
{
	struct walk walk = {.timeline = timeline};
	size_t lane, last_lane = 0;
	const struct ll_span *last = NULL;
	bool is_after_switch = false; /* the last span began with one */
	for (const struct ll_span *span; (span = walk_on(&walk, &lane)); last = span, last_lane = lane) {
		if (!last)
			continue;
		bool is_switch = lane != last_lane;
		if (is_switch) {
			turns->handovers++;
			turns->cuts += last->is_cut;
			ll_samples_add(&turns->switches_ns,
				       span->from_ns > last->to_ns ? (double)(span->from_ns - last->to_ns) : 0);
			if (last->is_cut && is_after_switch)
				ll_samples_add(&turns->slices_ns, (double)(last->to_ns - last->from_ns));
		}
		is_after_switch = is_switch;
	}
}

void ll_turns_fini(struct ll_turns *turns)
{
	ll_samples_fini(&turns->slices_ns);
	ll_samples_fini(&turns->switches_ns);
}
