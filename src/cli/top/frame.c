/* How `loadline top` looks: three tables that fit the terminal, a line of details and a line of keys. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/table.h"
#include "cli/top/top.h"
#include "hold/command/words.h"

enum { LEAST_COLUMNS = 30, LEAST_LINES = 10, AIRY_LINES = 22, COLUMNS_MOST = 12 };

/* ---- widths ---- */

void ll_top_fit(const struct ll_top_column *columns, size_t count, size_t width, size_t *ret_widths)
{
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		ret_widths[i] = columns[i].least;
		used += columns[i].least ? columns[i].least + 1 : 0;
	}
	while (used > width + 1) {
		size_t worst = count;
		for (size_t i = 0; i < count; i++) {
			if (ret_widths[i] && columns[i].rank &&
			    (worst == count || columns[i].rank > columns[worst].rank))
				worst = i;
		}
		if (worst == count)
			break;
		used -= ret_widths[worst] + 1;
		ret_widths[worst] = 0;
	}
	/* A blank at a time for each; long columns get more. */
	for (bool has_grown = true; has_grown;) {
		has_grown = false;
		for (size_t i = 0; i < count && used < width + 1; i++) {
			size_t step = 1 + columns[i].most / LL_TOP_HISTORY;
			if (!ret_widths[i] || ret_widths[i] >= columns[i].most)
				continue;
			step = step < width + 1 - used ? step : width + 1 - used;
			ret_widths[i] += step;
			used += step;
			has_grown = true;
		}
	}
}

/* ---- lines ---- */

static void end_line(struct ll_strbuf *out)
{
	while (out->length && strchr(" \1\2\3\4\5\6", out->buf[out->length - 1]))
		out->buf[--out->length] = '\0';
	ll_strbuf_addc(out, '\n');
}

static void add_line(struct ll_strbuf *out, enum ll_top_look look, size_t width, const char *text)
{
	ll_strbuf_addc(out, (char)look);
	ll_utf8_add(out, text, width);
	end_line(out);
}

/* A row of a table. Its cells are added one after the other. */
struct cells {
	struct ll_strbuf *out;
	const struct ll_top_column *columns;
	const size_t *widths;
	enum ll_top_look look; /* of the next cells */
	bool is_chosen;
	size_t next;
};

/* Adds a cell as wide as its column, with a blank after it. */
static void add_cell(struct cells *cells, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void add_cell(struct cells *cells, const char *format, ...)
{
	const struct ll_top_column *column = &cells->columns[cells->next];
	size_t width = cells->widths[cells->next++];
	char text[1024];
	va_list args;
	va_start(args, format);
	vsnprintf(text, sizeof text, format, args);
	va_end(args);
	if (!width)
		return;
	size_t columns = ll_utf8_columns(text), left = columns < width ? width - columns : 0;
	ll_strbuf_addf(cells->out, "%c%*s", cells->is_chosen ? LL_TOP_SELECTED : cells->look,
		       (int)(column->is_number ? left : 0), "");
	size_t used = ll_utf8_add(cells->out, text, width) + (column->is_number ? left : 0);
	ll_strbuf_addf(cells->out, "%*s%c ", (int)(width - used), "",
		       cells->is_chosen ? LL_TOP_SELECTED : LL_TOP_PLAIN);
}

static void add_number(struct cells *cells, double value, const char *unit)
{
	if (isnan(value))
		add_cell(cells, "%s", "");
	else
		add_cell(cells, "%.0f %s", value, unit);
}

static void end_cells(struct cells *cells)
{
	/* the blank after the last one */
	if (cells->is_chosen && cells->out->length)
		cells->out->buf[--cells->out->length] = '\0';
	end_line(cells->out);
}

/* unused: bits of columns that no row of this frame needs. */
static void add_headings(struct ll_strbuf *out, const struct ll_top_column *columns, size_t count, unsigned unused,
			 size_t width, size_t *ret_widths)
{
	struct cells cells = {out, columns, ret_widths, LL_TOP_BOLD, false, 0};
	struct ll_top_column wanted[COLUMNS_MOST] = {{0}};
	for (size_t i = 0; i < count; i++) {
		wanted[i] = columns[i];
		wanted[i].least = unused >> i & 1 ? 0 : columns[i].least;
	}
	ll_top_fit(wanted, count, width, ret_widths);
	for (size_t i = 0; i < count; i++)
		add_cell(&cells, "%s", *columns[i].heading ? _(columns[i].heading) : "");
	end_cells(&cells);
}

void ll_top_add_history(struct ll_strbuf *out, const struct ll_top_history *history, size_t columns)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	for (size_t i = columns; i > 0; i--) {
		double value = i <= history->count ? history->values[history->count - i] : (double)NAN;
		double height = isnan(value) ? 0 : ceil(value / 100 * 8);
		ll_strbuf_adds(out, blocks[height <= 0 ? 0 : height >= 8 ? 8 : (int)height]);
	}
}

