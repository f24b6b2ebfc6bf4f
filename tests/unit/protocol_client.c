/* What a command asks of loadlined is answered, refused, or given up in time. The other side is a process of the test.
 */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>

#include "test.h"

#include "base/clock.h"
#include "base/err.h"
#include "fake_daemon.h"
#include "protocol/client.h"

#define SHORT_NS (100 * LL_NS_PER_MS)
#define LONG_NS (30 * LL_NS_PER_S)

enum { CLAIMS = 1000 };

struct script {
	struct fake_daemon daemon;
	pid_t pid;
};

/* Runs serve in a process of its own, after the client's hello. */
static void begin(struct script *script, void (*serve)(struct fake_daemon *))
{
	fake_daemon_init(&script->daemon);
	fake_daemon_listen(&script->daemon);
	script->pid = fork();
	assert_true(script->pid >= 0);
	if (script->pid)
		return;
	alarm(60);
	fake_daemon_accept(&script->daemon);
	serve(&script->daemon);
	_exit(0);
}

static void end(struct script *script)
{
	int status;
	kill(script->pid, SIGKILL);
	assert_int_equal(waitpid(script->pid, &status, 0), script->pid);
	fake_daemon_fini(&script->daemon);
}

static void connect_client(struct script *script, struct ll_client *client)
{
	assert_int_equal(
	    ll_client_open(client, &script->daemon.place, LL_CLIENT_COMMAND("1.2.3"), ll_now_ns() + LONG_NS, NULL), 0);
	assert_int_equal(client->pid, getpid());
}

/* The same, for a client that looks at whether the daemon is runnable: the socket has the pid of the test. */
static void begin_with_client(struct script *script, struct ll_client *client, void (*serve)(struct fake_daemon *))
{
	begin(script, serve);
	connect_client(script, client);
	client->pid = script->pid;
}

static void end_with_client(struct script *script, struct ll_client *client)
{
	ll_client_close(client);
	end(script);
}

static void send_message(const struct fake_daemon *daemon, union ll_message *message, uint32_t serial)
{
	message->header.serial = serial;
	while (ll_message_send(daemon->fd, message, NULL, 0) == -EAGAIN)
		poll(&(struct pollfd){.fd = daemon->fd, .events = POLLOUT}, 1, 1000);
}

static void send_accepted(const struct fake_daemon *daemon, uint32_t serial, uint64_t number)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	message.accepted.number = number;
	send_message(daemon, &message, serial);
}

static uint32_t receive_serial(const struct fake_daemon *daemon)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	poll(&(struct pollfd){.fd = daemon->fd, .events = POLLIN}, 1, 30000);
	if (ll_message_receive(daemon->fd, &message, fds, &count))
		_exit(1);
	return message.header.serial;
}

/* ---- requests ---- */

static void serve_strange_things(struct fake_daemon *daemon)
{
	union ll_message message;
	uint32_t serial = receive_serial(daemon);
	send_accepted(daemon, serial + 7, 1); /* of another request */
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	message.header.kind = 999; /* of a newer version */
	send_message(daemon, &message, serial);
	send_accepted(daemon, serial, 77);
	serial = receive_serial(daemon);
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = -EDQUOT;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, "that is too much");
	send_message(daemon, &message, serial);
	receive_serial(daemon);
	pause();
}

static union ll_message make_set(void)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SET);
	message.set.job_number = 1;
	return message;
}

TEST(a_request_has_its_own_answer_or_refusal_or_none_in_time)
{
	struct script script;
	struct ll_client client;
	struct ll_err err = {0};
	union ll_message message = make_set(), answer;
	begin(&script, serve_strange_things);
	connect_client(&script, &client);
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, &answer, ll_now_ns() + LONG_NS, &err), 0);
	assert_int_equal(answer.accepted.number, 77);
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, &answer, ll_now_ns() + LONG_NS, &err), -EDQUOT);
	assert_string_equal(err.text, "that is too much");
	uint64_t begun_ns = ll_now_ns();
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, NULL, begun_ns + SHORT_NS, &err), -ETIMEDOUT);
	assert_true(ll_now_ns() - begun_ns >= SHORT_NS);
	assert_string_equal(err.text, "loadlined does not answer");
	end_with_client(&script, &client);
}

#define DELAY_NS (30 * LL_NS_PER_MS)
#define PAUSED_FOR_NS (800 * LL_NS_PER_MS)

/* The client stands still beyond its deadline, as in a virtual machine that is saved, and goes on before the daemon
 * does. */
static void serve_after_a_pause(struct fake_daemon *daemon)
{
	for (int i = 0; i < 2; i++) {
		uint32_t serial = receive_serial(daemon);
		kill(getppid(), SIGSTOP);
		ll_sleep_until_ns(ll_now_ns() + PAUSED_FOR_NS);
		kill(getppid(), SIGCONT);
		if (i == 0)
			ll_sleep_until_ns(ll_now_ns() + DELAY_NS);
		send_accepted(daemon, serial, 0);
	}
	pause();
}

