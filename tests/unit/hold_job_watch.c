/*
 * What a hold sees of governed programs: their work at once, and nothing of what ended before. loadlined comes and
 * goes.
 */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "base/clock.h"
#include "fake_daemon.h"
#include "hold/others.h"

#define UUID "GPU-held"
#define MS LL_NS_PER_MS

static struct fake_daemon loadlined;
static struct fake_job job;
static struct ll_page_slot *slot;
static struct ll_job_watch watch;
static uint64_t now_ns; /* the watch has no clock */

static bool look(uint64_t after_ns)
{
	now_ns += after_ns;
	return ll_job_watch_look(&watch, now_ns);
}

/* A daemon with one job, which has one process on the card; the watch is not begun. */
static int begin(void **state)
{
	(void)state;
	now_ns = LL_NS_PER_S;
	fake_daemon_init(&loadlined);
	fake_daemon_listen(&loadlined);
	fake_job_init(&job, 7, UUID);
	slot = fake_job_give(&job, 3, 1, 70);
	return 0;
}

static int end(void **state)
{
	(void)state;
	ll_job_watch_end(&watch);
	fake_job_fini(&job);
	fake_daemon_fini(&loadlined);
	return 0;
}

TEST_EACH(begin, end);

static void begin_watch(void)
{
	ll_job_watch_begin(&watch, &loadlined.places, UUID, now_ns);
}

static void join(void)
{
	begin_watch();
	fake_daemon_accept_watch(&loadlined);
	fake_daemon_send_page(&loadlined, 1, &job);
	assert_false(look(0));
}

TEST(test_sees_work_at_once_and_only_new_work)
{
	slot->activity_ns = 5; /* long ago */
	join();
	assert_false(look(1));
	slot->activity_ns = LL_ACTIVITY_NOW;
	assert_true(look(1));
	assert_true(look(1));
	slot->activity_ns = 6; /* ended between two looks */
	assert_true(look(1));
	assert_false(look(1));
	slot->activity_ns = 7; /* began and ended between two looks */
	assert_true(look(1));
	assert_false(look(1));
}

TEST(test_sees_work_that_goes_on_when_it_begins)
{
	slot->activity_ns = LL_ACTIVITY_NOW;
	begin_watch();
	fake_daemon_accept_watch(&loadlined);
	assert_false(look(0));
	fake_daemon_send_page(&loadlined, 1, &job);
	assert_true(look(10 * MS));
}

TEST(test_reads_on_until_there_is_an_answer)
{
	slot->activity_ns = LL_ACTIVITY_NOW;
	begin_watch();
	assert_false(look(0));
	fake_daemon_accept_watch(&loadlined);
	fake_daemon_send_page(&loadlined, 1, &job);
	assert_true(look(0));
}

TEST(test_slots_come_and_go)
{
	join();
	struct ll_page_slot *second = fake_job_give(&job, LL_PAGE_SLOTS - 1, 1, 71);
	struct ll_page_slot *elsewhere = fake_job_give(&job, 0, 0, 72);
	assert_false(look(1));
	elsewhere->activity_ns = LL_ACTIVITY_NOW;
	assert_false(look(1));
	second->activity_ns = 9;
	assert_true(look(1));
	second->activity_ns = LL_ACTIVITY_NOW;
	assert_true(look(1));
	fake_job_take(&job, second); /* its process was killed at work */
	assert_false(look(1));
	slot->activity_ns = 10; /* what was seen of the others stays known */
	assert_true(look(1));
	second = fake_job_give(&job, LL_PAGE_SLOTS - 1, 1, 73);
	assert_false(look(1));
	second->activity_ns = 11;
	assert_true(look(1));
	assert_false(look(1));
}

TEST(test_a_job_that_ended_counts_no_more)
{
	struct fake_job other;
	fake_job_init(&other, 8, UUID);
	fake_job_give(&other, 0, 1, 80)->activity_ns = LL_ACTIVITY_NOW;
	join();
	fake_daemon_send_page(&loadlined, 2, &other);
	assert_true(look(10 * MS));
	fake_daemon_send_page_gone(&loadlined, 2);
	assert_false(look(10 * MS));
	slot->activity_ns = 5;
	assert_true(look(1));
	fake_job_fini(&other);
}

TEST(test_a_card_that_the_job_gets_later)
{
	struct fake_job other;
	fake_job_init(&other, 8, "");
	join();
	fake_daemon_send_page(&loadlined, 2, &other);
	assert_false(look(10 * MS));
	for (size_t i = 0; i < LL_PAGE_UUID_SIZE / 8; i++)
		other.orders->cards[0].uuid[i] = job.orders->cards[1].uuid[i];
	struct ll_page_slot *late = fake_job_give(&other, 5, 0, 81);
	assert_false(look(1));
	late->activity_ns = LL_ACTIVITY_NOW;
	assert_true(look(1));
	fake_job_fini(&other);
}

/* ---- loadlined comes and goes ---- */

TEST(test_joins_a_daemon_that_comes_later_within_a_second)
{
	fake_daemon_kill(&loadlined);
	begin_watch();
	for (int i = 0; i < 5; i++)
		assert_false(look(100 * MS));
	fake_daemon_listen(&loadlined);
	for (int i = 0; i < 5; i++)
		assert_false(look(100 * MS));
	fake_daemon_accept_watch(&loadlined);
	slot->activity_ns = LL_ACTIVITY_NOW;
	fake_daemon_send_page(&loadlined, 1, &job);
	assert_true(look(0));
}

