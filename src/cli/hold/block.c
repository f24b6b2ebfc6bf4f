#include "cli/hold/block.h"

#include <math.h>

#include "base/translate.h"
#include "base/utf8.h"
#include "cli/hold/words.h"

enum {
	CHART_ROWS = 4,
	EIGHTHS = 8,         /* of a cell */
	TALL_ROWS = 6,       /* name, chart, state */
	LABELS_COLUMNS = 24, /* right of the chart */
	SMALLEST_CHART = 8,
	COMPACT_SAMPLES = 16,
};

/* Each sequence begins with 0, which resets the attributes before it. */
static const char PLAIN[] = "0";
static const char BOLD[] = "0;1";
static const char RED[] = "0;31";
static const char GREEN[] = "0;32";
static const char YELLOW[] = "0;33";
static const char MAGENTA[] = "0;35";
static const char CYAN[] = "0;36";

/* A line of the display. Its text is cut at the edge of the terminal. Escape sequences take no columns and are never
 * cut, so a colour always ends. */
struct line {
	struct ll_strbuf *text;
	const struct ll_hold_block_style *style;
	const char *sgr; /* the attributes in force */
	unsigned columns;
	unsigned widest;
	unsigned count;
};

/* ---- cells ---- */

/* Adds loadline's own text, in whole characters. */
static void put_text(struct line *line, const char *text)
{
	line->columns += (unsigned)ll_utf8_add(line->text, text, line->style->columns - line->columns);
}

/* Adds a name that comes from the driver. Characters other than printable ASCII become '?', because their width is not
 * known. */
static void put_foreign(struct line *line, const char *text)
{
	for (; *text; text++) {
		char c[2] = {*text >= ' ' && *text <= '~' ? *text : '?', '\0'};
		put_text(line, c);
	}
}

static void set_color(struct line *line, const char *sgr)
{
	if (line->style->has_color && line->sgr != sgr)
		ll_strbuf_addf(line->text, "\033[%sm", sgr);
	line->sgr = sgr;
}

static void end_line(struct line *line)
{
	set_color(line, PLAIN);
	ll_strbuf_addc(line->text, '\n');
	if (line->columns > line->widest)
		line->widest = line->columns;
	line->columns = 0;
	line->count++;
}

/* filled: 0..EIGHTHS */
static void put_bar(struct line *line, unsigned filled)
{
	static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
	static const char *const letters[] = {" ", ".", ".", ":", ":", "|", "|", "#", "#"};
	put_text(line, line->style->is_utf8 ? blocks[filled] : letters[filled]);
}

/* ---- samples ---- */

/* Returns the sample that is `age` samples old. NAN: there is none so old. */
static double level_ago(const struct ll_hold_block_card *card, size_t age)
{
	if (age >= card->sample_count || age >= LL_HOLD_BLOCK_SAMPLES)
		return NAN;
	return card->levels[(card->sample_count - 1 - age) % LL_HOLD_BLOCK_SAMPLES];
}

/* Returns the level at the chart's upper edge: 1 for ratios, and for power a quarter more than the highest value shown.
 */
static double chart_top(enum ll_metric metric, const struct ll_hold_block_card *card)
{
	if (metric != LL_METRIC_POWER)
		return 1;
	double top = isfinite(card->status.target) ? card->status.target : 1;
	for (size_t age = 0; age < LL_HOLD_BLOCK_SAMPLES; age++)
		top = fmax(top, level_ago(card, age)); /* fmax leaves NAN out */
	return top * 1.25;
}

/* Returns the bar's height in eighths of a cell, for a chart of `rows` cells. A level above 0 is at least one eighth.
 */
static unsigned bar_height(double level, double top, unsigned rows)
{
	if (!(level > 0) || !(top > 0))
		return 0;
	double height = round(fmin(level / top, 1) * rows * EIGHTHS);
	return height < 1 ? 1 : (unsigned)height;
}

