#include "mix_run.h"

#include <string.h>
#include <sys/mman.h>

#include "card/defaults.h"
#include "card/engine.h"
#include "test.h"

/* The other ways need no time to settle but for queues that fill. */
#define OTHERS_SETTLE_NS (1 * LL_NS_PER_S)
#define ALONE_SETTLE_NS (LL_NS_PER_S / 4)
#define ALONE_NS (1 * LL_NS_PER_S)
#define ALONE_ANSWERS_NS (8 * LL_NS_PER_S)
/* A program that completes nothing counts as this many launches. */
#define NEXT_TO_NONE 0.25

struct run {
	struct sim_world *w;
	struct mix_program programs[MIX_MOST];
	unsigned count;
	bool has_arbiter;
	struct mix_arbiter arbiter;
};

static const enum ll_limit_sharing forced[] = {
    [MIX_NATIVE] = LL_LIMIT_SHARING_SLICES,       [MIX_VISITS] = LL_LIMIT_SHARING_VISITS,
    [MIX_RULE] = LL_LIMIT_SHARING_MEASURED,       [MIX_HELD_NONE] = LL_LIMIT_SHARING_HELD_NONE,
    [MIX_HELD_HALF] = LL_LIMIT_SHARING_HELD_HALF, [MIX_HELD_ALL] = LL_LIMIT_SHARING_HELD_ALL,
};

