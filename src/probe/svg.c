#include "probe/probe.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/strbuf.h"

/* ---- one panel: a cell with its rows, its axis, its caption ---- */

enum {
	SVG_WIDTH = 960,
	SVG_MARGIN = 24,
	SVG_LABELS = 104, /* from the margin to the rows */
	SVG_ROW = 22,
	SVG_PALETTE = 8,
};

enum { HEADING = 20, CAPTION = 18, AXIS = 34, SPACE = 22, BAR = 16, TICKS = 8, CAPTION_LINE = 14 };

/* Of a caption's line: at 11 pixels no usual typeface needs more than the picture's width for so many. */
enum { LETTERS = 150 };

#define LEFT (SVG_MARGIN + SVG_LABELS)
#define RIGHT (SVG_WIDTH - SVG_MARGIN)

struct scale {
	uint64_t zero_ns;
	double pixels_per_ns;
	double end_ns;
};

static bool has_rows(const struct ll_probe_result *result)
{
	return !result->is_skipped && result->kernel_count > 0;
}

static struct scale make_scale(const struct ll_probe_result *result)
{
	uint64_t from_ns = UINT64_MAX, to_ns = 0;
	for (size_t i = 0; i < result->kernel_count; i++) {
		from_ns = result->kernels[i].start_ns < from_ns ? result->kernels[i].start_ns : from_ns;
		to_ns = result->kernels[i].end_ns > to_ns ? result->kernels[i].end_ns : to_ns;
	}
	double length_ns = to_ns > from_ns ? (double)(to_ns - from_ns) : 1;
	return (struct scale){.zero_ns = from_ns, .pixels_per_ns = (RIGHT - LEFT) / length_ns, .end_ns = length_ns};
}

static double x_of(const struct scale *scale, uint64_t at_ns)
{
	return LEFT + (double)(at_ns - scale->zero_ns) * scale->pixels_per_ns;
}

static void add_heading(struct ll_strbuf *out, const struct ll_probe_result *result, int y)
{
	const struct ll_probe_cell *cell = &result->cell;
	char under[LL_PROBE_UNDER_SIZE];
	ll_strbuf_addf(
	    out, "<text class=\"heading\" x=\"%d\" y=\"%d\">%u %s under %s, %s grid, %s priorities, %u connection%s: ",
	    SVG_MARGIN, y + HEADING - 6, result->load.parties, ll_probe_parallel_text(cell->parallel),
	    ll_probe_under_text(cell->under, under), cell->is_full ? "full" : "tiny",
	    cell->has_priorities ? "different" : "equal", cell->connections, cell->connections == 1 ? "" : "s");
	ll_strbuf_addf(out, "<tspan class=\"word\">%s</tspan></text>\n",
		       result->is_skipped ? "not measured" : ll_probe_word_text(result->word));
}

static void make_caption(struct ll_strbuf *out, const struct ll_probe_result *result)
{
	if (result->why[0]) {
		ll_strbuf_adds(out, result->why);
		return;
	}
	ll_strbuf_addf(out, "%.1f %% of what could run at once did; no kernel was on the card for %.1f %% of %.2f ms",
		       100 * result->overlap.median, 100 * result->lost.median, result->window_ns.median / 1e6);
	if (result->word == LL_PROBE_TIME_SLICED && result->slice_ns.count)
		ll_strbuf_addf(out, "; time slice %.2f ms", result->slice_ns.median / 1e6);
	if (result->word == LL_PROBE_TIME_SLICED && result->switch_ns.count)
		ll_strbuf_addf(out, "; %.0f us empty at each change", result->switch_ns.median / 1e3);
	if (result->cell.has_priorities)
		ll_strbuf_addf(out, "; the first had %.0f %% while all wanted the card", 100 * result->share.median);
}

/* Letters of text that fit on one line of the picture, up to a blank. */
static int line_length(const char *text)
{
	int length = (int)strnlen(text, LETTERS + 1);
	if (length <= LETTERS)
		return length;
	for (length = LETTERS; length > 0 && text[length] != ' ';)
		length--;
	return length ? length : LETTERS;
}

