/* Uses up what loadlined has, so that the victim gets none. */
#include "attack.h"
#include "wait_for.h"

enum { PAST_HELLO_MS = 8000, SILENT = 20 };

/* Whether nothing has arrived. */
static bool is_open(int fd)
{
	return poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 0) == 0;
}

TEST_WITH(scene_begin_small, scene_end, opens_many_connections)
{
	int fds[2 * SMALL_FILES];
	size_t count = sizeof fds / sizeof *fds;
	for (size_t i = 0; i < count; i++)
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	ll_message_close_fds(fds, count);
}

/* When the victim is served, loadlined has looked at all that came before. */
TEST(opens_many_connections_that_say_nothing)
{
	enum { CONNECTIONS = 200, MAY_WAIT = 64 };
	int fds[CONNECTIONS];
	size_t open = 0;
	become(ATTACKER);
	for (size_t i = 0; i < CONNECTIONS; i++)
		assert_int_equal(
		    ll_place_connect_by(&scene.system.world.place, ll_now_ns() + DEADLINE_NS, &fds[i], NULL), 0);
	become(0);
	assert_true(victim_is_served());
	for (size_t i = 0; i < CONNECTIONS; i++)
		open += is_open(fds[i]);
	ll_message_close_fds(fds, CONNECTIONS);
	succeed_if(open > MAY_WAIT, "loadlined waits for more of the attacker's connections than a user may have");
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

static void send_to(int fd, const union ll_message *message, const int *fds, size_t count)
{
	assert_int_equal(ll_message_send(fd, message, fds, count), 0);
}

/* Whether loadlined has handled all messages of the connection, and has not closed it. */
static bool is_still_open(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_OPEN);
	ll_message_send(fd, &message, NULL, 0);
	for (;;) { /* it may be told to measure the card */
		unsigned kind = next_message(fd, &message);
		if (kind == LL_MESSAGE_REFUSED || !kind)
			return kind && message.refused.code == -ENOENT;
	}
}

/* Shares descriptors, at most so many, over a new connection of the process. Stops when loadlined closes the
 * connection. Returns how many were sent before. */
static uint32_t share_descriptors(const struct user *user, uint32_t most, int *ret_fd)
{
	union ll_message message;
	struct user mover;
	const int fds[LL_MESSAGE_FDS] = {0, 0, 0, 0};
	uint32_t sent = 0;
	become(ATTACKER);
	assert_true(user_connect(&mover, &scene.system.world, scene.attacker.id, CARD));
	become(0);
	ll_message_init(&message, LL_MESSAGE_EVICTABLE);
	message.move.job = scene.attacker.id;
	message.move.slot = user->slot;
	message.move.slot_token = user->token;
	send_to(mover.fd, &message, NULL, 0);
	for (; sent < most; sent += LL_MESSAGE_FDS) {
		ll_message_init(&message, LL_MESSAGE_SHARE);
		message.share.key[0] = 1;
		message.share.bytes = UINT64_MAX;
		message.share.first = sent;
		message.share.count = LL_MESSAGE_FDS;
		if (ll_message_send(mover.fd, &message, fds, LL_MESSAGE_FDS) || !is_still_open(mover.fd))
			break;
	}
	*ret_fd = mover.fd;
	return sent;
}

/* Each descriptor that a process shares stays in loadlined. A connection whose descriptors find no room is closed, so
 * the attacker first finds out how many there is room for. */
TEST_WITH(scene_begin_small, scene_end, shares_many_descriptors)
{
	struct user user;
	int fds[SMALL_FILES], fd;
	become(ATTACKER);
	user_begin(&user, &scene.system.world, scene.attacker.id, CARD);
	become(0);
	uint32_t room = share_descriptors(&user, SMALL_FILES, &fd);
	close(fd);
	share_descriptors(&user, room, &fd);
	for (size_t i = 0; i < SMALL_FILES; i++)
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	ll_message_close_fds(fds, SMALL_FILES);
	close(fd);
	user_close(&user);
}

/* Requests descriptors again and again, and reads none. Stops when the socket is full or closed. */
static void request_pages(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_CLAIM);
	message.claim.job = scene.attacker.id;
	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	while (ll_message_send(fd, &message, NULL, 0) == 0)
		;
}

/* A process that claims, and waits for its page at most 5 s. */
static bool victim_can_claim(void)
{
	struct puppet puppet;
	become(VICTIM);
	puppet_make(&puppet, &scene.system.world, scene.victim.id, CARD);
	become(0);
	puppet_tell(&puppet, PUPPET_CLAIM, 0);
	uint64_t began_ns = ll_now_ns();
	while (!puppet_has_answer(&puppet) && is_in_time(began_ns, 5 * LL_NS_PER_S))
		ll_sleep_until_ns(ll_now_ns() + LL_NS_PER_MS);
	bool can = puppet_has_answer(&puppet) && puppet_answer(&puppet) == 0;
	puppet_kill(&puppet);
	return can;
}

