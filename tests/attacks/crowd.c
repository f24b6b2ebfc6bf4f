/* Uses up loadlined's descriptors in ways that a limit for each uid alone would not stop. */
#include "attack.h"

#include <sys/mount.h>

enum { USERS = 6, SUBORDINATES = 40, FIRST_SUBORDINATE = 700000, SUBORDINATE_COUNT = 65536 };
enum { FILES = 400, CONNECTIONS = 2 * FILES };

static int fds[CONNECTIONS];
static size_t fd_count;

/* Opens connections as that user until loadlined refuses one. */
static void open_connections(uid_t uid, uint32_t role)
{
	int fd = 0;
	while (fd >= 0 && fd_count < CONNECTIONS) {
		fd = connect_as(uid, role, -1);
		if (fd >= 0)
			fds[fd_count++] = fd;
	}
}

static void close_connections(void)
{
	ll_message_close_fds(fds, fd_count);
	fd_count = 0;
}

static int begin_files(void **state)
{
	return scene_begin_files(state, FILES);
}

/* Other users then take what they can. */
TEST_WITH(begin_files, scene_end, registers_jobs_on_many_connections)
{
	struct registration jobs[CONNECTIONS];
	open_connections(ATTACKER, LL_ROLE_MONITOR);
	size_t count = fd_count;
	for (uid_t i = 1; i < USERS; i++)
		open_connections(ATTACKER + i, LL_ROLE_COMMAND);
	for (size_t i = 0; i < count; i++) {
		registration_init(&jobs[i]);
		jobs[i].fd = fds[i];
		attacker_register(&jobs[i]);
	}
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	close_connections();
	for (size_t i = 0; i < count; i++) {
		jobs[i].fd = -1;
		registration_end(&jobs[i]);
	}
}

TEST_WITH(begin_files, scene_end, opens_many_connections_with_others)
{
	for (uid_t i = 0; i < USERS; i++)
		open_connections(ATTACKER + i, LL_ROLE_COMMAND);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	close_connections();
}

/* ---- subordinate uids ---- */

static char ranges[] = "/tmp/ll-subuid-XXXXXX";

/* In the test's own mount namespace (contained_root). */
static int begin_subordinate(void **state)
{
	int fd = mkstemp(ranges);
	assert_true(fd >= 0);
	assert_true(dprintf(fd, "%d:%d:%d\n", ATTACKER, FIRST_SUBORDINATE, SUBORDINATE_COUNT) > 0);
	assert_int_equal(fchmod(fd, 0644), 0);
	close(fd);
	if (mount(ranges, "/etc/subuid", NULL, MS_BIND, NULL))
		unlink(ranges);
	return scene_begin_files(state, FILES);
}

static int end_subordinate(void **state)
{
	scene_end(state);
	umount("/etc/subuid");
	unlink(ranges);
	return 0;
}

TEST_WITH(begin_subordinate, end_subordinate, opens_many_connections_with_subordinate_uids)
{
	if (access(ranges, F_OK))
		SKIP_TEST("no file can be mounted as /etc/subuid");
	for (uid_t i = 0; i < SUBORDINATES; i++)
		open_connections(FIRST_SUBORDINATE + i, LL_ROLE_COMMAND);
	bool is_served = victim_is_served();
	close_connections();
	if (!is_served)
		unlink(ranges);
	succeed_if(!is_served, "loadlined has no descriptors left for the victim");
}
