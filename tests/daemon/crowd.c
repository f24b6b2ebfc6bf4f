/* Many jobs come and go, half of them killed, and the daemon too. Expected: nothing is left, and it has grown by
 * nothing. */
#include <signal.h>
#include <unistd.h>

#include "../unit/test.h"
#include "../unit/wait_for.h"
#include "base/process.h"
#include "world.h"

enum { MEMORY_KIB = 24 * 1024, MONITOR_KIB = 100 };

/* Anonymous memory of a process: what is its alone, however many have the same program. */
static size_t memory_of(pid_t pid)
{
	char path[64], line[256];
	size_t kib = 0;
	snprintf(path, sizeof path, "/proc/%d/smaps_rollup", (int)pid);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file)) {
		if (sscanf(line, "Anonymous: %zu", &kib) == 1)
			break;
	}
	if (file)
		fclose(file);
	return kib;
}

static void end_one(struct job *job, unsigned number)
{
	if (number & 1)
		kill_process(job->pid, SIGKILL);
	job_stop(job);
}

static void jobs_come_and_go_and_leave_nothing(void **state)
{
	(void)state;
	static struct job jobs[256];
	unsigned at_once = is_long_test() ? 256 : 48, all = is_long_test() ? 1000 : 150;
	size_t most_kib = 0, monitor_kib = 0;
	struct world world;
	world_init(&world);
	uint64_t killed_ns = ll_now_ns();
	for (unsigned i = 0; i < all; i++) {
		struct job *job = &jobs[i % at_once];
		if (i >= at_once)
			end_one(job, i);
		job_start(job, &world, i % 25 ? "team" : NULL, NULL);
		pid_t daemon = world_daemon(&world);
		size_t kib = daemon > 1 ? memory_of(daemon) : 0;
		most_kib = kib > most_kib ? kib : most_kib;
		if (is_long_test() && daemon > 1 && ll_now_ns() - killed_ns > LL_NS_PER_S / 5) {
			kill_process(daemon, SIGKILL);
			killed_ns = ll_now_ns();
		}
	}
	wait_for(world_has_jobs(&world, at_once));
	pid_t monitor = job_monitor(&world, &jobs[0]);
	monitor_kib = memory_of(monitor);
	most_kib = memory_of(world_daemon(&world)) > most_kib ? memory_of(world_daemon(&world)) : most_kib;
	for (unsigned i = 0; i < at_once; i++)
		end_one(&jobs[i], i);
	wait_for(world_has_jobs(&world, 0));
	printf("%u jobs, %u at once: loadlined had at most %zu KiB of its own, a monitor %zu KiB\n", all, at_once,
	       most_kib, monitor_kib);
#ifndef LL_HAS_SANITIZER
	assert_true(most_kib > 0 && most_kib <= MEMORY_KIB);
	assert_true(monitor_kib > 0 && monitor_kib <= MONITOR_KIB);
#endif
	/* It ends by itself, 2 s after the last connection. */
	int fd = ll_process_open(world_daemon(&world));
	assert_true(fd >= 0);
	wait_for(ll_process_has_ended(fd));
	close(fd);
	assert_int_equal(world_daemon(&world), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {cmocka_unit_test(jobs_come_and_go_and_leave_nothing)};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