static const char *next_line(const char *text)
{
	text += line_length(text);
	return text + (*text == ' ');
}

static int caption_height(const struct ll_probe_result *result)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	int lines = 0;
	make_caption(&text, result);
	for (const char *line = text.buf; *line; line = next_line(line))
		lines++;
	return CAPTION + (lines > 1 ? (lines - 1) * CAPTION_LINE : 0);
}

/* Returns the pixels that it takes. */
static int panel_height(const struct ll_probe_result *result)
{
	int rows = has_rows(result) ? (int)result->load.parties * SVG_ROW + AXIS : 0;
	return HEADING + caption_height(result) + rows + SPACE;
}

static void add_caption(struct ll_strbuf *out, const struct ll_probe_result *result, int y)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	make_caption(&text, result);
	y += HEADING + CAPTION - 8;
	for (const char *line = text.buf; *line; line = next_line(line), y += CAPTION_LINE) {
		char part[LETTERS + 1];
		snprintf(part, sizeof part, "%.*s", line_length(line), line);
		ll_strbuf_addf(out, "<text class=\"caption\" x=\"%d\" y=\"%d\">", SVG_MARGIN, y);
		ll_strbuf_add_escaped(out, part);
		ll_strbuf_adds(out, "</text>\n");
	}
}

static void add_bar(struct ll_strbuf *out, const char *class, double from, double to, int y)
{
	/* What is too short to see is drawn all the same: a hair wide. */
	double width = to - from > 0.5 ? to - from : 0.5;
	ll_strbuf_addf(out, "<rect class=\"%s\" x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\"/>", class, from, y,
		       width, BAR);
}

static void add_kernel(struct ll_strbuf *out, const struct ll_probe_kernel *kernel, const struct scale *scale, int top)
{
	char class[16];
	int y = top + (int)kernel->party * SVG_ROW + (SVG_ROW - BAR) / 2;
	uint64_t from_ns = kernel->start_ns;
	snprintf(class, sizeof class, "p%u", kernel->party % SVG_PALETTE);
	ll_strbuf_addf(out, "<g><title>%.3f to %.3f ms, %u block%s on %u SM%s, interrupted %u time%s</title>",
		       (double)(kernel->start_ns - scale->zero_ns) / 1e6,
		       (double)(kernel->end_ns - scale->zero_ns) / 1e6, kernel->blocks, kernel->blocks == 1 ? "" : "s",
		       kernel->sm_count, kernel->sm_count == 1 ? "" : "s", kernel->hole_count,
		       kernel->hole_count == 1 ? "" : "s");
	for (uint32_t i = 0; i < ll_probe_listed(kernel); i++) {
		const struct ll_probe_hole *gap = &kernel->holes[i];
		add_bar(out, class, x_of(scale, from_ns), x_of(scale, gap->at_ns), y);
		from_ns = gap->at_ns + gap->length_ns;
		add_bar(out, "away", x_of(scale, gap->at_ns), x_of(scale, from_ns), y);
	}
	add_bar(out, class, x_of(scale, from_ns), x_of(scale, kernel->end_ns), y);
	ll_strbuf_addf(out, "<line class=\"edge\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/></g>\n",
		       x_of(scale, kernel->start_ns), x_of(scale, kernel->start_ns), y, y + BAR);
}

static void add_rows(struct ll_strbuf *out, const struct ll_probe_result *result, const struct scale *scale, int top)
{
	static const char *const parties[LL_PROBE_PARALLELS] = {"stream", "thread", "thread", "thread", "process"};
	for (uint32_t i = 0; i < result->load.parties; i++) {
		int y = top + (int)i * SVG_ROW;
		const char *priority = !result->cell.has_priorities ? "" : i == 0 ? ", high" : ", low";
		ll_strbuf_addf(out, "<line class=\"row\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, RIGHT,
			       y + SVG_ROW, y + SVG_ROW);
		ll_strbuf_addf(out, "<text class=\"label\" x=\"%d\" y=\"%d\">%s %u%s</text>\n", LEFT - 8,
			       y + SVG_ROW - 7, parties[result->cell.parallel], i, priority);
	}
	for (size_t i = 0; i < result->kernel_count; i++)
		add_kernel(out, &result->kernels[i], scale, top);
}