/* A bar of whole and eighth blocks, the number, and the history. */
static void add_percent(struct cells *cells, double percent, const struct ll_top_history *history)
{
	static const char *const eighths[] = {"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"};
	LL_SCOPE_STRBUF struct ll_strbuf bar = LL_STRBUF_INIT, past = LL_STRBUF_INIT;
	enum ll_top_look look = cells->look;
	double part = isnan(percent) || percent < 0 ? 0 : percent > 100 ? 1 : percent / 100;
	unsigned eights = (unsigned)lround(part * 8 * (double)cells->widths[cells->next]);
	for (unsigned i = 0; i < eights / 8; i++)
		ll_strbuf_adds(&bar, "█");
	ll_strbuf_adds(&bar, eighths[eights % 8]);
	cells->look = LL_TOP_GOOD;
	add_cell(cells, "%s", bar.buf);
	cells->look = look;
	add_number(cells, percent, "%");
	cells->look = LL_TOP_GOOD;
	ll_top_add_history(&past, history, cells->widths[cells->next]);
	add_cell(cells, "%s", past.buf);
	cells->look = look;
}

/* ---- cards ---- */

static const struct ll_top_column card_columns[] = {
    {N_("card"), 4, 6, 0, false},
    {N_("name"), 10, 34, 6, false},
    {"", 6, 10, 7, false},
    {N_("util"), 5, 5, 0, true},
    {N_("history"), 8, LL_TOP_HISTORY, 2, false},
    {N_("memory"), 11, 11, 1, true},
    {N_("power"), 9, 9, 5, true},
    {N_("temp"), 5, 5, 4, true},
    {N_("claims"), 6, 6, 3, true},
};
enum { CARD_COLUMNS = sizeof card_columns / sizeof *card_columns, NAME_COLUMN = 1 };

/* The name, or what needs attention. It is simulated whatever else is cut. */
static void add_name(struct cells *cells, const struct ll_status_card *status)
{
	LL_SCOPE_STRBUF struct ll_strbuf name = LL_STRBUF_INIT;
	const char *mark = status->is_simulated ? _(" (simulated)") : "";
	size_t width = cells->widths[NAME_COLUMN], tail = ll_utf8_columns(mark);
	char reasons[64];
	cells->look = LL_TOP_ALARM;
	if (!status->card->name[0]) {
		add_cell(cells, "%s", _("does not answer"));
	} else if (status->is_drained) {
		add_cell(cells, "%s%s%s", _("drained"), status->drained[0] ? ": " : "", status->drained);
	} else if (status->has_slowdown && status->slowdown & LL_SLOWDOWN_HARM) {
		add_cell(cells, _("slowed down: %s"),
			 ll_slowdown_text(status->slowdown & LL_SLOWDOWN_HARM, reasons, sizeof reasons));
	} else {
		cells->look = LL_TOP_PLAIN;
		ll_utf8_add(&name, status->card->name, width > tail ? width - tail : 0);
		add_cell(cells, "%s%s", name.buf, *name.buf ? mark : mark + (*mark == ' '));
	}
	cells->look = LL_TOP_PLAIN;
}

static void add_card(struct ll_strbuf *out, const struct ll_top_card *card, const size_t *widths)
{
	struct cells cells = {out, card_columns, widths, LL_TOP_PLAIN, false, 0};
	const struct ll_status_card *status = card->status;
	const double gib = 1 << 30;
	add_cell(&cells, "%s", status->card->label);
	add_name(&cells, status);
	add_percent(&cells, status->util_percent, &card->util);
	if (status->has_memory)
		add_cell(&cells, "%.0f/%.0f GiB", (double)status->memory.used_bytes / gib,
			 (double)status->memory.total_bytes / gib);
	else
		add_cell(&cells, "%s", "");
	if (isnan(status->power_watts) || isnan(status->power_limit_watts))
		add_number(&cells, status->power_watts, "W");
	else
		add_cell(&cells, "%.0f/%.0f W", status->power_watts, status->power_limit_watts);
	add_number(&cells, status->celsius, "C");
	add_cell(&cells, "%zu", status->claim_count);
	end_cells(&cells);
}

