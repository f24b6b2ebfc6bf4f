/* Attacks on the queue. Both users are in tenant team, and the victim alone in research. Users see nothing of others,
 * unless the queue is an open one. The test is the sensor, and an operator: it is root. */
#include "attack.h"

enum { CONFIG_SIZE = 64, MAX_TIME_H = 2 };
#define SECOND_CARD "GPU-00000000-0000-0000-0000-000000000001"
#define HOUR_NS (3600 * LL_NS_PER_S)

static char config[CONFIG_SIZE];
static int sensor_fd;

static void write_config(const char *others)
{
	snprintf(config, sizeof config, "/tmp/ll-attack-%d.yaml", (int)getpid());
	FILE *file = fopen(config, "we");
	assert_non_null(file);
	fprintf(file,
		"version: 1\n"
		"visibility: {others: %s, commands: own}\n"
		"cards:\n"
		"  - {name: whole, cards: \"0-1\", give: card}\n"
		"tenants:\n"
		"  - name: team\n"
		"    members: {users: [\"%d\", \"%d\"]}\n"
		"    each-user: {max-time: %dh}\n"
		"  - name: research\n"
		"    members: {users: [\"%d\"]}\n",
		others, VICTIM, ATTACKER, MAX_TIME_H, VICTIM);
	assert_int_equal(fclose(file), 0);
	assert_int_equal(chmod(config, 0644), 0);
}

static void sense_card(const char *uuid, uint32_t index)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SENSE_CARD);
	message.sense_card.index = index;
	message.sense_card.slice = message.sense_card.numa_node = -1;
	message.sense_card.memory_bytes = 1024 * MIB;
	ll_message_text_set(message.sense_card.uuid, sizeof message.sense_card.uuid, uuid);
	assert_int_equal(ll_message_send(sensor_fd, &message, NULL, 0), 0);
}

/* Reports one card, or both. Returns when loadlined knows them. */
static void sense_cards(unsigned count)
{
	union ll_message message;
	struct ll_client client;
	uint64_t cards = 0;
	sense_card(CARD, 0);
	if (count > 1)
		sense_card(SECOND_CARD, 1);
	ll_message_init(&message, LL_MESSAGE_SENSE_END);
	assert_int_equal(ll_message_send(sensor_fd, &message, NULL, 0), 0);
	while (cards != count) {
		open_as(&client, &scene.system, 0);
		ll_message_init(&message, LL_MESSAGE_SENSED);
		assert_int_equal(ll_client_send(&client, &message, ll_now_ns() + DEADLINE_NS, NULL), 0);
		while (next_message(client.fd, &message) != LL_MESSAGE_SENSE_END)
			;
		cards = message.sense_end.cards;
		ll_client_close(&client);
	}
}

static int begin_queue_with(const char *others)
{
	union ll_message message;
	write_config(others);
	scene_begin_with(config);
	sensor_fd = world_connect(&scene.system.world, LL_ROLE_SENSOR);
	assert_int_equal(next_message(sensor_fd, &message), LL_MESSAGE_WELCOME);
	/* In its first second loadlined gives no places: no attack that hopes for one would succeed. */
	ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_S - message.welcome.age_ns % LL_NS_PER_S);
	sense_cards(1);
	return 0;
}

static int begin_queue(void **state)
{
	(void)state;
	return begin_queue_with("nothing");
}

/* Else another user's job is answered as one that does not exist, and the right to it is not asked. */
static int begin_open_queue(void **state)
{
	(void)state;
	return begin_queue_with("user-and-share");
}

static int end_queue(void **state)
{
	close(sensor_fd);
	return scene_end(state);
}

/* ---- requests ---- */

/* A request for a place. fd: on which it waits. */
struct ticket {
	int fd;
	uint64_t token, number;
	unsigned kind;           /* of the first reply */
	union ll_message answer; /* the first reply */
};

static int command_as(uid_t uid)
{
	int fd = connect_as(uid, LL_ROLE_COMMAND, -1);
	assert_true(fd >= 0);
	assert_int_equal(fcntl(fd, F_SETFL, 0), 0);
	return fd;
}

static void fill_in_admit(union ll_message *message)
{
	static uint64_t number;
	ll_message_init(message, LL_MESSAGE_ADMIT);
	message->admit.job = 0xad1700000 + ++number;
	message->admit.card_count = 1;
	message->admit.slice = -1;
	message->admit.time_ns = HOUR_NS;
	ll_message_text_set(message->admit.command, sizeof message->admit.command, "secret");
}

