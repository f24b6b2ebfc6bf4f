/*
 * When a job ends, whatever its processes do with their descriptors, parents and namespaces; and the same where the
 * kernel, or a filter, has no pidfds. Each case says how the job is expected to end.
 *
 * The filter is for this process, the monitors and the daemons that come from it: the first word of the command line
 * says which.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/process.h"
#include "no_pidfds.h"
#include "test.h"
#include "wait_for.h"
#include "world.h"

/* ---- what the first process of a job does ---- */

/* A process that stays when the first one has ended, and whose number the test learns from a file. */
static char left_file[64];

static void tell_left(void)
{
	int fd = open(left_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(fd, "%d\n", (int)getpid());
	close(fd);
}

static pid_t pid_of_left(void)
{
	int pid = 0;
	FILE *file = fopen(left_file, "re");
	if (file && fscanf(file, "%d", &pid) != 1)
		pid = 0;
	if (file)
		fclose(file);
	return pid;
}

static _Noreturn void stay(void)
{
	tell_left();
	for (;;)
		pause();
}

static void nothing_more(int lifeline_fd, uint64_t id)
{
	(void)lifeline_fd;
	(void)id;
}

/* A daemon of the old kind, but for its descriptors. */
static void leaves_a_grandchild(int lifeline_fd, uint64_t id)
{
	(void)lifeline_fd;
	(void)id;
	if (fork() == 0) {
		setsid();
		if (fork() == 0)
			stay();
		_exit(0);
	}
	while (wait(NULL) > 0)
		;
}

static void leaves_a_raw_clone(int lifeline_fd, uint64_t id)
{
	(void)lifeline_fd;
	(void)id;
	/* No exit signal, the descriptors shared, no atfork handlers. */
	if (syscall(SYS_clone, CLONE_FILES, 0, 0, 0, 0) == 0)
		stay();
}

/* Executes something that keeps what it inherited, from a vfork. */
static void leaves_a_vforked_program(int lifeline_fd, uint64_t id)
{
	char *words[] = {"sleep", "1000", NULL};
	(void)id;
	fcntl(lifeline_fd, F_SETFD, 0);
	pid_t pid = vfork(); /* NOLINT: what programs do */
	if (pid == 0) {
		execvp(words[0], words);
		_exit(127);
	}
	int fd = open(left_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	dprintf(fd, "%d\n", (int)pid);
	close(fd);
}

/* The first process goes on, without the lifeline. */
static void closes_the_lifeline(int lifeline_fd, uint64_t id)
{
	(void)id;
	close(lifeline_fd);
}

/* All that is left is a process without descriptors, which has the job's environment. */
static void leaves_a_bare_program(int lifeline_fd, uint64_t id)
{
	char variable[64];
	char *words[] = {"sleep", "1000", NULL}, *environment[] = {"PATH=/bin", variable, NULL};
	snprintf(variable, sizeof variable, "LOADLINE_RUN=id=%jx;tenant=x", (uintmax_t)id);
	close(lifeline_fd);
	if (fork() == 0) {
		setsid();
		tell_left();
		ll_close_from_now(0);
		execve("/bin/sleep", words, environment);
		_exit(127);
	}
	while (pid_of_left() == 0)
		;
}

/* ---- the cases ---- */

enum expected { WITH_FIRST, WITH_LEFT };

struct tree {
	job_body *body;
	enum expected end;
};

static const struct tree trees[] = {
    {nothing_more, WITH_FIRST},      {closes_the_lifeline, WITH_FIRST},     {leaves_a_grandchild, WITH_LEFT},
    {leaves_a_raw_clone, WITH_LEFT}, {leaves_a_vforked_program, WITH_LEFT}, {leaves_a_bare_program, WITH_LEFT},
};

/* For so long a job must not be taken for ended that has a process left. Monitors without pidfds look once a second. */
#define WATCH_NS (3 * LL_NS_PER_S / 2)

static void check_stays(const struct world *world)
{
	uint64_t until_ns = ll_now_ns() + WATCH_NS;
	while (ll_now_ns() < until_ns) {
		assert_true(world_has_jobs(world, 1));
		poll(NULL, 0, 50);
	}
}

TEST(a_job_ends_with_its_last_process)
{
	for (size_t i = 0; i < sizeof trees / sizeof *trees; i++) {
		struct world world;
		struct job job;
		unlink(left_file);
		world_init(&world);
		job_start(&job, &world, NULL, trees[i].body);
		assert_true(world_has_jobs(&world, 1));
		job_stop(&job);
		if (trees[i].end == WITH_LEFT) {
			pid_t left;
			wait_for((left = pid_of_left()) > 1);
			check_stays(&world);
			kill_process(left, SIGKILL);
			waitpid(left, NULL, __WALL); /* ours, where this process is init */
		}
		wait_for(world_has_jobs(&world, 0));
		world_fini(&world);
	}
	unlink(left_file);
}

/* Expected: the job stays known, also by a daemon that begins after its first process has ended. */
TEST(a_daemon_learns_of_a_job_whose_first_process_has_ended)
{
	struct world world;
	struct job job;
	pid_t left;
	world_init(&world);
	job_start(&job, &world, NULL, leaves_a_grandchild);
	job_stop(&job);
	kill_process(world_daemon(&world), SIGKILL);
	wait_for(world_has_jobs(&world, 1));
	wait_for((left = pid_of_left()) > 1);
	kill_process(left, SIGKILL);
	waitpid(left, NULL, __WALL);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
	unlink(left_file);
}

/* Expected: the death of a monitor is noticed, and the job gets another. */
TEST(the_end_of_a_monitor_is_noticed)
{
	struct world world;
	struct job job;
	world_init(&world);
	job_start(&job, &world, NULL, NULL);
	pid_t old = job_monitor(&world, &job);
	kill_process(old, SIGKILL);
	wait_for(job_monitor(&world, &job) > 1 && job_monitor(&world, &job) != old);
	job_stop(&job);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* Expected: the job is forgotten. Nobody saw its end: the next monitor has nothing else to tell. */
TEST(a_job_that_ends_at_once_with_its_monitor_is_forgotten)
{
	struct world world;
	struct job job, other;
	world_init(&world);
	job_start(&job, &world, "one", NULL);
	job_start(&other, &world, "two", NULL);
	pid_t monitor = job_monitor(&world, &job);
	kill_process(monitor, SIGSTOP); /* so that it cannot tell */
	job_stop(&job);
	kill_process(monitor, SIGKILL);
	wait_for(world_has_jobs(&world, 1));
	job_stop(&other);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* ---- SIGSTOP ---- */

/* Expected: a command is told after a second that there is no answer, a new job goes on without, and both are served
 * when the daemon goes on. */
TEST(a_stopped_daemon_keeps_nobody_waiting)
{
	struct world world;
	struct job job, late;
	struct ll_daemon_view view;
	union ll_message message;
	world_init(&world);
	job_start(&job, &world, NULL, NULL);
	pid_t daemon = world_daemon(&world);
	kill_process(daemon, SIGSTOP);
	uint64_t begin_ns = ll_now_ns();
	ll_daemon_view_init_at(&view, &world.place);
	assert_int_equal(view.answer, LL_DAEMON_SILENT);
	assert_int_equal(view.pid, daemon);
	assert_true(is_in_time(begin_ns, 10 * LL_NS_PER_S));
	ll_daemon_view_fini(&view);
	job_launch(&late, &world, NULL, NULL);
	assert_int_equal(poll(&(struct pollfd){.fd = late.report_fd, .events = POLLIN}, 1, 250), 0);
	kill_process(daemon, SIGCONT);
	assert_int_equal(next_message(late.report_fd, &message), LL_MESSAGE_ACCEPTED);
	wait_for(world_has_jobs(&world, 2));
	job_stop(&job);
	job_stop(&late);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* Expected: nothing of the job is freed, a new daemon knows the other job at once, and this one when its monitor goes
 * on. */
TEST(a_stopped_monitor_hinders_nobody_and_frees_nothing)
{
	struct world world;
	struct job stopped, other;
	world_init(&world);
	job_start(&stopped, &world, "stopped", NULL);
	job_start(&other, &world, "other", NULL);
	pid_t monitor = job_monitor(&world, &stopped);
	kill_process(monitor, SIGSTOP);
	assert_true(world_has_jobs(&world, 2));
	kill_process(world_daemon(&world), SIGKILL);
	wait_for(world_has_jobs(&world, 1));
	job_stop(&stopped);
	kill_process(monitor, SIGCONT);
	job_stop(&other);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* trees [pidfd | proc] [PATTERN] */
int main(int argc, char **argv)
{
	snprintf(left_file, sizeof left_file, "/tmp/loadline-left.XXXXXX");
	int fd = mkstemp(left_file);
	if (fd < 0)
		return 1;
	close(fd);
	if (argc > 1 && strcmp(argv[1], "proc") == 0)
		take_pidfds_away();
	return tests_run(argc - 1, argv + 1);
}
