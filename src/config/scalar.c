/* How a scalar is written: reads each kind, and makes the one spelling of it. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/nearest.h"
#include "base/parse.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "config/value.h"

enum { CARDS_MAX = 4096, SLICES_MAX = 64, NAME_MAX_LENGTH = 64 };

struct scale {
	const char *unit;
	uint64_t factor;
};

static const struct scale bytes_scales[] = {
    {"T", UINT64_C(1) << 40}, {"G", UINT64_C(1) << 30}, {"M", UINT64_C(1) << 20}, {"K", UINT64_C(1) << 10}, {"", 1}};
static const struct scale time_scales[] = {{"d", 86400 * LL_NS_PER_S},
					   {"h", 3600 * LL_NS_PER_S},
					   {"m", 60 * LL_NS_PER_S},
					   {"s", LL_NS_PER_S},
					   {"ms", LL_NS_PER_MS},
					   {"us", LL_NS_PER_US},
					   {"ns", 1}};

/* The largest unit of which the number is a whole multiple. */
static void add_scaled(struct ll_strbuf *out, uint64_t number, const struct scale *scale)
{
	while (scale->factor > 1 && (number == 0 || number % scale->factor))
		scale++;
	ll_strbuf_addf(out, "%llu%s", (unsigned long long)(number / scale->factor), scale->unit);
}

/* ---- texts ---- */

static bool has_only(const char *text, const char *more)
{
	for (; *text; text++) {
		if (!isalnum((unsigned char)*text) && !strchr(more, *text))
			return false;
	}
	return true;
}

static int read_name(const char *text, struct ll_err *err)
{
	if (strlen(text) > NAME_MAX_LENGTH)
		return ll_err_set(err, -EINVAL, "'%.60s': longer than %d characters", text, NAME_MAX_LENGTH);
	if (!has_only(text, "-_.") || !isalnum((unsigned char)*text))
		return ll_err_set(err, -EINVAL, "'%.60s': a name has letters, digits, '-', '_' and '.' only", text);
	return 0;
}

static int read_user(const char *text, struct ll_err *err)
{
	if (strcmp(text, "*") == 0)
		return 0;
	/* Names of directories have '\\', '@' and '+' too, and blanks inside. */
	for (const char *c = text; *c; c++) {
		if (iscntrl((unsigned char)*c) || strchr(":,/*\"'", *c))
			return ll_err_set(err, -EINVAL, "'%.60s': not the name of a user or a group", text);
	}
	return 0;
}

static int read_address(const char *text, struct ll_err *err)
{
	uint64_t port;
	const char *colon = strrchr(text, ':');
	if (strncmp(text, "unix:/", 6) == 0)
		return 0;
	if (!colon || colon == text || strchr(text, '/') || ll_parse_uint(colon + 1, 1, 65535, &port, NULL))
		return ll_err_set(err, -EINVAL, "'%.60s': not an address such as 127.0.0.1:9409 or unix:/run/file.sock",
				  text);
	return 0;
}

static int read_text(const struct ll_config_key *key, const char *text, struct ll_err *err)
{
	const char *slash = strchr(text, '/');
	if (!*text)
		return ll_err_set(err, -EINVAL, "empty");
	switch (key->kind) {
	case LL_CONFIG_NAME:
		return read_name(text, err);
	case LL_CONFIG_USER:
		return read_user(text, err);
	case LL_CONFIG_ADDRESS:
		return read_address(text, err);
	case LL_CONFIG_PATH:
		if (*text == '/' || (key->was_address && !read_address(text, NULL)))
			return 0;
		return ll_err_set(err, -EINVAL, "'%.60s': not an absolute path", text);
	case LL_CONFIG_RESOURCE:
		if (!slash || slash == text || !slash[1] || !has_only(text, "-_./") || strchr(slash + 1, '/'))
			return ll_err_set(err, -EINVAL, "'%.60s': not a resource such as example.com/card", text);
		return 0;
	default:
		return 0;
	}
}

/* ---- numbers ---- */

static bool is_bare(const char *text)
{
	return text[strspn(text, "0123456789.")] == '\0' && strspn(text, "0.") != strlen(text);
}

static int read_share(const struct ll_config_key *key, const char *text, uint64_t *ret_permille, struct ll_err *err)
{
	double percent = 0;
	if (is_bare(text))
		return ll_err_set(err, -EINVAL, "'%.60s': a share has its sign: %.50s%%?", text, text);
	int rc = ll_parse_percent(text, &percent, err);
	if (rc)
		return rc;
	if (percent < key->min || percent > key->max)
		return ll_err_set(err, -EINVAL, "'%.60s': not between %g%% and %g%%", text, key->min, key->max);
	if (fabs(percent * 10 - round(percent * 10)) > 1e-6)
		return ll_err_set(err, -EINVAL, "'%.60s': finer than 0.1%%", text);
	*ret_permille = (uint64_t)llround(percent * 10);
	return 0;
}