/* ---- tenants ---- */

static const struct ll_top_column tenant_columns[] = {
    {N_("tenant"), 10, 24, 0, false}, {N_("jobs"), 4, 4, 2, true},
    {N_("waiting"), 7, 7, 5, true},   {"", 6, 10, 7, false},
    {N_("share"), 5, 5, 0, true},     {N_("history"), 8, LL_TOP_HISTORY, 3, false},
    {N_("memory"), 9, 9, 1, true},    {N_("guaranteed"), 10, 12, 6, true},
};
enum { TENANT_COLUMNS = sizeof tenant_columns / sizeof *tenant_columns, WAITING_COLUMN = 2, GUARANTEED_COLUMN = 7 };

static void add_tenant(struct ll_strbuf *out, const struct ll_top_tenant *tenant, const size_t *widths)
{
	LL_SCOPE_STRBUF struct ll_strbuf memory = LL_STRBUF_INIT;
	struct cells cells = {out, tenant_columns, widths, tenant->is_synthetic ? LL_TOP_DIM : LL_TOP_PLAIN, false, 0};
	if (tenant->used_bytes)
		ll_hold_add_bytes(&memory, tenant->used_bytes);
	add_cell(&cells, "%s", tenant->name);
	/* of 0 nothing is written */
	add_cell(&cells, "%.0u", tenant->is_synthetic ? 0 : tenant->running);
	add_cell(&cells, "%.0u", tenant->waiting);
	add_percent(&cells, tenant->share_percent, &tenant->share);
	add_cell(&cells, "%s", memory.buf);
	add_cell(&cells, "%s", tenant->guaranteed);
	end_cells(&cells);
}

/* ---- jobs ---- */

static const struct ll_top_column job_columns[] = {
    {N_("job"), 6, 8, 0, false},     {N_("user"), 6, 10, 5, false},  {N_("tenant"), 9, 18, 1, false},
    {N_("state"), 13, 18, 0, false}, {N_("age"), 6, 6, 6, true},     {N_("memory"), 11, 13, 4, true},
    {N_("share"), 5, 5, 2, true},    {N_("queue"), 8, 13, 7, false}, {N_("command"), 7, 400, 3, false},
};
enum { JOB_COLUMNS = sizeof job_columns / sizeof *job_columns, QUEUE_COLUMN = 7 };

/* "12/40 GiB", "1.6/8.0 GiB"; without a limit "12.0 GiB"; of a waiting job what it wants. */
static void add_memory(struct cells *cells, const struct ll_top_row *row)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	const double gib = 1 << 30;
	double used = (double)row->used_bytes / gib, limit = (double)row->limit_bytes / gib;
	bool is_known = row->used_bytes != LL_MEMORY_UNKNOWN;
	if (is_known && limit >= 1)
		ll_strbuf_addf(&text, "%.*f/%.*f GiB", limit < 10, used, limit < 10, limit);
	else if (is_known ? row->used_bytes : row->limit_bytes)
		ll_hold_add_bytes(&text, is_known ? row->used_bytes : row->limit_bytes);
	add_cell(cells, "%s", text.buf);
}