static void send_admit(struct ticket *ticket, uid_t uid, const union ll_message *message)
{
	ticket->token = message->admit.job;
	ticket->fd = command_as(uid);
	assert_int_equal(ll_message_send(ticket->fd, message, NULL, 0), 0);
	ticket->kind = next_message(ticket->fd, &ticket->answer);
	ticket->number = ticket->kind == LL_MESSAGE_QUEUED     ? ticket->answer.queued.number
			 : ticket->kind == LL_MESSAGE_ADMITTED ? ticket->answer.admitted.number
							       : 0;
}

/* Asks for one card for an hour. */
static void ask_place(struct ticket *ticket, uid_t uid)
{
	union ll_message message;
	fill_in_admit(&message);
	send_admit(ticket, uid, &message);
}

/* The user gets the one card. */
static void take_card(struct ticket *ticket, uid_t uid)
{
	ask_place(ticket, uid);
	assert_int_equal(ticket->kind, LL_MESSAGE_ADMITTED);
}

static void wait_in_queue(struct ticket *ticket, uid_t uid)
{
	ask_place(ticket, uid);
	assert_int_equal(ticket->kind, LL_MESSAGE_QUEUED);
}

static void end_ticket(const struct ticket *ticket)
{
	close(ticket->fd);
}

/* Returns 0 or the code of the refusal. */
static int act_as(uid_t uid, const struct ll_message_queue_act *act)
{
	struct ll_client client;
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_QUEUE_ACT);
	struct ll_message_header header = message.header;
	message.queue_act = *act;
	message.header = header;
	open_as(&client, &scene.system, uid);
	int rc = ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + DEADLINE_NS, NULL);
	ll_client_close(&client);
	return rc;
}

/* What that user sees of the job in the queue. Returns false if it is not in the list. */
static bool see_job(uid_t uid, uint64_t number, struct ll_message_queue_row *ret_row)
{
	union ll_message message;
	bool is_seen = false;
	int fd = command_as(uid);
	ll_message_init(&message, LL_MESSAGE_QUEUE);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind;
	while ((kind = next_message(fd, &message)) && kind != LL_MESSAGE_QUEUE_END) {
		if (kind == LL_MESSAGE_QUEUE_ROW && message.queue_row.number == number) {
			*ret_row = message.queue_row;
			is_seen = true;
		}
	}
	close(fd);
	return is_seen;
}

static struct ll_message_queue_row job_in_queue(uint64_t number)
{
	struct ll_message_queue_row row;
	assert_true(see_job(0, number, &row));
	return row;
}

static uint64_t now_s(void)
{
	return ll_wall_ns() / LL_NS_PER_S;
}

/* ---- acts on the queue ---- */

TEST_WITH(begin_open_queue, end_queue, cancels_a_waiting_job)
{
	struct ticket first, waiting;
	struct ll_message_queue_row row;
	take_card(&first, VICTIM);
	wait_in_queue(&waiting, VICTIM);
	int rc = act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_CANCEL, .number = waiting.number});
	succeed_if(!see_job(0, waiting.number, &row), "the victim's job does not wait any more");
	assert_int_equal(rc, -EPERM);
	end_ticket(&first);
	end_ticket(&waiting);
}

TEST_WITH(begin_open_queue, end_queue, ends_a_job_that_has_its_place)
{
	struct ticket first;
	take_card(&first, VICTIM);
	int rc = act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_CANCEL, .number = first.number});
	succeed_if(job_in_queue(first.number).end_s < now_s() + 60, "the victim's job is ended");
	assert_int_equal(rc, -EPERM);
	end_ticket(&first);
}

TEST_WITH(begin_queue, end_queue, moves_to_the_front)
{
	struct ticket first, victim, own;
	take_card(&first, ATTACKER);
	wait_in_queue(&victim, VICTIM);
	wait_in_queue(&own, ATTACKER);
	assert_int_equal(job_in_queue(victim.number).position, 1);
	act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_MOVE, .number = own.number, .value = 1});
	wait_for(job_in_queue(own.number).position);
	succeed_if(job_in_queue(own.number).position == 1, "the attacker's job starts before the victim's");
	end_ticket(&first);
	end_ticket(&victim);
	end_ticket(&own);
}

TEST_WITH(begin_open_queue, end_queue, pauses_a_waiting_job)
{
	struct ticket first, victim;
	take_card(&first, ATTACKER);
	wait_in_queue(&victim, VICTIM);
	int rc = act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_PAUSE, .number = victim.number});
	succeed_if(job_in_queue(victim.number).flags & LL_QUEUE_IS_PAUSED, "the victim's job never starts");
	assert_int_equal(rc, -EPERM);
	end_ticket(&first);
	end_ticket(&victim);
}

