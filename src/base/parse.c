#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"

struct unit {
	const char *name;
	uint64_t factor;
};

#define KIB (UINT64_C(1) << 10)
#define MIB (UINT64_C(1) << 20)
#define GIB (UINT64_C(1) << 30)
#define TIB (UINT64_C(1) << 40)

static const struct unit byte_units[] = {
    {"B", 1},   {"K", KIB},  {"Ki", KIB},  {"KiB", KIB}, {"M", MIB},  {"Mi", MIB},  {"MiB", MIB},
    {"G", GIB}, {"Gi", GIB}, {"GiB", GIB}, {"T", TIB},   {"Ti", TIB}, {"TiB", TIB}, {NULL, 0},
};

/* Units whose factor is 1000 or 1024, depending on the writer. They are refused. */
static const char *const doubtful_units[] = {"KB", "MB", "GB", "TB"};

static const struct unit time_units[] = {
    {"", LL_NS_PER_S},
    {"ns", 1},
    {"us", LL_NS_PER_US},
    {"ms", LL_NS_PER_MS},
    {"s", LL_NS_PER_S},
    {"m", 60 * LL_NS_PER_S},
    {"h", 3600 * LL_NS_PER_S},
    {"d", 86400 * LL_NS_PER_S},
    {NULL, 0},
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns the end of "12", "12.5" or ".5"; NULL: there is no such number. Signs, blanks, exponents, hex and "inf" are
 * refused, although strtod accepts them. */
static const char *number_end(const char *text)
{
	const char *p = text;
	size_t digits = 0;
	for (; is_digit(*p); p++)
		digits++;
	if (*p == '.') {
		for (p++; is_digit(*p); p++)
			digits++;
	}
	return digits ? p : NULL;
}

typedef int compare_fn(const char *a, const char *b);

static const struct unit *find_unit(const struct unit *units, compare_fn *compare, const char *name)
{
	for (; units->name; units++) {
		if (compare(units->name, name) == 0)
			return units;
	}
	return NULL;
}

/* Reads a number and its unit; exact for whole numbers. */
static int scale_by_unit(const char *text, const struct unit *unit, uint64_t *ret_value, struct ll_err *err)
{
	errno = 0;
	char *point = NULL;
	uint64_t whole = is_digit(*text) ? strtoull(text, &point, 10) : 0;
	double fraction = 0;
	if (!point)
		point = (char *)text;
	if (*point == '.' && is_digit(point[1]))
		fraction = strtod(point, NULL);
	uint64_t value;
	if (errno == ERANGE || __builtin_mul_overflow(whole, unit->factor, &value) ||
	    __builtin_add_overflow(value, (uint64_t)llround(fraction * (double)unit->factor), &value))
		return ll_err_set(err, -EINVAL, "'%.60s': too large", text);
	*ret_value = value;
	return 0;
}

/* Reads a number with at most one known suffix. */
static int parse_double(const char *text, const char *suffix, const char *what, const char *example, double *ret_value,
			struct ll_err *err)
{
	const char *end = number_end(text);
	if (!end || (*end && strcmp(end, suffix) != 0))
		return ll_err_set(err, -EINVAL, "'%.60s': not %s such as %s", text, what, example);
	double value = strtod(text, NULL);
	if (!isfinite(value))
		return ll_err_set(err, -EINVAL, "'%.60s': too large", text);
	*ret_value = value;
	return 0;
}

int ll_parse_bytes(const char *text, uint64_t *ret_bytes, struct ll_err *err)
{
	const char *end = number_end(text);
	const struct unit *unit = end ? find_unit(byte_units, strcasecmp, end) : NULL;
	if (unit)
		return scale_by_unit(text, unit, ret_bytes, err);
	if (end && !*end && strspn(text, "0.") == strlen(text)) {
		*ret_bytes = 0;
		return 0;
	}
	if (end && !*end)
		return ll_err_set(err, -EINVAL, "'%.60s': no unit: %.50sG or %.50sM?", text, text, text);
	for (size_t i = 0; end && i < sizeof doubtful_units / sizeof *doubtful_units; i++) {
		const char *doubtful = doubtful_units[i];
		if (strcasecmp(doubtful, end) == 0)
			return ll_err_set(err, -EINVAL, "'%.60s': %s: write %c or %ciB", text, doubtful, *doubtful,
					  *doubtful);
	}
	return ll_err_set(err, -EINVAL, "'%.60s': not a size such as 512M or 8GiB", text);
}

/* Reads "1-12", "1-12:00", "1-12:00:00" or "36:00:00". Returns false if the text has another form. */
static bool read_clock(const char *text, uint64_t *ret_s)
{
	static const unsigned longest[] = {24, 60, 60}, seconds[] = {3600, 60, 1};
	uint64_t days = 0, part, sum_s = 0;
	char *end;
	int count = 0;
	bool has_days = is_digit(*text) && text[strspn(text, "0123456789")] == '-';
	if (has_days) {
		days = strtoull(text, &end, 10);
		text = end + 1;
	}
	for (;; text = end + 1) {
		if (count == 3 || !is_digit(*text))
			return false;
		part = strtoull(text, &end, 10);
		if (days > UINT32_MAX || part >= (has_days || count ? longest[count] : UINT32_MAX))
			return false;
		sum_s += part * seconds[count++];
		if (*end != ':')
			break;
	}
	*ret_s = days * 86400 + sum_s;
	return !*end && (has_days || count == 3);
}

int ll_parse_duration(const char *text, uint64_t *ret_ns, struct ll_err *err)
{
	uint64_t clock_s, clock_ns;
	if (read_clock(text, &clock_s) && !__builtin_mul_overflow(clock_s, LL_NS_PER_S, &clock_ns)) {
		*ret_ns = clock_ns;
		return 0;
	}
	const char *end = number_end(text);
	const struct unit *unit = end ? find_unit(time_units, strcmp, end) : NULL;
	if (!unit)
		return ll_err_set(err, -EINVAL, "'%.60s': not a time such as 300ms, 5s or 10m", text);
	return scale_by_unit(text, unit, ret_ns, err);
}

/* Whether the text has a digit for each 0 of the form, and else its characters. */
static bool has_form(const char *text, const char *form)
{
	for (; *form && (*form == '0' ? is_digit(*text) : *text == *form); form++)
		text++;
	return !*form && !*text;
}

/* The moment of these parts; -1: there is none. mktime() takes the 31st of February for a day in March. */
static int64_t moment_of(int year, int month, int day, int hour, int minute)
{
	struct tm parts = {.tm_year = year - 1900,
			   .tm_mon = month - 1,
			   .tm_mday = day,
			   .tm_hour = hour,
			   .tm_min = minute,
			   .tm_isdst = -1};
	time_t at = mktime(&parts);
	bool is_there = parts.tm_year == year - 1900 && parts.tm_mon == month - 1 && parts.tm_mday == day &&
			parts.tm_hour == hour && parts.tm_min == minute;
	return is_there ? (int64_t)at : -1;
}

int ll_parse_moment(const char *text, int64_t *ret_s, struct ll_err *err)
{
	int year = 0, month = 0, day = 0, hour = 0, minute = 0;
	if (!has_form(text, "0000-00-00 00:00") && !has_form(text, "0000-00-00T00:00"))
		return ll_err_set(err, -EINVAL, "'%.60s': not a moment such as 2026-12-12 22:00", text);
	sscanf(text, "%d-%d-%d%*c%d:%d", &year, &month, &day, &hour, &minute);
	int64_t at_s = moment_of(year, month, day, hour, minute);
	if (at_s < 0)
		return ll_err_set(err, -EINVAL, "'%.60s': there is no such moment", text);
	*ret_s = at_s;
	return 0;
}

int ll_parse_moment_or_day(const char *text, int64_t *ret_s, struct ll_err *err)
{
	char moment[sizeof "0000-00-00 00:00"];
	if (!has_form(text, "0000-00-00"))
		return ll_parse_moment(text, ret_s, err);
	snprintf(moment, sizeof moment, "%.10s 00:00", text);
	return ll_parse_moment(moment, ret_s, err);
}

int ll_parse_time_of_day(const char *text, int *ret_minutes, struct ll_err *err)
{
	int hour = 24, minute = 60;
	if (has_form(text, "00:00"))
		sscanf(text, "%d:%d", &hour, &minute);
	if (hour > 23 || minute > 59)
		return ll_err_set(err, -EINVAL, "'%.60s': not a time of day such as 22:00", text);
	*ret_minutes = hour * 60 + minute;
	return 0;
}

int ll_parse_percent(const char *text, double *ret_percent, struct ll_err *err)
{
	return parse_double(text, "%", "a percentage", "50%", ret_percent, err);
}

int ll_parse_share(const char *text, double *ret_percent, struct ll_err *err)
{
	double percent = 0;
	int rc = ll_parse_percent(text, &percent, err);
	if (rc < 0)
		return rc;
	if (percent > 0 && percent < 1 && !strchr(text, '%')) {
		ll_err_set(err, -EINVAL, "'%.60s': %g %% or %g %%?", text, percent, percent * 100);
		return ll_err_hint(err, "say %g%% or %g%%", percent, percent * 100);
	}
	*ret_percent = percent;
	return 0;
}

int ll_parse_watts(const char *text, double *ret_watts, struct ll_err *err)
{
	return parse_double(text, "W", "a power", "200W", ret_watts, err);
}

int ll_parse_celsius(const char *text, double *ret_celsius, struct ll_err *err)
{
	return parse_double(text, "C", "a temperature", "85C", ret_celsius, err);
}

int ll_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct ll_err *err)
{
	char *end = NULL;
	errno = 0;
	uint64_t value = is_digit(*text) ? strtoull(text, &end, 10) : 0;
	if (!end || *end)
		return ll_err_set(err, -EINVAL, "'%.60s': not a whole number", text);
	if (errno == ERANGE || value < min || value > max)
		return ll_err_set(err, -EINVAL, "'%.60s': not between %llu and %llu", text, (unsigned long long)min,
				  (unsigned long long)max);
	*ret_value = value;
	return 0;
}