static void add_job(struct ll_strbuf *out, const struct ll_top_row *row, const size_t *widths, bool is_chosen)
{
	LL_SCOPE_STRBUF struct ll_strbuf age = LL_STRBUF_INIT, queue = LL_STRBUF_INIT;
	bool is_process = row->kind == LL_TOP_PROCESS;
	enum ll_top_look look = row->kind == LL_TOP_HOLD || row->kind == LL_TOP_WAITING ? LL_TOP_DIM : LL_TOP_PLAIN;
	struct cells cells = {out, job_columns, widths, look, is_chosen, 0};
	if (row->number && !is_process)
		add_cell(&cells, "%llu", (unsigned long long)row->number);
	else
		add_cell(&cells, "%s%s", !is_process ? "" : row->is_last ? "└ " : "├ ", row->claim);
	add_cell(&cells, "%s", is_process ? "" : row->user);
	if (is_process && row->pid)
		add_cell(&cells, _("pid %d"), (int)row->pid);
	else
		add_cell(&cells, "%s", is_process ? "" : row->tenant);
	cells.look = row->is_alarm ? LL_TOP_ALARM : row->is_evicted || row->is_paused ? LL_TOP_WARN : look;
	add_cell(&cells, "%s", row->state);
	cells.look = look;
	ll_status_add_age(&age, row->age_ns);
	add_cell(&cells, "%s", age.buf);
	add_memory(&cells, row);
	add_number(&cells, row->share_percent, "%");
	if (row->position)
		ll_strbuf_addf(&queue, "#%u ", row->position);
	if (row->moment_s) {
		ll_strbuf_adds(&queue, row->kind == LL_TOP_WAITING ? "" : "→ ");
		ll_moment_add(&queue, row->moment_s);
	}
	add_cell(&cells, "%s", queue.buf);
	add_cell(&cells, "%s", row->command);
	end_cells(&cells);
}

/* ---- which rows, in which order ---- */

static bool is_met(const struct ll_top_row *row, const char *filter)
{
	char number[24];
	snprintf(number, sizeof number, "%llu", (unsigned long long)row->number);
	return strcasestr(row->user, filter) || strcasestr(row->tenant, filter) || strcasestr(row->command, filter) ||
	       strcmp(number, filter) == 0 || strcmp(row->claim, filter) == 0;
}

struct order {
	const struct ll_top *top;
	enum ll_top_order by;
};

/* What is unknown comes last. */
static double value_of(const struct ll_top_row *row, enum ll_top_order by)
{
	if (row->kind == LL_TOP_WAITING)
		return -2 - (double)row->position;
	if (by == LL_TOP_BY_SHARE)
		return isnan(row->share_percent) ? -1 : row->share_percent;
	if (by == LL_TOP_BY_MEMORY)
		return row->used_bytes == LL_MEMORY_UNKNOWN ? -1 : (double)row->used_bytes;
	return by != LL_TOP_BY_AGE ? 0 : row->age_ns == LL_AGE_UNKNOWN ? -1 : (double)row->age_ns;
}

/* The largest value first; users and tenants by name. Equal ones stay in the order of their numbers, so that a frame
 * has them where the last one had them. */
static int compare_rows(const void *left, const void *right, void *data)
{
	const struct ll_top_row *one = *(const struct ll_top_row *const *)left;
	const struct ll_top_row *other = *(const struct ll_top_row *const *)right;
	const struct order *order = data;
	const struct ll_top_row *root = &order->top->rows[one->root], *other_root = &order->top->rows[other->root];
	double value = value_of(root, order->by), other_value = value_of(other_root, order->by);
	int by = (value < other_value) - (value > other_value);
	if (!by && order->by == LL_TOP_BY_USER)
		by = strcmp(root->user, other_root->user);
	if (!by && order->by == LL_TOP_BY_TENANT)
		by = strcmp(root->tenant, other_root->tenant);
	return by && root != other_root ? by : (one > other) - (one < other);
}

size_t ll_top_arrange(const struct ll_top *top, const struct ll_top_view *view, const struct ll_top_row **ret_rows)
{
	struct order order = {top, view->order};
	size_t count = 0;
	for (size_t i = 0; i < top->row_count; i++) {
		const struct ll_top_row *row = &top->rows[i], *root = &top->rows[row->root];
		bool is_wanted = is_met(root, view->filter) || is_met(row, view->filter);
		for (size_t k = i + 1; row == root && !is_wanted && k < top->row_count && top->rows[k].root == i; k++)
			is_wanted = is_met(&top->rows[k], view->filter);
		if (is_wanted && !(view->is_flat && row != root))
			ret_rows[count++] = row;
	}
	if (count)
		qsort_r(ret_rows, count, sizeof *ret_rows, compare_rows, &order);
	return count;
}

/* The index of the chosen row; that of its job if its process has gone; else 0. */
static size_t find_choice(const struct ll_top_row *const *rows, size_t count, const struct ll_top_view *view)
{
	size_t found = count;
	for (size_t i = 0; i < count; i++) {
		if (rows[i]->number != view->number)
			continue;
		if (rows[i]->pid == view->pid && strcmp(rows[i]->claim, view->claim) == 0)
			return i;
		if (view->number && rows[i]->kind != LL_TOP_PROCESS)
			found = i;
	}
	return found < count ? found : 0;
}