/* An operator has paused it. */
TEST_WITH(begin_queue, end_queue, releases_a_paused_job)
{
	struct ticket first, own;
	take_card(&first, VICTIM);
	wait_in_queue(&own, ATTACKER);
	assert_int_equal(act_as(0, &(struct ll_message_queue_act){.act = LL_QUEUE_PAUSE, .number = own.number}), 0);
	int rc = act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_RELEASE, .number = own.number});
	succeed_if(!(job_in_queue(own.number).flags & LL_QUEUE_IS_PAUSED), "the attacker's job may start");
	assert_int_equal(rc, -EPERM);
	end_ticket(&first);
	end_ticket(&own);
}

TEST_WITH(begin_queue, end_queue, drains_a_card)
{
	struct ticket victim;
	act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_DRAIN, .card_mask = 1});
	ask_place(&victim, VICTIM);
	succeed_if(victim.kind != LL_MESSAGE_ADMITTED, "the card is out of use");
	end_ticket(&victim);
}

/* An operator has drained it. */
TEST_WITH(begin_queue, end_queue, puts_a_drained_card_into_use)
{
	struct ticket own;
	assert_int_equal(act_as(0, &(struct ll_message_queue_act){.act = LL_QUEUE_DRAIN, .card_mask = 1}), 0);
	act_as(ATTACKER, &(struct ll_message_queue_act){.act = LL_QUEUE_UNDRAIN, .card_mask = 1});
	ask_place(&own, ATTACKER);
	succeed_if(own.kind == LL_MESSAGE_ADMITTED, "the attacker's job gets a card that shall be empty");
	end_ticket(&own);
}

/* ---- time ---- */

static int add_time(uint64_t number, uint64_t more_ns)
{
	return act_as(ATTACKER,
		      &(struct ll_message_queue_act){.act = LL_QUEUE_TIME, .number = number, .value = more_ns});
}

TEST_WITH(begin_queue, end_queue, takes_more_time_than_allowed)
{
	struct ticket own;
	take_card(&own, ATTACKER);
	add_time(own.number, 100 * HOUR_NS);
	succeed_if(job_in_queue(own.number).time_ns > MAX_TIME_H * HOUR_NS,
		   "the attacker keeps the card for 100 hours");
	end_ticket(&own);
}

TEST_WITH(begin_queue, end_queue, asks_for_more_time_than_allowed)
{
	struct ticket own;
	union ll_message message;
	fill_in_admit(&message);
	message.admit.time_ns = 100 * HOUR_NS;
	send_admit(&own, ATTACKER, &message);
	succeed_if(own.kind == LL_MESSAGE_ADMITTED && job_in_queue(own.number).time_ns > MAX_TIME_H * HOUR_NS,
		   "the attacker keeps the card for 100 hours");
	end_ticket(&own);
}

/* The grace would begin anew each time. */
TEST_WITH(begin_queue, end_queue, gives_time_to_a_job_that_an_operator_ends)
{
	struct ticket own;
	take_card(&own, ATTACKER);
	assert_int_equal(act_as(0, &(struct ll_message_queue_act){.act = LL_QUEUE_CANCEL, .number = own.number}), 0);
	add_time(own.number, HOUR_NS);
	succeed_if(job_in_queue(own.number).end_s > now_s() + 60, "the attacker's job goes on");
	end_ticket(&own);
}

/* ---- places ---- */

static bool has_job(uint64_t token)
{
	struct ll_list list;
	bool is_there = false;
	list_as(&list, &scene.system, 0);
	for (size_t i = 0; i < list.job_count; i++)
		is_there |= list.jobs[i].job.token[0] == token;
	ll_list_fini(&list);
	return is_there;
}

TEST_WITH(begin_queue, end_queue, registers_without_a_place)
{
	struct registration registration;
	registration_init(&registration);
	attacker_register(&registration);
	succeed_if(has_job(registration.facts.token[0]), "the attacker's job does not wait for its turn");
	registration_end(&registration);
}

static void spoil_nothing(struct ll_page *page, struct ll_orders *orders)
{
	(void)page;
	(void)orders;
}

/* A job of a former loadlined has its place already. Its pages are made by loadlined. */
TEST_WITH(begin_queue, end_queue, says_that_it_has_had_a_place)
{
	struct registration registration;
	attacker_register_spoilt(&registration, spoil_nothing);
	succeed_if(has_job(registration.facts.token[0]), "the attacker's job does not wait for its turn");
	registration_end(&registration);
}

