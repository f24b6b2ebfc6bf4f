/* loadlined and monitors are killed at any moment. Every number that is killed was read from the kernel just before. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"
#include "wait_for.h"
#include "world.h"

enum { JOBS = 40, KILLS = 200, CLIENTS = 4, FEW_KILLS = 20 };

/* ---- the load: processes that ask for the list all the time ---- */

struct shared {
	atomic_uint answers, garbled;
};

static _Noreturn void ask_for_ever(const struct world *world, struct shared *shared)
{
	for (;;) {
		struct ll_daemon_view view;
		ll_daemon_view_init_at(&view, &world->place);
		if (view.answer == LL_DAEMON_SERVES)
			atomic_fetch_add(&shared->answers, 1);
		else if (view.answer == LL_DAEMON_BROKEN && view.code != -EPIPE && view.code != -ECONNRESET)
			atomic_fetch_add(&shared->garbled, 1);
		ll_daemon_view_fini(&view);
	}
}

static void start_clients(pid_t clients[CLIENTS], const struct world *world, struct shared *shared)
{
	for (int i = 0; i < CLIENTS; i++) {
		clients[i] = fork();
		if (clients[i] == 0)
			ask_for_ever(world, shared);
	}
}

static void end_clients(const pid_t clients[CLIENTS])
{
	for (int i = 0; i < CLIENTS; i++) {
		kill_process(clients[i], SIGKILL);
		assert_int_equal(waitpid(clients[i], NULL, 0), clients[i]);
	}
}

/* ---- one kill, and the time to the next answer ---- */

/* Returns the instance of the daemon that answers; 0: none does. */
static uint64_t instance_of(const struct world *world)
{
	union ll_message message;
	uint64_t instance = 0;
	int fd;
	if (ll_place_connect(&world->place, &fd, NULL))
		return 0;
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = LL_ROLE_COMMAND;
	if (ll_message_send(fd, &message, NULL, 0) == 0 && next_message(fd, &message) == LL_MESSAGE_WELCOME)
		instance = message.welcome.instance;
	close(fd);
	return instance;
}

static uint64_t kill_and_wait(const struct world *world)
{
	uint64_t old = 0;
	wait_for((old = instance_of(world)) != 0);
	pid_t pid = world_daemon(world);
	if (pid <= 1)
		return 0;
	uint64_t begin_ns = ll_now_ns(), now = old;
	kill_process(pid, SIGKILL);
	while (now == old || !now) {
		now = instance_of(world);
		assert_true(is_in_time(begin_ns, DEADLINE_NS));
	}
	return ll_now_ns() - begin_ns;
}

static int compare(const void *one, const void *other)
{
	uint64_t a = *(const uint64_t *)one, b = *(const uint64_t *)other;
	return (a > b) - (a < b);
}

/* Expected: after each kill one daemon serves, and in the end it knows all jobs. */
TEST(a_daemon_that_is_killed_again_and_again_is_back_with_all_jobs)
{
	static struct job jobs[JOBS];
	static uint64_t took_ns[KILLS];
	pid_t clients[CLIENTS];
	struct world world;
	struct shared *shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	world_init(&world);
	for (int i = 0; i < JOBS; i++)
		job_start(&jobs[i], &world, NULL, NULL);
	start_clients(clients, &world, shared);
	int kills = is_long_test() ? KILLS : KILLS / 4;
	for (int i = 0; i < kills; i++) {
		took_ns[i] = kill_and_wait(&world);
		if (i % FEW_KILLS == 0)
			wait_for(world_has_jobs(&world, JOBS));
	}
	wait_for(world_has_jobs(&world, JOBS));
	end_clients(clients);
	size_t half = (size_t)kills / 2, most = (size_t)kills * 99 / 100;
	qsort(took_ns, (size_t)kills, sizeof *took_ns, compare);
	printf("%d jobs, %d clients, %d kills: next answer after %.1f ms (median), %.1f ms (p99), %.1f ms (worst); %u "
	       "lists\n",
	       JOBS, CLIENTS, kills, (double)took_ns[half] / 1e6, (double)took_ns[most] / 1e6,
	       (double)took_ns[kills - 1] / 1e6, atomic_load(&shared->answers));
	assert_int_equal(atomic_load(&shared->garbled), 0);
	for (int i = 0; i < JOBS; i++)
		job_stop(&jobs[i]);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
	munmap(shared, sizeof *shared);
}

/* Expected: each job has a monitor again, and ends as a job does. */
TEST(monitors_that_are_killed_are_replaced)
{
	struct job jobs[8];
	enum { COUNT = sizeof jobs / sizeof *jobs };
	struct world world;
	world_init(&world);
	for (int i = 0; i < COUNT; i++)
		job_start(&jobs[i], &world, "team", NULL);
	for (int round = 0; round < 4; round++) {
		for (int i = 0; i < COUNT; i++) {
			pid_t pid = job_monitor(&world, &jobs[i]);
			if (pid > 1)
				kill_process(pid, SIGKILL);
		}
		wait_for(world_has_jobs(&world, COUNT));
	}
	for (int i = 0; i < COUNT; i++)
		job_stop(&jobs[i]);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* Expected: the job is forgotten by the daemon that was not there at its end. */
TEST(a_job_that_ends_with_its_monitor_and_the_daemon_is_forgotten)
{
	struct job job, other;
	struct world world;
	world_init(&world);
	job_start(&job, &world, "one", NULL);
	job_start(&other, &world, "two", NULL);
	pid_t monitor = job_monitor(&world, &job);
	kill_process(job.pid, SIGKILL);
	kill_process(monitor, SIGKILL);
	kill_process(world_daemon(&world), SIGKILL);
	job_stop(&job);
	wait_for(world_has_jobs(&world, 1));
	assert_true(job_monitor(&world, &other) > 1);
	job_stop(&other);
	world_fini(&world);
}