const struct ll_top_row *ll_top_choose(const struct ll_top *top, struct ll_top_view *view, long by)
{
	LL_SCOPE_FREE const struct ll_top_row **rows = calloc(top->row_count + 1, sizeof *rows);
	size_t count = rows ? ll_top_arrange(top, view, rows) : 0;
	if (!rows || !count)
		return NULL;
	long at = (long)find_choice(rows, count, view) + by;
	const struct ll_top_row *row = rows[at < 0 ? 0 : at >= (long)count ? (long)count - 1 : at];
	view->number = row->number;
	view->pid = row->pid;
	memcpy(view->claim, row->claim, sizeof view->claim);
	return row;
}

/* ---- the frame ---- */

static void add_header(struct ll_strbuf *out, const struct ll_top *top, const struct ll_top_view *view, size_t width)
{
	char host[64] = "", moment[16], text[400];
	unsigned jobs = 0, waiting = 0;
	time_t now = time(NULL);
	struct tm tm;
	for (size_t i = 0; i < top->tenant_count; i++) {
		jobs += top->tenants[i].is_synthetic ? 0 : top->tenants[i].running;
		waiting += top->tenants[i].waiting;
	}
	gethostname(host, sizeof host - 1);
	strftime(moment, sizeof moment, "%H:%M:%S", localtime_r(&now, &tm));
	int used = snprintf(text, sizeof text, "%s  %s  ", host, moment);
	used += snprintf(text + used, sizeof text - (size_t)used, _("cards %zu, jobs %u, waiting %u, by %s"),
			 top->card_count, jobs, waiting, _(ll_top_orders[view->order]));
	if (view->filter[0])
		snprintf(text + used, sizeof text - (size_t)used, _(", only \"%s\""), view->filter);
	add_line(out, LL_TOP_BOLD, width, text);
}

/* So many of `count` rows are shown in so many lines: all, or one less than lines, and the last line tells of the rest.
 */
static size_t rows_in(size_t count, size_t lines)
{
	return count <= lines || lines < 2 ? (count < lines ? count : lines) : lines - 1;
}

static void add_more(struct ll_strbuf *out, size_t hidden, size_t lines, size_t width)
{
	char text[64];
	snprintf(text, sizeof text, _("and %zu more"), hidden);
	if (hidden && lines > 1)
		add_line(out, LL_TOP_DIM, width, text);
}

static void add_tables(struct ll_strbuf *out, const struct ll_top *top, struct ll_top_view *view, size_t width,
		       size_t left, const char *between)
{
	LL_SCOPE_FREE const struct ll_top_row **rows = calloc(top->row_count + 1, sizeof *rows);
	size_t widths[COLUMNS_MOST], count = rows ? ll_top_arrange(top, view, rows) : 0;
	/* At most half of the lines for cards, a third of the rest for tenants. */
	size_t lines = top->card_count < left / 2 ? top->card_count : left / 2;
	size_t shown = rows_in(top->card_count, lines);
	unsigned unused = 0;
	left -= lines;
	add_headings(out, card_columns, CARD_COLUMNS, unused, width, widths);
	for (size_t i = 0; i < shown; i++)
		add_card(out, &top->cards[i], widths);
	add_more(out, top->card_count - shown, lines, width);

	lines = top->tenant_count < (left + 2) / 3 ? top->tenant_count : (left + 2) / 3;
	shown = rows_in(top->tenant_count, lines);
	left -= lines;
	unused = 1U << WAITING_COLUMN | 1U << GUARANTEED_COLUMN;
	for (size_t i = 0; i < top->tenant_count; i++)
		unused &= ~((top->tenants[i].waiting ? 1U << WAITING_COLUMN : 0) |
			    (top->tenants[i].guaranteed[0] ? 1U << GUARANTEED_COLUMN : 0));
	ll_strbuf_adds(out, between);
	add_headings(out, tenant_columns, TENANT_COLUMNS, unused, width, widths);
	for (size_t i = 0; i < shown; i++)
		add_tenant(out, &top->tenants[i], widths);
	add_more(out, top->tenant_count - shown, lines, width);

	unused = 1U << QUEUE_COLUMN;
	for (size_t i = 0; i < top->row_count; i++)
		unused &= ~(top->rows[i].is_queued ? 1U << QUEUE_COLUMN : 0);
	ll_strbuf_adds(out, between);
	add_headings(out, job_columns, JOB_COLUMNS, unused, width, widths);
	size_t at = view->is_still ? 0 : find_choice(rows, count, view);
	view->first = at < view->first ? at : at >= view->first + left ? at - left + 1 : view->first;
	if (view->first && view->first + left > count)
		view->first = count > left ? count - left : 0;
	for (size_t i = view->first; rows && i < count && i < view->first + left; i++)
		add_job(out, rows[i], widths, !view->is_still && i == at);
	if (!count)
		add_line(out, LL_TOP_DIM, width, view->filter[0] ? _("no job has this text") : _("no job"));
}

