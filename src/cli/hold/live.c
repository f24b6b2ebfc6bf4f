/*
 * The live display: a block at the bottom of the terminal, redrawn in place; log lines scroll above it.
 *
 * Plain escape sequences, not ncurses: curses takes the whole screen, or clears it when it starts, and takes what was
 * printed with it when it ends. Here the log, and what the shell showed before, stay in the scrollback. The eight
 * sequences used are the same on every terminal since the VT100 (colours: ECMA-48); TERM=dumb gets plain lines.
 *
 * A frame is one write(2): cursor up to the block's first line, log lines, the block, erase what is below. The cursor
 * is hidden within a frame only and waits below the block, so that being killed leaves a usable terminal.
 *
 * A stopped program (Ctrl-Z) goes on below what the shell has printed meanwhile: the old block stays above as it was.
 * In the background nothing is drawn: the terminal is somebody else's.
 *
 * Where stderr is a terminal too, ll_log writes into a pipe while the display lives, and each frame empties it: so
 * lines of every thread scroll above the block instead of through it.
 */
#include "cli/hold/sink.h"

#include <errno.h>
#include <fcntl.h>
#include <langinfo.h>
#include <locale.h>
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
#include "cli/hold/block.h"

#define FRAME_EVERY_NS (200 * LL_NS_PER_MS)

#define CURSOR_HIDE "\033[?25l"
#define CURSOR_SHOW "\033[?25h"
#define ERASE_LINE_END "\033[K"
#define ERASE_BELOW "\033[J"
#define HOME_AND_CLEAR "\033[H\033[2J"

struct live_sink {
	struct ll_hold_sink sink;
	int log_fds[2]; /* -1: the log goes elsewhere */
	struct ll_hold_block_style style;
	uint64_t start_ns;
	uint64_t due_ns;
	struct sigaction before; /* what SIGCONT did */
	bool is_gone;            /* finished, or the terminal hung up */
	unsigned lines;          /* drawn, above the cursor */
	unsigned widest;
	struct ll_strbuf frame;
	struct ll_strbuf block;
	struct ll_hold_block_card *cards;
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

/* ---- the terminal ---- */

/* Of the environment alone: the program's own locale stays "C", or JSON and CSV would get decimal commas. */
static bool is_utf8_locale(void)
{
	locale_t locale = newlocale(LC_CTYPE_MASK, "", (locale_t)0);
	if (!locale)
		return false;
	bool is_utf8 = strcmp(nl_langinfo_l(CODESET, locale), "UTF-8") == 0;
	freelocale(locale);
	return is_utf8;
}

/* https://no-color.org: set and not empty. */
static bool is_color_wanted(void)
{
	const char *no_color = getenv("NO_COLOR");
	return !no_color || !no_color[0];
}

/* One column less than there are: in the last one terminals disagree about wrapping. One row less: the cursor's. */
static void ask_size(struct ll_hold_block_style *style)
{
	struct winsize size = {0};
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0 || size.ws_row == 0)
		size = (struct winsize){.ws_col = 80, .ws_row = 24};
	style->columns = size.ws_col > 1 ? size.ws_col - 1U : 1U;
	style->rows = size.ws_row - 1U;
}

/* False: hung up, or whatever else makes further frames useless. */
static bool write_all(const char *data, size_t length)
{
	while (length > 0) {
		ssize_t n = write(STDOUT_FILENO, data, length);
		if (n < 0 && errno == EAGAIN)
			return true; /* somebody made the terminal non-blocking: the next frame repairs this one */
		if (n < 0 && errno != EINTR)
			return false;
		if (n > 0) {
			data += n;
			length -= (size_t)n;
		}
	}
	return true;
}

/* A terminal stopped with Ctrl-S must not stop us. */
static bool is_writable(void)
{
	struct pollfd pfd = {.fd = STDOUT_FILENO, .events = POLLOUT};
	return poll(&pfd, 1, 0) != 0;
}

