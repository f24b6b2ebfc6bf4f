/* What the system's loadlined leaves with systemd: the next one has all jobs, whatever has become of their monitors. */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "puppet.h"
#include "system_world.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
enum { LIMIT = 1000 };

static struct system_world scene;
static struct job job;

static int begin(void **state)
{
	(void)state;
	system_world_init_kept(&scene);
	scene.world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	job_start_as(&job, &scene, FIRST_UID, "team");
	wait_for(system_world_read(&scene) == 1);
	return 0;
}

/* Expected: with the last job all descriptors go; system_world_fini looks. */
static int end(void **state)
{
	struct ll_list list;
	(void)state;
	job_stop(&job);
	for (size_t count = 1; count;) {
		list_as(&list, &scene, 0);
		count = list.job_count;
		ll_list_fini(&list);
	}
	system_world_fini(&scene);
	return 0;
}

TEST_EACH(begin, end);

/* Whether the job is known, without a connection to its monitor. */
static bool is_restored(void)
{
	struct ll_list list;
	list_as(&list, &scene, FIRST_UID);
	bool is_so = list.job_count == 1 && list.jobs[0].job.token[0] == job.id && list.jobs[0].job.uid == FIRST_UID &&
		     list.jobs[0].monitor_pid == 0 && list.jobs[0].job.limits.memory_bytes == LIMIT * LL_MEMORY_UNIT;
	ll_list_fini(&list);
	return is_so;
}

TEST(a_service_says_that_it_is_ready)
{
	wait_for((system_world_read(&scene), scene.is_ready));
}

/* Expected: the job is known at once, with what its processes have, and they go on to be served. The monitor comes to
 * it when it can. */
TEST(a_job_whose_monitor_is_stopped_is_known_to_the_next_daemon)
{
	struct puppet puppet;
	pid_t monitor = job_monitor(&scene.world, &job);
	become(FIRST_UID);
	puppet_start(&puppet, &scene.world, job.id, CARD);
	become(0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, LIMIT - 1), 0);
	kill_process(monitor, SIGSTOP);
	system_world_restart(&scene);
	assert_true(is_restored());
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), -ENOMEM);
	kill_process(monitor, SIGCONT);
	wait_for(job_monitor(&scene.world, &job) == monitor);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&puppet);
	assert_int_equal(system_world_read(&scene), 1);
}

/* Expected: also through several restarts; and its end is seen. */
TEST(a_job_whose_monitor_is_dead_is_known_to_the_next_daemons)
{
	kill_process(job_monitor(&scene.world, &job), SIGKILL);
	for (int i = 0; i < 3; i++) {
		system_world_restart(&scene);
		assert_true(is_restored());
	}
}

TEST(a_job_that_ended_meanwhile_is_forgotten)
{
	struct job other;
	job_start_as(&other, &scene, SECOND_UID, NULL);
	wait_for(system_world_read(&scene) == 2);
	kill_process(job_monitor(&scene.world, &other), SIGKILL);
	kill_process(scene.daemon, SIGSTOP);
	job_stop(&other);
	system_world_restart(&scene);
	wait_for(system_world_read(&scene) == 1);
	wait_for(world_has_jobs(&scene.world, 1));
}

TESTS_OF_ROOT;