static int read_decimal(const struct ll_config_key *key, const char *text, double *ret_decimal, struct ll_err *err)
{
	double decimal = 0;
	if (text[strspn(text, "0123456789.")] || ll_parse_percent(text, &decimal, NULL))
		return ll_err_set(err, -EINVAL, "'%.60s': not a number such as 1500 or 0.04", text);
	if (decimal < key->min || decimal > key->max)
		return ll_err_set(err, -EINVAL, "'%.60s': not between %g and %g", text, key->min, key->max);
	*ret_decimal = decimal;
	return 0;
}

static int read_word(const char *const *words, const char *text, uint64_t *ret_number, struct ll_err *err)
{
	struct ll_nearest nearest = {.word = text};
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	for (uint64_t i = 0; words[i]; i++) {
		if (strcmp(words[i], text) == 0) {
			*ret_number = i;
			return 0;
		}
		ll_nearest_offer(&nearest, words[i]);
		ll_strbuf_addf(&list, "%s%s", i ? ", " : "", words[i]);
	}
	if (nearest.name)
		return ll_err_set(err, -EINVAL, "'%.60s': did you mean '%s'?", text, nearest.name);
	return ll_err_set(err, -EINVAL, "'%.60s': not one of %s", text, list.buf);
}

static int read_bool(const char *text, uint64_t *ret_number, struct ll_err *err)
{
	*ret_number = strcmp(text, "true") == 0;
	if (*ret_number || strcmp(text, "false") == 0)
		return 0;
	return ll_err_set(err, -EINVAL, "'%.60s': not true or false", text);
}

static int read_number(const struct ll_config_key *key, const char *text, struct ll_config_value *value,
		       struct ll_err *err)
{
	switch (key->kind) {
	case LL_CONFIG_BYTES:
		return ll_parse_bytes(text, &value->number, err);
	case LL_CONFIG_DURATION:
		if (is_bare(text)) /* 72 seconds are seldom meant here */
			return ll_err_set(err, -EINVAL, "'%.60s': no unit: %.50sh or %.50sm?", text, text, text);
		return ll_parse_duration(text, &value->number, err);
	case LL_CONFIG_SHARE:
		return read_share(key, text, &value->number, err);
	case LL_CONFIG_WORD:
		return read_word(key->words, text, &value->number, err);
	case LL_CONFIG_BOOL:
		return read_bool(text, &value->number, err);
	case LL_CONFIG_DECIMAL:
		return read_decimal(key, text, &value->decimal, err);
	default:
		return ll_parse_uint(text, (uint64_t)key->min, key->max > 0 ? (uint64_t)key->max : UINT64_MAX - 1,
				     &value->number, err);
	}
}

/* ---- cards ---- */

/* Reads a number below max. Returns the text behind it, or NULL. */
static const char *read_index(const char *text, unsigned max, unsigned *ret_index)
{
	unsigned index = 0;
	const char *c = text;
	for (; isdigit((unsigned char)*c) && index < max; c++)
		index = index * 10 + (unsigned)(*c - '0');
	*ret_index = index;
	return c == text || index >= max ? NULL : c;
}

static int compare_cards(const void *a, const void *b)
{
	const struct ll_config_card *one = a, *other = b;
	if (one->index != other->index)
		return one->index < other->index ? -1 : 1;
	return (one->slice > other->slice) - (one->slice < other->slice);
}

/* One part of the list: "3", "0-3" or "7:0". Returns the text behind it; NULL: it cannot be read. */
static const char *read_cards_part(const char *text, struct ll_config_cards *cards)
{
	unsigned first, last, slice;
	const char *c = read_index(text, CARDS_MAX, &first);
	last = first;
	if (c && *c == ':') {
		c = read_index(c + 1, SLICES_MAX, &slice);
		if (c && cards->count < CARDS_MAX)
			cards->items[cards->count++] = (struct ll_config_card){first, (int)slice};
		return c;
	}
	if (c && *c == '-')
		c = read_index(c + 1, CARDS_MAX, &last);
	if (!c || last < first || last - first >= CARDS_MAX - cards->count)
		return NULL;
	for (unsigned i = first; i <= last; i++)
		cards->items[cards->count++] = (struct ll_config_card){i, -1};
	return c;
}

/* Returns whether the whole text is such a list. */
static bool read_cards_list(const char *text, struct ll_config_cards *cards)
{
	for (const char *c = text;; c++) {
		c = read_cards_part(c + strspn(c, " "), cards);
		if (!c)
			return false;
		c += strspn(c, " ");
		if (*c != ',')
			return !*c;
	}
}

