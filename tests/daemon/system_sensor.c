/* The sensor's messages: who may send them, who sees what, and what does not agree with a job's page. */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "protocol/client.h"
#include "puppet.h"
#include "system_world.h"
#include "test.h"
#include "wait_for.h"

#define CARD "GPU-00000000-0000-0000-0000-000000000000"
#define OTHER_CARD "GPU-00000000-0000-0000-0000-000000000001"
#define GIB (UINT64_C(1) << 30)
#define UNITS_IN_GIB UINT32_C(2097152)
/* ungoverned.c: 1 GiB for the one process, and 2 % of the 1 GiB that its page has. */
#define TOLERATED_BYTES (GIB + GIB / 100 * 2)

static struct system_world scene;
static struct job first;
static int sensor = -1;

static int begin(void **state)
{
	(void)state;
	system_world_init(&scene, 0);
	scene.world.limits = (struct ll_limits){.memory_bytes = 8 * GIB};
	job_start_as(&first, &scene, FIRST_UID, "team");
	return 0;
}

static int end(void **state)
{
	(void)state;
	if (sensor >= 0)
		close(sensor);
	sensor = -1;
	job_stop(&first);
	wait_for(world_has_jobs(&scene.world, 0));
	system_world_fini(&scene);
	return 0;
}

TEST_EACH(begin, end);

/* ---- a sensor by hand ---- */

static void connect_sensor(void)
{
	union ll_message message;
	sensor = world_connect(&scene.world, LL_ROLE_SENSOR);
	assert_int_equal(next_message(sensor, &message), LL_MESSAGE_WELCOME);
}

static void send_message(union ll_message *message)
{
	assert_int_equal(ll_message_send(sensor, message, NULL, 0), 0);
}

static void send_card(const char *uuid, unsigned index, uint64_t watched_ns, uint64_t busy_ns)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_CARD);
	message.sense_card.index = index;
	message.sense_card.slice = message.sense_card.numa_node = -1;
	message.sense_card.memory_bytes = 80 * GIB;
	message.sense_card.watched_ns = watched_ns;
	message.sense_card.busy_ns = busy_ns;
	ll_message_text_set(message.sense_card.uuid, sizeof message.sense_card.uuid, uuid);
	send_message(&message);
}

static void send_process(pid_t pid, uint32_t uid, uint64_t bytes)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_PROCESS);
	message.sense_process.pid = (uint32_t)pid;
	message.sense_process.uid = uid;
	message.sense_process.used_bytes = bytes;
	ll_message_text_set(message.sense_process.uuid, sizeof message.sense_process.uuid, CARD);
	ll_message_text_set(message.sense_process.command, sizeof message.sense_process.command, "python3");
	ll_message_text_set(message.sense_process.program, sizeof message.sense_process.program, "/usr/bin/python3");
	send_message(&message);
}

static void send_end(void)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_END);
	send_message(&message);
}

static void read_as(uid_t uid, struct ll_sensed *sensed)
{
	struct ll_client client;
	open_as(&client, &scene, uid);
	assert_int_equal(ll_sensed_read(sensed, &client, ll_now_ns() + LL_CLIENT_REPLY_NS, NULL), 0);
	ll_client_close(&client);
}

static bool sees_cards(size_t count)
{
	struct ll_sensed sensed;
	read_as(FIRST_UID, &sensed);
	bool sees = sensed.card_count == count;
	ll_sensed_fini(&sensed);
	return sees;
}

/* ---- */

TEST(only_root_and_the_user_of_loadlined_may_be_the_sensor)
{
	union ll_message message;
	become(FIRST_UID);
	int fd = world_connect(&scene.world, LL_ROLE_SENSOR);
	become(0);
	assert_int_equal(next_message(fd, &message), 0);
	close(fd);
	/* Nor may another role send its messages. */
	become(FIRST_UID);
	fd = world_connect(&scene.world, LL_ROLE_COMMAND);
	become(0);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_WELCOME);
	ll_message_init(&message, LL_MESSAGE_SENSE_END);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_int_equal(next_message(fd, &message), 0);
	close(fd);
	connect_sensor();
}

TEST(a_second_sensor_is_refused_while_the_first_one_reports)
{
	union ll_message message;
	connect_sensor();
	send_card(CARD, 0, 0, 0);
	send_end();
	wait_for(sees_cards(1));
	int fd = world_connect(&scene.world, LL_ROLE_SENSOR);
	assert_int_equal(next_message(fd, &message), LL_MESSAGE_REFUSED);
	assert_int_equal(message.refused.code, -EBUSY);
	close(fd);
	close(sensor);
	connect_sensor();
	send_card(CARD, 0, 0, 0);
	send_card(OTHER_CARD, 1, 0, 0);
	send_end();
	wait_for(sees_cards(2));
}