/* 1, 2 or 5 times a power of ten, so that there are no more than TICKS. */
static double tick_ns(double end_ns)
{
	double step_ns = pow(10, floor(log10(end_ns / TICKS)));
	static const double factors[] = {1, 2, 5, 10};
	for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
		if (step_ns * factors[i] * TICKS >= end_ns)
			return step_ns * factors[i];
	}
	return step_ns * 10;
}

static void add_axis(struct ll_strbuf *out, const struct scale *scale, int top, int bottom)
{
	double step_ns = tick_ns(scale->end_ns);
	for (int i = 0; i * step_ns <= scale->end_ns; i++) {
		double at_ns = i * step_ns;
		double x = LEFT + at_ns * scale->pixels_per_ns;
		ll_strbuf_addf(out, "<line class=\"tick\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/>\n", x, x, top,
			       bottom + 4);
		ll_strbuf_addf(out, "<text class=\"number\" x=\"%.2f\" y=\"%d\">%g</text>\n", x, bottom + 16,
			       round(at_ns) / 1e6);
	}
	ll_strbuf_addf(out, "<text class=\"unit\" x=\"%d\" y=\"%d\">ms on the card&#8217;s clock</text>\n", RIGHT,
		       bottom + 29);
}

/* Draws the panel with its upper edge at y. */
static void draw_panel(struct ll_strbuf *out, const struct ll_probe_result *result, int y)
{
	ll_strbuf_adds(out, "<g class=\"panel\">\n");
	add_heading(out, result, y);
	add_caption(out, result, y);
	if (has_rows(result)) {
		struct scale scale = make_scale(result);
		int top = y + HEADING + caption_height(result);
		int bottom = top + (int)result->load.parties * SVG_ROW;
		add_axis(out, &scale, top, bottom);
		add_rows(out, result, &scale, top);
	}
	ll_strbuf_adds(out, "</g>\n");
}

/* ---- the picture ---- */

enum { TITLE = 86, LEGEND = 34, FOOT = 16 };

/* Hues that stay apart for most eyes, on light and on dark. No variables: many viewers know none. */
static const char style[] = "<style>\n"
			    "text{fill:#1a1a1a;font:12px system-ui,sans-serif}\n"
			    ".paper{fill:#ffffff}\n"
			    ".title{font-size:18px;font-weight:600}.heading{font-size:13px}.word{font-weight:700}\n"
			    ".caption,.unit,.number{fill:#5c5c5c;font-size:11px}\n"
			    ".label,.unit{text-anchor:end}.number{text-anchor:middle}\n"
			    ".row,.tick{stroke:#dddddd;stroke-width:1}.edge{stroke:#ffffff;stroke-width:1}\n"
			    ".away{fill:none;stroke:#8a8a8a;stroke-width:1;stroke-dasharray:3 2}\n"
			    ".p0{fill:#2f6fb7}.p1{fill:#d97b1f}.p2{fill:#2d9a68}.p3{fill:#b94a8f}\n"
			    ".p4{fill:#7a6cc4}.p5{fill:#a08a1e}.p6{fill:#27939c}.p7{fill:#c2504a}\n"
			    "@media (prefers-color-scheme:dark){.paper{fill:#16181b}text{fill:#ececec}\n"
			    ".caption,.unit,.number{fill:#a5a9af}.row,.tick{stroke:#33373d}.edge{stroke:#16181b}}\n"
			    "</style>\n";

/* Of the matrix the cells with the middle number of connections. */
static unsigned middle_connections(const struct ll_probe_report *report)
{
	unsigned seen[LL_PROBE_CHOICES];
	size_t count = 0;
	for (size_t i = 0; i < report->count; i++) {
		unsigned connections = report->results[i].cell.connections;
		size_t k = 0;
		while (k < count && seen[k] != connections)
			k++;
		if (k == count && count < LL_PROBE_CHOICES)
			seen[count++] = connections;
	}
	return count ? seen[count / 2] : 0;
}

