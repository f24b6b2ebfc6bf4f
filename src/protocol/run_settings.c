#include "protocol/run_settings.h"

#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/utf8.h"

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-+@:";

bool ll_tenant_name_may_have(uint32_t character)
{
	if (character < 0x80)
		return character && strchr(name_letters, (int)character);
	return ll_utf8_is_printable(character) && !ll_utf8_is_blank(character);
}

bool ll_tenant_name_is_valid(const char *name)
{
	uint32_t character;
	size_t length = strlen(name);
	if (!length || length >= LL_TENANT_NAME_SIZE)
		return false;
	while ((length = ll_utf8_next(name, &character))) {
		if (!ll_tenant_name_may_have(character))
			return false;
		name += length;
	}
	return true;
}

/* ---- the keys, in the order in which they are written ---- */

enum field_kind {
	FIELD_HEX,
	FIELD_LONG,
	FIELD_NUMBER,
	FIELD_PRIORITY,
	FIELD_FLAG,
	FIELD_TENANT,
	FIELD_CARD,
	FIELD_PLACE
};

struct field {
	const char *key;
	enum field_kind kind;
	size_t offset;
	uint64_t min, max; /* of a number */
};

#define FIELD(key, kind, member, min, max)                                                                             \
	{                                                                                                              \
		key, kind, offsetof(struct ll_run_settings, member), min, max                                          \
	}
#define PERMILLE_MAX 1000
#define WEIGHT_MAX 100000
#define SLOWDOWN_MAX 10000

static const struct field fields[] = {
    FIELD("id", FIELD_HEX, id, 1, UINT64_MAX),
    FIELD("tenant", FIELD_TENANT, tenant, 0, 0),
    FIELD("mem", FIELD_LONG, memory_limit_bytes, 0, UINT64_MAX),
    FIELD("request", FIELD_LONG, memory_request_bytes, 0, UINT64_MAX),
    FIELD("compute", FIELD_NUMBER, compute_cap_permille, 0, PERMILLE_MAX),
    FIELD("weight", FIELD_NUMBER, weight_permille, 0, WEIGHT_MAX),
    FIELD("slowdown", FIELD_NUMBER, slowdown_permille, 0, SLOWDOWN_MAX),
    FIELD("space", FIELD_NUMBER, space_permille, 0, PERMILLE_MAX),
    FIELD("priority", FIELD_PRIORITY, priority, LL_PRIORITY_HIGH, LL_PRIORITY_LOW),
    FIELD("context", FIELD_FLAG, counts_context, 0, 1),
    FIELD("max-kernel", FIELD_LONG, max_kernel_ns, 0, UINT64_MAX),
    FIELD("kill", FIELD_FLAG, kills_at_max_kernel, 0, 1),
    FIELD("strict", FIELD_FLAG, is_strict, 0, 1),
    FIELD("evictable", FIELD_FLAG, is_evictable, 0, 1),
    FIELD("no-neighbour", FIELD_FLAG, avoids_neighbours, 0, 1),
    FIELD("first", FIELD_CARD, first_card, 0, 0),
    FIELD("place", FIELD_PLACE, place, 0, 0),
};
enum { FIELDS = sizeof fields / sizeof *fields };

/* It is the last key, because a path may contain any character. */
static const char folder_key[] = "folder=";
static const char card_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_/.:";

static uint64_t get_number(const struct ll_run_settings *settings, const struct field *field)
{
	const void *at = (const char *)settings + field->offset;
	switch (field->kind) {
	case FIELD_NUMBER:
		return *(const unsigned *)at;
	case FIELD_PRIORITY:
		return *(const enum ll_priority *)at;
	case FIELD_FLAG:
		return *(const bool *)at;
	default:
		return *(const uint64_t *)at;
	}
}

static void set_number(struct ll_run_settings *settings, const struct field *field, uint64_t number)
{
	void *at = (char *)settings + field->offset;
	switch (field->kind) {
	case FIELD_NUMBER:
		*(unsigned *)at = (unsigned)number;
		break;
	case FIELD_PRIORITY:
		*(enum ll_priority *)at = (enum ll_priority)number;
		break;
	case FIELD_FLAG:
		*(bool *)at = number != 0;
		break;
	default:
		*(uint64_t *)at = number;
		break;
	}
}

static bool is_text(const struct field *field)
{
	return field->kind == FIELD_TENANT || field->kind == FIELD_CARD || field->kind == FIELD_PLACE;
}

