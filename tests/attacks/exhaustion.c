/* Uses up what loadlined has, so that the victim gets none. */
#include "attack.h"

enum { PAST_HELLO_MS = 8000, SILENT = 20 };

TEST_WITH(scene_begin_small, scene_end, opens_many_connections)
{
	int fds[2 * SMALL_FILES];
	size_t count = sizeof fds / sizeof *fds;
	for (size_t i = 0; i < count; i++)
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	ll_message_close_fds(fds, count);
}

TEST_WITH(scene_begin_small, scene_end, registers_many_jobs)
{
	struct registration jobs[SMALL_FILES / 4];
	int fds[SMALL_FILES];
	size_t count = sizeof jobs / sizeof *jobs;
	for (size_t i = 0; i < count; i++) {
		registration_init(&jobs[i]);
		attacker_register(&jobs[i]);
		if (jobs[i].fd >= 0)
			close(jobs[i].fd);
		jobs[i].fd = -1;
	}
	for (size_t i = 0; i < SMALL_FILES; i++)
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	ll_message_close_fds(fds, SMALL_FILES);
	for (size_t i = 0; i < count; i++)
		registration_end(&jobs[i]);
}

static bool is_open(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 0;
}

TEST(connects_and_says_nothing)
{
	int fds[SILENT];
	uint64_t end_ns = ll_now_ns() + PAST_HELLO_MS * LL_NS_PER_MS;
	size_t open_count = SILENT;
	become(ATTACKER);
	for (size_t i = 0; i < SILENT; i++)
		assert_int_equal(ll_place_connect(&scene.system.world.place, &fds[i], NULL), 0);
	become(0);
	while (open_count && ll_now_ns() < end_ns) {
		open_count = 0;
		for (size_t i = 0; i < SILENT; i++)
			open_count += is_open(fds[i]);
		ll_sleep_until_ns(ll_now_ns() + 20 * LL_NS_PER_MS);
	}
	ll_message_close_fds(fds, SILENT);
	succeed_if(open_count, "connections of nobody stay open for ever");
}
