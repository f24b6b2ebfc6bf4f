/* What happens to a governed program's threads, forks and descriptors while it launches. */
#include "launching.h"
#include "skipped.h"

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"
#include <dlfcn.h>

#define ID 7
#define MS UINT64_C(1000000)
enum { THREADS = 4, LAUNCHES = 100 };

/* Of a host as slow as with a sanitizer only the least is known that each kernel took: 0.93 ms of 1 ms. */
#ifdef LL_HAS_SANITIZER
enum { ACCOUNT_PERCENT = 85 };
#else
enum { ACCOUNT_PERCENT = 95 };
#endif

static struct ll_cu_context *context;
static struct ll_cu_function *work;
static struct ll_cu_stream *shared;

static void prepare(unsigned cap_permille)
{
	context = begin_program(ID, cap_permille, &work, &shared);
}

static void *launch_shared(void *user)
{
	(void)user;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	for (int i = 0; i < LAUNCHES; i++)
		launch_timed(work, shared, MS / 10, 1, 32);
	return NULL;
}

static void *launch_own(void *user)
{
	(void)user;
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < LAUNCHES; i++)
		launch_timed(work, stream, MS / 10, 1, 32);
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	return NULL;
}

static void *launch_default(void *user)
{
	__typeof__(&cuLaunchKernel_ptsz) launch;
	uint64_t ns = MS / 10;
	void *params[] = {&ns}, *found = dlsym(cu.library, "cuLaunchKernel_ptsz");
	(void)user;
	memcpy(&launch, &found, sizeof launch);
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	for (int i = 0; i < LAUNCHES; i++)
		CHECK_EQUAL(launch(work, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(LL_CU_STREAM_PER_THREAD), 0);
	return NULL;
}

static void run_threads(void *(*body)(void *))
{
	pthread_t threads[THREADS];
	for (int i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, body, NULL), 0);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
}

TEST_IN_WORLD(NULL, threads_launch_into_the_same_into_their_own_and_into_default_streams)
{
	prepare(500);
	uint64_t before_ns = gpu_ns(ID), began_ns = ll_now_ns();
	run_threads(launch_shared);
	check_rests(ID);
	/* One after the other, and half of the time at most. The account and the queue let some go before. */
	uint64_t ns = gpu_ns(ID) - before_ns;
	CHECK(ns >= THREADS * LAUNCHES * MS / 10 * ACCOUNT_PERCENT / 100);
	CHECK(ns <= (ll_now_ns() - began_ns) / 2 + 60 * MS);
	before_ns = gpu_ns(ID);
	run_threads(launch_own);
	check_rests(ID);
	CHECK(gpu_ns(ID) - before_ns >= LAUNCHES * MS / 10 * ACCOUNT_PERCENT / 100);
	before_ns = gpu_ns(ID);
	run_threads(launch_default);
	check_rests(ID);
	CHECK(gpu_ns(ID) - before_ns >= LAUNCHES * MS / 10 * (ACCOUNT_PERCENT - 5) / 100);
}

/* An account that holds less than what work goes on with after a debt elsewhere. */
TEST_IN_WORLD(NULL, a_cap_of_a_permille_lets_launches_through)
{
	uint64_t began_ns = ll_now_ns();
	prepare(1);
	launch_timed(work, shared, MS / 100, 1, 32);
	CHECK(ll_now_ns() - began_ns < 50000 * MS);
	check_rests(ID);
}

static void sleep_a_while(void *user)
{
	(void)user;
	usleep(4000);
}

/* Kernels of 1 ms, and between two of them the stream runs a host function, waits for another stream's, or copies.
 * The card is free meanwhile, so only the kernels are charged. In its first second a program's account is not exact. */
