#include "protocol/message.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "test.h"

enum { PADDED = 64 };

/* One good message of each kind. */
static void make(union ll_message *message, unsigned kind)
{
	ll_message_init(message, (enum ll_message_kind)kind);
	message->header.serial = 7;
	switch (kind) {
	case LL_MESSAGE_HELLO:
		message->hello.protocol = LL_PROTOCOL_VERSION;
		message->hello.role = LL_ROLE_COMMAND;
		strcpy(message->hello.version_text, "0.1.0");
		break;
	case LL_MESSAGE_WELCOME:
		message->welcome.protocol = LL_PROTOCOL_VERSION;
		strcpy(message->welcome.version_text, "0.1.0");
		break;
	case LL_MESSAGE_REFUSED:
		message->refused.code = -EBUSY;
		strcpy(message->refused.reason, "busy");
		break;
	case LL_MESSAGE_JOB:
		message->job.job.token[0] = 1;
		message->job.job.state = LL_JOB_RUNNING;
		strcpy(message->job.job.tenant, "名字");
		break;
	case LL_MESSAGE_JOB_ROW:
		message->job_row.number = 1;
		message->job_row.job.token[1] = 1;
		message->job_row.job.state = LL_JOB_QUEUED;
		strcpy(message->job_row.job.tenant, "a");
		break;
	case LL_MESSAGE_TENANT_ROW:
		message->tenant_row.number = 1;
		break;
	case LL_MESSAGE_DECISIONS:
		strcpy(message->decisions.uuid, "GPU-1");
		break;
	case LL_MESSAGE_DECISION:
		message->decision.number = 1;
		break;
	case LL_MESSAGE_DECISION_JOB:
		message->decision_job.number = 1;
		break;
	default:
		break;
	}
}

TEST(each_kind_is_decoded_as_it_was_made)
{
	for (unsigned kind = LL_MESSAGE_HELLO; kind <= LL_MESSAGE_TENANT_ROW; kind++) {
		union ll_message message, decoded;
		make(&message, kind);
		assert_true(message.header.size >= sizeof message.header);
		memset(&decoded, 0xaa, sizeof decoded);
		assert_int_equal(ll_message_decode(&message, message.header.size, &decoded), 0);
		assert_memory_equal(&decoded, &message, sizeof message);
	}
}

/* Another version may add fields, and may not have those that this one added. */
TEST(a_longer_message_is_taken_as_far_as_it_is_known)
{
	for (unsigned kind = LL_MESSAGE_HELLO; kind <= LL_MESSAGE_TENANT_ROW; kind++) {
		union ll_message message, decoded;
		char bytes[sizeof message + PADDED];
		make(&message, kind);
		size_t size = message.header.size;
		message.header.size = (uint16_t)(size + PADDED);
		memset(bytes, 0xff, sizeof bytes);
		memcpy(bytes, &message, size);
		assert_int_equal(ll_message_decode(bytes, size + PADDED, &decoded), 0);
		assert_memory_equal(&decoded, &message, sizeof message);
	}
}

/* Of the first version of the kind. */
static size_t first_size(const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_WELCOME:
		return offsetof(struct ll_message_welcome, last_job);
	case LL_MESSAGE_JOB:
		return offsetof(struct ll_message_job, program);
	case LL_MESSAGE_SET:
		return offsetof(struct ll_message_set, reason);
	case LL_MESSAGE_ACCEPTED:
		return offsetof(struct ll_message_accepted, limits);
	case LL_MESSAGE_JOB_ROW:
		return offsetof(struct ll_message_job_row, tenant);
	default:
		return message->header.size;
	}
}

TEST(what_an_older_version_does_not_say_is_zero)
{
	union ll_message message, decoded;
	make(&message, LL_MESSAGE_WELCOME);
	message.welcome.bad_messages = 7;
	message.welcome.last_job = 9;
	message.header.size = (uint16_t)first_size(&message);
	assert_int_equal(ll_message_decode(&message, message.header.size, &decoded), 0);
	assert_int_equal(decoded.welcome.bad_messages, 7);
	assert_int_equal(decoded.welcome.last_job, 0);
	make(&message, LL_MESSAGE_DECISION);
	message.decision.gain = 0.5;
	message.decision.part = message.decision.weighed_s = 0.25;
	message.header.size = offsetof(struct ll_message_decision, part);
	assert_int_equal(ll_message_decode(&message, message.header.size, &decoded), 0);
	assert_true(decoded.decision.gain > 0 && decoded.decision.part == 0 && decoded.decision.weighed_s == 0);
	make(&message, LL_MESSAGE_DECISION_JOB);
	message.decision_job.alone = message.decision_job.open_s = 2;
	message.header.size = offsetof(struct ll_message_decision_job, held_launches);
	assert_int_equal(ll_message_decode(&message, message.header.size, &decoded), 0);
	assert_true(decoded.decision_job.alone > 0 && decoded.decision_job.open_s == 0);
}

