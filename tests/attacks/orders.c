/* Requests about another user's job: each is valid, and comes from the wrong user. */
#include "attack.h"

static uint64_t victim_limit(void)
{
	struct ll_list list;
	victim_list(&list);
	uint64_t bytes = row_of(&list, VICTIM)->job.limits.memory_bytes;
	ll_list_fini(&list);
	return bytes;
}

TEST(sets_limits)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = scene.victim_number;
	message.set.fields = LL_SET_MEMORY | LL_SET_REQUEST;
	message.set.limits.memory_bytes = message.set.limits.request_bytes = MIB;
	int rc = attacker_request(&message, NULL, 0);
	succeed_if(victim_limit() == MIB, "the victim's limit is 1 MiB");
	assert_int_equal(rc, -EPERM);
}

/* ---- moves of memory: the victim's process is one whose memory can leave the card ---- */

struct movable {
	struct user user;
	int fd; /* on which loadlined tells it to move */
};

static void send_move(int fd, enum ll_message_kind kind, const struct user *user, uint64_t value)
{
	union ll_message message;
	ll_message_init(&message, kind);
	message.move.job = user->job;
	message.move.slot = user->slot;
	message.move.slot_token = user->token;
	message.move.bytes = MIB;
	message.move.value = value;
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
}

static void movable_start(struct movable *movable)
{
	struct user second;
	become(VICTIM);
	user_begin(&movable->user, &scene.system.world, scene.victim.id, CARD);
	assert_true(user_connect(&second, &scene.system.world, scene.victim.id, CARD));
	become(0);
	movable->fd = second.fd;
	send_move(movable->fd, LL_MESSAGE_EVICTABLE, &movable->user, LL_MOVE_HERE);
}

static void movable_end(struct movable *movable)
{
	close(movable->fd);
	user_close(&movable->user);
}

static void fill_in(union ll_message *message, enum ll_message_kind kind)
{
	ll_message_init(message, kind);
	message->move.job = scene.victim.id;
	ll_message_text_set(message->move.uuid, sizeof message->move.uuid, CARD);
}

/* Sends the request as the attacker. Returns whether the victim's process is told to obey. */
static bool moves_victim(const struct movable *movable, enum ll_message_kind kind)
{
	union ll_message message;
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	fill_in(&message, kind);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	struct pollfd ends[] = {{.fd = movable->fd, .events = POLLIN}, {.fd = fd, .events = POLLIN}};
	bool is_told = false, is_refused = false;
	while (!is_told && !is_refused && poll(ends, 2, 5000) > 0) {
		if (ends[0].revents)
			is_told = next_message(movable->fd, &message) == (unsigned)kind;
		else
			is_refused = next_message(fd, &message) == LL_MESSAGE_REFUSED;
	}
	close(fd);
	return is_told;
}

TEST(evicts)
{
	struct movable movable;
	movable_start(&movable);
	succeed_if(moves_victim(&movable, LL_MESSAGE_EVICT), "the victim's program has to leave the card");
	movable_end(&movable);
}

TEST(suspends)
{
	struct movable movable;
	movable_start(&movable);
	succeed_if(moves_victim(&movable, LL_MESSAGE_SUSPEND), "the victim's program has to stop");
	movable_end(&movable);
}

/* The victim has suspended its own program. */
TEST(resumes)
{
	struct movable movable;
	struct ll_client client;
	union ll_message message;
	movable_start(&movable);
	open_as(&client, &scene.system, VICTIM);
	fill_in(&message, LL_MESSAGE_SUSPEND);
	assert_int_equal(ll_client_send(&client, &message, ll_now_ns() + DEADLINE_NS, NULL), 0);
	while (next_message(movable.fd, &message) != LL_MESSAGE_SUSPEND)
		;
	send_move(movable.fd, LL_MESSAGE_QUIET, &movable.user, 0);
	while (next_message(client.fd, &message) != LL_MESSAGE_MOVED)
		;
	ll_client_close(&client);
	succeed_if(moves_victim(&movable, LL_MESSAGE_RESUME), "the program that the victim suspended goes on");
	movable_end(&movable);
}

