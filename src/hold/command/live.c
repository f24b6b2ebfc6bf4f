/*
 * The live display: a block of lines at the bottom of the terminal, redrawn in place. Log lines scroll above it.
 *
 * It uses plain escape sequences instead of ncurses. ncurses takes the whole screen or clears it at the start, and
 * removes its output at the end. Here the log and the shell's earlier output stay in the scrollback. The eight
 * sequences are the same on every terminal since the VT100 (colours: ECMA-48). TERM=dumb gets plain lines.
 *
 * A frame is one write(2): move the cursor up to the block's first line, write new log lines and the block, erase the
 * lines below. The cursor is hidden within a frame only, and stays below the block between frames. So a killed hold
 * leaves a usable terminal.
 *
 * After Ctrl-Z and fg the display goes on below the shell's output; the old block stays above. In the background
 * nothing is drawn, because another program uses the terminal.
 *
 * If stderr is a terminal too, ll_log writes into a pipe while the display lives, and each frame empties the pipe. So
 * log lines of all threads scroll above the block and do not break it.
 */
#include "hold/command/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
#include <math.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "hold/command/words.h"

/*
 * ---- the block: neither a terminal nor a clock ----
 *
 * A header line says that this is a synthetic load. Then each card has a tall block, or one line if the screen has too
 * few rows. If cards do not fit even so, a last line has their number. Every line is at most style->columns wide,
 * escape sequences not counted. There are at most style->rows lines.
 */

enum {
	BLOCK_SAMPLES = 60,
	CHART_ROWS = 4,
	EIGHTHS = 8,         /* of a cell */
	TALL_ROWS = 6,       /* name, chart, state */
	LABELS_COLUMNS = 24, /* right of the chart */
	SMALLEST_CHART = 8,
	COMPACT_SAMPLES = 16,
};

struct block_style {
	unsigned columns;
	unsigned rows;
	bool is_utf8;
	bool has_color;
};

struct block_card {
	const struct ll_card *card;
	bool is_simulated;
	bool has_event;
	bool is_fault; /* the last state change was a fault */
	struct ll_hold_status status;
	double levels[BLOCK_SAMPLES]; /* a ring, the metric's unit */
	size_t sample_count;          /* all samples so far; the newest is at (sample_count - 1) % BLOCK_SAMPLES */
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
	const struct block_style *style;
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
static double level_ago(const struct block_card *card, size_t age)
{
	if (age >= card->sample_count || age >= BLOCK_SAMPLES)
		return NAN;
	return card->levels[(card->sample_count - 1 - age) % BLOCK_SAMPLES];
}

/* Returns the level at the chart's upper edge: 1 for ratios, and for power a quarter more than the highest value shown.
 */
static double chart_top(enum ll_metric metric, const struct block_card *card)
{
	if (metric != LL_METRIC_POWER)
		return 1;
	double top = isfinite(card->status.target) ? card->status.target : 1;
	for (size_t age = 0; age < BLOCK_SAMPLES; age++)
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

static void put_sparkline(struct line *line, enum ll_metric metric, const struct block_card *card, unsigned width)
{
	double top = chart_top(metric, card);
	set_color(line, CYAN);
	for (unsigned age = width; age-- > 0;)
		put_bar(line, bar_height(level_ago(card, age), top, 1));
	set_color(line, PLAIN);
}

/* Adds one row of the chart, row 0 at the bottom. The target is a dashed line in cells that no bar covers. */
static void put_chart_row(struct line *line, enum ll_metric metric, const struct block_card *card, unsigned width,
			  unsigned row)
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

static void put_state(struct line *line, const struct block_card *card)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	if (card->has_event)
		ll_hold_add_state(&text, &card->status);
	else
		ll_strbuf_adds(&text, _("starting"));
	set_color(line, card->is_fault ? RED : card->status.state == LL_HOLD_HOLDING ? GREEN : YELLOW);
	put_text(line, text.buf);
	set_color(line, PLAIN);
}

static void put_label(struct line *line, enum ll_metric metric, const struct block_card *card, unsigned row)
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

static void put_name(struct line *line, const struct block_card *card)
{
	set_color(line, BOLD);
	put_text(line, _("card "));
	put_foreign(line, card->card->label);
	put_text(line, " ");
	put_foreign(line, card->card->name);
	put_text(line, card->is_simulated ? _(" (simulated)") : "");
	set_color(line, PLAIN);
}

static unsigned chart_width(const struct block_style *style)
{
	unsigned room = style->columns > LABELS_COLUMNS ? style->columns - LABELS_COLUMNS : 0;
	if (room < SMALLEST_CHART)
		return 0;
	return room < BLOCK_SAMPLES ? room : BLOCK_SAMPLES;
}

static void put_counts(struct line *line, const struct block_card *card)
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

static void put_tall(struct line *line, enum ll_metric metric, const struct block_card *card)
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

static void put_compact(struct line *line, enum ll_metric metric, const struct block_card *card)
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

static void put_cards(struct line *line, enum ll_metric metric, const struct block_card *cards, size_t count)
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

/* Adds the lines, each ended by "\n". Returns their number. *ret_widest: the columns of the longest line. */
static unsigned render_block(struct ll_strbuf *text, const struct block_style *style, const struct ll_hold_config *hold,
			     const struct block_card *cards, size_t count, double elapsed_s, unsigned *ret_widest)
{
	struct line line = {.text = text, .style = style, .sgr = PLAIN};
	if (style->rows > 0) {
		put_header(&line, hold, elapsed_s);
		put_cards(&line, hold->metric, cards, count);
	}
	*ret_widest = line.widest;
	return line.count;
}

#define FRAME_EVERY_NS (200 * LL_NS_PER_MS)

#define CURSOR_HIDE "\033[?25l"
#define CURSOR_SHOW "\033[?25h"
#define ERASE_LINE_END "\033[K"
#define ERASE_BELOW "\033[J"
#define HOME_AND_CLEAR "\033[H\033[2J"

/* ---- the terminal ---- */

struct live_sink {
	struct ll_hold_sink sink;
	int log_fds[2]; /* the pipe of the log; -1: the log does not go through the display */
	struct block_style style;
	uint64_t start_ns;
	uint64_t due_ns;
	struct sigaction before; /* the handler of SIGCONT before */
	bool is_gone;            /* the display has ended, or the terminal has hung up */
	unsigned lines;          /* of the block on the screen, above the cursor */
	unsigned widest;
	struct ll_strbuf frame;
	struct ll_strbuf block;
	struct block_card cards[];
};

static volatile sig_atomic_t is_continued;

static void note_continued(int number)
{
	(void)number;
	is_continued = 1;
}

bool ll_hold_live_is_possible(void)
{
	const char *term = getenv("TERM");
	return term && term[0] && strcmp(term, "dumb") != 0;
}

/* Reads the locale from the environment. The program's own locale stays "C", so that JSON and CSV have decimal points.
 */
static bool is_utf8_locale(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (!locale)
		return false;
	bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
	freelocale(locale);
	return is_utf8;
}

/* https://no-color.org: NO_COLOR counts if it is set and not empty. */
static bool is_color_wanted(void)
{
	const char *no_color = getenv("NO_COLOR");
	return !no_color || !no_color[0];
}

/* The display leaves the last column free, because terminals differ in how they wrap there. It leaves one row free for
 * the cursor. */
static void ask_size(struct block_style *style)
{
	struct winsize size = {0};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	style->columns = size.ws_col > 1 ? size.ws_col - 1U : 1U;
	style->rows = size.ws_row - 1U;
}

/* Returns false if the terminal has hung up, or if further frames would fail too. */
static bool write_all(const char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDOUT_FILENO, data, length);
		if (n < 0 && errno == EAGAIN)
			return true; /* the terminal is non-blocking; the next frame redraws the rest
				      */
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		}
	}
	return true;
}

