#include "probe/svg_panel.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/strbuf.h"
#include "probe/svg.h"

enum { HEADING = 20, CAPTION = 18, AXIS = 34, SPACE = 22, BAR = 16, TICKS = 8, CAPTION_LINE = 14 };

/* Of a caption's line: at 11 pixels no usual typeface needs more than the picture's width for so many. */
enum { LETTERS = 150 };

#define LEFT (LL_SVG_MARGIN + LL_SVG_LABELS)
#define RIGHT (LL_SVG_WIDTH - LL_SVG_MARGIN)

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

static double place(const struct scale *scale, uint64_t at_ns)
{
	return LEFT + (double)(at_ns - scale->zero_ns) * scale->pixels_per_ns;
}

static void add_heading(struct ll_strbuf *out, const struct ll_probe_result *result, int y)
{
	const struct ll_probe_cell *cell = &result->cell;
	char under[LL_PROBE_UNDER_SIZE];
	ll_strbuf_addf(
	    out, "<text class=\"heading\" x=\"%d\" y=\"%d\">%u %s under %s, %s grid, %s priorities, %u connection%s: ",
	    LL_SVG_MARGIN, y + HEADING - 6, result->load.parties, ll_probe_parallel_text(cell->parallel),
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

int ll_svg_panel_height(const struct ll_probe_result *result)
{
	int rows = has_rows(result) ? (int)result->load.parties * LL_SVG_ROW + AXIS : 0;
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
		ll_strbuf_addf(out, "<text class=\"caption\" x=\"%d\" y=\"%d\">", LL_SVG_MARGIN, y);
		ll_probe_svg_text(out, part);
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
	int y = top + (int)kernel->party * LL_SVG_ROW + (LL_SVG_ROW - BAR) / 2;
	uint64_t from_ns = kernel->start_ns;
	snprintf(class, sizeof class, "p%u", kernel->party % LL_SVG_PALETTE);
	ll_strbuf_addf(out, "<g><title>%.3f to %.3f ms, %u block%s on %u SM%s, interrupted %u time%s</title>",
		       (double)(kernel->start_ns - scale->zero_ns) / 1e6,
		       (double)(kernel->end_ns - scale->zero_ns) / 1e6, kernel->blocks, kernel->blocks == 1 ? "" : "s",
		       kernel->sm_count, kernel->sm_count == 1 ? "" : "s", kernel->hole_count,
		       kernel->hole_count == 1 ? "" : "s");
	for (uint32_t i = 0; i < ll_probe_listed(kernel); i++) {
		const struct ll_probe_hole *gap = &kernel->holes[i];
		add_bar(out, class, place(scale, from_ns), place(scale, gap->at_ns), y);
		from_ns = gap->at_ns + gap->length_ns;
		add_bar(out, "away", place(scale, gap->at_ns), place(scale, from_ns), y);
	}
	add_bar(out, class, place(scale, from_ns), place(scale, kernel->end_ns), y);
	ll_strbuf_addf(out, "<line class=\"edge\" x1=\"%.2f\" x2=\"%.2f\" y1=\"%d\" y2=\"%d\"/></g>\n",
		       place(scale, kernel->start_ns), place(scale, kernel->start_ns), y, y + BAR);
}

static void add_rows(struct ll_strbuf *out, const struct ll_probe_result *result, const struct scale *scale, int top)
{
	static const char *const parties[LL_PROBE_PARALLELS] = {"stream", "thread", "thread", "thread", "process"};
	for (uint32_t i = 0; i < result->load.parties; i++) {
		int y = top + (int)i * LL_SVG_ROW;
		const char *priority = !result->cell.has_priorities ? "" : i == 0 ? ", high" : ", low";
		ll_strbuf_addf(out, "<line class=\"row\" x1=\"%d\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n", LEFT, RIGHT,
			       y + LL_SVG_ROW, y + LL_SVG_ROW);
		ll_strbuf_addf(out, "<text class=\"label\" x=\"%d\" y=\"%d\">%s %u%s</text>\n", LEFT - 8,
			       y + LL_SVG_ROW - 7, parties[result->cell.parallel], i, priority);
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

void ll_svg_panel(struct ll_strbuf *out, const struct ll_probe_result *result, int y)
{
	ll_strbuf_adds(out, "<g class=\"panel\">\n");
	add_heading(out, result, y);
	add_caption(out, result, y);
	if (has_rows(result)) {
		struct scale scale = make_scale(result);
		int top = y + HEADING + caption_height(result);
		int bottom = top + (int)result->load.parties * LL_SVG_ROW;
		add_axis(out, &scale, top, bottom);
		add_rows(out, result, &scale, top);
	}
	ll_strbuf_adds(out, "</g>\n");
}
