#include "earlier/records.h"

#include <errno.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/strbuf.h"

#define NS_PER_MS UINT64_C(1000000)

enum { FIELDS = 9, HEX = 16, DECIMAL = 10 };

static const char first_line[] = "loadline earlier 1\n";

/* ---- the records ---- */

static bool is_of(const struct ll_earlier_record *record, const char *card, uint64_t program, uint64_t others,
		  enum ll_way way)
{
	return record->program == program && record->others == others && record->way == way &&
	       strcmp(record->card, card) == 0;
}

const struct ll_earlier_record *ll_earlier_find(const struct ll_earlier *earlier, const char *card, uint64_t program,
						uint64_t others, enum ll_way way)
{
	for (size_t i = 0; i < earlier->count; i++) {
		if (is_of(&earlier->records[i], card, program, others, way))
			return &earlier->records[i];
	}
	return NULL;
}

static struct ll_earlier_record *find_place(struct ll_earlier *earlier, const struct ll_earlier_record *record)
{
	struct ll_earlier_record *oldest = &earlier->records[0];
	for (size_t i = 0; i < earlier->count; i++) {
		struct ll_earlier_record *at = &earlier->records[i];
		if (is_of(at, record->card, record->program, record->others, record->way))
			return at;
		oldest = at->ended_s < oldest->ended_s ? at : oldest;
	}
	return earlier->count < LL_EARLIER_RECORDS ? &earlier->records[earlier->count++] : oldest;
}

void ll_earlier_put(struct ll_earlier *earlier, const struct ll_earlier_record *record)
{
	*find_place(earlier, record) = *record;
}

/* ---- the text ---- */

void ll_earlier_format(struct ll_strbuf *text, const struct ll_earlier *earlier)
{
	ll_strbuf_adds(text, first_line);
	for (size_t i = 0; i < earlier->count; i++) {
		const struct ll_earlier_record *record = &earlier->records[i];
		uint64_t ms = record->ns / NS_PER_MS;
		ll_strbuf_addf(text,
			       "%" PRIu64 "\t%s\t%" PRIx64 "\t%" PRIx64 "\t%s\t%" PRIu64 ".%03u\t%" PRIu64 "\t%s\t%s\n",
			       record->ended_s, record->card, record->program, record->others, ll_way_name(record->way),
			       ms / 1000, (unsigned)(ms % 1000), record->launches, record->name, record->others_names);
	}
}

/* Digits alone: strtoull would take a sign, blanks, and nothing at all. */
static bool read_number(const char *text, int base, uint64_t *ret_number)
{
	size_t length = strlen(text);
	if (!length || strspn(text, base == HEX ? "0123456789abcdef" : "0123456789") != length)
		return false;
	errno = 0;
	*ret_number = strtoull(text, NULL, base);
	return !errno;
}

static bool read_seconds(char *text, uint64_t *ret_ns)
{
	uint64_t seconds, ms;
	char *point = strchr(text, '.');
	if (!point || strlen(point) != 4)
		return false;
	*point = '\0';
	if (!read_number(text, DECIMAL, &seconds) || !read_number(point + 1, DECIMAL, &ms) ||
	    seconds > UINT64_MAX / NS_PER_MS / 1000 - 1)
		return false;
	*ret_ns = (seconds * 1000 + ms) * NS_PER_MS;
	return true;
}

static bool read_way(const char *text, enum ll_way *ret_way)
{
	*ret_way = strcmp(text, "slices") == 0  ? LL_WAY_SLICES
		   : strcmp(text, "space") == 0 ? LL_WAY_SPACE
						: LL_WAY_NONE;
	return *ret_way != LL_WAY_NONE;
}

static bool read_text(const char *text, char *ret_text, size_t size)
{
	size_t length = strlen(text);
	if (!length || length >= size || !ll_message_text_is_valid(text, length + 1))
		return false;
	memcpy(ret_text, text, length + 1);
	return true;
}

/* Splits the line, which it changes. */
static bool read_record(char *line, struct ll_earlier_record *ret_record)
{
	char *fields[FIELDS];
	size_t count = 0;
	for (char *at = line; at && count < FIELDS; count++) {
		fields[count] = strsep(&at, "\t");
		if (count == FIELDS - 1 && at)
			return false;
	}
	return count == FIELDS && read_number(fields[0], DECIMAL, &ret_record->ended_s) &&
	       read_text(fields[1], ret_record->card, sizeof ret_record->card) &&
	       read_number(fields[2], HEX, &ret_record->program) && read_number(fields[3], HEX, &ret_record->others) &&
	       read_way(fields[4], &ret_record->way) && read_seconds(fields[5], &ret_record->ns) &&
	       read_number(fields[6], DECIMAL, &ret_record->launches) &&
	       read_text(fields[7], ret_record->name, sizeof ret_record->name) &&
	       read_text(fields[8], ret_record->others_names, sizeof ret_record->others_names);
}

static int parse_lines(char *rest, struct ll_earlier *earlier)
{
	for (char *line; *rest;) {
		struct ll_earlier_record record;
		memset(&record, 0, sizeof record);
		line = rest;
		rest = strchr(line, '\n');
		if (!rest || earlier->count == LL_EARLIER_RECORDS)
			return -EBADMSG;
		*rest++ = '\0';
		if (!read_record(line, &record))
			return -EBADMSG;
		earlier->records[earlier->count++] = record;
	}
	return 0;
}

int ll_earlier_parse(const char *text, struct ll_earlier *ret_earlier)
{
	size_t length = sizeof first_line - 1;
	ret_earlier->count = 0;
	if (strncmp(text, first_line, length) != 0)
		return -EBADMSG;
	char *copy = strdup(text + length);
	int rc = copy ? parse_lines(copy, ret_earlier) : -ENOMEM;
	free(copy);
	if (rc)
		ret_earlier->count = 0;
	return rc;
}
