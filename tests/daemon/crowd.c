/* Many jobs come and go, half of them killed, and the daemon too. Expected: nothing is left, and it has grown by
 * nothing. */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "herd.h"
#include "test.h"
#include "wait_for.h"

enum { MEMORY_KIB = 24 * 1024, MONITOR_KIB = 100 };
enum { HERDS = 40, AT_ONCE = 256, LIMIT = 10000, UNITS = 4000, LEAST_TIMES = 20 };

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

TEST(jobs_come_and_go_and_leave_nothing)
{
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

/* ---- processes of these jobs ---- */

static unsigned herd_count(void)
{
	return is_long_test() ? HERDS : HERDS / 4;
}

static unsigned crowd_size(void)
{
	return is_long_test() ? AT_ONCE : AT_ONCE / 4;
}

struct crowd {
	struct world world;
	struct herd herds[HERDS];
	pid_t processes[AT_ONCE]; /* that of index i is of the herd i % herd_count() */
	uint64_t killed_ns;
};

static void start_process(struct crowd *crowd, unsigned index)
{
	crowd->processes[index] =
	    herd_fork(&crowd->herds[index % herd_count()], UNITS, LEAST_TIMES + (unsigned)rand() % 400);
}

/* Half of them are killed, the others end by themselves. */
static void replace_process(struct crowd *crowd, unsigned index, unsigned number)
{
	if (number & 1)
		kill_process(crowd->processes[index], SIGKILL);
	assert_int_equal(waitpid(crowd->processes[index], NULL, 0), crowd->processes[index]);
	start_process(crowd, index);
}

/* Those of one job stand still. */
static void check_herd(struct crowd *crowd, unsigned herd)
{
	for (unsigned i = herd; i < crowd_size(); i += herd_count()) {
		while (!herd_stop_process(crowd->processes[i]))
			start_process(crowd, i);
	}
	herd_check(&crowd->herds[herd]);
	for (unsigned i = herd; i < crowd_size(); i += herd_count())
		kill_process(crowd->processes[i], SIGCONT);
}

static size_t kill_daemon_at_times(struct crowd *crowd)
{
	pid_t daemon = world_daemon(&crowd->world);
	size_t kib = daemon > 1 ? memory_of(daemon) : 0;
	if (daemon > 1 && ll_now_ns() - crowd->killed_ns > LL_NS_PER_S / 5) {
		kill_process(daemon, SIGKILL);
		crowd->killed_ns = ll_now_ns();
	}
	return kib;
}

static void end_crowd(struct crowd *crowd)
{
	for (unsigned i = 0; i < crowd_size(); i++) {
		kill_process(crowd->processes[i], SIGKILL);
		assert_int_equal(waitpid(crowd->processes[i], NULL, 0), crowd->processes[i]);
	}
	for (unsigned i = 0; i < herd_count(); i++)
		wait_for(herd_used(&crowd->herds[i]) == 0);
	for (unsigned i = 0; i < herd_count(); i++)
		herd_stop(&crowd->herds[i]);
	wait_for(world_has_jobs(&crowd->world, 0));
	world_fini(&crowd->world);
}

/* Expected: no job has ever more than its limit, and in the end nothing of any is left. */
TEST(processes_come_and_go_and_are_never_over)
{
	static struct crowd crowd;
	unsigned all = is_long_test() ? 1000 : 200;
	size_t most_kib = 0;
	unsigned long reserved = 0, refused = 0;
	world_init(&crowd.world);
	crowd.world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	for (unsigned i = 0; i < herd_count(); i++)
		herd_start(&crowd.herds[i], &crowd.world, LIMIT);
	for (unsigned i = 0; i < crowd_size(); i++)
		start_process(&crowd, i);
	for (unsigned i = 0; i < all; i++) {
		replace_process(&crowd, i % crowd_size(), i);
		check_herd(&crowd, i % herd_count());
		size_t kib = kill_daemon_at_times(&crowd);
		most_kib = kib > most_kib ? kib : most_kib;
	}
	for (unsigned i = 0; i < herd_count(); i++) {
		reserved += crowd.herds[i].counts->reserved;
		refused += crowd.herds[i].counts->refused;
	}
	printf("%u processes of %u jobs, %u at once: %lu reservations, %lu refused; loadlined had at most %zu KiB\n",
	       all, herd_count(), crowd_size(), reserved, refused, most_kib);
	end_crowd(&crowd);
#ifndef LL_HAS_SANITIZER
	assert_true(most_kib > 0 && most_kib <= MEMORY_KIB);
#endif
}