int ll_run_settings_write(const struct ll_run_settings *settings, char ret_text[LL_RUN_TEXT_SIZE])
{
	size_t used = 0;
	if (!ll_tenant_name_is_valid(settings->tenant))
		return -EINVAL;
	for (size_t i = 0; i < FIELDS && used < LL_RUN_TEXT_SIZE; i++) {
		const struct field *field = &fields[i];
		char *at = ret_text + used;
		size_t room = LL_RUN_TEXT_SIZE - used;
		int length;
		if (is_text(field))
			length = snprintf(at, room, "%s=%s;", field->key, (const char *)settings + field->offset);
		else if (field->kind == FIELD_HEX)
			length = snprintf(at, room, "%s=%" PRIx64 ";", field->key, get_number(settings, field));
		else
			length = snprintf(at, room, "%s=%" PRIu64 ";", field->key, get_number(settings, field));
		used += (size_t)length;
	}
	if (used < LL_RUN_TEXT_SIZE)
		used +=
		    (size_t)snprintf(ret_text + used, LL_RUN_TEXT_SIZE - used, "%s%s", folder_key, settings->folder);
	return used < LL_RUN_TEXT_SIZE ? 0 : -ENAMETOOLONG;
}

/* Only digits are allowed: strtoull would also accept a sign, blanks, and an empty text. */
static bool read_number(const char *value, const struct field *field, struct ll_run_settings *settings)
{
	bool is_hex = field->kind == FIELD_HEX;
	size_t length = strlen(value);
	if (!length || strspn(value, is_hex ? "0123456789abcdef" : "0123456789") != length)
		return false;
	errno = 0;
	unsigned long long number = strtoull(value, NULL, is_hex ? 16 : 10);
	if (errno || number < field->min || number > field->max)
		return false;
	set_number(settings, field, number);
	return true;
}

static bool read_text(const char *value, char *ret_text, size_t size)
{
	size_t length = strlen(value);
	if (length >= size)
		return false;
	memcpy(ret_text, value, length + 1);
	return true;
}

static bool read_place(const char *value, struct ll_run_settings *settings)
{
	struct ll_place place;
	return (!*value || ll_place_read(value, &place) == 0) &&
	       read_text(value, settings->place, sizeof settings->place);
}

static bool read_value(const char *value, const struct field *field, struct ll_run_settings *settings)
{
	if (field->kind == FIELD_TENANT)
		return ll_tenant_name_is_valid(value) && read_text(value, settings->tenant, sizeof settings->tenant);
	if (field->kind == FIELD_CARD)
		return strspn(value, card_letters) == strlen(value) &&
		       read_text(value, settings->first_card, sizeof settings->first_card);
	if (field->kind == FIELD_PLACE)
		return read_place(value, settings);
	return read_number(value, field, settings);
}

/* Reads "key=value". Each key may come once. */
static bool read_pair(char *pair, struct ll_run_settings *settings, unsigned *seen)
{
	char *value = strchr(pair, '=');
	if (!value)
		return false;
	*value++ = '\0';
	for (unsigned i = 0; i < FIELDS; i++) {
		if (strcmp(pair, fields[i].key) != 0)
			continue;
		bool is_again = *seen & (1U << i);
		*seen |= 1U << i;
		return !is_again && read_value(value, &fields[i], settings);
	}
	return false;
}

static bool read_all(char *text, struct ll_run_settings *settings)
{
	unsigned seen = 0;
	size_t folder_length = sizeof folder_key - 1;
	while (strncmp(text, folder_key, folder_length) != 0) {
		char *end = strchr(text, ';');
		if (!end)
			return false;
		*end = '\0';
		if (!read_pair(text, settings, &seen))
			return false;
		text = end + 1;
	}
	return seen == (1U << FIELDS) - 1 && text[folder_length] == '/' &&
	       read_text(text + folder_length, settings->folder, sizeof settings->folder);
}

int ll_run_settings_read(const char *text, struct ll_run_settings *ret_settings)
{
	char copy[LL_RUN_TEXT_SIZE];
	struct ll_run_settings settings = {0};
	int code = errno;
	bool is_good = read_text(text, copy, sizeof copy) && read_all(copy, &settings);
	errno = code;
	if (!is_good)
		return -EINVAL;
	*ret_settings = settings;
	return 0;
}

bool ll_run_settings_ask_limits(const struct ll_run_settings *settings)
{
	bool has_weight = settings->weight_permille && settings->weight_permille != LL_DEFAULT_WEIGHT_PERMILLE;
	return settings->memory_limit_bytes || settings->compute_cap_permille || settings->max_kernel_ns ||
	       settings->is_strict || has_weight || settings->slowdown_permille ||
	       settings->priority != LL_PRIORITY_NORMAL;
}
