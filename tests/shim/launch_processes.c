/* Several programs under limits on one card: how they share it, and what becomes of those that stop, die or never end.
 */
#include "launching.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#define MS UINT64_C(1000000)
enum { STRETCHES = 5 };

/* A program that launches kernels of 1 ms, or of another length, as fast as it may, for ever. */
static struct ll_run_settings other;
static uint64_t other_kernel_ns = MS;
static bool other_waits; /* it queues no more than 8 kernels, limits or not */

static void launch_for_ever(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL); /* it has no end of its own */
	govern_by(other);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_function *kernel = get_kernel("work_ns");
	for (unsigned i = 1;; i++) {
		launch_timed(kernel, stream, other_kernel_ns, 1, 32);
		if (other_waits && i % 8 == 0)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
}

static pid_t start(struct ll_run_settings settings)
{
	other = settings;
	return spawn(launch_for_ever);
}

static void stop(pid_t pid)
{
	CHECK_EQUAL(kill(pid, SIGKILL), 0);
	CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
}

static void begin_early(void)
{
	CHECK_EQUAL(open_cuda() > 1000, 0);
	CHECK_EQUAL(cu.cuInit(0), 0);
	WAIT_FOR(gpu_ns(1) > 20 * MS && gpu_ns(2) > 0);
}

/* What the first of them queued while it was alone is gone. */
static void begin_watching(void)
{
	begin_early();
	WAIT_FOR(is_bounded(1, other_kernel_ns));
	WAIT_FOR(is_bounded(2, other_kernel_ns));
}

static void measure(uint64_t total_ns, double *ret_first, double *ret_second)
{
	struct shares shares = {.kernel_ns = other_kernel_ns};
	uint64_t deadline_ns = deadline_in_s(90);
	while (!have_shared(&shares, total_ns)) {
		CHECK(!is_past(deadline_ns));
		sleep_ms(1);
	}
	*ret_first = shares.got_ns[0];
	*ret_second = shares.got_ns[1];
	printf("of %.0f ms the first had %.2f\n", (*ret_first + *ret_second) / MS,
	       *ret_first / (*ret_first + *ret_second));
	fflush(stdout);
}

/*
 * They wait for each eighth launch, and the card is given for visits. A visit ends soon after its queue is empty. So
 * what they have queued lasts longer than a busy host keeps a program from a processor. With kernels of 0.1 ms each
 * program had one queue in turn on a busy host, whatever its weight. Whether visits pay is measured in rules_regime.
 */
static void wait_for_some(void)
{
	other_kernel_ns = 4 * MS;
	other_waits = true;
	jobs_sharing = LL_LIMIT_SHARING_VISITS;
}

TEST_IN_WORLD(NULL, two_programs_that_wait_share_by_weight)
{
	double first, second;
	wait_for_some();
	pid_t a = start((struct ll_run_settings){.id = 1, .tenant = "a", .weight_permille = 1000});
	pid_t b = start((struct ll_run_settings){.id = 2, .tenant = "b", .weight_permille = 3000});
	begin_watching();
	/* and made up for */
	WAIT_FOR(virtual_ns(1) < virtual_ns(2) + 50 * MS && virtual_ns(2) < virtual_ns(1) + 50 * MS);
	/* How near to 3 is a matter of the host, which may have other work: share_turn shows it on a clock of its own.
	 * What is shared equally is so in each stretch. */
	int stretches = 0;
	do {
		measure(1000 * MS, &first, &second);
	} while (++stretches < STRETCHES && !(second > 1.5 * first && second < 6 * first));
	CHECK(second > 1.5 * first);
	CHECK(second < 6 * first);
	stop(a);
	stop(b);
}

/* Two processes of a tenant, a card each, that add up something together: each round both work, and then each stream
 * waits for the other's. As collectives do, neither gets on while the other is kept from its card. */
enum { RANKS = 2, PAIRS = 2, ROUNDS = 60, LINE_WORDS = 16 };

static _Atomic uint32_t *rounds_done; /* of each rank of each tenant, a cache line apart; shared by all */
static int own_pair, own_rank;

static _Atomic uint32_t *rounds_of(int pair, int rank)
{
	return &rounds_done[(pair * RANKS + rank) * LINE_WORDS];
}