static struct run *run_begin(const struct mix_kind *kinds, unsigned count, enum mix_way way, uint64_t now_ns)
{
	static struct run run;
	memset(&run, 0, sizeof run);
	run.w = mmap(NULL, sizeof *run.w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(run.w != MAP_FAILED);
	sim_world_init(run.w, now_ns, 0);
	run.count = count;
	run.has_arbiter = way != MIX_NATIVE;
	for (unsigned i = 0; i < count; i++) {
		mix_program_init(&run.programs[i], run.w, &kinds[i]);
		if (!run.has_arbiter)
			run.programs[i].kind.cap_permille = 0;
	}
	if (run.has_arbiter)
		mix_arbiter_init(&run.arbiter, run.programs, count, forced[way]);
	return &run;
}

static void run_end(struct run *run)
{
	if (run->has_arbiter)
		mix_arbiter_fini(&run->arbiter);
	munmap(run->w, sizeof *run->w);
}

static uint64_t next_ns(const struct run *run)
{
	uint64_t next_ns = sim_next_event_ns(run->w);
	for (unsigned i = 0; i < run->count; i++) {
		uint64_t at_ns = mix_program_next_ns(&run->programs[i]);
		next_ns = at_ns < next_ns ? at_ns : next_ns;
	}
	uint64_t arbiter_ns = run->has_arbiter ? mix_arbiter_next_ns(&run->arbiter) : SIM_NEVER;
	return arbiter_ns < next_ns ? arbiter_ns : next_ns;
}

static void run_until(struct run *run, uint64_t until_ns)
{
	struct sim_world *w = run->w;
	while (w->now_ns < until_ns) {
		uint64_t to_ns = next_ns(run);
		bool has_work = false;
		sim_advance(w, to_ns < until_ns ? to_ns : until_ns, 0);
		for (unsigned i = 0; i < run->count; i++)
			has_work |= mix_program_go_on(&run->programs[i]);
		if (run->has_arbiter)
			mix_arbiter_go_on(&run->arbiter, w->now_ns);
		if (has_work) /* it begins now */
			sim_advance(w, w->now_ns, 0);
	}
}

static void run_windows(struct run *run, uint64_t begin_ns, struct mix_reading *reading)
{
	uint64_t before[MIX_MOST] = {0}, used_ns[MIX_MOST] = {0};
	run_until(run, begin_ns);
	for (unsigned i = 0; i < run->count; i++) {
		run->programs[i].answered = run->programs[i].stalled_most_ns = 0;
		used_ns[i] = mix_program_used_ns(&run->programs[i]);
	}
	for (unsigned window = 0; window < MIX_WINDOWS; window++) {
		for (unsigned i = 0; i < run->count; i++)
			before[i] = run->programs[i].completed;
		run_until(run, begin_ns + (window + 1) * MIX_WINDOW_NS);
		for (unsigned i = 0; i < run->count; i++)
			reading->done[i][window] = (double)(run->programs[i].completed - before[i]);
	}
	for (unsigned i = 0; i < run->count; i++) {
		uint64_t used_in_ns = mix_program_used_ns(&run->programs[i]) - used_ns[i];
		reading->used[i] = (double)used_in_ns / (double)(MIX_WINDOWS * MIX_WINDOW_NS);
		reading->latency_ns[i] = (double)mix_program_latency_ns(&run->programs[i]);
		reading->stall_ns[i] = (double)mix_program_stall_ns(&run->programs[i]);
	}
}

static void note_choice(const struct mix_arbiter *arbiter, struct mix_reading *reading)
{
	reading->settled_s = (double)(arbiter->chosen_ns - MIX_BEGIN_NS) / (double)LL_NS_PER_S;
	reading->ends_with_visits = arbiter->gives_visits;
	reading->why = arbiter->card.regime.why;
	reading->gain = arbiter->card.regime.gain;
	reading->held_part = mix_arbiter_held_part(arbiter);
	reading->seen_slowdown = mix_arbiter_seen_slowdown(arbiter);
}

static uint64_t windows_begin_ns(unsigned settle_s)
{
	return MIX_BEGIN_NS + settle_s * LL_NS_PER_S;
}

struct mix_reading mix_run_way(const struct mix *mix, enum mix_way way, unsigned settle_s)
{
	struct mix_reading reading = {.settled_s = 0};
	uint64_t begin_ns = windows_begin_ns(settle_s);
	uint64_t from_ns = way == MIX_RULE ? MIX_BEGIN_NS : begin_ns - OTHERS_SETTLE_NS;
	struct run *run = run_begin(mix->kinds, mix->count, way, from_ns);
	run_windows(run, begin_ns, &reading);
	if (run->has_arbiter)
		note_choice(&run->arbiter, &reading);
	run_end(run);
	return reading;
}

struct mix_alone mix_run_alone(const struct mix_kind *kind, unsigned settle_s)
{
	uint64_t begin_ns = windows_begin_ns(settle_s);
	struct run *run = run_begin(kind, 1, MIX_NATIVE, begin_ns - ALONE_SETTLE_NS);
	run_until(run, begin_ns);
	double before = (double)run->programs[0].completed;
	uint64_t used_ns = mix_program_used_ns(&run->programs[0]);
	run->programs[0].answered = 0;
	run_until(run, begin_ns + ALONE_NS);
	double done = (double)run->programs[0].completed - before;
	used_ns = mix_program_used_ns(&run->programs[0]) - used_ns;
	if (mix_kind_answers(kind))
		run_until(run, begin_ns + ALONE_ANSWERS_NS);
	struct mix_alone alone = {.rate = done * (double)LL_NS_PER_S / (double)ALONE_NS,
				  .used = (double)used_ns / (double)ALONE_NS,
				  .latency_ns = (double)mix_program_latency_ns(&run->programs[0])};
	run_end(run);
	return alone;
}

/* ---- readings ---- */

double mix_done(const struct mix_reading *reading, unsigned program, unsigned first, unsigned step)
{
	double done = 0;
	for (unsigned window = first; window < MIX_WINDOWS; window += step)
		done += reading->done[program][window];
	return done > NEXT_TO_NONE ? done : NEXT_TO_NONE;
}

double mix_speed(const struct mix_reading *reading, unsigned program, const struct mix_alone *alone)
{
	double seconds = MIX_WINDOWS * (double)MIX_WINDOW_NS / (double)LL_NS_PER_S;
	return mix_done(reading, program, 0, 1) / seconds / alone->rate;
}

double mix_pace(const struct mix_kind *kind, const struct mix_reading *reading, unsigned program,
		const struct mix_alone *alone)
{
	if (mix_kind_answers(kind) && reading->latency_ns[program] > 0)
		return alone->latency_ns / reading->latency_ns[program];
	return mix_speed(reading, program, alone);
}