/* A terminal that is stopped by Ctrl-S must not block the hold. */
static bool is_writable(void)
{
	struct pollfd pfd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&pfd, 1, 0) != 0;
}

/* If stdout is not the controlling terminal, tcgetpgrp fails. Then there is no job control, and the display draws. */
static bool is_in_background(void)
{
	pid_t foreground = tcgetpgrp(STDOUT_FILENO);
	return foreground > 0 && foreground != getpgrp();
}

/* ---- frames ---- */

/* Adds lines to the frame. Each line erases the rest of the old line. The CR is for a terminal in raw mode. */
static void add_lines(struct ll_strbuf *frame, const char *text, size_t length)
{
	while (length > 0) {
		const char *end = memchr(text, '\n', length);
		size_t part = end ? (size_t)(end - text) : length;
		ll_strbuf_add(frame, text, part);
		if (!end)
			return;
		ll_strbuf_adds(frame, ERASE_LINE_END "\r\n");
		text += part + 1;
		length -= part + 1;
	}
}

static void add_log(struct live_sink *self)
{
	char text[4096];
	ssize_t n;
	if (self->log_fds[0] < 0)
		return;
	while ((n = read(self->log_fds[0], text, sizeof text)) > 0)
		add_lines(&self->frame, text, (size_t)n);
}

/*
 * Moves the cursor to the first line of the old block. If the terminal has become too small for that block, it has
 * wrapped or scrolled it in a way that differs between terminals. Then the frame clears the screen.
 */
static void begin_frame(struct live_sink *self)
{
	ll_strbuf_reset(&self->frame);
	ll_strbuf_adds(&self->frame, CURSOR_HIDE);
	if (self->widest > self->style.columns || self->lines > self->style.rows)
		ll_strbuf_adds(&self->frame, HOME_AND_CLEAR);
	else if (self->lines > 0)
		ll_strbuf_addf(&self->frame, "\r\033[%uA", self->lines);
	else
		ll_strbuf_adds(&self->frame, "\r");
}

static void end_frame(struct live_sink *self)
{
	ll_strbuf_adds(&self->frame, ERASE_BELOW CURSOR_SHOW);
	if (!self->frame.failed && !write_all(self->frame.buf, self->frame.length))
		self->is_gone = true;
}