static bool is_shown(const struct ll_probe_report *report, const struct ll_probe_result *result, unsigned connections)
{
	if (report->count <= LL_PROBE_SVG_PANELS)
		return true;
	return !result->cell.has_priorities && result->cell.connections == connections;
}

static void add_title(struct ll_strbuf *out, const struct ll_probe_report *report, int height)
{
	ll_strbuf_addf(out,
		       "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
		       "role=\"img\" aria-labelledby=\"title about\">\n<title id=\"title\">Who was on the card when: ",
		       SVG_WIDTH, height, SVG_WIDTH, height);
	ll_strbuf_add_escaped(out, report->card_name);
	ll_strbuf_adds(out,
		       "</title>\n<desc id=\"about\">Each panel is one experiment, each row in it a stream, thread or "
		       "process that launches kernels; a bar is a kernel on the card.</desc>\n");
	ll_strbuf_adds(out, style);
	ll_strbuf_adds(out, "<rect class=\"paper\" width=\"100%\" height=\"100%\"/>\n");
	ll_strbuf_addf(out, "<text class=\"title\" x=\"%d\" y=\"34\">Who was on the card when</text>\n", SVG_MARGIN);
	ll_strbuf_addf(out, "<text class=\"caption\" x=\"%d\" y=\"54\">card ", SVG_MARGIN);
	ll_strbuf_add_escaped(out, report->card_label);
	ll_strbuf_adds(out, ", ");
	ll_strbuf_add_escaped(out, report->card_name);
	ll_strbuf_addf(out, "%s, %u SMs, driver ", report->is_simulated ? " (simulated)" : "", report->sm_count);
	ll_strbuf_add_escaped(out, report->driver_version);
	uint64_t step_ns = ll_probe_report_step_ns(report);
	if (step_ns)
		ll_strbuf_addf(out, ", clock in steps of %" PRIu64 " ns", step_ns);
	ll_strbuf_addf(
	    out,
	    "</text>\n<text class=\"caption\" x=\"%d\" y=\"72\">All of a panel&#8217;s kernels are launched at the "
	    "same moment. Rows whose bars stand above each other ran together; bars that take turns shared the "
	    "card by time.</text>\n",
	    SVG_MARGIN);
}

static void add_legend(struct ll_strbuf *out, int y)
{
	int x = SVG_MARGIN;
	ll_strbuf_addf(out,
		       "<g class=\"legend\">\n<rect class=\"p0\" x=\"%d\" y=\"%d\" width=\"28\" height=\"12\"/>"
		       "<text x=\"%d\" y=\"%d\">a kernel on the card (a colour for each party)</text>\n",
		       x, y, x + 36, y + 10);
	ll_strbuf_addf(
	    out,
	    "<rect class=\"away\" x=\"%d\" y=\"%d\" width=\"28\" height=\"12\"/>"
	    "<text x=\"%d\" y=\"%d\">begun, but off the card: interrupted, or its next blocks wait</text>\n</g>\n",
	    x + 340, y, x + 376, y + 10);
}

void ll_probe_svg(const struct ll_probe_report *report, struct ll_strbuf *out)
{
	unsigned connections = middle_connections(report);
	int height = TITLE + LEGEND + FOOT;
	for (size_t i = 0; i < report->count; i++) {
		if (is_shown(report, &report->results[i], connections))
			height += panel_height(&report->results[i]);
	}
	add_title(out, report, height);
	add_legend(out, TITLE);
	int y = TITLE + LEGEND;
	for (size_t i = 0; i < report->count; i++) {
		if (!is_shown(report, &report->results[i], connections))
			continue;
		draw_panel(out, &report->results[i], y);
		y += panel_height(&report->results[i]);
	}
	ll_strbuf_adds(out, "</svg>\n");
}