static void check_that_waits_are_not_charged(unsigned compute_permille)
{
	enum { KERNELS = 60, ROUNDS = 4 };
	struct ll_cu_event *events[2];
	static char host[1 << 16];
	ll_cu_deviceptr bytes;
	prepare(compute_permille);
	struct ll_cu_stream *other = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&bytes, sizeof host), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(cu.cuEventCreate(&events[i], 0), 0);
	for (int i = 0; i < 4; i++) /* their estimate */
		launch_timed(work, shared, MS, 1, 32);
	check_rests(ID);
	for (int round = 0; round < 2 * ROUNDS; round++) {
		int way = round / ROUNDS;
		uint64_t before_ns = gpu_ns(ID);
		for (int i = 0; i < KERNELS; i++) {
			launch_timed(work, shared, MS, 1, 32);
			if (way) {
				CHECK_EQUAL(cu.cuEventRecord(events[0], shared), 0);
				CHECK_EQUAL(cu.cuStreamWaitEvent(other, events[0], 0), 0);
			}
			CHECK_EQUAL(cu.cuLaunchHostFunc(way ? other : shared, sleep_a_while, NULL), 0);
			if (way) {
				CHECK_EQUAL(cu.cuEventRecord(events[1], other), 0);
				CHECK_EQUAL(cu.cuStreamWaitEvent(shared, events[1], 0), 0);
			}
			CHECK_EQUAL(cu.cuMemcpyHtoDAsync(bytes, host, sizeof host, shared), 0);
		}
		CHECK_EQUAL(cu.cuStreamSynchronize(shared), 0);
		check_rests(ID);
		uint64_t ns = gpu_ns(ID) - before_ns;
		if ((round + 1) % ROUNDS)
			continue;
		fprintf(stderr, "%d kernels of 1 ms were charged %.1f ms\n", KERNELS, (double)ns / (double)MS);
		CHECK(ns >= KERNELS * MS * (ACCOUNT_PERCENT - 20) / 100);
		CHECK(ns <= KERNELS * MS * 13 / 10); /* with their waits they would be charged 300 ms */
	}
}

TEST_IN_WORLD(NULL, streams_that_wait_between_kernels_pay_for_the_kernels)
{
	check_that_waits_are_not_charged(500);
}

/* Without a cap the gate is open, and launches are not timed one by one. */
TEST_IN_WORLD(NULL, so_they_do_without_a_cap)
{
	check_that_waits_are_not_charged(0);
}

/* A program that feeds the card: a copy of 16 MiB, and two kernels that are not alike. */
static void feed(ll_cu_deviceptr bytes, const void *host, size_t size, unsigned rounds)
{
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_EQUAL(cu.cuMemcpyHtoDAsync(bytes, host, size, shared), 0);
		launch_timed(work, shared, MS / 10, 1, 32);
		launch_timed(work, shared, MS / 2, 2, 32);
	}
	CHECK_EQUAL(cu.cuStreamSynchronize(shared), 0);
	check_rests(ID);
}

TEST_IN_WORLD(NULL, copies_between_unlike_kernels_are_not_charged)
{
	enum { LEARNING = 400, ROUNDS = 600, BYTES = 16 << 20 };
	static char host[BYTES];
	ll_cu_deviceptr bytes;
	prepare(0);
	CHECK_EQUAL(cu.cuMemAlloc(&bytes, BYTES), 0);
	CHECK_EQUAL(cu.cuMemHostRegister(host, BYTES, 0), 0);
	feed(bytes, host, BYTES, LEARNING);
	uint64_t before_ns = gpu_ns(ID), began_ns = ll_now_ns();
	feed(bytes, host, BYTES, ROUNDS);
	double ns = (double)(gpu_ns(ID) - before_ns), own_ns = ROUNDS * 0.6 * MS;
	fprintf(stderr, "charged %.3f of its kernels, of %.3f that passed\n", ns / own_ns,
		(double)(ll_now_ns() - began_ns) / own_ns);
	CHECK(ns > 0.75 * own_ns && ns < 1.25 * own_ns);
}

/* How often the agent looks at a program that launches all the time: each look tells that it lives. */
static double looks_in_a_ms(void)
{
	unsigned looks = 0;
	uint64_t began_ns = ll_now_ns(), until_ns = began_ns + 300 * MS, seen_ns = 0;
	while (ll_now_ns() < until_ns) {
		launch_work(shared, MS / 50);
		usleep(200); /* the host is the slower one */
		uint64_t posted_ns = claim_of(ID)->posted_ns;
		looks += posted_ns != seen_ns;
		seen_ns = posted_ns;
	}
	return looks * (double)MS / (double)(ll_now_ns() - began_ns);
}

TEST_IN_WORLD(NULL, a_cap_that_is_far_is_looked_at_seldom)
{
	prepare(900);
	uint64_t deadline_ns = deadline_in_s(30);
	while (tokens_ns(ID) < (int64_t)(20 * MS)) {
		CHECK(!is_past(deadline_ns));
		sleep_ms(1);
	}
	launch_work(shared, MS / 50);
	double far = looks_in_a_ms();
	fprintf(stderr, "%.2f looks in a ms\n", far);
	CHECK(far < 0.5);
}

/* So long that the account of a kernel, of which a late host can miss some 0.1 ms, does not depend on the host. */
enum { FORKED_MS = 5 };

/* Two blocks: the short kernel before was of another kind. */
static void learn_kernel(void)
{
	for (int i = 0; i < 8; i++) {
		launch_timed(work, shared, FORKED_MS * MS, 2, 32);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	}
	check_rests(ID);
}