TEST(what_is_cut_or_says_another_length_is_refused)
{
	for (unsigned kind = LL_MESSAGE_HELLO; kind <= LL_MESSAGE_TENANT_ROW; kind++) {
		union ll_message message, decoded;
		make(&message, kind);
		size_t size = message.header.size, first = first_size(&message);
		for (size_t length = 0; length < first; length++) {
			assert_int_equal(ll_message_decode(&message, length, &decoded), -EPROTO);
			message.header.size = (uint16_t)length;
			assert_int_equal(ll_message_decode(&message, length, &decoded), -EPROTO);
			message.header.size = (uint16_t)size;
		}
		message.header.size++;
		assert_int_equal(ll_message_decode(&message, size, &decoded), -EPROTO);
	}
}

TEST(a_kind_that_is_not_known_is_told_apart_from_garbage)
{
	static const uint16_t unknown[] = {0, 900, 1000, UINT16_MAX};
	for (size_t i = 0; i < sizeof unknown / sizeof *unknown; i++) {
		struct ll_message_header header = {.kind = unknown[i], .size = sizeof header, .serial = 9};
		union ll_message decoded;
		assert_int_equal(ll_message_decode(&header, sizeof header, &decoded), -ENOTSUP);
		assert_int_equal(decoded.header.serial, 9);
	}
}

/* ---- each field that must be checked ---- */

struct damage {
	unsigned kind;
	size_t offset;
	size_t length;
	unsigned char byte;
};

#define DAMAGE(kind, type, member, length, byte)                                                                       \
	{                                                                                                              \
		LL_MESSAGE_##kind, offsetof(struct ll_message_##type, member), length, byte                            \
	}

static const struct damage damages[] = {
    DAMAGE(HELLO, hello, protocol, 4, 0),
    DAMAGE(HELLO, hello, role, 4, 0),
    DAMAGE(HELLO, hello, role, 1, 9),
    DAMAGE(HELLO, hello, version_text, LL_VERSION_SIZE, 'x'), /* no NUL */
    DAMAGE(HELLO, hello, version_text, 1, '\n'),
    DAMAGE(HELLO, hello, version_text, 1, 0xff), /* not UTF-8 */
    DAMAGE(WELCOME, welcome, protocol, 4, 0),
    DAMAGE(WELCOME, welcome, version_text, LL_VERSION_SIZE, 'x'),
    DAMAGE(REFUSED, refused, code, 4, 0),
    DAMAGE(REFUSED, refused, reason, LL_REASON_SIZE, 'x'),
    DAMAGE(JOB, job, job.token, 16, 0),
    DAMAGE(JOB, job, job.limits.compute_permille, 4, 0x7f),
    DAMAGE(JOB, job, job.limits.space_permille, 4, 0x7f),
    DAMAGE(JOB, job, job.limits.weight_permille, 4, 0x7f),
    DAMAGE(JOB, job, job.limits.priority, 1, 3),
    DAMAGE(JOB, job, job.limits.sharing, 2, 3),
    DAMAGE(JOB, job, job.limits.slowdown_permille, 2, 3), /* 771 */
    DAMAGE(JOB, job, job.limits.slowdown_permille, 2, 0x28),
    DAMAGE(JOB, job, job.state, 1, 0),
    DAMAGE(JOB, job, job.state, 1, 7),
    DAMAGE(JOB, job, job.tenant, 1, 0),
    DAMAGE(JOB, job, job.tenant, LL_NAME_SIZE, 'x'),
    DAMAGE(JOB, job, job.command, 1, 0x1b), /* an escape sequence for the terminal of `status` */
    DAMAGE(JOB, job, job.cgroup, LL_CGROUP_SIZE, 'x'),
    DAMAGE(JOB, job, program_name, 1, '\t'),
    DAMAGE(JOB, job, program_name, LL_PROGRAM_NAME_SIZE, 'x'),
    DAMAGE(JOB_ROW, job_row, number, 8, 0),
    DAMAGE(JOB_ROW, job_row, job.state, 1, 99),
    DAMAGE(JOB_ROW, job_row, job.cgroup, LL_CGROUP_SIZE, 'x'),
    DAMAGE(TENANT_ROW, tenant_row, number, 8, 0),
    DAMAGE(TENANT_ROW, tenant_row, limits.priority, 1, 99),
    DAMAGE(TENANT_ROW, tenant_row, name, LL_NAME_SIZE, 'x'),
    DAMAGE(DECISIONS, decisions, uuid, 1, 0),
    DAMAGE(DECISIONS, decisions, uuid, LL_CARD_UUID_SIZE, 'x'),
    DAMAGE(DECISIONS_STATE, decisions_state, mix, 1, LL_DECISION_MIXES + 1),
    DAMAGE(DECISIONS_STATE, decisions_state, gain, 8, 0xff), /* not a number */
    DAMAGE(DECISIONS_STATE, decisions_state, mixes[7].gain, 8, 0xff),
    DAMAGE(DECISION, decision, number, 8, 0),
    DAMAGE(DECISION, decision, gain, 8, 0xff),
    DAMAGE(DECISION, decision, part, 8, 0xff),
    DAMAGE(DECISION, decision, from_part, 8, 0xff),
    DAMAGE(DECISION, decision, busy, 8, 0xff),
    DAMAGE(DECISION, decision, weighed_s, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, number, 8, 0),
    DAMAGE(DECISION_JOB, decision_job, held_launches, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, held_s, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, open_launches, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, open_s, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, visits, 8, 0xff),
    DAMAGE(DECISION_JOB, decision_job, tenant, LL_NAME_SIZE, 'x'),
};