/* The attacker knows the token: it may have been read over a shoulder. */
TEST_WITH(begin_queue, end_queue, takes_the_place_of_another)
{
	struct ticket victim;
	struct registration registration;
	take_card(&victim, VICTIM);
	registration_init(&registration);
	registration.facts.token[0] = victim.token;
	attacker_register(&registration);
	succeed_if(has_job(victim.token), "the attacker's job has the victim's card");
	registration_end(&registration);
	end_ticket(&victim);
}

/* The attacker asks for a place, and registers the job as another one: *ret_row is what loadlined makes of it. */
static bool register_otherwise(struct registration *registration, const char *project, uint64_t request_bytes,
			       struct ll_message_job_row *ret_row)
{
	struct ticket own;
	struct ll_list list;
	take_card(&own, ATTACKER);
	registration_init(registration);
	registration->facts.token[0] = own.token;
	registration->facts.limits.request_bytes = request_bytes;
	ll_message_text_set(registration->project, sizeof registration->project, project);
	attacker_register(registration);
	list_as(&list, &scene.system, 0);
	bool is_there = false;
	for (size_t i = 0; i < list.job_count; i++) {
		if (list.jobs[i].job.token[0] != own.token)
			continue;
		*ret_row = list.jobs[i];
		is_there = true;
	}
	ll_list_fini(&list);
	end_ticket(&own);
	return is_there;
}

/* The place was asked for without a project, when its budget was looked at. */
TEST_WITH(begin_queue, end_queue, bills_a_project_that_its_place_has_not)
{
	struct registration registration;
	struct ll_message_job_row row;
	bool is_there = register_otherwise(&registration, "theirs", 0, &row);
	succeed_if(is_there && row.project[0], "the attacker's job is charged to a project that was not looked at");
	registration_end(&registration);
}

TEST_WITH(begin_queue, end_queue, registers_with_more_memory_than_its_place)
{
	struct registration registration;
	struct ll_message_job_row row;
	bool is_there = register_otherwise(&registration, "", 2048 * MIB, &row);
	succeed_if(is_there && row.job.limits.request_bytes == 2048 * MIB,
		   "the attacker's job is promised more memory than its place has");
	registration_end(&registration);
}

/* Of two cards the attacker gets the first, and the victim the second. */
TEST_WITH(begin_queue, end_queue, uses_a_card_of_anothers_place)
{
	struct ticket own, victim;
	struct registration registration;
	struct user user;
	sense_cards(2);
	take_card(&own, ATTACKER);
	take_card(&victim, VICTIM);
	registration_init(&registration);
	registration.facts.token[0] = own.token;
	assert_int_equal(attacker_register(&registration), 0);
	become(ATTACKER);
	assert_true(user_connect(&user, &scene.system.world, own.token, SECOND_CARD));
	int rc = user_claim(&user);
	become(0);
	succeed_if(!rc, "the attacker's job uses the card that the victim has whole");
	user_close(&user);
	registration_end(&registration);
	end_ticket(&victim);
	end_ticket(&own);
}

TEST_WITH(begin_queue, end_queue, waits_in_a_tenant_of_others)
{
	struct ticket own;
	union ll_message message;
	fill_in_admit(&message);
	ll_message_text_set(message.admit.tenant, sizeof message.admit.tenant, "research");
	send_admit(&own, ATTACKER, &message);
	succeed_if(own.kind != LL_MESSAGE_REFUSED, "the attacker's job waits where the victim's tenant does");
	end_ticket(&own);
}

/* ---- what is hidden ---- */

TEST_WITH(begin_queue, end_queue, sees_a_hidden_queue)
{
	struct ticket victim;
	struct ll_message_queue_row row;
	take_card(&victim, VICTIM);
	succeed_if(see_job(ATTACKER, victim.number, &row), "the attacker sees that the victim has a card");
	end_ticket(&victim);
}

/* A job that is not there would not be waited for. */
TEST_WITH(begin_queue, end_queue, waits_for_a_hidden_job)
{
	struct ticket first, own;
	union ll_message message;
	take_card(&first, VICTIM);
	fill_in_admit(&message);
	message.admit.after = scene.victim_number;
	send_admit(&own, ATTACKER, &message);
	succeed_if(own.kind == LL_MESSAGE_QUEUED && own.answer.queued.waits.kind == LL_QUEUE_WAITS_AFTER,
		   "the attacker learns that the victim has a job of that number");
	end_ticket(&first);
	end_ticket(&own);
}