/* The kernel counts the descriptors that loadlined's user has sent and nobody has read. */
TEST_WITH(scene_begin_small, scene_end, leaves_descriptors_unread)
{
	enum { CONNECTIONS = 12 };
	int fds[CONNECTIONS];
	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = attacker_connect(LL_ROLE_PROCESS, -1);
	for (int i = 0; i < CONNECTIONS; i++) {
		if (fds[i] >= 0)
			request_pages(fds[i]);
	}
	succeed_if(!victim_can_claim(), "the victim's process gets no page");
	ll_message_close_fds(fds, CONNECTIONS);
}

/* The messages of a connection that has ended are there until the attacker closes its socket. */
TEST_WITH(scene_begin_small, scene_end, hangs_up_with_descriptors_unread)
{
	enum { CONNECTIONS = 60, PATIENCE_S = 2, PAUSE_MS = 20 };
	int fds[CONNECTIONS];
	size_t count = 0;
	uint64_t end_ns = ll_now_ns() + PATIENCE_S * LL_NS_PER_S;
	while (count < CONNECTIONS && ll_now_ns() < end_ns) { /* there may be room again when the last one has ended */
		fds[count] = attacker_connect(LL_ROLE_PROCESS, -1);
		if (fds[count] < 0) {
			ll_sleep_until_ns(ll_now_ns() + PAUSE_MS * LL_NS_PER_MS);
			continue;
		}
		request_pages(fds[count]);
		shutdown(fds[count++], SHUT_WR);
		end_ns = ll_now_ns() + PATIENCE_S * LL_NS_PER_S;
	}
	succeed_if(!victim_can_claim(), "the victim's process gets no page");
	ll_message_close_fds(fds, count);
}

/* A claim lives as long as its process, without a connection. */
TEST_WITH(scene_begin_small, scene_end, claims_and_hangs_up)
{
	struct puppet puppets[SMALL_FILES];
	int fds[SMALL_FILES];
	size_t count = 0;
	for (bool has_room = true; has_room && count < SMALL_FILES; count++) {
		become(ATTACKER);
		puppet_make(&puppets[count], &scene.system.world, scene.attacker.id, CARD);
		become(0);
		has_room = puppet_do(&puppets[count], PUPPET_CLAIM, 0) == 0;
		if (has_room)
			puppet_do(&puppets[count], PUPPET_HANG_UP, 0);
	}
	for (size_t i = 0; i < SMALL_FILES; i++)
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
	succeed_if(!victim_is_served(), "loadlined has no descriptors left for the victim");
	ll_message_close_fds(fds, SMALL_FILES);
	while (count--)
		puppet_kill(&puppets[count]);
}

/* A sanitizer keeps what was freed. */
static void skip_under_sanitizer(void)
{
#ifdef LL_HAS_SANITIZER
	SKIP_TEST("a sanitizer's memory grows");
#endif
}

static unsigned long daemon_kib(void)
{
	char path[40], line[200];
	unsigned long kib = 0;
	snprintf(path, sizeof path, "/proc/%d/status", (int)scene.system.daemon);
	FILE *file = fopen(path, "re");
	while (file && fgets(line, sizeof line, file))
		sscanf(line, "RssAnon: %lu", &kib);
	if (file)
		fclose(file);
	return kib;
}

/* Fills in a request of the attacker that waits for a process that may connect. The attacker's process has a claim. */
static void fill_in_request(union ll_message *message, struct user *user)
{
	become(ATTACKER);
	user_begin(user, &scene.system.world, scene.attacker.id, CARD);
	become(0);
	ll_message_init(message, LL_MESSAGE_EVICT);
	message->move.job = scene.attacker.id;
	ll_message_text_set(message->move.uuid, sizeof message->move.uuid, CARD);
}

TEST(sends_many_requests)
{
	enum { CONNECTIONS = 8, MOST_KIB = 1536 };
	skip_under_sanitizer();
	union ll_message message;
	struct user user;
	int fds[CONNECTIONS];
	fill_in_request(&message, &user);
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
		assert_int_equal(fcntl(fds[i], F_SETFL, O_NONBLOCK), 0);
	}
	unsigned long before_kib = daemon_kib();
	uint64_t end_ns = ll_now_ns() + LL_NS_PER_S;
	for (int i = 0; ll_now_ns() < end_ns; i++)
		ll_message_send(fds[i % CONNECTIONS], &message, NULL, 0);
	bool is_served = victim_is_served();
	succeed_if(!is_served || daemon_kib() > before_kib + MOST_KIB, "loadlined grows with each request that waits");
	ll_message_close_fds(fds, CONNECTIONS);
	user_close(&user);
}

