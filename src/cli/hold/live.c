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
	int log_fds[2]; /* the pipe of the log; -1: the log does not go through the display */
	struct ll_hold_block_style style;
	uint64_t start_ns;
	uint64_t due_ns;
	struct sigaction before; /* the handler of SIGCONT before */
	bool is_gone;            /* the display has ended, or the terminal has hung up */
	unsigned lines;          /* of the block on the screen, above the cursor */
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
static void ask_size(struct ll_hold_block_style *style)
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
	self->lines = ll_hold_block_render(&self->block, &self->style, config->hold, self->cards, config->count,
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
