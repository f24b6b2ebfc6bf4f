/* What `status --decisions` makes of loadlined's answers. They are queued before the question: each question has the
 * next serial number. */
#include "cli/status/status.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"
#include "test.h"

struct talk {
	int fd; /* loadlined's */
	struct ll_client client;
	struct ll_decision_list list;
};

static int setup(void **state)
{
	static struct talk talk;
	int fds[2];
	talk = (struct talk){.fd = -1};
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, fds))
		return -1;
	talk.fd = fds[0];
	talk.client.fd = fds[1];
	*state = &talk;
	return 0;
}

static int teardown(void **state)
{
	struct talk *talk = *state;
	ll_decision_list_fini(&talk->list);
	ll_client_close(&talk->client);
	close(talk->fd);
	return 0;
}

static void answer(const struct talk *talk, union ll_message *message, uint32_t serial)
{
	message->header.serial = serial;
	assert_int_equal(ll_message_send(talk->fd, message, NULL, 0), 0);
}

static void answer_state(const struct talk *talk, uint64_t first, uint32_t serial)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_DECISIONS_STATE);
	message.decisions_state.number = first;
	answer(talk, &message, serial);
}

static void answer_decision(const struct talk *talk, uint64_t number, uint32_t jobs, uint32_t serial)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_DECISION);
	message.decision.number = number;
	message.decision.jobs = jobs;
	answer(talk, &message, serial);
}

static void answer_job(const struct talk *talk, uint64_t number, uint32_t serial)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_DECISION_JOB);
	message.decision_job.number = number;
	answer(talk, &message, serial);
}

static void answer_end(const struct talk *talk, uint32_t serial)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_DECISIONS_END);
	answer(talk, &message, serial);
}

/* Decision 2 went before it was sent. */
static void answer_with_gap(const struct talk *talk, uint32_t serial)
{
	answer_state(talk, 1, serial);
	answer_decision(talk, 1, 0, serial);
	answer_decision(talk, 3, 0, serial);
	answer_end(talk, serial);
}

/* It went when one of its two jobs was sent. */
static void answer_with_half(const struct talk *talk, uint32_t serial)
{
	answer_state(talk, 1, serial);
	answer_decision(talk, 1, 2, serial);
	answer_job(talk, 1, serial);
	answer_decision(talk, 2, 0, serial);
	answer_end(talk, serial);
}

TEST_WITH(setup, teardown, decisions_that_went_while_they_were_sent_are_asked_for_again)
{
	struct talk *talk = *state;
	answer_with_gap(talk, 1);
	answer_with_half(talk, 2);
	answer_state(talk, 2, 3);
	answer_decision(talk, 2, 1, 3);
	answer_job(talk, 2, 3);
	answer_decision(talk, 3, 0, 3);
	answer_end(talk, 3);
	assert_int_equal(ll_decision_list_read(&talk->list, &talk->client, "GPU-1", NULL), 0);
	assert_int_equal(talk->client.serial, 3);
	assert_int_equal(talk->list.decision_count, 2);
	assert_int_equal(talk->list.job_count, 1);
	assert_int_equal(talk->list.decisions[1].number, 3);
}

TEST_WITH(setup, teardown, decisions_that_always_go_are_an_error)
{
	struct talk *talk = *state;
	struct ll_err err;
	for (uint32_t serial = 1; serial <= 10; serial++)
		answer_with_gap(talk, serial);
	assert_fails(ll_decision_list_read(&talk->list, &talk->client, "GPU-1", &err), -EAGAIN,
		     "faster than they can be read");
}

TEST_WITH(setup, teardown, an_older_loadlined_says_that_it_does_not_know_them)
{
	struct talk *talk = *state;
	struct ll_err err;
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_REFUSED);
	message.refused.code = -ENOTSUP;
	ll_message_text_set(message.refused.reason, sizeof message.refused.reason, "this loadlined does not know that");
	answer(talk, &message, 1);
	assert_fails(ll_decision_list_read(&talk->list, &talk->client, "GPU-1", &err), -ENOTSUP, "does not know that");
}

