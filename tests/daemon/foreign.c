/*
 * A job whose processes are another user than its daemon: what `run -- gosu app` makes. Nothing is killed at random
 * here, because it needs root: the test is another user's process for a moment.
 */
#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "puppet.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
enum { LIMIT = 1000, OTHER_UID = 61234, CROWD = 100 };

static struct world world;
static struct job job;

static int begin(void **state)
{
	(void)state;
	world_init(&world);
	world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	job_start(&job, &world, NULL, NULL);
	return 0;
}

static int end(void **state)
{
	(void)state;
	assert_true(world_has_jobs(&world, 1));
	job_stop(&job);
	wait_for(world_has_jobs(&world, 0));
	world_fini(&world);
	return 0;
}

TEST_EACH(begin, end);

/* Forks and connects as the other user; puppets that are made meanwhile have its uid for good. */
static void become(uid_t uid)
{
	assert_int_equal(setresuid(uid, uid, 0), 0);
}

TEST(a_process_of_another_user_that_knows_the_token_is_served)
{
	struct puppet puppet;
	become(OTHER_UID);
	puppet_start(&puppet, &world, job.id, CARD);
	become(0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, LIMIT), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&puppet, PUPPET_HANG_UP, 0), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_COME_BACK, 0), 0);
	puppet_kill(&puppet);
}

static int hello_as(uint32_t role)
{
	union ll_message message;
	int fd;
	assert_int_equal(ll_place_connect_any(&world.place, &fd), 0);
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = role;
	ll_message_send(fd, &message, NULL, 0);
	return fd;
}

/* Expected: the connection ends, and nothing is told. */
TEST(another_user_may_ask_for_nothing_else)
{
	union ll_message message;
	become(OTHER_UID);
	for (uint32_t role = LL_ROLE_MONITOR; role <= LL_ROLE_HOLD; role++) {
		int fd = hello_as(role);
		if (role == LL_ROLE_PROCESS) {
			assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
			ll_message_init(&message, LL_MESSAGE_LIST);
			assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
		}
		assert_int_equal(next_message(fd, &message), 0);
		close(fd);
	}
	become(0);
}

/* Expected: without a token that exists there is no place for more than 64, and those are let go after 5 s. */
TEST(another_user_cannot_fill_the_daemon)
{
	union ll_message message;
	int fds[CROWD], refused = 0;
	become(OTHER_UID);
	for (int i = 0; i < CROWD; i++) {
		fds[i] = hello_as(LL_ROLE_PROCESS);
		refused += next_message(fds[i], &message) == 0;
	}
	become(0);
	assert_int_equal(refused, CROWD - 64);
	for (int i = 0; i < CROWD; i++) {
		assert_int_equal(next_message(fds[i], &message), 0);
		close(fds[i]);
	}
}

TESTS_OF_ROOT;