static void begin_rank(void)
{
	struct ll_run_settings settings = {.id = (uint64_t)own_pair + 1,
					   .first_card = "GPU-10ad11fe-0200-4200-8200-000000000001"};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	snprintf(settings.tenant, sizeof settings.tenant, "pair%d", own_pair);
	govern_by(settings);
	open_context(own_rank);
}

static void add_up(void)
{
	begin_rank();
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_function *kernel = get_kernel("work_ns");
	CHECK_EQUAL(cu.cuMemHostRegister(rounds_done, 4096, 0), 0);
	ll_cu_deviceptr own = (uintptr_t)rounds_of(own_pair, own_rank);
	ll_cu_deviceptr others = (uintptr_t)rounds_of(own_pair, 1 - own_rank);
	for (uint32_t round = 1; round <= ROUNDS; round++) {
		launch_timed(kernel, stream, MS, 1, 32);
		CHECK_EQUAL(cu.cuStreamWriteValue32(stream, own, round, 0), 0);
		CHECK_EQUAL(cu.cuStreamWaitValue32(stream, others, round, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
		if (round % 4 == 0)
			CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
}

static void share_rounds(void)
{
	rounds_done = share_memory(4096);
}

static void spawn_pair(void (*body)(void), int pair, pid_t pids[PAIRS * RANKS])
{
	own_pair = pair;
	for (own_rank = 0; own_rank < RANKS; own_rank++)
		pids[pair * RANKS + own_rank] = spawn(body);
}

TEST_IN_WORLD("cards 2\n", collectives_of_two_tenants_across_two_cards_all_end)
{
	pid_t pids[PAIRS * RANKS];
	share_rounds();
	for (int pair = 0; pair < PAIRS; pair++)
		spawn_pair(add_up, pair, pids);
	for (int i = 0; i < PAIRS * RANKS; i++)
		join(pids[i]);
	for (int i = 0; i < PAIRS * RANKS; i++)
		CHECK_EQUAL(*rounds_of(i / RANKS, i % RANKS), ROUNDS);
}

/* The same with kernels that spin until the other's run, as those of collectives do. */
enum { MEETINGS_AHEAD = 20 };

static void meet_for_ever(void)
{
	struct ll_cu_event *timing[2] = {NULL};
	begin_rank();
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_function *kernel = get_kernel("meet_ns");
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(cu.cuEventCreate(&timing[i], LL_CU_EVENT_DISABLE_TIMING), 0);
	for (uint64_t number = 1;; number++) {
		uint64_t length_ns = MS, meeting = (uint64_t)(own_pair + 1) << 32 | number;
		void *params[] = {&length_ns, &meeting};
		CHECK_EQUAL(cu.cuLaunchKernel(kernel, 1, 1, 1, 32, 1, 1, 0, stream, params, NULL), 0);
		if (number % MEETINGS_AHEAD)
			continue;
		int which = (int)(number / MEETINGS_AHEAD % 2);
		CHECK_EQUAL(cu.cuEventRecord(timing[which], stream), 0);
		if (number > MEETINGS_AHEAD)
			CHECK_EQUAL(cu.cuEventSynchronize(timing[1 - which]), 0);
		atomic_store(rounds_of(own_pair, own_rank), (uint32_t)(number - MEETINGS_AHEAD));
	}
}

/* Kernels a second that all have together, in the best of some windows: other work of the host can only lower it. It
 * is not looked for any longer once there are so many. */
static uint32_t count_meetings(unsigned windows, uint32_t enough)
{
	uint32_t best = 0;
	for (unsigned i = 0; i < windows && best < enough; i++) {
		uint64_t began_ns = ll_now_ns();
		uint32_t before = *rounds_of(0, 0) + *rounds_of(1, 0);
		sleep_ms(500);
		uint64_t count = *rounds_of(0, 0) + *rounds_of(1, 0) - before;
		uint32_t rate = (uint32_t)(count * UINT64_C(1000000000) / (ll_now_ns() - began_ns));
		best = rate > best ? rate : best;
	}
	return best;
}

TEST_IN_WORLD("cards 2\ncard 1 slice 1.37ms\n", collectives_of_two_tenants_keep_their_speed)
{
	pid_t pids[PAIRS * RANKS];
	share_rounds();
	spawn_pair(meet_for_ever, 0, pids);
	WAIT_FOR(*rounds_of(0, 0) > 2 * MEETINGS_AHEAD);
	uint32_t alone = count_meetings(4, UINT32_MAX);
	spawn_pair(meet_for_ever, 1, pids);
	WAIT_FOR(*rounds_of(1, 0) > 2 * MEETINGS_AHEAD);
	uint32_t together = count_meetings(40, alone / 2);
	for (int i = 0; i < PAIRS * RANKS; i++)
		stop(pids[i]);
	printf("two pairs %u a second, one %u\n", together, alone);
	fflush(stdout);
	/* Sanitizers slow the host, which looks each 0.1 ms, and not the card. */
#ifndef LL_HAS_SANITIZER
	CHECK(together >= alone / 2); /* a third, where the cards' turns know nothing of each other */
#endif
}

static _Atomic unsigned *long_kernels; /* that the program below has seen the end of */

static void launch_long_ones(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	govern_by((struct ll_run_settings){.id = 2, .tenant = "long"});
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	for (;;) {
		launch_work(stream, 200 * MS);
		CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
		atomic_fetch_add(long_kernels, 1);
	}
}

/*
 * A kernel of 200 ms keeps nobody waiting for more than 20: then the card runs it in slices with the other's. What each
 * of them sees of that is twice what it has.
 */
TEST_IN_WORLD(NULL, time_in_slices_with_others_is_charged_for_what_one_had)
{
	long_kernels = share_memory(sizeof *long_kernels);
	pid_t a = start((struct ll_run_settings){.id = 1, .tenant = "short"});
	pid_t b = spawn(launch_long_ones);
	begin_early();
	WAIT_FOR(*long_kernels >= 2);
	uint64_t before_ns = gpu_ns(2);
	unsigned before = *long_kernels;
	WAIT_FOR(*long_kernels >= before + 8);
	double each_ms = (double)(gpu_ns(2) - before_ns) / MS / 8;
	printf("a kernel of 200 ms was charged %.1f ms\n", each_ms);
	fflush(stdout);
	/* Not 400, as it seems to each of them. A host that is late for the short one lets the long one have more than
	 * its half. */
	CHECK(each_ms >= 100 && each_ms <= 300);
	stop(a);
	stop(b);
}

TEST_IN_WORLD(NULL, a_stopped_or_killed_program_keeps_nobody_waiting)
{
	wait_for_some();
	pid_t a = start((struct ll_run_settings){.id = 1, .tenant = "a"});
	pid_t b = start((struct ll_run_settings){.id = 2, .tenant = "b"});
	begin_watching();
	for (int i = 0; i < 5; i++) {
		stop_outside_the_driver(a);
		uint64_t before_ns = gpu_ns(2);
		WAIT_FOR(gpu_ns(2) > before_ns + 100 * MS);
		CHECK_EQUAL(kill(a, SIGCONT), 0);
		before_ns = gpu_ns(1);
		WAIT_FOR(gpu_ns(1) > before_ns + 20 * MS);
	}
	stop(a);
	uint64_t before_ns = gpu_ns(2);
	WAIT_FOR(gpu_ns(2) > before_ns + 200 * MS);
	stop(b);
}

/* Limits are the job's, and may change at any time. */
TEST_IN_WORLD(NULL, a_limit_that_changes_is_heeded_at_once)
{
	other_waits = true;
	pid_t a = start((struct ll_run_settings){.id = 1, .tenant = "a"});
	CHECK_EQUAL(open_cuda() > 1000, 0);
	CHECK_EQUAL(cu.cuInit(0), 0);
	WAIT_FOR(gpu_ns(1) > 20 * MS);
	uint64_t before_ns = gpu_ns(1), began_ns = ll_now_ns();
	set_cap(1, 100);
	WAIT_FOR(ll_now_ns() - began_ns > 1000 * MS);
	/* A tenth, but for 100 ms at full speed until it is heeded. */
	CHECK(gpu_ns(1) - before_ns <= (ll_now_ns() - began_ns) / 10 + 100 * MS);
	set_cap(1, 0);
	before_ns = gpu_ns(1);
	WAIT_FOR(gpu_ns(1) > before_ns + 200 * MS);
	stop(a);
}