static void draw_frame(struct live_sink *self, uint64_t now_ns)
{
	const struct ll_hold_output_config *config = self->sink.config;
	ask_size(&self->style);
	begin_frame(self);
	add_log(self);
	ll_strbuf_reset(&self->block);
	self->lines = render_block(&self->block, &self->style, config->hold, self->cards, config->count,
				   (double)(now_ns - self->start_ns) / 1e9, &self->widest);
	add_lines(&self->frame, self->block.buf, self->block.length);
	end_frame(self);
}

/* Removes the block from the screen. The log lines stay. */
static void remove_block(struct live_sink *self)
{
	if (self->is_gone)
		return;
	ask_size(&self->style);
	begin_frame(self);
	add_log(self);
	self->lines = self->widest = 0;
	end_frame(self);
	self->is_gone = true;
}

/* ---- the sink ---- */

static void live_event(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot)
{
	struct live_sink *self = (struct live_sink *)sink;
	struct block_card *card = &self->cards[slot];
	card->status = event->status;
	card->has_event = true;
	if (event->kind == LL_EVENT_SAMPLE)
		card->levels[card->sample_count++ % BLOCK_SAMPLES] = event->status.level;
	else
		card->is_fault = event->kind == LL_EVENT_FAULT;
}

static uint64_t live_tick(struct ll_hold_sink *sink, uint64_t now_ns)
{
	struct live_sink *self = (struct live_sink *)sink;
	if (self->is_gone)
		return UINT64_MAX;
	if (is_continued) {
		is_continued = 0;
		self->lines = self->widest = 0;
		self->due_ns = now_ns;
	}
	if (now_ns < self->due_ns)
		return self->due_ns;
	if (is_in_background() || !is_writable())
		return now_ns + FRAME_EVERY_NS;
	/* The next frame is due one period after this one was due, so that late ticks do not slow the display. After a
	 * pause there is no burst of frames. */
	self->due_ns += FRAME_EVERY_NS;
	if (self->due_ns + FRAME_EVERY_NS < now_ns)
		self->due_ns = now_ns + FRAME_EVERY_NS;
	draw_frame(self, now_ns);
	return self->due_ns;
}

static void release_log(struct live_sink *self)
{
	if (self->log_fds[0] < 0)
		return;
	ll_log_set_fd(STDERR_FILENO);
	remove_block(self);
	close(self->log_fds[0]);
	close(self->log_fds[1]);
	self->log_fds[0] = self->log_fds[1] = -1;
}

static int live_finish(struct ll_hold_sink *sink, struct ll_err *err)
{
	struct live_sink *self = (struct live_sink *)sink;
	(void)err;
	release_log(self);
	remove_block(self);
	return 0;
}

static void live_fini(struct ll_hold_sink *sink)
{
	struct live_sink *self = (struct live_sink *)sink;
	live_finish(sink, NULL);
	sigaction(SIGCONT, &self->before, NULL);
	ll_strbuf_fini(&self->frame);
	ll_strbuf_fini(&self->block);
}

static int capture_log(struct live_sink *self, struct ll_err *err)
{
	self->log_fds[0] = self->log_fds[1] = -1;
	if (!isatty(STDERR_FILENO))
		return 0;
	/* Both ends are non-blocking: if the pipe is full, a log line is lost, and no thread waits. */
	if (pipe2(self->log_fds, O_CLOEXEC | O_NONBLOCK) != 0)
		return ll_err_set(err, -errno, "display: pipe: %s", strerror(errno));
	ll_log_set_fd(self->log_fds[1]);
	return 0;
}

int ll_hold_live_new(const struct ll_hold_output_config *config, struct ll_hold_sink **ret_sink, struct ll_err *err)
{
	static const struct ll_hold_sink_ops ops = {
	    .event = live_event,
	    .tick = live_tick,
	    .finish = live_finish,
	    .fini = live_fini,
	};
	struct live_sink *self = ll_hold_sink_new(&ops, config, sizeof *self, sizeof self->cards[0]);
	if (!self)
		return ll_err_set(err, -ENOMEM, "display: out of memory");
	int rc = capture_log(self, err);
	if (rc < 0) {
		free(self);
		return rc;
	}
	for (size_t i = 0; i < config->count; i++)
		self->cards[i] = (struct block_card){
		    .card = config->cards[i],
		    .is_simulated = ll_hold_is_simulated(config->cards[i]),
		    .status = {.level = NAN, .target = NAN, .own_util = NAN, .power_watts = NAN, .temperature_c = NAN},
		};
	self->style = (struct block_style){.is_utf8 = is_utf8_locale(), .has_color = is_color_wanted()};
	self->start_ns = ll_now_ns();
	self->due_ns = self->start_ns;
	self->frame = (struct ll_strbuf)LL_STRBUF_INIT;
	self->block = (struct ll_strbuf)LL_STRBUF_INIT;
	fflush(stdout);
	is_continued = 0;
	sigaction(SIGCONT, &(struct sigaction){.sa_handler = note_continued, .sa_flags = SA_RESTART}, &self->before);
	*ret_sink = &self->sink;
	return 0;
}
