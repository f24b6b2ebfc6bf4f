/* Processes of jobs on cards: slots, memory, deaths, exec, another daemon. Each test says what is expected. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "no_pidfds.h"
#include "puppet.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define OTHER_CARD "GPU-00000000-0000-0000-0000-000000000001"
enum { LIMIT = 1000, MANY = 300 };

static unsigned deaths = 50;

/* A job with a limit of 1000 units, and its pages as a hold has them. */
struct scene {
	struct world world;
	struct job job;
	struct user watcher; /* its pages are those of the job; it has no claim */
	uint64_t number;
};

static void watch(struct scene *scene)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	int fd = world_connect(&scene->world, LL_ROLE_HOLD);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_int_equal(next_message_with_fds(fd, &message, fds, &count), LL_MESSAGE_PAGE);
	assert_int_equal(count, 2);
	scene->number = message.page.job_number;
	scene->watcher.fd = fd;
	assert_int_equal(ll_page_map(fds[0], false, &scene->watcher.page), 0);
	assert_int_equal(ll_orders_map(fds[1], false, &scene->watcher.orders), 0);
	ll_message_close_fds(fds, count);
}

static int begin(void **state)
{
	static struct scene scene;
	world_init(&scene.world);
	scene.world.limits.memory_bytes = LIMIT * LL_MEMORY_UNIT;
	job_start(&scene.job, &scene.world, NULL, NULL);
	watch(&scene);
	*state = &scene;
	return 0;
}

static int end(void **state)
{
	struct scene *scene = *state;
	job_stop(&scene->job);
	wait_for(world_has_jobs(&scene->world, 0));
	user_close(&scene->watcher);
	world_fini(&scene->world);
	return 0;
}

TEST_EACH(begin, end);

static void start(struct scene *scene, struct puppet *puppet)
{
	puppet_start(puppet, &scene->world, scene->job.id, CARD);
}

static unsigned used_slots(const struct scene *scene)
{
	unsigned count = 0;
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++)
		count += scene->watcher.page->slots[i].token != 0;
	return count;
}

static uint32_t granted(const struct scene *scene, unsigned slot)
{
	return LL_MEMORY_GRANTED(scene->watcher.page->slots[slot].memory);
}

/* Of all slots: what is granted, or used if that is more. */
static uint64_t held(const struct scene *scene)
{
	uint64_t units = 0;
	for (unsigned i = 0; i < LL_PAGE_SLOTS; i++) {
		uint64_t word = scene->watcher.page->slots[i].memory;
		if (scene->watcher.page->slots[i].token)
			units += LL_MEMORY_GRANTED(word) > LL_MEMORY_USED(word) ? LL_MEMORY_GRANTED(word)
										: LL_MEMORY_USED(word);
	}
	return units;
}

TEST_GIVEN(struct scene *scene, one_process_gets_the_whole_limit_and_sends_nothing)
{
	struct puppet puppet;
	start(scene, &puppet);
	assert_int_equal(granted(scene, 0), LIMIT);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, LIMIT), 0);
	assert_int_equal(scene->watcher.page->slots[0].memory_want, 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&puppet, PUPPET_RELEASE, 1), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), 0);
	puppet_kill(&puppet);
	wait_for(used_slots(scene) == 0);
}

TEST_GIVEN(struct scene *scene, two_processes_get_what_the_other_does_not_use)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 300), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 700), 0);
	assert_int_equal(held(scene), LIMIT);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	assert_int_equal(puppet_do(&other, PUPPET_RELEASE, 100), 0);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 101), -ENOMEM);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 100), 0);
	assert_int_equal(held(scene), LIMIT);
	puppet_kill(&one);
	puppet_kill(&other);
}

/* A helper's memory is free when it can be waited for: nothing of it stays in the books, and no want waits. */
TEST_GIVEN(struct scene *scene, what_an_ended_process_had_is_free_when_it_is_reaped)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 600), 0);
	uint64_t begin_ns = ll_now_ns();
	puppet_kill(&one);
	wait_for(used_slots(scene) == 1);
	assert_int_equal(scene->watcher.orders->cards[0].leaving_bytes, 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 800), 0);
	assert_true(scene->watcher.orders->cards[0].death_ns >= begin_ns);
	wait_for(granted(scene, 1) == LIMIT);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, LIMIT), -ENOMEM);
	puppet_kill(&other);
}