static void put_sparkline(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *card,
			  unsigned width)
{
	double top = chart_top(metric, card);
	set_color(line, CYAN);
	for (unsigned age = width; age-- > 0;)
		put_bar(line, bar_height(level_ago(card, age), top, 1));
	set_color(line, PLAIN);
}

/* Adds one row of the chart, row 0 at the bottom. The target is a dashed line in cells that no bar covers. */
static void put_chart_row(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *card,
			  unsigned width, unsigned row)
{
	double top = chart_top(metric, card);
	double target = card->status.target;
	bool is_target_row =
	    isfinite(target) && target >= 0 && (unsigned)fmin(target / top * CHART_ROWS, CHART_ROWS - 1) == row;
	for (unsigned age = width; age-- > 0;) {
		unsigned height = bar_height(level_ago(card, age), top, CHART_ROWS);
		unsigned below = row * EIGHTHS;
		unsigned filled = height > below ? height - below : 0;
		bool is_line = is_target_row && filled == 0;
		set_color(line, is_line ? MAGENTA : CYAN);
		if (is_line)
			put_text(line, line->style->is_utf8 ? "┄" : "-");
		else
			put_bar(line, filled < EIGHTHS ? filled : EIGHTHS);
	}
	set_color(line, is_target_row ? MAGENTA : PLAIN);
	put_text(line, !is_target_row ? "  " : line->style->is_utf8 ? "◂ " : "< ");
	set_color(line, PLAIN);
}

/* ---- a card ---- */

static const char *state_color(const struct ll_hold_block_card *card)
{
	if (card->is_fault)
		return RED;
	return card->status.state == LL_HOLD_HOLDING ? GREEN : YELLOW;
}

static void put_state(struct line *line, const struct ll_hold_block_card *card)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	if (card->has_event)
		ll_hold_add_state(&text, &card->status);
	else
		ll_strbuf_adds(&text, _("starting"));
	set_color(line, state_color(card));
	put_text(line, text.buf);
	set_color(line, PLAIN);
}

static void put_label(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *card, unsigned row)
{
	const struct ll_hold_status *status = &card->status;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	switch (row) {
	case 3:
		ll_strbuf_addf(&text, "%s ", ll_metric_name(metric));
		ll_hold_add_level(&text, metric, level_ago(card, 0));
		set_color(line, BOLD);
		break;
	case 2:
		ll_strbuf_adds(&text, _("target "));
		ll_hold_add_level(&text, metric, status->target);
		break;
	case 1:
		ll_strbuf_adds(&text, _("own load "));
		ll_hold_add_level(&text, LL_METRIC_UTIL, status->own_util);
		break;
	default:
		ll_hold_add_level(&text, LL_METRIC_POWER, round(status->power_watts));
		if (isfinite(status->temperature_c))
			ll_strbuf_addf(&text, ", %.0f C", status->temperature_c);
		break;
	}
	put_text(line, text.buf);
	end_line(line);
}

static void put_name(struct line *line, const struct ll_hold_block_card *card)
{
	set_color(line, BOLD);
	put_text(line, _("card "));
	put_foreign(line, card->card->label);
	put_text(line, " ");
	put_foreign(line, card->card->name);
	put_text(line, card->is_simulated ? _(" (simulated)") : "");
	set_color(line, PLAIN);
}

static unsigned chart_width(const struct ll_hold_block_style *style)
{
	unsigned room = style->columns > LABELS_COLUMNS ? style->columns - LABELS_COLUMNS : 0;
	if (room < SMALLEST_CHART)
		return 0;
	return room < LL_HOLD_BLOCK_SAMPLES ? room : LL_HOLD_BLOCK_SAMPLES;
}

static void put_counts(struct line *line, const struct ll_hold_block_card *card)
{
	const struct ll_hold_status *status = &card->status;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_addf(&text,
		       ll_translate_count(", %llu yield, synthetic load busy %.1f s",
					  ", %llu yields, synthetic load busy %.1f s", status->yields),
		       (unsigned long long)status->yields, (double)status->synthetic_busy_ns / 1e9);
	if (status->payload[0]) {
		ll_strbuf_addf(&text, _(", payload %s, "), status->payload);
		ll_hold_add_bytes(&text, status->memory_bytes);
	}
	put_text(line, text.buf);
}

