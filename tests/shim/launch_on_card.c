/* Programs that wait for their turn on the card (protocol/page.h): what is held, what is not, and that all of it
 * ends.
 */
#include "launching.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define MS UINT64_C(1000000)

/* Where shares are measured. The host must be in time with the next kernel, and may be busy: a program that it leaves
 * aside for longer than its queue lasts has no share meanwhile. */
#define SHARED_KERNEL_NS (8 * MS)
#define STRETCH_NS (1500 * MS)

enum { SELF = 1, FLOOD = 2, DEPTH = 16, STRETCHES = 3 };

static struct ll_cu_function *work;
static struct ll_cu_stream *stream;
static uint64_t kernel_ns = MS;

/* Behind a launch: no more than DEPTH are queued, limits or not. On a busy host a program may not be seen for so long
 * that the other one's gate is opened. */
static void wait_for_room(struct ll_cu_stream *launched_into)
{
	static struct ll_cu_event *events[DEPTH];
	static unsigned launches;
	struct ll_cu_event **event = &events[launches++ % DEPTH];
	if (*event)
		CHECK_EQUAL(cu.cuEventSynchronize(*event), 0);
	else
		CHECK_EQUAL(cu.cuEventCreate(event, LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuEventRecord(*event, launched_into), 0);
}

/* It fills the card. It also waits, for a stream that has nothing to do: so it counts as a program that waits for each
 * of its launches. */
static void launch_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	govern_by((struct ll_run_settings){.id = FLOOD, .tenant = "flood", .weight_permille = 3000});
	open_context(0);
	struct ll_cu_stream *its_stream = new_stream(), *idle = new_stream();
	struct ll_cu_function *kernel = get_kernel("work_ns");
	for (;;) {
		launch_timed(kernel, its_stream, kernel_ns, 1, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(idle), 0);
		wait_for_room(its_stream);
	}
}

/* This program, beside one of weight 3 that fills the card. */
static pid_t begin_of_weight(unsigned weight_permille)
{
	pid_t flood = spawn(launch_for_ever);
	govern_by((struct ll_run_settings){.id = SELF, .tenant = "held", .weight_permille = weight_permille});
	open_context(0);
	work = get_kernel("work_ns");
	stream = new_stream();
	WAIT_FOR(claim_of(FLOOD) && gpu_ns(FLOOD) > 0);
	return flood;
}

static pid_t begin(void)
{
	return begin_of_weight(1000);
}

static void end(pid_t flood)
{
	CHECK_EQUAL(kill(flood, SIGKILL), 0);
	CHECK_EQUAL(waitpid(flood, NULL, 0), flood);
	WAIT_FOR(!claim_of(FLOOD));
}

static uint32_t word(void)
{
	return jobs_pages(SELF)->page->card_words[claim_of(SELF)->card];
}

static bool is_held(void)
{
	return !(word() & LL_VISIT_WORD_OPEN);
}

/* Has some work behind a shut gate. */
static void get_held(void)
{
	uint64_t deadline_ns = deadline_in_s(30);
	do {
		CHECK(!is_past(deadline_ns));
		launch_timed(work, stream, MS, 1, 32);
	} while (!is_held());
}

/* A call that nothing wakes never comes back: the other program fills the card until the test kills it, or it is dead.
 * One that is woken takes 0.1 s, and on a host that is busy or stands still more, seldom 2 s. */
static void check_soon(uint64_t since_ns)
{
	uint64_t took_ns = ll_now_ns() - since_ns;
	if (took_ns > 2000 * MS)
		fprintf(stderr, "took %llu ms\n", (unsigned long long)(took_ns / MS));
	CHECK(took_ns <= 20000 * MS);
}

static bool overruns(void)
{
	return claim_of(SELF)->post_flags & LL_POST_OVERRUNS && !(order_of(SELF)->flags & LL_ORDER_IS_HOLDER);
}

static void *launch_on(void *context)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	for (;;) {
		launch_timed(work, stream, MS / 4, 1, 32);
		wait_for_room(stream);
	}
}

