/*
 * The simulated card, on a clock of the test's own: programs that share it have what the same programs had on an H200
 * (doc/sharing.md), each within a tenth.
 */
#include "engine.h"

#include <sys/mman.h>

#include "../unit/test.h"
#include "base/clock.h"
#include "population.h"
#include "world.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS
#define WARM_UP_NS (50 * MS)
#define WINDOW_NS (500 * MS)
/* What the host takes, by the rates that each program has alone. */
#define CALL_NS (3800) /* a launch; the card has it a little later */
#define WAKE_NS (4600) /* from the end of a kernel to the return of a wait that spins */

enum { MOST_PROGRAMS = 8, EAGER_STEP = 200 };

enum kind {
	NOBODY,
	SYNC,  /* a launch, a wait for it, a pause */
	EAGER, /* a launch each so many us without a wait; a wait each 200 launches */
	FLOOD, /* launches as fast as it can, with at most so many in the queue */
};

struct program {
	enum kind kind;
	uint64_t kernel_ns, gap_ns;
	unsigned depth;
	double wanted; /* kernels a second */
};

struct host {
	struct program program;
	uint32_t stream;
	uint64_t act_ns;    /* when it launches next; SIM_NEVER: it waits */
	uint64_t waits_for; /* position in the stream; UINT64_MAX: it does not wait */
	uint64_t launched;
	uint64_t before; /* kernels that were done when the window began */
};

static struct sim_world *w;

static void new_world(void)
{
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	assert_true(w != MAP_FAILED);
	sim_world_init(w, 1000 * LL_NS_PER_S, 0);
}

static struct host new_host(struct program program)
{
	uint32_t context, stream;
	assert_int_equal(sim_context_new(w, 0, sim_proc_join(w), false, &context), 0);
	assert_int_equal(sim_stream_new(w, context, 0, false, &stream), 0);
	return (struct host){.program = program, .stream = stream, .act_ns = w->now_ns, .waits_for = UINT64_MAX};
}

static void launch(struct host *host)
{
	struct sim_op op = {.kind = SIM_OP_KERNEL,
			    .length_ns = host->program.kernel_ns,
			    .is_timed = true,
			    .blocks = 1,
			    .threads = 32,
			    .module = SIM_NONE};
	uint64_t position;
	assert_int_equal(sim_submit(w, host->stream, &op, &position), 0);
	host->launched++;
}

/* It goes on when kernel number `count` is done. */
static void wait_for(struct host *host, uint64_t count)
{
	host->waits_for = count - 1;
	host->act_ns = SIM_NEVER;
}

static void act(struct host *host)
{
	const struct program *program = &host->program;
	launch(host);
	host->act_ns = w->now_ns + (program->gap_ns > CALL_NS ? program->gap_ns : CALL_NS);
	if (program->kind == SYNC || (program->kind == EAGER && host->launched % EAGER_STEP == 0))
		wait_for(host, host->launched);
	else if (program->kind == FLOOD && host->launched >= program->depth)
		wait_for(host, host->launched - program->depth + 1);
}

static void wake(struct host *host)
{
	struct sim_stream *stream = &w->streams[host->stream];
	if (host->waits_for == UINT64_MAX || stream->done <= host->waits_for)
		return;
	uint64_t done_ns = sim_op_at(w, host->stream, host->waits_for)->end_ns;
	host->act_ns = done_ns + WAKE_NS + (host->program.kind == SYNC ? host->program.gap_ns : 0);
	host->waits_for = UINT64_MAX;
}

static void run(struct host *hosts, unsigned count, uint64_t until_ns)
{
	while (w->now_ns < until_ns) {
		uint64_t next_ns = sim_next_event_ns(w);
		for (unsigned i = 0; i < count; i++)
			next_ns = hosts[i].act_ns < next_ns ? hosts[i].act_ns : next_ns;
		sim_advance(w, next_ns < until_ns ? next_ns : until_ns, 0);
		for (unsigned i = 0; i < count; i++) {
			wake(&hosts[i]);
			w->streams[hosts[i].stream].reaped = w->streams[hosts[i].stream].done;
			if (hosts[i].act_ns <= w->now_ns)
				act(&hosts[i]);
		}
	}
}

/* Programs that start together. The list ends with NOBODY. */
static void see(const char *what, const struct program *programs)
{
	struct host hosts[MOST_PROGRAMS];
	unsigned count = 0;
	new_world();
	while (programs[count].kind != NOBODY) {
		hosts[count] = new_host(programs[count]);
		count++;
	}
	run(hosts, count, w->now_ns + WARM_UP_NS);
	for (unsigned i = 0; i < count; i++)
		hosts[i].before = w->streams[hosts[i].stream].done;
	run(hosts, count, w->now_ns + WINDOW_NS);
	for (unsigned i = 0; i < count; i++) {
		uint64_t done = w->streams[hosts[i].stream].done - hosts[i].before;
		double rate = (double)done * 1e9 / WINDOW_NS, wanted = programs[i].wanted;
		if (rate < 0.9 * wanted || rate > 1.1 * wanted)
			fail_msg("%s, program %u: %.0f kernels a second, on the H200 %.0f", what, i, rate, wanted);
	}
	munmap(w, sizeof *w);
}