TEST_IN_WORLD(NULL, a_forked_child_is_untouched_and_its_parent_goes_on)
{
	prepare(0);
	learn_kernel();
	uint64_t before_ns = gpu_ns(ID);
	for (int i = 0; i < 20; i++) {
		launch_timed(work, shared, FORKED_MS * MS, 2, 32);
		fflush(NULL);
		pid_t pid = fork();
		if (pid == 0) {
			/* As on a real card the driver is of no use here; nothing of ours adds to that. */
			uint64_t ns = MS;
			void *params[] = {&ns};
			cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, shared, params, NULL);
#ifdef LL_HAS_SANITIZER /* the child has none of the parent's threads, so their memory would count as lost */
			_exit(0);
#else
			exit(0);
#endif
		}
		launch_timed(work, shared, FORKED_MS * MS, 2, 32);
		join(pid);
	}
	check_rests(ID);
	WAIT_FOR(count_claims(ID) == 1);
	CHECK(gpu_ns(ID) - before_ns >= 40 * FORKED_MS * MS * ACCOUNT_PERCENT / 100);
}

#ifndef LL_HAS_SANITIZER /* the other program has none in it, and cannot have the library then */
/* It lives in the parent's memory until it has become another program, which is the same tenant's. */
TEST_IN_WORLD(NULL, a_child_of_vfork_is_of_the_tenant_and_leaves_its_parent_as_it_was)
{
	char program[400];
	prepare(0);
	snprintf(program, sizeof program, "%s/loadline-simctl", getenv("LOADLINE_SIM_LIBRARIES"));
	struct ll_page_slot *own = claim_of(ID);
	uint64_t token = own->token, before_ns = gpu_ns(ID);
	int status;
	fflush(NULL);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pid_t pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork): it is what is tested */
#pragma GCC diagnostic pop
	if (pid == 0) {
		execl(program, program, "busy", "0", "kernel", "1ms", "count", "200", (char *)NULL);
		_exit(127);
	}
	CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
	/* The last launches before a context ends, up to 4 ms of work, may have no timing event and are not charged. */
	CHECK(gpu_ns(ID) - before_ns >= 200 * MS * 95 / 100);
	WAIT_FOR(count_claims(ID) == 1);
	CHECK(own == claim_of(ID));
	CHECK_EQUAL(own->token, token);
	/* One that ends without becoming anything leaves the parent as it was. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
	pid = vfork(); /* NOLINT(clang-analyzer-security.insecureAPI.vfork) */
#pragma GCC diagnostic pop
	if (pid == 0)
		_exit(0);
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
	launch_timed(work, shared, MS, 1, 32);
	check_rests(ID);
	CHECK_EQUAL(own->token, token);
}
#endif

/* The library's connection to loadlined, on a high number; with closes it is closed. */
static int connections(bool closes)
{
	enum { HIGH_FD = 512 };
	int count = 0;
	DIR *folder = opendir("/proc/self/fd");
	struct dirent *entry;
	if (!folder) {
		give_up(__FILE__, __LINE__, "/proc/self/fd");
		return -1;
	}
	while ((entry = readdir(folder))) {
		char path[300], target[300];
		snprintf(path, sizeof path, "/proc/self/fd/%s", entry->d_name);
		ssize_t length = readlink(path, target, sizeof target - 1);
		if (length < 0 || atoi(entry->d_name) < HIGH_FD)
			continue;
		target[length] = '\0';
		if (strncmp(target, "socket:", 7) != 0)
			continue;
		count++;
		if (closes) /* past the thread sanitizer, which minds that others use them */
			syscall(SYS_close, atoi(entry->d_name));
	}
	closedir(folder);
	return count;
}

TEST_IN_WORLD(NULL, a_program_that_closes_every_descriptor_keeps_its_claim)
{
	ll_cu_deviceptr address;
	prepare(100);
	uint64_t token = claim_of(ID)->token;
	CHECK_EQUAL(connections(true), 1);
	/* It has another one without being asked. */
	WAIT_FOR(connections(false) == 1);
	WAIT_FOR(count_claims(ID) == 1);
	CHECK_EQUAL(claim_of(ID)->token, token);
	owe(ID, 5 * MS);
	launch_timed(work, shared, MS, 1, 32);
	CHECK(tokens_ns(ID) > -(int64_t)(3 * MS));
	check_rests(ID);
	/* And at once, if it needs one. */
	CHECK_EQUAL(connections(true), 1);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 10 << 20), 0);
	owe(ID, 5 * MS);
	launch_timed(work, shared, MS, 1, 32);
	CHECK(tokens_ns(ID) > -(int64_t)(3 * MS));
	CHECK_EQUAL(claim_of(ID)->token, token);
}