/* The victim moves two programs at once, and has requested the first one. */
TEST(joins_a_batch)
{
	struct movable movable;
	struct user user, mover;
	union ll_message message;
	struct ll_client client;
	enum { NUMBER = 7, PROGRAMS = 2 };
	movable_start(&movable);
	become(ATTACKER);
	user_begin(&user, &scene.system.world, scene.attacker.id, CARD);
	assert_true(user_connect(&mover, &scene.system.world, scene.attacker.id, CARD));
	become(0);
	send_move(mover.fd, LL_MESSAGE_EVICTABLE, &user, LL_MOVE_HERE);
	open_as(&client, &scene.system, VICTIM);
	fill_in(&message, LL_MESSAGE_EVICT);
	message.move.slot_token = NUMBER;
	message.move.slot = PROGRAMS;
	assert_int_equal(ll_client_send(&client, &message, ll_now_ns() + DEADLINE_NS, NULL), 0);
	assert_true(victim_is_served());
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	message.move.job = scene.attacker.id;
	message.move.index = 1;
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	assert_true(victim_is_served());
	bool is_told = false;
	while (!is_told && poll(&(struct pollfd){.fd = movable.fd, .events = POLLIN}, 1, 200) > 0)
		is_told = next_message(movable.fd, &message) == LL_MESSAGE_EVICT;
	succeed_if(is_told, "the victim's program stops with the attacker's, before the victim's other one");
	close(fd);
	ll_client_close(&client);
	close(mover.fd);
	user_close(&user);
	movable_end(&movable);
}

/* ---- promises ---- */

/* Returns 0 if the job gets the card. */
static int bind_card(uid_t uid, uint64_t job, uint64_t promisable_bytes)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = job;
	message.bind.promisable_bytes = promisable_bytes;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, CARD);
	return uid == VICTIM ? victim_request(&message, NULL, 0) : attacker_request(&message, NULL, 0);
}

/* The victim was promised memory, and the attacker's request does not fit beside it. */
static void promise_to_victim(void)
{
	assert_int_equal(bind_card(VICTIM, scene.victim.id, (VICTIM_MIB + ATTACKER_MIB / 2) * MIB), 0);
}

TEST(says_that_the_card_is_larger)
{
	promise_to_victim();
	succeed_if(bind_card(ATTACKER, scene.attacker.id, UINT64_MAX) == 0,
		   "what the victim was promised is not there");
}

TEST(overcommits)
{
	promise_to_victim();
	succeed_if(bind_card(ATTACKER, scene.attacker.id, 0) == 0, "what the victim was promised is not there");
}

static int set_request(uint64_t mib, uint64_t flags)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = scene.attacker_number;
	message.set.fields = LL_SET_REQUEST | flags;
	message.set.limits.request_bytes = mib * MIB;
	return attacker_request(&message, NULL, 0);
}

TEST(overcommits_later)
{
	promise_to_victim();
	assert_int_equal(set_request(1, 0), 0);
	assert_int_equal(bind_card(ATTACKER, scene.attacker.id, 0), 0);
	int rc = set_request(ATTACKER_MIB, LL_SET_OVERCOMMIT);
	succeed_if(rc == 0, "what the victim was promised is not there");
	assert_int_equal(rc, -EDQUOT);
}

/* ---- checkpoints, jobs ---- */

static size_t count_victim_cards(void)
{
	struct ll_list list;
	size_t count = 0;
	victim_list(&list);
	for (size_t i = 0; i < list.card_count; i++)
		count += list.cards[i].job_number == scene.victim_number;
	ll_list_fini(&list);
	return count;
}

TEST(binds_a_card)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = scene.victim.id;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, CARD);
	attacker_request(&message, NULL, 0);
	succeed_if(count_victim_cards(), "the victim's job has a card that the attacker chose");
}