TEST(a_round_counts_as_a_whole_and_stays_when_the_sensor_ends)
{
	struct ll_sensed sensed;
	read_as(FIRST_UID, &sensed);
	assert_true(sensed.end.silent_ns == UINT64_MAX && !sensed.card_count);
	ll_sensed_fini(&sensed);
	connect_sensor();
	send_card(CARD, 0, 0, 0);
	send_card(OTHER_CARD, 1, 0, 0);
	/* Several looks: loadlined may take the messages of two connections in any order. */
	for (int i = 0; i < 3; i++) {
		read_as(FIRST_UID, &sensed);
		assert_true(sensed.end.silent_ns == UINT64_MAX && !sensed.card_count);
		ll_sensed_fini(&sensed);
	}
	send_end();
	wait_for(sees_cards(2));
	/* Half a round of a sensor that ends is dropped. */
	send_card(CARD, 0, 0, 0);
	close(sensor);
	connect_sensor();
	send_card(OTHER_CARD, 0, 0, 0);
	send_end();
	wait_for(sees_cards(1));
	close(sensor);
	sensor = -1;
	assert_true(sees_cards(1));
	read_as(FIRST_UID, &sensed);
	assert_string_equal(sensed.cards[0].uuid, OTHER_CARD);
	assert_true(sensed.end.silent_ns < LL_SENSED_FRESH_NS);
	ll_sensed_fini(&sensed);
}

TEST(the_path_of_a_program_is_told_to_its_user_and_root_alone_and_the_job_is_known)
{
	struct ll_sensed sensed;
	connect_sensor();
	send_card(CARD, 0, 0, 0);
	send_process(first.pid, FIRST_UID, GIB);
	send_process(getpid(), SECOND_UID, GIB);
	send_end();
	wait_for(sees_cards(1));
	read_as(SECOND_UID, &sensed);
	assert_int_equal(sensed.process_count, 2);
	assert_true(sensed.processes[0].job_number != 0);
	assert_int_equal(sensed.processes[0].flags & LL_SENSE_IS_UNGOVERNED, 0);
	assert_string_equal(sensed.processes[0].program, "");
	assert_string_equal(sensed.processes[0].command, "python3");
	assert_true(sensed.processes[1].job_number == 0);
	assert_true(sensed.processes[1].flags & LL_SENSE_IS_UNGOVERNED);
	assert_string_equal(sensed.processes[1].program, "/usr/bin/python3");
	ll_sensed_fini(&sensed);
	read_as(0, &sensed);
	assert_string_equal(sensed.processes[0].program, "/usr/bin/python3");
	ll_sensed_fini(&sensed);
}

static uint32_t flags_of_job(void)
{
	struct ll_list list;
	list_as(&list, &scene, 0);
	uint32_t flags = list.card_count ? list.cards[0].flags : 0;
	ll_list_fini(&list);
	return flags;
}

static uint64_t driver_bytes(void)
{
	struct ll_list list;
	list_as(&list, &scene, 0);
	uint64_t bytes = list.card_count ? list.cards[0].driver_bytes : 0;
	ll_list_fini(&list);
	return bytes;
}

static void send_round(const struct puppet *puppet, uint64_t bytes, uint64_t watched_ns, uint64_t busy_ns)
{
	send_card(CARD, 0, watched_ns, busy_ns);
	send_process(puppet->pid, FIRST_UID, bytes);
	send_end();
}

TEST(memory_that_the_page_does_not_have_is_a_mismatch_if_two_rounds_say_so)
{
	struct puppet puppet;
	puppet_start(&puppet, &scene.world, first.id, CARD);
	assert_int_equal(puppet_do(&puppet, PUPPET_RESERVE, UNITS_IN_GIB), 0);
	connect_sensor();
	send_round(&puppet, GIB + TOLERATED_BYTES, 0, 0);
	send_round(&puppet, GIB + TOLERATED_BYTES, 0, 0);
	send_round(&puppet, GIB + TOLERATED_BYTES - 1, 0, 0);
	wait_for(driver_bytes() == GIB + TOLERATED_BYTES - 1);
	assert_int_equal(flags_of_job() & LL_CARD_MEMORY_MISMATCH, 0);
	send_round(&puppet, 3 * GIB, 0, 0);
	send_round(&puppet, GIB, 0, 0);
	send_round(&puppet, 3 * GIB + 1, 0, 0);
	wait_for(driver_bytes() == 3 * GIB + 1);
	assert_int_equal(flags_of_job() & LL_CARD_MEMORY_MISMATCH, 0);
	send_round(&puppet, 3 * GIB, 0, 0);
	wait_for(flags_of_job() & LL_CARD_MEMORY_MISMATCH);
	send_round(&puppet, GIB, 0, 0);
	wait_for(!(flags_of_job() & LL_CARD_MEMORY_MISMATCH));
	puppet_kill(&puppet);
}

/* The period is 20 s, so that is how long this takes. */
TEST(gpu_time_in_which_the_card_had_no_work_is_a_mismatch)
{
	struct user user;
	uint64_t begun_ns = ll_now_ns();
	user_begin(&user, &scene.world, first.id, CARD);
	connect_sensor();
	for (int round = 0; round < 2; round++) {
		send_card(CARD, 0, 100 * LL_NS_PER_S, (uint64_t)round * LL_NS_PER_S);
		send_end();
		wait_for(sees_cards(1));
		if (round == 0)
			ll_sleep_until_ns(begun_ns + 21 * LL_NS_PER_S);
		user.page->cards[user.card].gpu_time_ns += 15 * LL_NS_PER_S;
	}
	send_card(CARD, 0, 100 * LL_NS_PER_S, LL_NS_PER_S);
	send_end();
	wait_for(sees_cards(1));
	assert_int_equal(flags_of_job() & LL_CARD_TIME_MISMATCH, LL_CARD_TIME_MISMATCH);
	user_close(&user);
}