/* A status of 0 lets the job start, and another one refuses it. */
TEST_WITH(begin_queue, end_queue, waits_for_the_good_end_of_anothers_job)
{
	struct ticket first, own;
	union ll_message message;
	take_card(&first, VICTIM);
	fill_in_admit(&message);
	message.admit.after = first.number;
	message.admit.flags = LL_ADMIT_AFTER_OK;
	send_admit(&own, ATTACKER, &message);
	succeed_if(own.kind == LL_MESSAGE_QUEUED, "the attacker will learn how the victim's job ends");
	end_ticket(&first);
	end_ticket(&own);
}

/* The attacker knows the token of the first of two jobs of the victim. */
TEST_WITH(begin_queue, end_queue, says_how_anothers_job_has_ended)
{
	struct ticket first, second;
	union ll_message message;
	take_card(&first, VICTIM);
	fill_in_admit(&message);
	message.admit.after = first.number;
	message.admit.flags = LL_ADMIT_AFTER_OK;
	send_admit(&second, VICTIM, &message);
	assert_int_equal(second.kind, LL_MESSAGE_QUEUED);
	ll_message_init(&message, LL_MESSAGE_JOB_STATUS);
	message.job_status.job = first.token;
	succeed_if(attacker_request(&message, NULL, 0) == 0,
		   "loadlined believes the attacker that the victim's job has ended well");
	end_ticket(&first);
	end_ticket(&second);
}

TEST_WITH(begin_queue, end_queue, learns_who_has_the_card)
{
	struct ticket first, own;
	take_card(&first, VICTIM);
	wait_in_queue(&own, ATTACKER);
	succeed_if(own.answer.queued.waits.number == first.number || own.answer.queued.waits.uid == VICTIM,
		   "the attacker learns whose job has the card");
	end_ticket(&first);
	end_ticket(&own);
}

/* ---- texts and numbers ---- */

TEST_WITH(begin_queue, end_queue, escapes_in_the_queue)
{
	struct ticket own;
	union ll_message message;
	fill_in_admit(&message);
	snprintf(message.admit.command, sizeof message.admit.command, "\033]0;owned\a");
	send_admit(&own, ATTACKER, &message);
	succeed_if(own.number && strchr(job_in_queue(own.number).command, '\033'),
		   "the command of a waiting job has an escape sequence");
	end_ticket(&own);
}

/* Sends requests for a place until loadlined refuses one, or the time is over, and drops the other replies. Returns
 * whether it has refused one. */
static bool flood_queue(const int *fds, size_t count, uint64_t until_ns)
{
	union ll_message message;
	char bytes[LL_MESSAGE_MAX];
	bool is_full = false;
	for (size_t i = 0; !is_full && ll_now_ns() < until_ns; i = (i + 1) % count) {
		fill_in_admit(&message);
		ll_message_send(fds[i], &message, NULL, 0);
		for (ssize_t length; (length = recv(fds[i], bytes, sizeof bytes, MSG_DONTWAIT)) > 0;)
			is_full |= ll_message_decode(bytes, (size_t)length, &message) == 0 &&
				   message.header.kind == LL_MESSAGE_REFUSED;
	}
	return is_full;
}

/* Whether a request of the victim has a reply in time. */
static bool is_answered(void)
{
	enum { SERVED_MS = 2000 };
	union ll_message message;
	int fd = command_as(VICTIM);
	fill_in_admit(&message);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	bool is_answered = poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, SERVED_MS) > 0;
	close(fd);
	return is_answered;
}

/* Each waiting job makes the plan longer, and the plan is made anew for each request. */
TEST_WITH(begin_queue, end_queue, floods_the_queue)
{
	enum { CONNECTIONS = 32, FLOOD_S = 4, ROUNDS = 10 };
	struct ticket first;
	int fds[CONNECTIONS];
	bool is_full = false, is_late = false;
	take_card(&first, VICTIM);
	for (size_t i = 0; i < CONNECTIONS; i++) {
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
		assert_true(fds[i] >= 0);
		assert_int_equal(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
	}
	for (int i = 0; i < ROUNDS && !is_full && !is_late; i++) {
		is_full = flood_queue(fds, CONNECTIONS, ll_now_ns() + FLOOD_S * LL_NS_PER_S);
		is_late = !is_answered();
	}
	ll_message_close_fds(fds, CONNECTIONS);
	succeed_if(is_late, "the victim's request for a place has no reply");
	end_ticket(&first);
}
