/* The reader of recorded curves: CSV text in, points out. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "control/curve.h"

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
	static const char mark[] = "\xef\xbb\xbf";
	if (length >= 3 && memcmp(csv, mark, 3) == 0) {
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
