/* The victim's own loadlined, without the system's. The attacker can connect to it: a process of a job may have changed
 * its user. */
#include "attack.h"

#include <sys/resource.h>

enum { FILES = 200, CROWD = 300 };

static struct world own;
static struct job job;

/* The daemon may have few descriptors. */
static int begin_own(void **state)
{
	const struct rlimit few = {FILES, FILES};
	(void)state;
	become(VICTIM);
	world_init(&own);
	job_start(&job, &own, NULL, NULL);
	pid_t daemon = world_daemon(&own);
	assert_true(daemon > 1);
	assert_int_equal(prlimit(daemon, RLIMIT_NOFILE, &few, NULL), 0);
	become(0);
	return 0;
}

static int end_own(void **state)
{
	(void)state;
	job_stop(&job);
	become(VICTIM);
	world_fini(&own);
	become(0);
	return 0;
}

static int say_hello(uint32_t role)
{
	union ll_message message;
	int fd;
	become(ATTACKER);
	int rc = ll_place_connect_any(&own.place, &fd);
	become(0);
	if (rc)
		return -1;
	ll_message_init(&message, LL_MESSAGE_HELLO);
	message.hello.protocol = LL_PROTOCOL_VERSION;
	message.hello.role = role;
	ll_message_send(fd, &message, NULL, 0);
	if (next_message(fd, &message) == LL_MESSAGE_WELCOME)
		return fd;
	close(fd);
	return -1;
}

static bool gets_row(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_LIST);
	return ll_message_send(fd, &message, NULL, 0) == 0 && next_message(fd, &message) == LL_MESSAGE_JOB_ROW &&
	       message.job_row.job.token[0] == job.id;
}

TEST_WITH(begin_own, end_own, lists_the_jobs_of_anothers_loadlined)
{
	int fd = say_hello(LL_ROLE_PROCESS);
	assert_true(fd >= 0);
	succeed_if(gets_row(fd), "the attacker sees the token of the victim's job");
	close(fd);
}

/* As a command it could set limits and end programs, too. */
TEST_WITH(begin_own, end_own, is_a_command_of_anothers_loadlined)
{
	int fd = say_hello(LL_ROLE_COMMAND);
	succeed_if(fd >= 0 && gets_row(fd), "the attacker commands the victim's loadlined");
	if (fd >= 0)
		close(fd);
}

/* The victim's own process. */
static bool is_own_served(void)
{
	struct ll_client client;
	become(VICTIM);
	int rc = ll_client_open(&client, &own.place, LL_CLIENT_COMMAND(LOADLINE_VERSION), ll_now_ns() + 3 * LL_NS_PER_S,
				NULL);
	become(0);
	ll_client_close(&client);
	return rc == 0;
}

TEST_WITH(begin_own, end_own, crowds_anothers_loadlined)
{
	int fds[CROWD];
	for (int i = 0; i < CROWD; i++)
		fds[i] = say_hello(LL_ROLE_PROCESS);
	bool is_served = is_own_served();
	ll_message_close_fds(fds, CROWD);
	succeed_if(!is_served, "the victim's loadlined has no descriptors left for the victim");
}

/* Without a token. A connection whose descriptors find no room is closed, so other connections take the room that is
 * left. */
TEST_WITH(begin_own, end_own, shares_memory_with_anothers_loadlined)
{
	enum { CONNECTIONS = 20, OTHERS = 40, PACKETS = FILES / 20 / LL_MESSAGE_FDS };
	const int handles[LL_MESSAGE_FDS] = {0, 0, 0, 0};
	int fds[2 * CONNECTIONS];
	union ll_message message;
	for (int i = 0; i < 2 * CONNECTIONS; i++) {
		fds[i] = say_hello(LL_ROLE_PROCESS);
		for (uint32_t k = 0; k < PACKETS && fds[i] >= 0; k++) {
			ll_message_init(&message, LL_MESSAGE_SHARE);
			message.share.key[0] = (uint64_t)i + 1;
			message.share.bytes = UINT64_MAX;
			message.share.first = k * LL_MESSAGE_FDS;
			message.share.count = LL_MESSAGE_FDS;
			ll_message_send(fds[i], &message, handles, LL_MESSAGE_FDS);
		}
	}
	int others[OTHERS];
	for (int i = 0; i < OTHERS; i++)
		others[i] = say_hello(LL_ROLE_PROCESS);
	bool is_served = is_own_served();
	ll_message_close_fds(fds, 2 * CONNECTIONS);
	ll_message_close_fds(others, OTHERS);
	succeed_if(!is_served, "the victim's loadlined has no descriptors left for the victim");
}