TEST(test_goes_on_without_the_daemon_and_with_the_next_one)
{
	slot->activity_ns = 5;
	join();
	fake_daemon_kill(&loadlined);
	assert_false(look(10 * MS));
	slot->activity_ns = 6; /* the program does not notice */
	assert_true(look(10 * MS));
	assert_false(look(500 * MS));
	fake_daemon_listen(&loadlined);
	assert_false(look(500 * MS));
	fake_daemon_accept_watch(&loadlined);
	fake_daemon_send_page(&loadlined, 9, &job);
	assert_false(look(0)); /* nothing is new */
	assert_int_equal(watch.count, 1);
	slot->activity_ns = 7;
	assert_true(look(10 * MS));
	assert_false(look(10 * LL_NS_PER_S));
	assert_int_equal(watch.count, 1);
	fake_daemon_send_page_gone(&loadlined, 9);
	assert_false(look(10 * MS));
	assert_int_equal(watch.count, 0);
}

TEST(test_a_job_that_ended_with_the_daemon_is_forgotten)
{
	join();
	fake_daemon_kill(&loadlined);
	slot->activity_ns = LL_ACTIVITY_NOW; /* and killed */
	assert_true(look(10 * MS));
	fake_daemon_listen(&loadlined);
	assert_true(look(500 * MS));
	fake_daemon_accept_watch(&loadlined);
	assert_true(look(0));
	assert_true(look(4 * LL_NS_PER_S));
	look(LL_NS_PER_S);
	assert_false(look(1));
	assert_int_equal(watch.count, 0);
}

TEST(test_a_page_that_comes_twice_is_one)
{
	join();
	fake_daemon_send_page(&loadlined, 1, &job);
	slot->activity_ns = 5;
	assert_true(look(10 * MS));
	assert_int_equal(watch.count, 1);
}

static int count_fds(void)
{
	int count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TEST(test_what_cannot_be_read_is_left_out_and_told)
{
	struct fake_job other;
	int before = count_fds();
	fake_job_init(&other, 8, UUID);
	other.page->version++;
	fake_job_give(&other, 0, 1, 80)->activity_ns = LL_ACTIVITY_NOW;
	join();
	fake_daemon_send_page(&loadlined, 2, &other);
	assert_false(watch.has_warned);
	assert_false(look(10 * MS));
	assert_true(watch.has_warned);
	fake_job_fini(&other);
	ll_job_watch_end(&watch);
	ll_job_watch_end(&watch);
	close(loadlined.fd);
	loadlined.fd = -1;
	assert_int_equal(count_fds(), before);
}

TEST(test_many_jobs_are_read_in_a_few_looks)
{
	enum { JOBS = 40 };
	struct fake_job jobs[JOBS];
	join();
	for (uint64_t i = 0; i < JOBS; i++) {
		fake_job_init(&jobs[i], 100 + i, UUID);
		fake_job_give(&jobs[i], 0, 1, 1000 + i);
		fake_daemon_send_page(&loadlined, 2 + i, &jobs[i]);
	}
	for (int i = 0; i < 4; i++)
		assert_false(look(i ? 0 : 10 * MS));
	for (int i = 0; i < JOBS; i++) {
		jobs[i].page->slots[0].activity_ns = 5;
		assert_true(look(1));
		fake_job_fini(&jobs[i]);
	}
}

/* ---- the list ---- */

static void send_row(union ll_message *message)
{
	message->header.serial = loadlined.serial;
	assert_int_equal(ll_message_send(loadlined.fd, message, NULL, 0), 0);
}

static void *answer_list(void *arg)
{
	union ll_message message;
	(void)arg;
	fake_daemon_accept(&loadlined);
	fake_daemon_expect(&loadlined, LL_MESSAGE_LIST);
	ll_message_init(&message, LL_MESSAGE_JOB_ROW);
	message.job_row.number = 1;
	message.job_row.job.token[0] = 7;
	message.job_row.job.state = LL_JOB_RUNNING;
	ll_message_text_set(message.job_row.job.tenant, LL_NAME_SIZE, "someone");
	send_row(&message);
	ll_message_init(&message, LL_MESSAGE_CLAIM_ROW);
	message.claim_row.job_number = 1;
	for (uint32_t i = 0; i < 5; i++) {
		message.claim_row.pid = i % 4 * 10;
		message.claim_row.wanting_ns = i == 2;
		ll_message_text_set(message.claim_row.uuid, LL_CARD_UUID_SIZE, i == 1 ? "GPU-other" : UUID);
		send_row(&message);
	}
	ll_message_init(&message, LL_MESSAGE_LIST_END);
	send_row(&message);
	return NULL;
}

TEST(test_lists_the_programs_of_its_card)
{
	struct ll_governed *list = NULL;
	size_t count = 0;
	pthread_t thread;
	assert_int_equal(pthread_create(&thread, NULL, answer_list, NULL), 0);
	assert_int_equal(ll_governed_list(&loadlined.places, UUID, 30 * LL_NS_PER_S, &list, &count), 0);
	pthread_join(thread, NULL);
	assert_int_equal(count, 2);
	assert_int_equal(list[0].pid, 20);
	assert_true(list[0].has_work);
	assert_string_equal(list[0].tenant, "someone");
	assert_int_equal(list[1].pid, 30);
	assert_false(list[1].has_work);
	free(list);
}

TEST(test_does_not_wait_for_who_does_not_answer)
{
	struct ll_governed *list = NULL;
	size_t count = 0;
	assert_int_equal(ll_governed_list(&loadlined.places, UUID, LL_GOVERNED_WAIT_NS, &list, &count), -ETIMEDOUT);
	fake_daemon_kill(&loadlined);
	assert_int_equal(ll_governed_list(&loadlined.places, UUID, LL_GOVERNED_WAIT_NS, &list, &count), -ECONNREFUSED);
}
