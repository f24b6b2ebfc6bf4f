#include "protocol/message.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/utf8.h"
#include "protocol/page.h"
#include "protocol/words.h"

enum { PERMILLE_MAX = 1000, WEIGHT_MAX = 100000, SLOWDOWN_MIN = 1000, SLOWDOWN_MAX = 10000 };

int ll_message_text_is_valid(const char *text, size_t size)
{
	uint32_t character;
	size_t length;
	if (!memchr(text, '\0', size))
		return false;
	for (; (length = ll_utf8_next(text, &character)); text += length) {
		if (!ll_utf8_is_printable(character))
			return false;
	}
	return true;
}

void ll_message_text_set(char *ret_text, size_t size, const char *text)
{
	memset(ret_text, 0, size);
	snprintf(ret_text, size, "%s", text);
	ll_utf8_clean(ret_text);
}

bool ll_limits_are_valid(const struct ll_limits *limits)
{
	return limits->compute_permille <= PERMILLE_MAX && limits->space_permille <= PERMILLE_MAX &&
	       limits->weight_permille <= WEIGHT_MAX && limits->priority <= LL_LIMIT_CLASS_LOW &&
	       limits->sharing <= LL_LIMIT_SHARING_HELD_ALL && limits->slowdown_permille <= SLOWDOWN_MAX &&
	       (limits->slowdown_permille >= SLOWDOWN_MIN || !limits->slowdown_permille);
}

/* ---- the kinds and their fields, as rows.def has them ---- */

