#include "rules/hold/curve.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

static const double two_pi = 6.283185307179586476925;

static const char *const kind_names[] = {
    [LL_CURVE_CONSTANT] = "constant", [LL_CURVE_SINE] = "sine",     [LL_CURVE_SQUARE] = "square",
    [LL_CURVE_SAWTOOTH] = "sawtooth", [LL_CURVE_REPLAY] = "replay",
};

const char *ll_curve_kind_name(enum ll_curve_kind kind)
{
	return kind_names[kind];
}

void ll_curve_init_constant(struct ll_curve *curve, double ratio)
{
	*curve = (struct ll_curve){.kind = LL_CURVE_CONSTANT, .low = ratio, .high = ratio};
}

/* Copies begin..end into field, final zero added; false when it is too long to be a number. */
static bool copy_field(const char *begin, const char *end, char field[static 32])
{
	size_t n = (size_t)(end - begin);
	if (n >= 32)
		return false;
	memcpy(field, begin, n);
	field[n] = '\0';
	return true;
}

static int parse_level(const char *begin, const char *end, double *ret_ratio)
{
	char field[32];
	double percent;
	if (!copy_field(begin, end, field) || ll_parse_percent(field, &percent, NULL) < 0)
		return -EINVAL;
	if (!(percent >= 1.0 && percent <= 99.0))
		return -ERANGE;
	*ret_ratio = percent / 100.0;
	return 0;
}

static int parse_wave(const char *text, const char *shape, struct ll_curve *curve, struct ll_err *err)
{
	const char *at = strchr(shape, '@');
	if (!at)
		return ll_err_set(err, -EINVAL, "'%s': no period, as in sine:20-80@60s", text);
	const char *dash = memchr(shape, '-', (size_t)(at - shape));
	if (!dash)
		return ll_err_set(err, -EINVAL, "'%s': no two levels, as in sine:20-80@60s", text);
	int low = parse_level(shape, dash, &curve->low);
	int high = parse_level(dash + 1, at, &curve->high);
	if (low == -EINVAL || high == -EINVAL)
		return ll_err_set(err, -EINVAL, "'%s': a level is not a number", text);
	if (low || high)
		return ll_err_set(err, -EINVAL, "'%s': levels go from 1 to 99 %%", text);
	if (!(curve->low < curve->high))
		return ll_err_set(err, -EINVAL, "'%s': the first level must be below the second", text);
	uint64_t period_ns;
	if (ll_parse_duration(at + 1, &period_ns, NULL) < 0)
		return ll_err_set(err, -EINVAL, "'%s': the period is not a duration such as 60s", text);
	if (period_ns == 0)
		return ll_err_set(err, -EINVAL, "'%s': the period must be over 0", text);
	curve->period_s = (double)period_ns / 1e9;
	return 0;
}

int ll_curve_parse(const char *text, struct ll_curve *ret_curve, struct ll_err *err)
{
	const char *colon = strchr(text, ':');
	size_t name_length = colon ? (size_t)(colon - text) : strlen(text);
	for (int kind = LL_CURVE_SINE; kind <= LL_CURVE_REPLAY; kind++) {
		const char *name = kind_names[kind];
		if (strlen(name) != name_length || strncmp(text, name, name_length) != 0)
			continue;
		if (kind == LL_CURVE_REPLAY)
			return ll_err_set(err, -EINVAL, "'%s': a replay needs a file, as in replay:FILE.csv", text);
		if (!colon)
			return ll_err_set(err, -EINVAL, "'%s': no levels and period, as in %s:20-80@60s", text, name);
		struct ll_curve curve = {.kind = (enum ll_curve_kind)kind};
		int r = parse_wave(text, colon + 1, &curve, err);
		if (r == 0)
			*ret_curve = curve;
		return r;
	}
	return ll_err_set(err, -EINVAL,
			  "'%s': unknown curve; known are sine:LOW-HIGH@PERIOD, square:…, sawtooth:… and "
			  "replay:FILE.csv",
			  text);
}

const char *ll_curve_replay_path(const char *text)
{
	static const char prefix[] = "replay:";
	size_t n = sizeof prefix - 1;
	return strncmp(text, prefix, n) == 0 && text[n] ? text + n : NULL;
}

/* The last point at or before t, or the first point. */
static size_t find_point(const struct ll_curve *curve, double t)
{
	size_t low = 0;
	size_t high = curve->point_count;
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;
		if (curve->points[middle].time_s <= t)
			low = middle;
		else
			high = middle;
	}
	return low;
}