/* Where this is not its job's terminal there are no jobs, and it is ours. */
static bool is_in_background(void)
{
	pid_t foreground = tcgetpgrp(STDOUT_FILENO);
	return foreground > 0 && foreground != getpgrp();
}

/* ---- frames ---- */

/* Lines in the terminal's way: each wipes what the old frame had right of it, and raw mode needs the CR. */
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
 * Back to the first line of the block. Where the terminal has become too small for what stands there it has
 * wrapped or scrolled it, each kind of terminal in its own way: then the screen begins anew.
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

static void draw(struct live_sink *self, uint64_t now_ns)
{
	const struct ll_hold_output_config *config = self->sink.config;
	ask_size(&self->style);
	begin_frame(self);
	add_log(self);
	ll_strbuf_reset(&self->block);
	self->lines = ll_hold_block_render(&self->block, &self->style, config->hold, self->cards, config->count,
					   (double)(now_ns - self->start_ns) / 1e9, &self->widest);
	add_lines(&self->frame, self->block.buf, self->block.length);
	end_frame(self);
}

/* The block goes, what was logged stays. */
static void take_away(struct live_sink *self)
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
	ll_hold_block_card_event(&self->cards[slot], event);
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
	/* From the due time on, so that late ticks do not make the display slower; but no burst after a pause. */
	self->due_ns += FRAME_EVERY_NS;
	if (self->due_ns + FRAME_EVERY_NS < now_ns)
		self->due_ns = now_ns + FRAME_EVERY_NS;
	draw(self, now_ns);
	return self->due_ns;
}

static void release_log(struct live_sink *self)
{
	if (self->log_fds[0] < 0)
		return;
	ll_log_set_fd(STDERR_FILENO);
	take_away(self);
	close(self->log_fds[0]);
	close(self->log_fds[1]);
	self->log_fds[0] = self->log_fds[1] = -1;
}

static int live_finish(struct ll_hold_sink *sink, struct ll_err *err)
{
	struct live_sink *self = (struct live_sink *)sink;
	(void)err;
	release_log(self);
	take_away(self);
	return 0;
}

static void live_free(struct ll_hold_sink *sink)
{
	struct live_sink *self = (struct live_sink *)sink;
	live_finish(sink, NULL);
	sigaction(SIGCONT, &self->before, NULL);
	ll_strbuf_fini(&self->frame);
	ll_strbuf_fini(&self->block);
	free(self->cards);
	free(self);
}

static int capture_log(struct live_sink *self, struct ll_err *err)
{
	self->log_fds[0] = self->log_fds[1] = -1;
	if (!isatty(STDERR_FILENO))
		return 0;
	/* Non-blocking at both ends: a log nobody reads for long loses lines, not time. */
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
	    .free = live_free,
	};
	struct live_sink *self = calloc(1, sizeof *self);
	struct ll_hold_block_card *cards = calloc(config->count ? config->count : 1, sizeof *cards);
	if (!self || !cards) {
		free(self);
		free(cards);
		return ll_err_set(err, -ENOMEM, "display: out of memory");
	}
	int rc = capture_log(self, err);
	if (rc < 0) {
		free(self);
		free(cards);
		return rc;
	}
	for (size_t i = 0; i < config->count; i++)
		ll_hold_block_card_init(&cards[i], config->cards[i]);
	self->sink = (struct ll_hold_sink){.ops = &ops, .config = config};
	self->style = (struct ll_hold_block_style){.is_utf8 = is_utf8_locale(), .has_color = is_color_wanted()};
	self->start_ns = ll_now_ns();
	self->due_ns = self->start_ns;
	self->frame = (struct ll_strbuf)LL_STRBUF_INIT;
	self->block = (struct ll_strbuf)LL_STRBUF_INIT;
	self->cards = cards;
	fflush(stdout);
	is_continued = 0;
	sigaction(SIGCONT, &(struct sigaction){.sa_handler = note_continued, .sa_flags = SA_RESTART}, &self->before);
	*ret_sink = &self->sink;
	return 0;
}