static int read_cards(struct ll_config_arena *arena, const char *text, struct ll_config_cards *ret_cards,
		      struct ll_err *err)
{
	struct ll_config_card *room = calloc(CARDS_MAX, sizeof *room);
	struct ll_config_cards cards = {.items = room};
	int rc = 0;
	if (!room)
		return ll_err_set(err, -ENOMEM, "out of memory");
	if (!read_cards_list(text, &cards))
		rc = ll_err_set(err, -EINVAL, "'%.60s': not cards such as \"0-3\", \"0,2\" or \"7:0\"", text);
	if (!rc) {
		qsort(room, cards.count, sizeof *room, compare_cards);
		for (size_t i = 1; i < cards.count && !rc; i++) {
			if (compare_cards(&room[i - 1], &room[i]) == 0)
				rc = ll_err_set(err, -EINVAL, "'%.60s': card %u twice", text, room[i].index);
		}
	}
	cards.items = rc ? NULL : ll_config_alloc(arena, cards.count * sizeof *room);
	if (cards.items) {
		memcpy(cards.items, room, cards.count * sizeof *room);
		*ret_cards = cards;
	}
	free(room);
	return rc;
}

static void add_cards(struct ll_strbuf *out, const struct ll_config_cards *cards)
{
	for (size_t i = 0, last; i < cards->count; i = last + 1) {
		const struct ll_config_card *card = &cards->items[i];
		for (last = i; last + 1 < cards->count && card->slice < 0 && cards->items[last + 1].slice < 0 &&
			       cards->items[last + 1].index == cards->items[last].index + 1;)
			last++;
		ll_strbuf_addf(out, "%s%u", i ? "," : "", card->index);
		if (card->slice >= 0)
			ll_strbuf_addf(out, ":%d", card->slice);
		else if (last > i)
			ll_strbuf_addf(out, "-%u", cards->items[last].index);
	}
}

/* ---- times ---- */

static int read_time(const char *text, struct ll_config_time *ret_time, struct ll_err *err)
{
	int minutes;
	int64_t at_s;
	if (!ll_parse_time_of_day(text, &minutes, NULL)) {
		*ret_time = (struct ll_config_time){true, true, (int64_t)minutes * 60};
		return 0;
	}
	if (ll_parse_moment(text, &at_s, NULL))
		return ll_err_set(err, -EINVAL, "'%.60s': not a time such as \"2026-12-03 14:00\" or \"09:00\"", text);
	*ret_time = (struct ll_config_time){false, true, at_s};
	return 0;
}

/* ---- all kinds ---- */

static void add_spelling(const struct ll_config_value *value, const char *text, struct ll_strbuf *out)
{
	switch (value->key->kind) {
	case LL_CONFIG_BYTES:
		add_scaled(out, value->number, bytes_scales);
		break;
	case LL_CONFIG_DURATION:
		add_scaled(out, value->number, time_scales);
		if (value->number == 0) {
			ll_strbuf_reset(out);
			ll_strbuf_adds(out, "0s");
		}
		break;
	case LL_CONFIG_SHARE:
		ll_strbuf_addf(out, "%llu", (unsigned long long)value->number / 10);
		if (value->number % 10)
			ll_strbuf_addf(out, ".%llu", (unsigned long long)value->number % 10);
		ll_strbuf_addc(out, '%');
		break;
	case LL_CONFIG_UINT:
		ll_strbuf_addf(out, "%llu", (unsigned long long)value->number);
		break;
	case LL_CONFIG_DECIMAL:
		ll_strbuf_addf(out, "%.15g", value->decimal);
		break;
	case LL_CONFIG_CARDS:
		add_cards(out, &value->cards);
		break;
	default:
		ll_strbuf_adds(out, text);
	}
}

int ll_config_value_read(struct ll_config_arena *arena, const char *text, struct ll_config_value *value,
			 struct ll_err *err)
{
	struct ll_config_value read = *value;
	int rc;
	switch (value->key->kind) {
	case LL_CONFIG_CARDS:
		rc = read_cards(arena, text, &read.cards, err);
		break;
	case LL_CONFIG_TIME:
		rc = read_time(text, &read.time, err);
		break;
	case LL_CONFIG_WORD:
	case LL_CONFIG_BOOL:
	case LL_CONFIG_UINT:
	case LL_CONFIG_DECIMAL:
	case LL_CONFIG_BYTES:
	case LL_CONFIG_DURATION:
	case LL_CONFIG_SHARE:
		rc = read_number(value->key, text, &read, err);
		break;
	default:
		rc = read_text(value->key, text, err);
	}
	if (rc)
		return rc;
	LL_SCOPE_STRBUF struct ll_strbuf spelling = LL_STRBUF_INIT;
	add_spelling(&read, text, &spelling);
	read.text = ll_config_copy(arena, spelling.buf, spelling.length);
	if (!read.text || spelling.failed)
		return ll_err_set(err, -ENOMEM, "out of memory");
	*value = read;
	return 0;
}