/* The other one is not seen for some time, as on a busy host, and this program is alone. What it launches then is on
 * the card when the other one is back, and is charged until it is done. What is held from then on is not taken for
 * that. */
TEST_IN_WORLD(NULL, what_was_let_through_is_charged_until_it_is_done)
{
	pthread_t launcher;
	struct ll_cu_context *context;
	pid_t flood = begin();
	CHECK_EQUAL(cu.cuCtxGetCurrent(&context), 0);
	CHECK_EQUAL(pthread_create(&launcher, NULL, launch_on, context), 0);
	unsigned held = 0, overrunning = 0;
	for (unsigned round = 0; round < 20; round++) {
		CHECK_EQUAL(kill(flood, SIGSTOP), 0);
		sleep_ms(25 + 2 * round);
		CHECK_EQUAL(kill(flood, SIGCONT), 0);
		sleep_ms(60);
		for (int i = 0; i < 60; i++) {
			sleep_ms(1);
			held += is_held();
			overrunning += is_held() && overruns();
		}
	}
	printf("seen held %u times, and with work let through %u times\n", held, overrunning);
	fflush(stdout);
	CHECK(held > 100);
	CHECK(overrunning < 60); /* one round */
	CHECK_EQUAL(kill(flood, SIGKILL), 0);
	_exit(0);
}

/* Launches in a row, into an empty queue, of which the last ones came while the program was held. */
static unsigned launch_while_held(void)
{
	unsigned held = 0;
	uint32_t before = 0;
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	for (unsigned i = 0; i < DEPTH; i++) {
		launch_timed(work, stream, MS, 1, 32);
		held = is_held() && word() == before ? held + 1 : 0;
		before = word();
	}
	return held;
}

/* A host gate let no more than three launches of 1 ms ahead. The program is held for 80 ms at a time, in which a busy
 * host can launch. */
TEST_IN_WORLD(NULL, the_host_of_a_held_program_launches_on)
{
	pid_t flood = begin_of_weight(300);
	uint64_t deadline_ns = deadline_in_s(30);
	while (launch_while_held() < 10)
		CHECK(!is_past(deadline_ns));
	CHECK(claim_of(SELF)->queued_launches <= 512);
	end(flood);
}

/* Once held it could queue 20 ms, which its cap of 3 % would pay for 0.7 s; its account holds 3 ms at most. */
TEST_IN_WORLD(NULL, a_held_program_queues_no_more_than_its_cap_can_pay)
{
	pid_t flood = begin();
	jobs_set(SELF, LL_SET_SHARING, &(struct ll_limits){.sharing = LL_LIMIT_SHARING_VISITS});
	get_held();
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	set_cap(SELF, 30);
	WAIT_FOR(order_of(SELF)->tokens_most_ns == 3 * (int64_t)MS);
	launch_timed(work, stream, MS, 1, 32); /* after this it has read its orders */
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	uint64_t most_ns = 0, deadline_ns = deadline_in_s(30);
	unsigned by_visits = 0;
	/* Each launch may be a visit, which its cap pays for, as long as a busy host lets it last. Such a host may also
	 * launch so slowly that nothing queues. */
	for (int i = 0; i < 20 || !by_visits || !most_ns; i++) {
		CHECK(!is_past(deadline_ns));
		launch_timed(work, stream, MS, 1, 32);
		uint64_t queued_ns = claim_of(SELF)->queued_ns;
		by_visits += (order_of(SELF)->flags & LL_ORDER_IS_EXCLUSIVE) != 0;
		most_ns = queued_ns > most_ns ? queued_ns : most_ns;
	}
	printf("by visits at %u launches, %.1f ms queued at most\n", by_visits, (double)most_ns / MS);
	fflush(stdout);
	CHECK(by_visits && most_ns);
	CHECK(most_ns < 10 * MS);
	end(flood);
}

/* How a program launches work_ns of work; the stream that has the end of it. */
struct way {
	struct ll_cu_stream *(*launch)(void);
	uint64_t work_ns;
};

static struct ll_cu_stream *launch_in_own(void)
{
	launch_timed(work, stream, kernel_ns, 1, 32);
	return stream;
}

