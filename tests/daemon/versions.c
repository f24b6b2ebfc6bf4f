/* Programs of two versions at one place: those of this build, and the same as version 9.0.0. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "puppet.h"
#include "test.h"
#include "wait_for.h"

static const char next_version[] = "9.0.0";
#define CARD "GPU-00000000-0000-0000-0000-000000000000"

/* The same place, with the programs of the next version. */
static struct world next_of(const struct world *world)
{
	struct world next = *world;
	next.programs = (struct ll_programs){getenv("LOADLINED_NEXT"), getenv("LOADLINE_JOB_NEXT")};
	assert_non_null(next.programs.daemon);
	assert_non_null(next.programs.monitor);
	return next;
}

static bool serves_version(const struct world *world, const char *version)
{
	struct ll_daemon_view view;
	ll_daemon_view_init_at(&view, &world->place);
	bool is_so = view.answer == LL_DAEMON_SERVES && strcmp(view.welcome.version_text, version) == 0;
	ll_daemon_view_fini(&view);
	return is_so;
}

/* Returns what tells the daemon from each other one; 0: nobody answers. */
static uint64_t instance_of(const struct world *world)
{
	struct ll_daemon_view view;
	ll_daemon_view_init_at(&view, &world->place);
	uint64_t instance = view.answer == LL_DAEMON_SERVES ? view.welcome.instance : 0;
	ll_daemon_view_fini(&view);
	return instance;
}

static bool is_another_than(const struct world *world, uint64_t instance)
{
	uint64_t now = instance_of(world);
	return now && now != instance;
}

/* Counts how often nobody was there. */
static pid_t start_watcher(const struct world *world, atomic_uint *refused)
{
	pid_t pid = fork();
	if (pid)
		return pid;
	for (;;) {
		int fd;
		int rc = ll_place_connect(&world->place, &fd, NULL);
		if (rc == -ECONNREFUSED)
			atomic_fetch_add(refused, 1);
		else if (rc == 0)
			close(fd);
		poll(NULL, 0, 1);
	}
}

/* Expected: the new daemon serves, knows all jobs, and there was no moment without one. */
TEST(a_newer_run_replaces_an_older_daemon)
{
	struct world world;
	struct job old, newer;
	atomic_uint *refused = mmap(NULL, sizeof *refused, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	world_init(&world);
	struct world next = next_of(&world);
	job_start(&old, &world, "old", NULL);
	assert_true(serves_version(&world, LOADLINE_VERSION));
	pid_t watcher = start_watcher(&world, refused);
	job_start(&newer, &next, "new", NULL);
	wait_for(serves_version(&world, next_version));
	wait_for(world_has_jobs(&world, 2));
	kill_process(watcher, SIGKILL);
	waitpid(watcher, NULL, 0);
	assert_int_equal(atomic_load(refused), 0);
	job_stop(&old);
	wait_for(world_has_jobs(&world, 1));
	job_stop(&newer);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
	munmap(refused, sizeof *refused);
}

/* Expected: the process has its slot and its memory as before, and the limit holds. */
TEST(a_newer_daemon_takes_over_the_pages)
{
	enum { LIMIT = 1000 };
	struct world world;
	struct job old, newer;
	struct puppet puppet, other;
	world_init(&world);
	struct world next = next_of(&world);
	world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	job_start(&old, &world, "old", NULL);
	puppet_start(&puppet, &world, old.id, CARD);
	puppet_start(&other, &world, old.id, CARD);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 600), 0);
	job_start(&newer, &next, "new", NULL);
	wait_for(serves_version(&world, next_version));
	wait_for(world_has_jobs(&world, 2));
	assert_int_equal(puppet_do(&puppet, PUPPET_HAS_SLOT, 0), 1);
	assert_int_equal(puppet_do(&puppet, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 401), -ENOMEM);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 400), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&puppet);
	puppet_kill(&other);
	job_stop(&old);
	job_stop(&newer);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

/* Expected: a downgrade works, and the newer daemon goes on. */
TEST(an_older_run_is_a_job_of_a_newer_daemon)
{
	struct world world;
	struct job old, newer;
	world_init(&world);
	struct world next = next_of(&world);
	job_start(&newer, &next, "new", NULL);
	job_start(&old, &world, "old", NULL);
	assert_true(serves_version(&world, next_version));
	wait_for(world_has_jobs(&world, 2));
	job_stop(&newer);
	wait_for(world_has_jobs(&world, 1));
	assert_true(serves_version(&world, next_version));
	job_stop(&old);
	world_fini(&world);
}

/* Expected: the job is known; the daemon of the newer version cannot be started, so some monitor starts its own. */
TEST(a_takeover_by_a_program_that_is_not_there_leaves_a_daemon)
{
	struct world world;
	struct job old, newer;
	world_init(&world);
	struct world next = next_of(&world);
	next.programs.daemon = "/nowhere/loadlined";
	job_start(&old, &world, "old", NULL);
	uint64_t first = instance_of(&world);
	job_launch(&newer, &next, "new", NULL);
	wait_for(is_another_than(&world, first)); /* the first one has handed over, to nobody */
	wait_for(world_has_jobs(&world, 2));
	assert_true(serves_version(&world, LOADLINE_VERSION));
	job_stop(&old);
	job_stop(&newer);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
}

TEST(nobody_who_is_not_newer_takes_over)
{
	static const char *const versions[] = {LOADLINE_VERSION, "0.0.1"};
	struct world world;
	struct job job;
	world_init(&world);
	job_start(&job, &world, NULL, NULL);
	for (size_t i = 0; i < sizeof versions / sizeof *versions; i++) {
		union ll_message message;
		int fd = world_connect(&world, LL_ROLE_MONITOR);
		assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
		ll_message_init(&message, LL_MESSAGE_HANDOVER);
		message.handover.version = ll_version_number(versions[i]);
		assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
		assert_int_equal(next_message(fd, &message), LL_MESSAGE_REFUSED);
		assert_int_equal(message.refused.code, -EPERM);
		close(fd);
	}
	assert_true(world_has_jobs(&world, 1));
	job_stop(&job);
	world_fini(&world);
}