static uint32_t victim_checkpoint(void)
{
	struct ll_list list;
	uint32_t checkpoint = 0;
	victim_list(&list);
	for (size_t i = 0; i < list.claim_count; i++) {
		if (list.claims[i].job_number == scene.victim_number)
			checkpoint = list.claims[i].checkpoint;
	}
	ll_list_fini(&list);
	return checkpoint;
}

TEST(reports_a_checkpoint)
{
	struct puppet puppet;
	union ll_message message;
	victim_puppet(&puppet);
	int fd = ll_process_open(puppet.pid);
	ll_message_init(&message, LL_MESSAGE_CHECKPOINT);
	message.checkpoint.state = LL_CHECKPOINT_EVICTED;
	attacker_request(&message, &fd, 1);
	close(fd);
	succeed_if(victim_checkpoint() == LL_CHECKPOINT_EVICTED, "the victim's process counts as evicted");
	puppet_kill(&puppet);
}

/* The attacker knows both tokens, and the job has no monitor. */
TEST(registers_a_job_of_another)
{
	struct ll_list list;
	struct registration registration;
	registration_init(&registration);
	list_as(&list, &scene.system, 0);
	const struct ll_message_job_row *row = row_of(&list, VICTIM);
	memcpy(registration.facts.token, row->job.token, sizeof row->job.token);
	kill_process((pid_t)row->monitor_pid, SIGKILL);
	ll_list_fini(&list);
	wait_for(job_monitor(&scene.system.world, &scene.victim) == 0);
	int rc = attacker_register(&registration);
	succeed_if(!rc && registration.fd_count == 2,
		   "the attacker is the monitor of the victim's job, with its pages");
	registration_end(&registration);
}

TEST(takes_the_listening_socket)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS], fd = attacker_connect(LL_ROLE_COMMAND, -1);
	size_t count;
	ll_message_init(&message, LL_MESSAGE_HANDOVER);
	message.handover.version = UINT64_MAX;
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	unsigned kind = next_message_with_fds(fd, &message, fds, &count);
	succeed_if(kind == LL_MESSAGE_HANDED_OVER && count == 1, "the attacker serves the victim");
	close(fd);
}

/* ---- what is secret ---- */

TEST(reads_the_token)
{
	struct ll_list list;
	list_as(&list, &scene.system, ATTACKER);
	const struct ll_message_job_row *row = row_of(&list, VICTIM);
	succeed_if(row->job.token[0] == scene.victim.id, "the attacker sees the token of the victim's job");
	ll_list_fini(&list);
}

TEST(reads_which_program)
{
	union ll_message message;
	struct ll_list list;
	ll_message_init(&message, LL_MESSAGE_BIND);
	message.bind.job = scene.victim.id;
	ll_message_text_set(message.bind.uuid, sizeof message.bind.uuid, CARD);
	assert_int_equal(victim_request(&message, NULL, 0), 0);
	list_as(&list, &scene.system, ATTACKER);
	const struct ll_message_card_row *row = ll_list_card(&list, scene.victim_number, CARD);
	succeed_if(row && row->program, "the attacker sees which program the victim runs");
	ll_list_fini(&list);
}

TEST(watches_the_pages)
{
	union ll_message message;
	bool has_victims = false;
	int fd = attacker_connect(LL_ROLE_HOLD, -1);
	ll_message_init(&message, LL_MESSAGE_WATCH);
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	ll_message_init(&message, LL_MESSAGE_LIST); /* its replies come after the pages, or between them */
	assert_int_equal(ll_message_send(fd, &message, NULL, 0), 0);
	for (unsigned kind = 0; kind != LL_MESSAGE_LIST_END;) {
		kind = next_message(fd, &message);
		assert_true(kind != 0);
		has_victims |= kind == LL_MESSAGE_PAGE && message.page.job_number == scene.victim_number;
	}
	close(fd);
	succeed_if(has_victims, "the attacker maps the page of the victim's job, and its token");
}