static struct ll_cu_stream *launch_in_legacy(void)
{
	launch_timed(work, NULL, MS, 1, 32);
	return NULL;
}

static struct ll_cu_stream *launch_in_per_thread(void)
{
	launch_timed(work, LL_CU_STREAM_PER_THREAD, MS, 1, 32);
	return LL_CU_STREAM_PER_THREAD;
}

static struct ll_cu_stream *launch_in_two(void)
{
	static struct ll_cu_stream *side;
	static struct ll_cu_event *event;
	if (!side) {
		side = new_stream();
		CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_DISABLE_TIMING), 0);
	}
	launch_timed(work, stream, MS / 2, 1, 32);
	CHECK_EQUAL(cu.cuEventRecord(event, stream), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(side, event, 0), 0);
	launch_timed(work, side, MS / 2, 1, 32);
	return side;
}

static struct ll_cu_graph *capture(size_t launches)
{
	struct ll_cu_graph *graph = NULL;
	struct ll_cu_stream *captured = new_stream();
	CHECK_EQUAL(cu.cuStreamBeginCapture(captured, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	for (size_t i = 0; i < launches; i++)
		launch_timed(work, captured, MS / 2, 1, 32);
	CHECK_EQUAL(cu.cuStreamEndCapture(captured, &graph), 0);
	return graph;
}

static struct ll_cu_graph_exec *instantiate(struct ll_cu_graph *graph)
{
	struct ll_cu_graph_exec *exec = NULL;
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	return exec;
}

static struct ll_cu_stream *launch_graph(void)
{
	static struct ll_cu_graph_exec *exec;
	if (!exec)
		exec = instantiate(capture(2));
	CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	return stream;
}

/* The part of the time in which its work was on the card. What each claim says that it has had would not do: a program
 * whose launches are held in its host looks seldom, and mostly while it has the card itself. */
static double share_of_stretch(const struct way *way)
{
	uint64_t begun_ns = ll_now_ns(), launches = 0;
	struct ll_cu_stream *last;
	do {
		last = way->launch();
		wait_for_room(last);
		launches++;
	} while (ll_now_ns() - begun_ns < STRETCH_NS);
	CHECK_EQUAL(cu.cuStreamSynchronize(last), 0);
	return (double)(launches * way->work_ns) / (double)(ll_now_ns() - begun_ns);
}

/* Of weight 0.3 beside 3 it has an eleventh; ungoverned it would have half, in each stretch. A busy host may keep the
 * other one's threads away for longer than its turn waits, which gives this one more than its share, and never less:
 * 0.43 were seen where 0.25 were due. So the least of some stretches counts. */
static void check_share(const struct way *way)
{
	double least = 1;
	for (int i = 0; i < STRETCHES && least >= 0.4; i++) {
		double part = share_of_stretch(way);
		printf("it has %.2f\n", part);
		least = part < least ? part : least;
	}
	fflush(stdout);
	CHECK(least < 0.4);
}

TEST_IN_WORLD(NULL, launches_in_every_kind_of_stream_are_held)
{
	static const struct way ways[] = {{launch_in_own, SHARED_KERNEL_NS},
					  {launch_in_legacy, MS},
					  {launch_in_per_thread, MS},
					  {launch_in_two, MS},
					  {launch_graph, MS}};
	kernel_ns = SHARED_KERNEL_NS;
	pid_t flood = begin_of_weight(300);
	/* Else the rule measures it, and on a busy host it may find that nothing is gained. */
	jobs_set(SELF, LL_SET_SHARING, &(struct ll_limits){.sharing = LL_LIMIT_SHARING_VISITS});
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		check_share(&ways[i]);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
	end(flood);
}

static void check_without(const char *refusal)
{
	unsetenv("LD_PRELOAD");
	CHECK_EQUAL(simctl(refusal), 0);
	kernel_ns = SHARED_KERNEL_NS;
	pid_t flood = begin_of_weight(300);
	check_share(&(struct way){launch_in_own, SHARED_KERNEL_NS});
	CHECK(!(claim_of(SELF)->post_flags & LL_POST_ON_CARD));
	end(flood);
}

TEST_IN_WORLD(NULL, where_the_driver_has_no_waits_the_host_waits)
{
	check_without("fail cuStreamWaitValue32* 801"); /* not supported */
}

TEST_IN_WORLD(NULL, where_the_driver_takes_no_page_the_host_waits)
{
	check_without("fail cuMemHostRegister* 1"); /* invalid value */
}

TEST_IN_WORLD(NULL, a_captured_stream_is_given_no_wait)
{
	size_t nodes = 0;
	pid_t flood = begin();
	get_held();
	struct ll_cu_graph *graph = capture(3);
	CHECK_EQUAL(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
	CHECK_EQUAL(nodes, 3);
	CHECK_EQUAL(cu.cuGraphLaunch(instantiate(graph), stream), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	end(flood);
}

/* Each waits in the driver until the held streams have gone on. */
TEST_IN_WORLD(NULL, calls_that_wait_for_held_streams_come_back)
{
	ll_cu_deviceptr address;
	struct ll_cu_context *context;
	pid_t flood = begin();
	CHECK_EQUAL(cu.cuMemAlloc(&address, 1 << 20), 0);
	get_held();
	uint64_t start_ns = ll_now_ns();
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	check_soon(start_ns);
	get_held();
	start_ns = ll_now_ns();
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	check_soon(start_ns);
	get_held();
	CHECK_EQUAL(cu.cuCtxGetCurrent(&context), 0);
	start_ns = ll_now_ns();
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	check_soon(start_ns);
	open_context(0); /* its gate is another mapping */
	work = get_kernel("work_ns");
	stream = new_stream();
	get_held();
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	end(flood);
}

TEST_IN_WORLD(NULL, a_killed_neighbour_keeps_nobody_held)
{
	pid_t flood = begin();
	get_held();
	end(flood);
	uint64_t start_ns = ll_now_ns();
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	check_soon(start_ns);
	launch_timed(work, stream, MS, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

TEST_IN_WORLD(NULL, a_stopped_neighbour_keeps_nobody_held)
{
	pid_t flood = begin();
	get_held();
	stop_outside_the_driver(flood);
	uint64_t start_ns = ll_now_ns();
	for (int i = 0; i < 50; i++)
		launch_timed(work, stream, MS, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	check_soon(start_ns);
	end(flood);
}

static void get_held_and_exit(void)
{
	pid_t flood = begin();
	get_held();
	kill(flood, SIGKILL);
	exit(0);
}

static void get_held_and_exec(void)
{
	begin();
	get_held();
	unsetenv("LD_PRELOAD");
	execl("/bin/true", "true", NULL);
}

TEST_IN_WORLD(NULL, a_held_program_exits_and_execs)
{
	static void (*const ways[])(void) = {get_held_and_exit, get_held_and_exec};
	for (size_t i = 0; i < 2; i++) {
		int status = 0;
		pid_t program = spawn(ways[i]);
		CHECK_EQUAL(waitpid(program, &status, 0), program);
		CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	}
}

/* The first stream waits for what comes behind a full queue. */
TEST_IN_WORLD(NULL, a_full_queue_that_waits_for_the_next_launch_gets_it)
{
	ll_cu_deviceptr address;
	pid_t flood = begin();
	struct ll_cu_stream *second = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&address, 4096), 0);
	CHECK_EQUAL(cu.cuMemsetD8(address, 0, 4096), 0);
	CHECK_EQUAL(cu.cuStreamWaitValue32(stream, address, 1, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
	uint64_t start_ns = ll_now_ns();
	for (int i = 0; i < 26; i++) /* some more than there is room for: each of these takes its 0.1 s and more */
		launch_timed(work, stream, MS, 1, 32);
	launch_timed(work, second, MS / 10, 1, 32);
	CHECK_EQUAL(cu.cuStreamWriteValue32(second, address, 1, 0), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK(ll_now_ns() - start_ns < 20000 * MS); /* not the 60 s after which all pass */
	end(flood);
}

int main(int argc, char **argv)
{
	jobs_sharing = LL_LIMIT_SHARING_VISITS;
	return tests_run(argc, argv);
}