TEST(a_pause_of_the_whole_machine_is_no_silence)
{
	struct script script;
	struct ll_client client;
	union ll_message message = make_set();
	begin_with_client(&script, &client, serve_after_a_pause);
	/* while it waits, and between the reckoning of the deadline and the request */
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + 6 * SHORT_NS, NULL), 0);
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() - SHORT_NS, NULL), 0);
	end_with_client(&script, &client);
}

#define PROCESSOR_NS (300 * LL_NS_PER_MS)

/* As a daemon on a machine whose processors are busy: it could run, and does not answer. */
static void serve_late(struct fake_daemon *daemon)
{
	uint32_t serial = receive_serial(daemon);
	for (uint64_t end_ns = ll_now_ns() + PROCESSOR_NS; ll_now_ns() < end_ns;)
		;
	send_accepted(daemon, serial, 0);
	pause();
}

TEST(a_daemon_that_waits_for_a_processor_is_not_silent)
{
	struct script script;
	struct ll_client client;
	union ll_message message = make_set();
	begin_with_client(&script, &client, serve_late);
	assert_int_equal(ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + SHORT_NS, NULL), 0);
	end_with_client(&script, &client);
}

static void serve_nothing(struct fake_daemon *daemon)
{
	receive_serial(daemon);
}

TEST(a_daemon_that_ends_is_known_from_one_that_is_silent)
{
	struct script script;
	struct ll_client client;
	union ll_message message = make_set();
	begin(&script, serve_nothing);
	connect_client(&script, &client);
	assert_true(
	    ll_client_is_lost(ll_client_request(&client, &message, NULL, 0, NULL, ll_now_ns() + LONG_NS, NULL)));
	end_with_client(&script, &client);
}

TEST(nobody_who_serves_and_nobody_who_accepts_are_told)
{
	struct fake_daemon daemon;
	struct ll_client client;
	fake_daemon_init(&daemon);
	assert_int_equal(
	    ll_client_open(&client, &daemon.place, LL_CLIENT_COMMAND("1.2.3"), ll_now_ns() + LONG_NS, NULL),
	    -ECONNREFUSED);
	ll_client_close(&client);
	fake_daemon_listen(&daemon);
	assert_int_equal(
	    ll_client_open(&client, &daemon.place, LL_CLIENT_COMMAND("1.2.3"), ll_now_ns() + SHORT_NS, NULL),
	    -ETIMEDOUT);
	ll_client_close(&client);
	fake_daemon_fini(&daemon);
}

/* ---- the list ---- */

static void serve_list(struct fake_daemon *daemon)
{
	union ll_message message;
	uint32_t serial = receive_serial(daemon);
	ll_message_init(&message, LL_MESSAGE_JOB_ROW);
	message.job_row.number = 5;
	message.job_row.job.token[0] = 71;
	message.job_row.job.state = LL_JOB_RUNNING;
	ll_message_text_set(message.job_row.job.tenant, sizeof message.job_row.job.tenant, "job");
	send_message(daemon, &message, serial);
	ll_message_init(&message, LL_MESSAGE_CARD_ROW);
	message.card_row.job_number = 5;
	message.card_row.claims = CLAIMS;
	ll_message_text_set(message.card_row.uuid, sizeof message.card_row.uuid, "GPU-1");
	send_message(daemon, &message, serial);
	for (uint32_t i = 0; i < CLAIMS; i++) {
		ll_message_init(&message, LL_MESSAGE_CLAIM_ROW);
		message.claim_row.job_number = 5;
		message.claim_row.index = i;
		ll_message_text_set(message.claim_row.uuid, sizeof message.claim_row.uuid, "GPU-1");
		send_message(daemon, &message, serial);
	}
	ll_message_init(&message, LL_MESSAGE_LIST_END);
	message.list_end.jobs = 1;
	send_message(daemon, &message, serial);
	pause();
}

TEST(a_list_is_whole)
{
	struct script script;
	struct ll_client client;
	struct ll_list list;
	begin(&script, serve_list);
	connect_client(&script, &client);
	assert_int_equal(ll_client_list(&client, &list, ll_now_ns() + LONG_NS, NULL), 0);
	assert_int_equal(list.job_count, 1);
	assert_int_equal(list.claim_count, CLAIMS);
	for (uint32_t i = 0; i < CLAIMS; i++)
		assert_int_equal(list.claims[i].index, i);
	assert_int_equal(list.end.jobs, 1);
	assert_int_equal(ll_list_job(&list, 5)->job.token[0], 71);
	assert_null(ll_list_job(&list, 6));
	assert_int_equal(ll_list_card(&list, 5, "GPU-1")->claims, CLAIMS);
	assert_null(ll_list_card(&list, 5, "GPU-2"));
	ll_list_fini(&list);
	end_with_client(&script, &client);
}