static void name_all_cards(struct ll_page *page, struct ll_orders *orders)
{
	(void)page;
	for (unsigned i = 0; i < LL_PAGE_CARDS; i++) {
		char uuid[sizeof(uint64_t) + 1];
		uint64_t word;
		snprintf(uuid, sizeof uuid, "GPU-%04u", i);
		memcpy(&word, uuid, sizeof word);
		orders->cards[i].uuid[0] = word;
	}
}

/* Asks for a long list on each of many connections. What a socket has no room for waits in loadlined. */
TEST(reads_no_rows)
{
	enum { JOBS = 20, CONNECTIONS = 100, MOST_KIB = 24 * 1024 };
	skip_under_sanitizer();
	struct registration jobs[JOBS];
	union ll_message message;
	int fds[CONNECTIONS];
	for (int i = 0; i < JOBS; i++)
		assert_int_equal(attacker_register_spoilt(&jobs[i], name_all_cards), 0);
	unsigned long before_kib = daemon_kib();
	ll_message_init(&message, LL_MESSAGE_LIST);
	for (int i = 0; i < CONNECTIONS; i++) {
		fds[i] = attacker_connect(LL_ROLE_COMMAND, -1);
		if (fds[i] >= 0)
			send_to(fds[i], &message, NULL, 0);
	}
	bool is_served = victim_is_served();
	printf("loadlined has %lu KiB more\n", daemon_kib() - before_kib);
	succeed_if(!is_served || daemon_kib() > before_kib + MOST_KIB,
		   "loadlined grows with each list that nobody reads");
	ll_message_close_fds(fds, CONNECTIONS);
	for (int i = 0; i < JOBS; i++)
		registration_end(&jobs[i]);
}

/* The victim's request waits too, and loadlined says so once a second, by a timer. */
TEST(keeps_the_timer_from_running)
{
	enum { PAUSE_MS = 20, ENOUGH_S = 4 };
	union ll_message message, reply;
	struct user user;
	struct puppet puppet;
	struct ll_client client;
	victim_puppet(&puppet);
	fill_in_request(&message, &user);
	int fd = attacker_connect(LL_ROLE_COMMAND, -1);
	open_as(&client, &scene.system, VICTIM);
	reply = message;
	reply.move.job = scene.victim.id;
	assert_int_equal(ll_client_send(&client, &reply, ll_now_ns() + DEADLINE_NS, NULL), 0);
	uint64_t end_ns = ll_now_ns() + ENOUGH_S * LL_NS_PER_S;
	while (is_open(client.fd) && ll_now_ns() < end_ns) {
		ll_message_send(fd, &message, NULL, 0);
		ll_sleep_until_ns(ll_now_ns() + PAUSE_MS * LL_NS_PER_MS);
	}
	succeed_if(is_open(client.fd), "the victim's request is not looked at again");
	ll_client_close(&client);
	close(fd);
	user_close(&user);
	puppet_kill(&puppet);
}

/* A job on as many cards as fit, each with a name of its own and a process that can be moved. It then ends. */
static void name_cards(unsigned round)
{
	struct registration registration;
	union ll_message message;
	struct user user, mover = {.fd = -1};
	char uuid[LL_CARD_UUID_SIZE];
	registration_init(&registration);
	assert_int_equal(attacker_register(&registration), 0);
	for (unsigned i = 0; i < LL_PAGE_CARDS; i++) {
		snprintf(uuid, sizeof uuid, "GPU-%u-%u", round, i);
		become(ATTACKER);
		if (i == 0) {
			user_begin(&user, &scene.system.world, registration.facts.token[0], uuid);
			assert_true(user_connect(&mover, &scene.system.world, user.job, uuid));
		}
		become(0);
		user.token = 0;
		ll_message_text_set(user.uuid, sizeof user.uuid, uuid);
		assert_int_equal(user_claim(&user), 0);
		ll_message_init(&message, LL_MESSAGE_EVICTABLE);
		message.move.job = user.job;
		message.move.slot = user.slot;
		message.move.slot_token = user.token;
		send_to(mover.fd, &message, NULL, 0);
	}
	close(mover.fd);
	user_close(&user);
	ll_message_init(&message, LL_MESSAGE_JOB_ENDED);
	memcpy(message.job_ended.token, registration.facts.token, sizeof message.job_ended.token);
	send_to(registration.fd, &message, NULL, 0);
	registration_end(&registration);
}

TEST(names_many_cards)
{
	enum { FIRST_ROUNDS = 8, ROUNDS = 80, MOST_KIB = 256 };
	skip_under_sanitizer();
	for (unsigned i = 0; i < FIRST_ROUNDS; i++)
		name_cards(i);
	assert_true(victim_is_served());
	unsigned long before_kib = daemon_kib();
	for (unsigned i = FIRST_ROUNDS; i < ROUNDS; i++)
		name_cards(i);
	assert_true(victim_is_served());
	succeed_if(daemon_kib() > before_kib + MOST_KIB, "loadlined grows with each card that was ever named");
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