static void put_tall(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *card)
{
	put_name(line, card);
	end_line(line);
	unsigned width = chart_width(line->style);
	for (unsigned row = CHART_ROWS; row-- > 0;) {
		put_text(line, "  ");
		if (width > 0)
			put_chart_row(line, metric, card, width, row);
		put_label(line, metric, card, row);
	}
	put_text(line, "  ");
	put_state(line, card);
	put_counts(line, card);
	end_line(line);
}

static void put_compact(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *card)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_addf(&text, " %s ", ll_metric_name(metric));
	ll_hold_add_level(&text, metric, level_ago(card, 0));
	ll_strbuf_adds(&text, " (");
	ll_hold_add_level(&text, metric, card->status.target);
	ll_strbuf_adds(&text, ") ");
	set_color(line, BOLD);
	put_text(line, _("card "));
	put_foreign(line, card->card->label);
	put_text(line, card->is_simulated ? _(" (simulated)") : "");
	set_color(line, PLAIN);
	put_text(line, " ");
	put_sparkline(line, metric, card, COMPACT_SAMPLES);
	put_text(line, text.buf);
	put_state(line, card);
	put_counts(line, card);
	end_line(line);
}

/* ---- the block ---- */

static void put_header(struct line *line, const struct ll_hold_config *hold, double elapsed_s)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned long seconds = elapsed_s > 0 ? (unsigned long)elapsed_s : 0;
	ll_strbuf_adds(&text, _("synthetic load: "));
	ll_hold_add_goal(&text, hold);
	ll_strbuf_addf(&text, _(", %lu:%02lu:%02lu (Ctrl-C ends it)"), seconds / 3600, seconds / 60 % 60, seconds % 60);
	set_color(line, BOLD);
	put_text(line, text.buf);
	end_line(line);
}

static void put_cards(struct line *line, enum ll_metric metric, const struct ll_hold_block_card *cards, size_t count)
{
	size_t room = line->style->rows - line->count;
	if (count * TALL_ROWS <= room) {
		for (size_t i = 0; i < count; i++)
			put_tall(line, metric, &cards[i]);
		return;
	}
	size_t shown = count <= room ? count : room > 0 ? room - 1 : 0;
	for (size_t i = 0; i < shown; i++)
		put_compact(line, metric, &cards[i]);
	if (shown < count && room > 0) {
		LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
		ll_strbuf_addf(&text, _("and %zu more"), count - shown);
		put_text(line, text.buf);
		end_line(line);
	}
}

unsigned ll_hold_block_render(struct ll_strbuf *text, const struct ll_hold_block_style *style,
			      const struct ll_hold_config *hold, const struct ll_hold_block_card *cards, size_t count,
			      double elapsed_s, unsigned *ret_widest)
{
	struct line line = {.text = text, .style = style, .sgr = PLAIN};
	if (style->rows > 0) {
		put_header(&line, hold, elapsed_s);
		put_cards(&line, hold->metric, cards, count);
	}
	*ret_widest = line.widest;
	return line.count;
}

void ll_hold_block_card_init(struct ll_hold_block_card *block_card, const struct ll_card *card)
{
	*block_card = (struct ll_hold_block_card){
	    .card = card,
	    .is_simulated = ll_hold_is_simulated(card),
	    .status = {.level = NAN, .target = NAN, .own_util = NAN, .power_watts = NAN, .temperature_c = NAN},
	};
}

void ll_hold_block_card_event(struct ll_hold_block_card *card, const struct ll_event *event)
{
	card->status = event->status;
	card->has_event = true;
	if (event->kind == LL_EVENT_SAMPLE)
		card->levels[card->sample_count++ % LL_HOLD_BLOCK_SAMPLES] = event->status.level;
	else
		card->is_fault = event->kind == LL_EVENT_FAULT;
}