static void add_help(struct ll_strbuf *out, size_t width, size_t lines)
{
	static const char *const keys[] = {
	    N_("arrows, Page Up/Down, Home, End   choose a job"),
	    N_("/   only jobs with a text in number, user, tenant or command; empty: all"),
	    N_("o   another order: share, memory, age, user, tenant, job"),
	    N_("t   show or hide the processes of jobs"),
	    N_("s   set limits of the job: type options, such as --compute 30%"),
	    N_("e   evict its memory from the card, or resume it"),
	    N_("p   suspend or resume it; a waiting job: keep it in the queue, or release it"),
	    N_("k   end it: by the queue, else by SIGTERM to its process"),
	    N_("space   read now"),
	    N_("q   quit"),
	    N_("s, e, p and k ask before they do anything."),
	};
	for (size_t i = 0; i < sizeof keys / sizeof *keys && i < lines; i++)
		add_line(out, LL_TOP_PLAIN, width, _(keys[i]));
}

void ll_top_add_frame(struct ll_strbuf *out, const struct ll_top *top, struct ll_top_view *view, size_t columns,
		      size_t lines)
{
	char text[64];
	bool is_airy = lines >= AIRY_LINES;
	if (columns < LEAST_COLUMNS || lines < LEAST_LINES) {
		snprintf(text, sizeof text, _("too small: %d x %d at least"), LEAST_COLUMNS, LEAST_LINES);
		add_line(out, LL_TOP_PLAIN, columns, text);
		return;
	}
	/* without the header, three headings, the lines between them, and the two at the bottom */
	size_t left = lines - 4 - (is_airy ? 2 : 0) - (view->is_still ? 0 : 2);
	add_header(out, top, view, columns);
	for (const char *note = top->notes.buf; *note && left > 4; left--) {
		LL_SCOPE_FREE char *line = strndup(note, strcspn(note, "\n"));
		add_line(out, LL_TOP_WARN, columns, line ? line : "");
		note += strcspn(note, "\n");
		note += *note == '\n';
	}
	if (view->is_help)
		add_help(out, columns, left);
	else
		add_tables(out, top, view, columns, left, is_airy ? "\n" : "");
}

void ll_top_add_bottom(struct ll_strbuf *out, const struct ll_top *top, struct ll_top_view *view, size_t columns)
{
	LL_SCOPE_STRBUF struct ll_strbuf first = LL_STRBUF_INIT, details = LL_STRBUF_INIT;
	const struct ll_top_row *row = ll_top_choose(top, view, 0);
	if (row && row->processes > 1)
		ll_strbuf_addf(&details, _("%zu claims  "), row->processes);
	else if (row && row->claim[0])
		ll_strbuf_addf(&details, _("claim %s  "), row->claim);
	if (row && row->pid)
		ll_strbuf_addf(&details, _("pid %d  "), (int)row->pid);
	if (row)
		ll_strbuf_addf(&details, "%s%s%s", row->why, row->why[0] ? "  " : "", row->command);
	bool is_long = ll_utf8_add(&first, view->message, columns) < ll_utf8_columns(view->message);
	add_line(out, is_long ? LL_TOP_BOLD : LL_TOP_DIM, columns, is_long ? first.buf : details.buf);
	const char *rest = is_long ? view->message + first.length : view->message;
	add_line(out, *rest ? LL_TOP_BOLD : LL_TOP_DIM, columns,
		 *rest ? rest : _("h help  / filter  o order  s set  e evict  p pause  k kill  q quit"));
}