TEST(a_field_out_of_its_range_is_refused)
{
	for (size_t i = 0; i < sizeof damages / sizeof *damages; i++) {
		union ll_message message, decoded;
		make(&message, damages[i].kind);
		assert_int_equal(ll_message_decode(&message, message.header.size, &decoded), 0);
		memset((char *)&message + damages[i].offset, damages[i].byte, damages[i].length);
		if (ll_message_decode(&message, message.header.size, &decoded) != -EPROTO)
			fail_msg("damage %zu: kind %u, offset %zu was taken", i, damages[i].kind, damages[i].offset);
	}
}

TEST(texts_are_cut_between_characters_and_made_printable)
{
	char text[8];
	ll_message_text_set(text, sizeof text, "名字名字");
	assert_string_equal(text, "名字");
	ll_message_text_set(text, sizeof text, "a\033b\377");
	assert_string_equal(text, "a?b?");
	assert_true(ll_message_text_is_valid(text, sizeof text));
}

TEST(versions_are_ordered)
{
	static const char *const order[] = {"0.1.0", "0.1.1", "0.2.0", "0.10.0", "1.0.0", "1.0.1-rc1", "12.0.0"};
	for (size_t i = 1; i < sizeof order / sizeof *order; i++)
		assert_true(ll_version_number(order[i - 1]) < ll_version_number(order[i]));
	static const char *const bad[] = {"", "x", "1", "1.2", "1.2.", ".1.2", "-1.2.3"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ll_version_number(bad[i]), 0);
}

static size_t open_fds(void)
{
	size_t count = 0;
	for (int fd = 0; fd < 256; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

TEST(descriptors_of_what_is_no_message_are_closed)
{
	union ll_message message, received;
	int ends[2], fds[LL_MESSAGE_FDS], many[LL_MESSAGE_FDS + 1] = {0};
	size_t count = 99;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	size_t before = open_fds();
	make(&message, LL_MESSAGE_HELLO);
	message.hello.role = 99;
	assert_int_equal(ll_message_send(ends[0], &message, many, 2), 0);
	assert_int_equal(ll_message_receive(ends[1], &received, fds, &count), -EPROTO);
	assert_int_equal(count, 0);
	make(&message, LL_MESSAGE_HELLO);
	assert_int_equal(ll_message_send(ends[0], &message, many, LL_MESSAGE_FDS + 1), 0);
	assert_int_equal(ll_message_receive(ends[1], &received, fds, &count), -EPROTO);
	assert_int_equal(open_fds(), before);
	assert_int_equal(ll_message_receive(ends[1], &received, fds, &count), -EAGAIN);
	close(ends[0]);
	assert_int_equal(ll_message_receive(ends[1], &received, fds, &count), -EPIPE);
	close(ends[1]);
}

TEST(what_was_said_before_a_reset_is_heard)
{
	union ll_message message, received;
	int ends[2], fds[LL_MESSAGE_FDS];
	size_t count;
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends), 0);
	make(&message, LL_MESSAGE_HELLO);
	assert_int_equal(ll_message_send(ends[0], &message, NULL, 0), 0); /* stays unread */
	make(&message, LL_MESSAGE_REFUSED);
	assert_int_equal(ll_message_send(ends[1], &message, NULL, 0), 0);
	close(ends[1]);
	assert_int_equal(ll_message_receive(ends[0], &received, fds, &count), 0);
	assert_int_equal(received.header.kind, LL_MESSAGE_REFUSED);
	assert_int_equal(ll_message_receive(ends[0], &received, fds, &count), -EPIPE);
	close(ends[0]);
}