static const struct kind {
	uint16_t first_size; /* in version 1 */
	uint16_t size;       /* now */
	uint16_t like;       /* the kind that has its fields in rows.def */
} kinds[] = {
#define SIZES(kind, member, first_size, like)                                                                          \
	[LL_MESSAGE_##kind] = {first_size, sizeof((union ll_message *)0)->member, LL_MESSAGE_##like},
#define LL_KIND(kind, member, bytes) SIZES(kind, member, bytes, kind)
#define LL_KIND_GREW(kind, member, bytes, field) SIZES(kind, member, bytes, kind)
#define LL_KIND_LIKE(kind, member, like) SIZES(kind, member, sizeof((union ll_message *)0)->member, like)
#include "protocol/rows.def"
};
enum { KINDS = sizeof kinds / sizeof *kinds };

#define LL_KIND(kind, member, bytes)                                                                                   \
	_Static_assert(sizeof((union ll_message *)0)->member == (bytes), "the size of version 1");
#define LL_KIND_GREW(kind, member, bytes, field)                                                                       \
	_Static_assert(offsetof(union ll_message, member.field) == (bytes), "the size of version 1");
#include "protocol/rows.def"
_Static_assert(sizeof(union ll_message) <= LL_MESSAGE_MAX, "a packet holds it");

enum check {
	IS_ANYTHING,
	IS_TEXT,
	IS_NAME,
	IS_IN_RANGE,
	IS_INDEX,
	IS_ERROR,
	ARE_LIMITS,
	IS_FINITE,
	IS_AMOUNT,
	MAY_BE_NAN
};

#define ANYTHING IS_ANYTHING, 0, 0
#define TEXT IS_TEXT, 0, 0
#define NAME IS_NAME, 0, 0
#define NUMBER IS_IN_RANGE, 1, UINT64_MAX
#define UP_TO(most) IS_IN_RANGE, 0, most
#define ONE_TO(most) IS_IN_RANGE, 1, most
#define INDEX IS_INDEX, 0, 0
#define ERROR IS_ERROR, 0, 0
#define LIMITS ARE_LIMITS, 0, 0
#define FINITE IS_FINITE, 0, 0
#define AMOUNT IS_AMOUNT, 0, 0
#define AMOUNT_OR_NAN MAY_BE_NAN, 0, 0

static const struct field {
	uint16_t kind, privacy, at, size;
	enum check check;
	uint64_t least, most;
} fields[] = {
#define LL_FIELD(kind, member, field, check, who)                                                                      \
	{LL_MESSAGE_##kind, LL_ROW_##who, offsetof(union ll_message, member.field),                                    \
	 sizeof((union ll_message *)0)->member.field, check},
#include "protocol/rows.def"
};
enum { FIELDS = sizeof fields / sizeof *fields };

static const struct kind *find_kind(unsigned number)
{
	return number < KINDS && kinds[number].size ? &kinds[number] : NULL;
}

static uint64_t number_at(const void *at, size_t size)
{
	union {
		uint16_t narrow;
		uint32_t usual;
		uint64_t wide;
	} number;
	memcpy(&number, at, size);
	return size == sizeof number.wide ? number.wide : size == sizeof number.usual ? number.usual : number.narrow;
}

static bool is_valid(const struct field *field, const union ll_message *message)
{
	const char *at = (const char *)message + field->at;
	double real;
	int32_t whole;
	switch (field->check) {
	case IS_ANYTHING:
		return true;
	case IS_NAME:
		return *at && ll_message_text_is_valid(at, field->size);
	case IS_TEXT:
		return ll_message_text_is_valid(at, field->size);
	case IS_IN_RANGE: {
		uint64_t number = number_at(at, field->size);
		return number >= field->least && number <= field->most;
	}
	case IS_INDEX:
		memcpy(&whole, at, sizeof whole);
		return whole >= -1;
	case IS_ERROR:
		memcpy(&whole, at, sizeof whole);
		return whole < 0;
	case ARE_LIMITS:
		return ll_limits_are_valid((const struct ll_limits *)(const void *)at);
	case IS_FINITE:
		memcpy(&real, at, sizeof real);
		return isfinite(real);
	case IS_AMOUNT:
		memcpy(&real, at, sizeof real);
		return isfinite(real) && real >= 0;
	case MAY_BE_NAN:
		memcpy(&real, at, sizeof real);
		return isnan(real) || (isfinite(real) && real >= 0);
	}
	return false;
}

/* What goes by two fields, and lists. */
static bool is_whole(const union ll_message *message)
{
	bool is_good = true;
	switch (message->header.kind) {
	case LL_MESSAGE_JOB:
		return message->job.job.token[0] || message->job.job.token[1];
	case LL_MESSAGE_JOB_ROW:
		return message->job_row.job.token[0] || message->job_row.job.token[1];
	case LL_MESSAGE_REPORT:
		return message->report.since_s <= message->report.until_s;
	case LL_MESSAGE_HISTORY:
		return message->history.since_s <= message->history.until_s;
	case LL_MESSAGE_ADMITTED:
		for (uint32_t i = 0; i < message->admitted.card_count; i++)
			is_good = is_good && message->admitted.uuids[i][0] &&
				  ll_message_text_is_valid(message->admitted.uuids[i], LL_CARD_UUID_SIZE);
		return is_good;
	case LL_MESSAGE_DECISIONS_STATE:
		for (size_t i = 0; i < LL_DECISION_MIXES; i++)
			is_good = is_good && isfinite(message->decisions_state.mixes[i].gain);
		return is_good;
	default:
		return true;
	}
}

void ll_row_hide(union ll_message *row, unsigned sorts, const char *name)
{
	for (size_t i = 0; i < FIELDS; i++) {
		const struct field *field = &fields[i];
		if (field->kind != row->header.kind || !(field->privacy & sorts))
			continue;
		if (field->privacy == LL_ROW_MADE_NAME)
			ll_message_text_set((char *)row + field->at, field->size, name);
		else
			memset((char *)row + field->at, 0, field->size);
	}
}

/* ---- packets ---- */

uint64_t ll_version_number(const char *text)
{
	uint64_t number = 0;
	for (int part = 0; part < 3; part++) {
		char *end;
		if (*text < '0' || *text > '9')
			return 0;
		unsigned long value = strtoul(text, &end, 10);
		number = (number << 16) | (value < UINT16_MAX ? value : UINT16_MAX);
		if (part < 2 && *end != '.')
			return 0;
		text = end + 1;
	}
	return number;
}

int ll_message_decode(const void *bytes, size_t length, union ll_message *ret_message)
{
	union ll_message message;
	memset(&message, 0, sizeof message);
	if (length < sizeof message.header || length > LL_MESSAGE_MAX)
		return -EPROTO;
	memcpy(&message.header, bytes, sizeof message.header);
	if (message.header.size != length)
		return -EPROTO;
	const struct kind *kind = find_kind(message.header.kind);
	if (!kind) {
		ret_message->header = message.header;
		return -ENOTSUP;
	}
	if (length < kind->first_size)
		return -EPROTO;
	memcpy(&message, bytes, length < kind->size ? length : kind->size);
	for (size_t i = 0; i < FIELDS; i++) {
		if (fields[i].kind == kind->like && !is_valid(&fields[i], &message))
			return -EPROTO;
	}
	if (!is_whole(&message))
		return -EPROTO;
	*ret_message = message;
	return 0;
}

void ll_message_init(union ll_message *message, enum ll_message_kind kind)
{
	const struct kind *known = find_kind(kind);
	memset(message, 0, sizeof *message);
	message->header.kind = (uint16_t)kind;
	message->header.size = known ? known->size : (uint16_t)sizeof message->header;
}

void ll_message_init_hello(union ll_message *message, enum ll_message_role role, const char *version)
{
	ll_message_init(message, LL_MESSAGE_HELLO);
	message->hello.protocol = LL_PROTOCOL_VERSION;
	message->hello.role = role;
	if (!version)
		return;
	message->hello.version = ll_version_number(version);
	ll_message_text_set(message->hello.version_text, sizeof message->hello.version_text, version);
}

int ll_message_send(int fd, const union ll_message *message, const int *fds, size_t fd_count)
{
	return ll_packet_send(fd, message, message->header.size, fds, fd_count);
}

void ll_message_close_fds(const int *fds, size_t count)
{
	for (size_t i = 0; i < count; i++)
		close(fds[i]);
}

int ll_message_receive(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count)
{
	char bytes[LL_MESSAGE_MAX];
	size_t length = 0, count = 0;
	int rc =
	    ll_packet_receive_up_to(fd, MSG_DONTWAIT, bytes, sizeof bytes, &length, ret_fds, LL_MESSAGE_FDS, &count);
	/* If the other side closed while messages of ours were unread, it may have sent a reason before. The kernel
	 * reports the reset first, once. */
	if (rc == -ECONNRESET)
		rc = ll_packet_receive_up_to(fd, MSG_DONTWAIT, bytes, sizeof bytes, &length, ret_fds, LL_MESSAGE_FDS,
					     &count);
	if (rc)
		return rc;
	rc = ll_message_decode(bytes, length, ret_message);
	if (rc) {
		ll_message_close_fds(ret_fds, count);
		count = 0;
	}
	*ret_fd_count = count;
	return rc;
}
