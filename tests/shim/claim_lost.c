/* A program of `loadline run` that loses its claim, or gives it back; and one whose loadlined dies, or stops. */
#include "governed.h"

#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hearing.h"
#include "jobs.h"
#include "wait_for.h"

#define MS UINT64_C(1000000)

/* ---- claims that are lost ---- */

/* In the page, for `status`. The job is gone for loadlined, which gave it other pages when it came again. */
static bool is_told_lost(const struct ll_page *page)
{
	uint64_t seen_ns = page->cards[0].lost_seen_ns;
	return seen_ns && ll_now_ns() - seen_ns < 3000 * MS && page->cards[0].lost_since_ns <= seen_ns;
}

TEST_IN_WORLD(NULL, a_program_that_loses_its_claim_says_so)
{
	ll_cu_deviceptr address;
	govern(600 * MIB);
	open_context(0);
	const struct ll_page *page = jobs_pages(governed_id())->page;
	begin_hearing();
	jobs_end();
	WAIT_FOR(
	    has_said("loadline: the limits of `loadline run` are not in force on card 0: the program lost its claim"));
	WAIT_FOR(is_told_lost(page));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY); /* nobody could hold it to the limit */
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, MIB, NULL), LL_CUDA_ERROR_OUT_OF_MEMORY);
	govern(600 * MIB);
	WAIT_FOR(has_said("loadline: the limits of `loadline run` are in force again on card 0"));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	fclose(end_hearing());
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

/* `loadline run` had no limit, `loadline set` gave one. */
TEST_IN_WORLD(NULL, a_program_that_loses_its_claim_is_held_to_a_limit_that_was_set_later)
{
	ll_cu_deviceptr address;
	govern(0);
	open_context(0);
	set_limit(600 * MIB);
	begin_hearing();
	jobs_end();
	WAIT_FOR(has_said("are not in force on card 0"));
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	fclose(end_hearing());
}

static unsigned count_slots(void)
{
	char uuid[96];
	find_uuid(0, uuid);
	return jobs_count_slots(governed_id(), uuid);
}

/* Processes that get nothing do not use up the claims. */
TEST_IN_WORLD(NULL, a_refused_context_gives_its_claim_back)
{
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	govern(100 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (int i = 0; i < 3; i++) {
		CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
		WAIT_FOR(count_slots() == 0);
	}
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	WAIT_FOR(count_slots() == 0);
	set_limit(600 * MIB);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(count_slots(), 1);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	/* What it has keeps its claim. */
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(count_slots(), 1);
	launch_timed(get_kernel("work_ns"), new_stream(), 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
}

/* For longer than a claim that was lost is waited for. */
static void *go_on_later(void *arg)
{
	const pid_t *daemon = arg;
	ll_sleep_until_ns(ll_now_ns() + 500 * MS);
	CHECK_EQUAL(kill(*daemon, SIGCONT), 0);
	return NULL;
}

TEST_IN_WORLD(NULL, a_claim_that_was_given_back_is_waited_for_as_the_first_one)
{
	struct ll_cu_context *context;
	pthread_t thread;
	govern(100 * MIB);
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	WAIT_FOR(count_slots() == 0);
	set_limit(600 * MIB);
	pid_t daemon = jobs_daemon();
	CHECK(daemon > 1 && kill(daemon, SIGSTOP) == 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, go_on_later, &daemon), 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	pthread_join(thread, NULL);
	CHECK_EQUAL(count_slots(), 1);
}

/* ---- loadlined's end ---- */

static struct ll_cu_stream *stream;
static struct ll_cu_function *work;

static void have_context(void)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	open_context(0);
	ready();
	for (;;)
		pause();
}

/* It shares its limit with another process: neither may grow without asking. */
static pid_t begin_two(void)
{
	ll_cu_deviceptr address;
	govern(4 * GIB);
	pid_t other = spawn_ready(have_context);
	open_context(0);
	work = get_kernel("work_ns");
	stream = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	return other;
}

static uint64_t allocate_as_granted(void)
{
	ll_cu_deviceptr address;
	uint64_t bytes = 0;
	while (cu.cuMemAlloc(&address, 64 * MIB) == 0)
		bytes += 64 * MIB;
	return bytes;
}

static void launch_soon(void)
{
	uint64_t began_ns = ll_now_ns();
	launch_timed(work, stream, MS, 1, 32);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	CHECK(is_in_time(began_ns, 5000 * MS));
}

static void end_two(pid_t other)
{
	CHECK_EQUAL(kill(other, SIGKILL), 0);
	CHECK_EQUAL(waitpid(other, NULL, 0), other);
}

TEST_IN_WORLD(NULL, limits_hold_without_loadlined_and_the_next_one_goes_on)
{
	pid_t other = begin_two(), daemon = jobs_daemon();
	CHECK(daemon > 1 && kill(daemon, SIGKILL) == 0);
	begin_hearing();
	launch_soon();
	uint64_t granted_bytes = allocate_as_granted();
	CHECK(granted_bytes < 2 * GIB);
	CHECK(has_said("loadline: loadlined does not answer"));
	fclose(end_hearing());
	launch_soon();
	jobs_restart();
	CHECK_EQUAL(charged(), 2 * CONTEXT_BYTES + MIB + granted_bytes);
	uint64_t more_bytes = allocate_as_granted();
	CHECK(granted_bytes + more_bytes > 2 * GIB + 512 * MIB);
	CHECK(charged() <= 4 * GIB);
	CHECK_EQUAL(count_slots(), 2);
	launch_soon();
	end_two(other);
	WAIT_FOR(count_slots() == 1);
}

TEST_IN_WORLD(NULL, a_stopped_loadlined_keeps_no_launch_waiting)
{
	pid_t other = begin_two(), daemon = jobs_daemon();
	CHECK(daemon > 1 && kill(daemon, SIGSTOP) == 0);
	launch_soon();
	uint64_t granted_bytes = allocate_as_granted();
	CHECK(granted_bytes < 2 * GIB);
	launch_soon();
	CHECK_EQUAL(kill(daemon, SIGCONT), 0);
	CHECK(allocate_as_granted() > GIB);
	CHECK(charged() <= 4 * GIB);
	end_two(other);
}

/* For less than the lease. Its account holds 10 ms at most, and earns 1 ms in 10. */
TEST_IN_WORLD(NULL, a_cap_holds_while_loadlined_is_late)
{
	const uint64_t run_ns = 200 * MS;
	unsigned launches = 0;
	jobs_register((struct ll_run_settings){
	    .id = 0x10000 + (uint64_t)getpid(), .tenant = "test", .compute_cap_permille = 100, .counts_context = true});
	CHECK_EQUAL(unsetenv("LD_PRELOAD"), 0);
	open_context(0);
	work = get_kernel("work_ns");
	stream = new_stream();
	launch_soon();
	pid_t daemon = jobs_daemon();
	CHECK(daemon > 1 && kill(daemon, SIGSTOP) == 0);
	uint64_t began_ns = ll_now_ns();
	for (; ll_now_ns() - began_ns < run_ns; launches++)
		launch_soon();
	uint64_t took_ns = ll_now_ns() - began_ns;
	for (int i = 0; i < 100; i++) /* a debt ends without loadlined, too */
		launch_soon();
	CHECK_EQUAL(kill(daemon, SIGCONT), 0);
	print_message("%u launches in %llu ms\n", launches, (unsigned long long)(took_ns / MS));
	CHECK(launches <= 10 + 5 + took_ns / MS / 10);
}