/* Value at a phase of 0..1 of a periodic curve. */
static double value_at_phase(const struct ll_curve *curve, double phase)
{
	double span = curve->high - curve->low;
	switch (curve->kind) {
	case LL_CURVE_SINE:
		return curve->low + span * 0.5 * (1.0 + sin(two_pi * phase));
	case LL_CURVE_SQUARE:
		return phase < 0.5 ? curve->low : curve->high;
	case LL_CURVE_SAWTOOTH:
		return curve->low + span * phase;
	default:
		return curve->low;
	}
}

/* Integral of the curve over phase 0..phase, for a phase within one period, in periods. */
static double integral_to_phase(const struct ll_curve *curve, double phase)
{
	double span = curve->high - curve->low;
	switch (curve->kind) {
	case LL_CURVE_SINE:
		return (curve->low + span * 0.5) * phase + span * 0.5 * (1.0 - cos(two_pi * phase)) / two_pi;
	case LL_CURVE_SQUARE:
		return curve->low * phase + span * fmax(0.0, phase - 0.5);
	case LL_CURVE_SAWTOOTH:
		return curve->low * phase + span * 0.5 * phase * phase;
	default:
		return curve->low * phase;
	}
}

static double phase_of(const struct ll_curve *curve, double seconds)
{
	double phase = fmod(seconds, curve->period_s) / curve->period_s;
	return phase < 1.0 ? phase : 0.0;
}

double ll_curve_at(const struct ll_curve *curve, double seconds)
{
	double t = fmax(seconds, 0.0);
	switch (curve->kind) {
	case LL_CURVE_CONSTANT:
		return curve->low;
	case LL_CURVE_REPLAY:
		return curve->points[find_point(curve, t)].ratio;
	default:
		return value_at_phase(curve, phase_of(curve, t));
	}
}

/* from and to are phases counted in periods, 0 <= from < 1 and from <= to. */
static bool passes_phase(double from, double to, double phase)
{
	return (phase > from && phase <= to) || phase + 1.0 <= to;
}

static void window_of_wave(const struct ll_curve *curve, double from, double to, struct ll_curve_window *window)
{
	double whole = floor(to);
	double end = to - whole;
	double area =
	    whole * integral_to_phase(curve, 1.0) + integral_to_phase(curve, end) - integral_to_phase(curve, from);
	window->mean = to > from ? area / (to - from) : value_at_phase(curve, from);
	window->largest_step = 0.0;
	bool has_stepped =
	    passes_phase(from, to, 1.0) || (curve->kind == LL_CURVE_SQUARE && passes_phase(from, to, 0.5));
	if (curve->kind != LL_CURVE_SINE && has_stepped)
		window->largest_step = curve->high - curve->low;
}

static void window_of_replay(const struct ll_curve *curve, double from, double to, struct ll_curve_window *window)
{
	size_t i = find_point(curve, from);
	double area = 0.0;
	double since = from;
	double value = curve->points[i].ratio;
	window->largest_step = 0.0;
	for (i++; i < curve->point_count && curve->points[i].time_s <= to; i++) {
		const struct ll_curve_point *point = &curve->points[i];
		area += value * (point->time_s - since);
		since = point->time_s;
		window->largest_step = fmax(window->largest_step, fabs(point->ratio - value));
		value = point->ratio;
	}
	area += value * (to - since);
	window->mean = to > from ? area / (to - from) : value;
}

void ll_curve_find_window(const struct ll_curve *curve, double from_s, double to_s, struct ll_curve_window *ret_window)
{
	double from = fmax(from_s, 0.0);
	double to = fmax(to_s, from);
	switch (curve->kind) {
	case LL_CURVE_CONSTANT:
		*ret_window = (struct ll_curve_window){.mean = curve->low};
		break;
	case LL_CURVE_REPLAY:
		window_of_replay(curve, from, to, ret_window);
		break;
	default: {
		double phase = phase_of(curve, from);
		window_of_wave(curve, phase, phase + (to - from) / curve->period_s, ret_window);
	}
	}
}

/* ---- recorded curves: CSV text in, points out ---- */

enum { LINE_MAX_CHARS = 128 };

struct lines {
	const char *next;
	const char *end;
	unsigned number; /* of the line given last, from 1 */
};