TEST(each_decision_is_a_line_and_a_verdict_tells_of_each_tenant)
{
	struct ll_message_decision decisions[] = {
	    {.number = 7,
	     .age_ns = 1500 * LL_NS_PER_MS,
	     .moves = LL_REGIME_MOVE_MEASURES,
	     .why = LL_REGIME_MEASURES,
	     .block = 1,
	     .jobs = 1},
	    {.number = 8, .moves = LL_REGIME_MOVE_MEASURES, .why = LL_REGIME_MEASURES, .block = 5},
	    {.number = 9,
	     .gain = 0.69314718,
	     .moves = LL_REGIME_MOVE_BLOCK | LL_REGIME_MOVE_VERDICT | LL_REGIME_MOVE_OUTPUT,
	     .why = LL_REGIME_PAYS,
	     .flags = LL_DECISION_GIVES_VISITS,
	     .jobs = 2},
	    {.number = 10, .moves = LL_REGIME_MOVE_OUTPUT, .why = LL_REGIME_NO_REASON, .flags = LL_DECISION_IS_RULED},
	};
	struct ll_message_decision_job jobs[] = {
	    {.number = 7, .tenant = "serve"},
	    {.number = 9, .tenant = "serve", .slices = 10, .visits = 45, .alone = 100},
	    {.number = 9, .tenant = "train", .slices = 30, .visits = 20}};
	const struct ll_decision_list list = {
	    .decisions = decisions, .decision_count = 4, .jobs = jobs, .job_count = 3};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	setenv("TZ", "UTC", 1);
	ll_decision_list_add_text(&text, &list, "2", UINT64_C(1800000000) * LL_NS_PER_S);
	assert_string_equal(
	    text.buf,
	    "2027-01-15 07:59:58.500  card 2  slices  block 2 of 4 is measured\n"
	    "2027-01-15 08:00:00.000  card 2  slices  block 6 of 8 is measured\n"
	    "2027-01-15 08:00:00.000  card 2  visits  verdict: visits pay, 2.00 times the progress by slices\n"
	    "    serve: 10.0 launches/s by slices (0.10 of its speed), 45.0 launches/s by visits (0.45 of its speed)\n"
	    "    train: 30.0 launches/s by slices, 20.0 launches/s by visits\n"
	    "2027-01-15 08:00:00.000  card 2  slices  a rule serves these programs (classes, MPS, several cards): "
	    "nothing is measured\n");
}

TEST(each_step_of_the_lever_is_a_line_with_the_part_and_why)
{
	struct ll_message_decision decisions[] = {
	    {.number = 1,
	     .lever = LL_LEVER_MOVE_SPARSE,
	     .part = 1,
	     .from_part = 0.3,
	     .busy = 0.096,
	     .rank = 1,
	     .jobs = 1},
	    {.number = 2, .lever = LL_LEVER_MOVE_DENSE, .part = 0.5, .from_part = 1, .busy = 0.12, .rank = 2},
	    {.number = 3, .lever = LL_LEVER_MOVE_UNSEEN, .part = 0.5, .from_part = 0.5, .rank = 1},
	    {.number = 4, .lever = LL_LEVER_MOVE_FOUND, .part = 0.54, .from_part = 0.5, .rank = 1, .jobs = 2},
	    {.number = 5, .lever = LL_LEVER_MOVE_MENDED, .part = 0.56, .from_part = 0.54, .rank = 1},
	    {.number = 6, .lever = LL_LEVER_MOVE_STAYS, .part = 0.56, .from_part = 0.56, .rank = 1},
	    {.number = 7, .lever = 99, .part = 0.56, .from_part = 0.56, .rank = 99},
	};
	struct ll_message_decision_job jobs[] = {
	    {.number = 1, .tenant = "serve", .held_launches = 50, .held_s = 0.5, .open_launches = 30, .open_s = 0.5},
	    {.number = 4,
	     .tenant = "serve",
	     .slowdown_permille = 1300,
	     .held_launches = 50,
	     .held_s = 0.5,
	     .open_launches = 30,
	     .open_s = 0.6},
	    {.number = 4, .tenant = "new", .slowdown_permille = 1300, .held_launches = 5, .held_s = 0.01}};
	const struct ll_decision_list list = {
	    .decisions = decisions, .decision_count = 7, .jobs = jobs, .job_count = 3};
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	setenv("TZ", "UTC", 1);
	ll_decision_list_add_text(&text, &list, "2", UINT64_C(1800000000) * LL_NS_PER_S);
#define AT "2027-01-15 08:00:00.000  card 2  class "
	assert_string_equal(
	    text.buf, AT
	    "high  lower classes are held for 100 % of its time, before 30 %: it seldom has work (10 % of the "
	    "time)\n" AT
	    "normal  lower classes are held for 50 % of its time, before 100 %: it has work for 12 % of the time, its "
	    "speeds are not known yet\n" AT
	    "high  lower classes are held for 50 % of its time, as before: its speeds are not known yet\n" AT
	    "high  lower classes are held for 54 % of its time, before 50 %: its speeds are known\n"
	    "    serve: 1.33 times as slow as alone, 1.30 is accepted: 100.0 launches/s while they are held, 50.0 "
	    "while "
	    "not\n" AT
	    "high  lower classes are held for 56 % of its time, before 54 %: a step towards what it needs\n" AT
	    "high  lower classes are held for 56 % of its time, as before: this is what it needs\n" AT
	    "unknown  lower classes are held for 56 % of its time, as before: for a reason that this version does not "
	    "know\n");
}