static void lose_claim(void)
{
	uint64_t token = claim_of(ID)->token;
	jobs_lose_claim(jobs_connect(), getpid(), ID, card_uuid());
	WAIT_FOR(!claim_of(ID) || claim_of(ID)->token != token);
}

static bool is_charged(uint64_t bytes)
{
	return claim_of(ID) && charged_bytes(ID) == bytes;
}

TEST_IN_WORLD(NULL, a_claim_that_was_taken_away_is_taken_again)
{
	ll_cu_deviceptr first, second;
	prepare(100);
	uint64_t bytes = charged_bytes(ID);
	CHECK_EQUAL(cu.cuMemAlloc(&first, 10 << 20), 0);
	lose_claim();
	/* The next launch has a claim again; and pays. */
	launch_timed(work, shared, MS / 10, 1, 32);
	WAIT_FOR(is_charged(bytes + (10 << 20)));
	owe(ID, 5 * MS);
	launch_timed(work, shared, MS, 1, 32);
	CHECK(tokens_ns(ID) > -(int64_t)(3 * MS));
	check_rests(ID);
	WAIT_FOR(count_claims(ID) == 1);
	/* So has the next allocation, and what was there before is given back to it. */
	lose_claim();
	CHECK_EQUAL(cu.cuMemAlloc(&second, 10 << 20), 0);
	WAIT_FOR(is_charged(bytes + (20 << 20)));
	CHECK_EQUAL(cu.cuMemFree(first), 0);
	CHECK_EQUAL(cu.cuMemFree(second), 0);
	CHECK_EQUAL(charged_bytes(ID), bytes);
	/* And so has a program that does nothing. */
	lose_claim();
	WAIT_FOR(is_charged(bytes));
	WAIT_FOR(count_claims(ID) == 1);
}

static _Atomic bool is_done;
enum { HOARDED = 50 };

/* What it has changes all the time, and is 0 at the end. */
static void *hoard(void *user)
{
	ll_cu_deviceptr blocks[HOARDED];
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	while (!is_done) {
		for (int i = 0; i < HOARDED; i++)
			CHECK_EQUAL(cu.cuMemAlloc(&blocks[i], 1 << 20), 0);
		for (int i = 0; i < HOARDED; i++)
			CHECK_EQUAL(cu.cuMemFree(blocks[i]), 0);
	}
	return user;
}

TEST_IN_WORLD(NULL, nothing_is_lost_of_an_account_that_changes_meanwhile)
{
	pthread_t threads[THREADS];
	prepare(0);
	uint64_t bytes = charged_bytes(ID);
	for (int i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_create(&threads[i], NULL, hoard, NULL), 0);
	for (int i = 0; i < 8; i++) {
		lose_claim();
		WAIT_FOR(claim_of(ID));
	}
	is_done = true;
	for (int i = 0; i < THREADS; i++)
		CHECK_EQUAL(pthread_join(threads[i], NULL), 0);
	WAIT_FOR(is_charged(bytes));
}

static _Atomic bool has_launched;

static void *launch_in_debt(void *unused)
{
	CHECK_EQUAL(cu.cuCtxSetCurrent(context), 0);
	launch_timed(work, shared, MS / 10, 1, 32);
	has_launched = true;
	return unused;
}

/* Other waits end after 60 s. */
static void body_debt(void)
{
	pthread_t thread;
	prepare(2);
	owe(ID, 200 * MS); /* 100 s */
	CHECK_EQUAL(pthread_create(&thread, NULL, launch_in_debt, NULL), 0);
	sleep_ms(62000);
	CHECK(!has_launched);
	set_cap(ID, 0);
	WAIT_FOR(has_launched);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
}

TEST(a_debt_is_waited_out_however_long_it_is)
{
	if (!is_long_test())
		SKIP_TEST("it takes a minute: LOADLINE_TEST_LONG=1");
	in_world(NULL, body_debt);
}

/* loadlined does not know the job for a while. */
TEST_IN_WORLD(NULL, without_a_claim_the_program_goes_on_until_there_is_one)
{
	ll_cu_deviceptr address;
	struct ll_cu_context *primary, *another;
	prepare(100);
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
	jobs_end();
	WAIT_FOR(cu.cuCtxCreate(&another, 0, 0) == LL_CUDA_ERROR_NOT_PERMITTED);
	/* The program goes on as it is, and has a claim as soon as there is one. */
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&primary, 0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 1 << 20), 0);
	launch_timed(work, shared, MS / 10, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = 100});
	WAIT_FOR(claim_of(ID));
	owe(ID, 5 * MS);
	launch_timed(work, shared, MS, 1, 32);
	CHECK(tokens_ns(ID) > -(int64_t)(3 * MS));
	check_rests(ID);
}