/* Gives the next line without its end and surrounding blanks; false at the end of the text. */
static bool next_line(struct lines *lines, const char **ret_line, size_t *ret_length)
{
	if (lines->next == lines->end)
		return false;
	const char *begin = lines->next;
	const char *newline = memchr(begin, '\n', (size_t)(lines->end - begin));
	const char *end = newline ? newline : lines->end;
	lines->next = newline ? newline + 1 : lines->end;
	lines->number++;
	while (begin < end && (*begin == ' ' || *begin == '\t'))
		begin++;
	while (end > begin && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r'))
		end--;
	*ret_line = begin;
	*ret_length = (size_t)(end - begin);
	return true;
}

static bool is_header(const char *line, size_t length)
{
	static const char header[] = "time_s,target";
	size_t n = 0;
	for (size_t i = 0; i < length; i++) {
		if (line[i] == ' ' || line[i] == '\t')
			continue;
		if (n == sizeof header - 1 || line[i] != header[n])
			return false;
		n++;
	}
	return n == sizeof header - 1;
}

/* A plain decimal number with blanks around it and nothing else: strtod alone would also take hex, inf and nan. */
static bool parse_number(const char *text, double *ret_value)
{
	text += strspn(text, " \t");
	size_t n = strspn(text, "0123456789+-.eE");
	if (n == 0 || text[n + strspn(text + n, " \t")] != '\0')
		return false;
	char *end;
	double value = strtod(text, &end);
	if (end != text + n)
		return false;
	*ret_value = value;
	return true;
}

/* "why" for a bad row, NULL for a good one. */
static const char *parse_row(const char *line, size_t length, struct ll_curve_point *point)
{
	static const char shape[] = "not a row 'time_s,target' of two numbers";
	char row[LINE_MAX_CHARS];
	if (length >= sizeof row || memchr(line, '\0', length))
		return shape;
	memcpy(row, line, length);
	row[length] = '\0';
	char *comma = strchr(row, ',');
	if (!comma)
		return shape;
	*comma = '\0';
	double percent;
	if (!parse_number(row, &point->time_s) || !parse_number(comma + 1, &percent))
		return shape;
	if (!(percent >= 1.0 && percent <= 99.0))
		return "the target is not within 1 and 99 %";
	if (!(point->time_s >= 0.0 && point->time_s <= 1e9))
		return "the time is not within 0 and 10^9 s";
	point->ratio = percent / 100.0;
	return NULL;
}

static size_t count_lines(const char *text, size_t length)
{
	size_t count = 1;
	for (size_t i = 0; i < length; i++)
		count += text[i] == '\n';
	return count;
}

/* Fills curve->points, which has room for every line. */
static int parse_rows(const char *name, struct lines *lines, struct ll_curve *curve, struct ll_err *err)
{
	const char *line;
	size_t length;
	bool may_be_header = true;
	while (next_line(lines, &line, &length)) {
		if (length == 0 || line[0] == '#')
			continue;
		bool is_first = may_be_header;
		may_be_header = false;
		if (is_first && is_header(line, length))
			continue;
		struct ll_curve_point point;
		const char *why = parse_row(line, length, &point);
		if (why)
			return ll_err_set(err, -EINVAL, "%s:%u: %s", name, lines->number, why);
		size_t n = curve->point_count;
		if (n > 0 && !(point.time_s > curve->points[n - 1].time_s))
			return ll_err_set(err, -EINVAL, "%s:%u: the time is not after the row before", name,
					  lines->number);
		if (n == 0 || point.ratio < curve->low)
			curve->low = point.ratio;
		if (n == 0 || point.ratio > curve->high)
			curve->high = point.ratio;
		curve->points[curve->point_count++] = point;
	}
	if (curve->point_count == 0)
		return ll_err_set(err, -EINVAL, "%s:%u: no rows 'time_s,target'", name,
				  lines->number ? lines->number : 1);
	return 0;
}

int ll_curve_parse_replay(const char *name, const char *csv, size_t length, struct ll_curve *ret_curve,
			  struct ll_err *err)
{
	static const char byte_order_mark[] = "\xef\xbb\xbf";
	if (length >= 3 && memcmp(csv, byte_order_mark, 3) == 0) {
		csv += 3;
		length -= 3;
	}
	struct lines lines = {.next = csv, .end = csv + length};
	struct ll_curve curve = {.kind = LL_CURVE_REPLAY};
	curve.points = malloc(count_lines(csv, length) * sizeof *curve.points);
	if (!curve.points)
		return ll_err_set(err, -ENOMEM, "%s: too long for the memory there is", name);
	int r = parse_rows(name, &lines, &curve, err);
	if (r < 0) {
		free(curve.points);
		return r;
	}
	*ret_curve = curve;
	return 0;
}

void ll_curve_fini(struct ll_curve *curve)
{
	if (!curve)
		return;
	free(curve->points);
	curve->points = NULL;
	curve->point_count = 0;
}