#define PROGRAMS(...) ((const struct program[MOST_PROGRAMS + 1]){__VA_ARGS__})
/* Each with the kernels a second that it had on the card beside the others of its row. */
#define A_SYNC(rate) ((struct program){SYNC, 5 * US, 10 * US, 0, rate})
/* It spins for 4 us, and ends at its next look at the clock. */
#define AN_EAGER(rate) ((struct program){EAGER, 4300, 12 * US, 0, rate})
#define A_FLOOD(most, rate) ((struct program){FLOOD, 200 * US, 0, most, rate})

static void test_alone(void **state)
{
	(void)state;
	see("sync", PROGRAMS(A_SYNC(40600)));
	see("eager", PROGRAMS(AN_EAGER(82000)));
	see("flood 10", PROGRAMS(A_FLOOD(10, 4870)));
}

static void test_all_wait(void **state)
{
	(void)state;
	see("2 x sync", PROGRAMS(A_SYNC(3517), A_SYNC(3517)));
	see("4 x sync", PROGRAMS(A_SYNC(1760), A_SYNC(1760), A_SYNC(1760), A_SYNC(1760)));
	see("8 x sync", PROGRAMS(A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880), A_SYNC(880),
				 A_SYNC(880), A_SYNC(880)));
	see("2 x sync of 50 us", PROGRAMS({SYNC, 50 * US, 50 * US, 0, 2670}, {SYNC, 50 * US, 50 * US, 0, 2670}));
}

static void test_all_launch_ahead(void **state)
{
	(void)state;
	see("2 x eager", PROGRAMS(AN_EAGER(69000), AN_EAGER(69000)));
	see("4 x eager", PROGRAMS(AN_EAGER(41450), AN_EAGER(41450), AN_EAGER(41450), AN_EAGER(41450)));
	see("8 x eager", PROGRAMS(AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550),
				  AN_EAGER(19550), AN_EAGER(19550), AN_EAGER(19550)));
}

static void test_one_waits_beside_a_flood(void **state)
{
	(void)state;
	see("sync + flood 1", PROGRAMS(A_SYNC(2089), A_FLOOD(1, 2087)));
	see("sync + flood 2", PROGRAMS(A_SYNC(1481), A_FLOOD(2, 2938)));
	see("sync + flood 4", PROGRAMS(A_SYNC(419), A_FLOOD(4, 4603)));
	see("sync + flood 10", PROGRAMS(A_SYNC(426), A_FLOOD(10, 4603)));
	see("sync + flood 40", PROGRAMS(A_SYNC(419), A_FLOOD(40, 4603)));
	see("eager + sync", PROGRAMS(AN_EAGER(77800), A_SYNC(1950)));
}

static void test_one_launches_ahead_beside_a_flood(void **state)
{
	(void)state;
	see("eager + flood 1", PROGRAMS(AN_EAGER(79500), A_FLOOD(1, 1196)));
	see("eager + flood 2", PROGRAMS(AN_EAGER(79000), A_FLOOD(2, 1686)));
	see("eager + flood 10", PROGRAMS(AN_EAGER(58000), A_FLOOD(10, 3189)));
	see("eager + flood of 2 ms", PROGRAMS(AN_EAGER(59700), {FLOOD, 2 * MS, 0, 1, 299}));
	see("eager + flood of 20 us", PROGRAMS(AN_EAGER(58150), {FLOOD, 20 * US, 0, 20, 28650}));
}

static void test_floods(void **state)
{
	(void)state;
	see("flood 10 + flood 10", PROGRAMS(A_FLOOD(10, 2449), A_FLOOD(10, 2449)));
	see("flood 2 + flood 10", PROGRAMS(A_FLOOD(2, 718), A_FLOOD(10, 3948)));
	see("flood 1 + flood 10", PROGRAMS(A_FLOOD(1, 388), A_FLOOD(10, 4256)));
	see("4 x flood 10", PROGRAMS(A_FLOOD(10, 1225), A_FLOOD(10, 1225), A_FLOOD(10, 1225), A_FLOOD(10, 1225)));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_alone),
	    cmocka_unit_test(test_all_wait),
	    cmocka_unit_test(test_all_launch_ahead),
	    cmocka_unit_test(test_one_waits_beside_a_flood),
	    cmocka_unit_test(test_one_launches_ahead_beside_a_flood),
	    cmocka_unit_test(test_floods),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
