/* The probe's processes on the simulated driver: what they answer, and that none is left, whatever happens to them. */
#include "test.h"

#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "driver_world.h"
#include "probe/probe.h"

/* Until a process counts as hung. */
#define SOON_NS (200 * LL_NS_PER_MS)

struct test {
	struct ll_driver *driver;
	struct ll_probe_crew_config config;
	struct ll_probe_crew *crew;
};

static void begin(struct test *test, const char *const *environment, uint64_t within_ns, int signal_fd)
{
	static const char *const none[] = {NULL};
	const struct ll_card *cards;
	CHECK_OK(ll_driver_open(&test->driver, err));
	CHECK(ll_driver_cards(test->driver, &cards) == 1);
	test->config = (struct ll_probe_crew_config){
	    .card = cards,
	    .environment = environment ? environment : none,
	    .signal_fd = signal_fd,
	    .order_within_ns = within_ns,
	};
	CHECK_OK(ll_probe_crew_open(&test->config, &test->crew, err));
	CHECK_OK(ll_probe_crew_add(test->crew, err));
}

/* Children of this process that are still there. */
static size_t children(pid_t *ret_last)
{
	size_t count = 0;
	char path[64];
	snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
	FILE *file = fopen(path, "re");
	CHECK(file);
	for (int pid; fscanf(file, "%d", &pid) == 1; count++)
		*ret_last = pid;
	fclose(file);
	return count;
}

static pid_t only_child(void)
{
	pid_t pid = 0;
	CHECK(children(&pid) == 1);
	return pid;
}

static void end(struct test *test)
{
	pid_t pid;
	ll_probe_crew_close(test->crew);
	CHECK(children(&pid) == 0);
	ll_driver_close(test->driver);
}

static struct ll_probe_order order_of(enum ll_probe_parallel parallel, uint64_t length_ns)
{
	const struct ll_probe_cell cell = {.parallel = parallel};
	const struct ll_probe_load load = {.parties = 2, .kernels = 2, .length_ns = length_ns};
	struct ll_probe_order order;
	ll_probe_order_cell(&cell, &load, &order);
	return order;
}

TEST_IN_WORLD("", every_launch_has_its_account)
{
	struct test test;
	const struct ll_probe_kernel *kernels;
	begin(&test, NULL, 0, -1);
	CHECK_OK(ll_probe_crew_add(test.crew, err));
	CHECK(!ll_probe_crew_refusal(test.crew, 2));
	CHECK(ll_probe_crew_sms(test.crew) == 132);
	for (int p = 0; p < LL_PROBE_PARALLELS; p++) {
		struct ll_probe_order order = order_of((enum ll_probe_parallel)p, LL_NS_PER_MS);
		CHECK_OK(ll_probe_crew_run(test.crew, &order, &kernels, err));
		for (uint32_t i = 0; i < order.launch_count; i++) {
			CHECK(kernels[i].party == i / 2);
			CHECK(kernels[i].end_ns - kernels[i].start_ns >= LL_NS_PER_MS - 1000);
		}
	}
	end(&test);
}

TEST_IN_WORLD("fail cuCtxCreate_v2 CUDA_ERROR_OUT_OF_MEMORY\n", a_refused_process_is_no_failure_and_says_why)
{
	struct test test;
	begin(&test, NULL, 0, -1);
	CHECK(strstr(ll_probe_crew_refusal(test.crew, 1), "make a context: CUDA_ERROR_OUT_OF_MEMORY (2)"));
	end(&test);
}

static void hide_the_card(void)
{
	static const char *const environment[] = {"CUDA_VISIBLE_DEVICES=", "LOADLINE_UNKNOWN", NULL};
	struct test test;
	begin(&test, environment, 0, -1);
	CHECK(ll_probe_crew_refusal(test.crew, 1));
	end(&test);
}

TEST(the_environment_is_the_workers_alone)
{
	in_world("", hide_the_card);
	assert_null(getenv("CUDA_VISIBLE_DEVICES"));
}

TEST_IN_WORLD("", a_process_that_dies_ends_the_wait)
{
	struct test test;
	struct ll_probe_order order = order_of(LL_PROBE_STREAMS, LL_NS_PER_MS);
	const struct ll_probe_kernel *kernels;
	begin(&test, NULL, 0, -1);
	kill(only_child(), SIGKILL);
	CHECK_FAILS(ll_probe_crew_run(test.crew, &order, &kernels, err), -EIO, "process 0 died of signal 9");
	end(&test);
}

TEST_IN_WORLD("", a_process_that_hangs_is_waited_for_and_then_killed)
{
	struct test test;
	struct ll_probe_order order = order_of(LL_PROBE_STREAMS, LL_NS_PER_MS);
	const struct ll_probe_kernel *kernels;
	begin(&test, NULL, SOON_NS, -1);
	kill(only_child(), SIGSTOP);
	CHECK_FAILS(ll_probe_crew_run(test.crew, &order, &kernels, err), -EIO, "did not answer within");
	end(&test);
}

TEST_IN_WORLD("", a_signal_ends_the_wait_at_once)
{
	struct test test;
	struct ll_probe_order order = order_of(LL_PROBE_STREAMS, LL_NS_PER_S / 4);
	const struct ll_probe_kernel *kernels;
	int signal_fd = eventfd(0, EFD_CLOEXEC);
	begin(&test, NULL, 0, signal_fd);
	CHECK(eventfd_write(signal_fd, 1) == 0);
	CHECK_FAILS(ll_probe_crew_run(test.crew, &order, &kernels, err), -EINTR, "interrupted");
	close(signal_fd);
	end(&test);
}

int main(int argc, char **argv)
{
	/* The workers are this program once more. */
	if (ll_probe_worker_is_asked(argc, argv))
		return ll_probe_worker_main(argc, argv, NULL) < 0;
	return tests_run(argc, argv);
}