/* The driver's files are closed after the connection: the memory is charged until the end, and free then. */
TEST_GIVEN(struct scene *scene, a_process_that_exits_has_its_memory_until_its_end)
{
	enum { ROUND_TRIPS = 50 };
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 600), 0);
	assert_int_equal(puppet_do(&one, PUPPET_EXIT_SLOWLY, 0), 0);
	for (int i = 0; i < ROUND_TRIPS; i++) {
		assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), 0);
		assert_int_equal(puppet_do(&other, PUPPET_RELEASE, 1), 0);
	}
	assert_int_equal(used_slots(scene), 2);
	puppet_kill(&one);
	wait_for(used_slots(scene) == 1);
	assert_int_equal(scene->watcher.orders->cards[0].leaving_bytes, 0);
	puppet_kill(&other);
}

/* Who looks for memory of the dead when death_ns has changed looks once. */
TEST_GIVEN(struct scene *scene, who_reads_of_a_death_finds_no_slot_of_the_dead)
{
	const struct ll_orders_card *card = &scene->watcher.orders->cards[0];
	for (unsigned round = 0; round < deaths; round++) {
		struct puppet puppet;
		start(scene, &puppet);
		assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 1), 0);
		uint64_t before_ns = card->death_ns, killed_ns = ll_now_ns();
		kill_process(puppet.pid, SIGKILL);
		while (card->death_ns == before_ns) /* the moment counts */
			assert_true(is_in_time(killed_ns, DEADLINE_NS));
		assert_int_equal(scene->watcher.page->slots[0].token, 0);
		puppet_kill(&puppet);
	}
}

TEST_GIVEN(struct scene *scene, others_are_asked_for_their_reserves)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 900), 0);
	assert_int_equal(puppet_do(&one, PUPPET_GIVE, 500), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 500), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 200), -ENOMEM);
	/* One that is stopped delays nobody for longer than 50 ms. */
	kill_process(one.pid, SIGSTOP);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 200), -ENOMEM);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 100), 0);
	puppet_kill(&one);
	puppet_kill(&other);
}

TEST_GIVEN(struct scene *scene, a_process_that_lost_its_connection_keeps_its_slot)
{
	struct puppet puppet;
	start(scene, &puppet);
	uint64_t token = scene->watcher.page->slots[0].token;
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 10), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_HANG_UP, 0), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(scene->watcher.page->slots[0].token, token);
	assert_int_equal(puppet_do(&puppet, PUPPET_HANG_UP, 0), 0);
	puppet_kill(&puppet);
	wait_for(used_slots(scene) == 0);
}

/* The old program's slot goes at once. */
TEST_GIVEN(struct scene *scene, another_program_in_the_same_process_begins_anew)
{
	struct puppet puppet;
	start(scene, &puppet);
	uint64_t token = scene->watcher.page->slots[0].token;
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 100), 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_EXEC, 0), 0);
	assert_int_equal(used_slots(scene), 1);
	assert_true(scene->watcher.page->slots[0].token != token);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, LIMIT), 0);
	puppet_kill(&puppet);
}

TEST_GIVEN(struct scene *scene, a_slot_that_is_given_back_is_free)
{
	struct puppet puppet;
	start(scene, &puppet);
	assert_int_equal(puppet_do(&puppet, PUPPET_LEAVE, 0), 0);
	wait_for(used_slots(scene) == 0);
	assert_int_equal(puppet_do(&puppet, PUPPET_HAS_SLOT, 0), 0);
	puppet_kill(&puppet);
}

static uint64_t repairs(const struct scene *scene)
{
	struct ll_daemon_view view;
	ll_daemon_view_init_at(&view, &scene->world.place);
	uint64_t count = view.list.card_count ? view.list.cards[0].repairs : 0;
	ll_daemon_view_fini(&view);
	return count;
}

/* The other one cannot have more because of that, and the word is as it was. */
TEST_GIVEN(struct scene *scene, a_grant_that_a_process_wrote_itself_is_repaired)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 500), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 400), 0);
	puppet_do(&one, PUPPET_SPOIL, 5000);
	wait_for(held(scene) <= LIMIT);
	assert_int_equal(repairs(scene), 1);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 100), 0);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&one);
	puppet_kill(&other);
}

/* What the driver took beyond the grant counts, and others' unused grants are taken for it. */
TEST_GIVEN(struct scene *scene, memory_that_is_charged_without_a_grant_counts)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 100), 0);
	puppet_do(&other, PUPPET_CHARGE, 900);
	wait_for(granted(scene, 0) == 0);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&one);
	puppet_kill(&other);
}

/* Expected: the same slots, the same use, and the same limit. */
TEST_GIVEN(struct scene *scene, another_daemon_takes_the_pages_as_they_are)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 400), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 500), 0);
	uint64_t instance = scene->watcher.orders->instance;
	kill_process(world_daemon(&scene->world), SIGKILL);
	wait_for(scene->watcher.orders->instance != instance);
	assert_int_equal(puppet_do(&one, PUPPET_COME_BACK, 0), 0);
	assert_int_equal(used_slots(scene), 2);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 101), -ENOMEM);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 100), 0);
	puppet_kill(&one);
	puppet_kill(&other); /* it has not come back */
	wait_for(used_slots(scene) == 0);
}

/* The monitor that follows a killed one gets the pages too. */
TEST_GIVEN(struct scene *scene, another_monitor_keeps_the_pages)
{
	struct puppet puppet;
	start(scene, &puppet);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 400), 0);
	uint64_t token = scene->watcher.page->slots[0].token, instance = scene->watcher.orders->instance;
	pid_t monitor = job_monitor(&scene->world, &scene->job);
	kill_process(monitor, SIGKILL);
	wait_for(job_monitor(&scene->world, &scene->job) > 1 && job_monitor(&scene->world, &scene->job) != monitor);
	kill_process(world_daemon(&scene->world), SIGKILL);
	wait_for(scene->watcher.orders->instance != instance);
	assert_int_equal(puppet_do(&puppet, PUPPET_COME_BACK, 0), 0);
	assert_true(scene->watcher.page->slots[0].token == token);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, 601), -ENOMEM);
	puppet_kill(&puppet);
}

/* More than the limit is in use. Expected: what is freed is seen, and the grants are within the limit again. */
TEST_GIVEN(struct scene *scene, memory_that_is_freed_above_the_limit_is_not_granted_again)
{
	struct puppet one, other;
	start(scene, &one);
	start(scene, &other);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, 900), 0);
	puppet_do(&other, PUPPET_CHARGE, 500);
	wait_for(held(scene) == 1400);
	puppet_do(&other, PUPPET_RELEASE, 450);
	puppet_do(&other, PUPPET_RING, 0);
	wait_for(held(scene) <= LIMIT);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 50), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, 1), -ENOMEM);
	puppet_kill(&one);
	puppet_kill(&other);
}

TEST_GIVEN(struct scene *scene, many_processes_of_one_job_are_served)
{
	static struct puppet puppets[MANY];
	for (unsigned i = 0; i < MANY; i++)
		start(scene, &puppets[i]);
	assert_int_equal(used_slots(scene), MANY);
	for (unsigned i = 0; i < MANY; i++)
		puppet_tell(&puppets[i], PUPPET_RESERVE, LIMIT / MANY);
	for (unsigned i = 0; i < MANY; i++)
		assert_int_equal(puppet_answer(&puppets[i]), 0);
	for (unsigned i = 0; i < MANY; i++)
		puppet_kill(&puppets[i]);
	wait_for(used_slots(scene) == 0);
}

TEST_GIVEN(struct scene *scene, a_process_may_use_two_cards)
{
	struct puppet one, other;
	start(scene, &one);
	puppet_start(&other, &scene->world, scene->job.id, OTHER_CARD);
	assert_int_equal(ll_orders_find_card(scene->watcher.orders, CARD), 0);
	assert_int_equal(ll_orders_find_card(scene->watcher.orders, OTHER_CARD), 1);
	assert_int_equal(puppet_do(&one, PUPPET_RESERVE, LIMIT), 0);
	assert_int_equal(puppet_do(&other, PUPPET_RESERVE, LIMIT), 0);
	puppet_kill(&one);
	puppet_kill(&other);
}

TEST_GIVEN(struct scene *scene, a_token_of_no_job_is_refused)
{
	struct puppet puppet;
	puppet_make(&puppet, &scene->world, 4711, CARD);
	assert_int_equal(puppet_do(&puppet, PUPPET_CLAIM, 0), -EAGAIN);
	puppet_kill(&puppet);
}

/* claims [pidfd | proc] [PATTERN]. proc: there are no pidfds. */
int main(int argc, char **argv)
{
	if (argc > 1 && strcmp(argv[1], "proc") == 0) {
		take_pidfds_away();
		deaths = 2; /* one is seen after up to a second */
	}
	return tests_run(argc - 1, argv + 1);
}
