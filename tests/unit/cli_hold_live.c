#include "hold_events.h"

#include <poll.h>
#include <pty.h>
#include <signal.h>
#include <sys/ioctl.h>

#include "screen.h"

static struct screen screen;

/* stdout and stderr are a terminal while a display is tested. */
static struct {
	int master_fd, slave_fd, saved_stdout, saved_stderr;
	uint64_t now_ns;
	struct ll_hold_output *output;
	struct ll_hold_output_config config;
} tty;

static void resize(unsigned short rows, unsigned short columns)
{
	struct winsize size = {.ws_row = rows, .ws_col = columns};
	assert_int_equal(ioctl(tty.master_fd, TIOCSWINSZ, &size), 0);
}

static void restore_stdio(void)
{
	fflush(stdout);
	dup2(tty.saved_stdout, STDOUT_FILENO);
	dup2(tty.saved_stderr, STDERR_FILENO);
}

static void enter_terminal(void)
{
	fflush(stdout);
	dup2(tty.slave_fd, STDOUT_FILENO);
	dup2(tty.slave_fd, STDERR_FILENO);
}

/* A terminal with a display on it. Asserts come only while stdio is restored. */
static void begin(unsigned short rows, unsigned short columns, size_t cards)
{
	assert_int_equal(openpty(&tty.master_fd, &tty.slave_fd, NULL, NULL, NULL), 0);
	resize(rows, columns);
	screen_init(&screen, rows, columns);
	tty.saved_stdout = dup(STDOUT_FILENO);
	tty.saved_stderr = dup(STDERR_FILENO);
	tty.config = test_config();
	tty.config.is_live = true;
	tty.config.count = cards;
	enter_terminal();
	int rc = ll_hold_output_new(&tty.config, &tty.output, NULL);
	tty.now_ns = ll_now_ns();
	restore_stdio();
	assert_int_equal(rc, 0);
}

/* What came out until this text, onto the screen. Returns the number of frames. */
static unsigned read_until(const char *end)
{
	static char text[64 * 1024];
	size_t length = 0;
	text[0] = '\0';
	while (length < strlen(end) || strcmp(text + length - strlen(end), end) != 0) {
		struct pollfd pfd = {.fd = tty.master_fd, .events = POLLIN};
		if (poll(&pfd, 1, 10000) != 1)
			fail_msg("'%s' does not end with '%s'", text, end);
		ssize_t n = read(tty.master_fd, text + length, sizeof text - 1 - length);
		assert_true(n > 0);
		length += (size_t)n;
		text[length] = '\0';
	}
	screen_write(&screen, text);
	assert_false(screen.is_cursor_hidden);
	unsigned frames = 0;
	for (const char *c = text; (c = strstr(c, "\033[?25h")); c++)
		frames++;
	return frames;
}

/* A frame ends by showing the cursor. */
static void read_frame(void)
{
	read_until("\033[?25h");
}

static void draw(void)
{
	enter_terminal();
	ll_hold_output_tick(tty.output, tty.now_ns += LL_NS_PER_S);
	restore_stdio();
	read_frame();
}

static void put(const struct ll_event *event)
{
	enter_terminal();
	ll_hold_output_event(tty.output, event);
	restore_stdio();
}

static void put_sample(double level)
{
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	event.status.level = level;
	put(&event);
}

static void close_terminal(void)
{
	close(tty.slave_fd);
	close(tty.master_fd);
	close(tty.saved_stdout);
	close(tty.saved_stderr);
}

/* Frees the display; what it leaves is on the screen. */
static void end(bool is_regular)
{
	enter_terminal();
	if (is_regular)
		ll_hold_output_finish(tty.output, NULL);
	ll_hold_output_free(tty.output);
	restore_stdio();
	read_frame();
	close_terminal();
}

TEST(block_shows_the_card_and_the_synthetic_load)
{
	setenv("NO_COLOR", "1", 1);
	setenv("LC_ALL", "C.UTF-8", 1);
	begin(24, 60, 1);
	for (int i = 0; i < 3; i++)
		put_sample(0.5);
	put_sample(1);
	draw();
	assert_string_equal(screen_text(&screen), "synthetic load: util at 50 %, 0:00:01 (Ctrl-C ends it)\n"
						  "card 0 NVIDIA H200\n"
						  "                                    █  util 100 %\n"
						  "  ┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄┄█◂ target 50 %\n"
						  "                                 ████  own load 49.8 %\n"
						  "                                 ████  121 W, 45 C\n"
						  "  holding, 0 yields, synthetic load busy 0.6 s, payload vul\n");
	end(true);
	assert_string_equal(screen_text(&screen), "");
	unsetenv("NO_COLOR");
}

TEST(display_redraws_in_place)
{
	begin(24, 100, 1);
	for (int i = 0; i < 100; i++) {
		put_sample(i / 100.0);
		draw();
	}
	const char *text = screen_text(&screen);
	assert_contains(text, "util 99 %");
	assert_lacks(text, "util 98 %");
	assert_int_equal(strncmp(text, "synthetic load: ", 16), 0);
	assert_true(screen.colors > 0);
	assert_int_equal(screen.row, 7);
	assert_int_equal(screen.column, 0);
	end(true);
}

TEST(log_lines_scroll_above_the_block)
{
	begin(12, 100, 1);
	put_sample(0.5);
	draw();
	struct ll_event yield = test_yield(2);
	for (int i = 0; i < 20; i++) {
		put(&yield);
		draw();
	}
	const char *text = screen_text(&screen);
	assert_contains(text, "INFO card 0: yielding to foreign work");
	assert_contains(text, "  yielded (foreign work), 1 yield, ");
	assert_int_equal(screen.row, 11);
	assert_true(strstr(text, "INFO") < strstr(text, "synthetic load: "));
	put(&yield);
	end(true);
	text = screen_text(&screen);
	assert_contains(text, "INFO card 0: yielding to foreign work");
	assert_lacks(text, "synthetic load: ");
}

TEST(summary_follows_where_the_block_was)
{
	begin(24, 100, 1);
	put_sample(0.5);
	draw();
	struct ll_event summary = test_summary(31);
	put(&summary);
	enter_terminal();
	ll_hold_output_finish(tty.output, NULL);
	ll_hold_output_free(tty.output);
	restore_stdio();
	read_until("of GPU memory\r\n");
	assert_int_equal(strncmp(screen_text(&screen), "card 0 NVIDIA H200: synthetic load, held util", 45), 0);
	close_terminal();
}

TEST(early_free_leaves_a_clean_terminal)
{
	begin(24, 100, 1);
	draw();
	assert_contains(screen_text(&screen), "starting");
	end(false);
	assert_string_equal(screen_text(&screen), "");
	assert_int_equal(screen.row, 0);
}

TEST(narrower_window_is_begun_anew)
{
	begin(24, 120, 1);
	put_sample(0.5);
	draw();
	resize(20, 30);
	screen.rows = 20;
	screen.columns = 30; /* what the terminal made of the old lines, the new frame clears */
	draw();
	const char *text = screen_text(&screen);
	assert_int_equal(strncmp(text, "synthetic load: util at 50 %,\n", 30), 0);
	resize(20, 3);
	screen.columns = 3;
	draw();
	resize(1, 1);
	screen.rows = screen.columns = 1;
	screen.row = 0;
	draw();
	resize(24, 120);
	screen.rows = 24;
	screen.columns = 120;
	draw();
	assert_contains(screen_text(&screen), "util 50 %");
	end(true);
}

TEST(after_a_stop_the_block_begins_below_what_the_shell_printed)
{
	begin(24, 100, 1);
	put_sample(0.5);
	draw();
	screen_write(&screen, "[1]+  Stopped  loadline hold\r\n$ fg\r\nloadline hold\r\n");
	raise(SIGCONT);
	put_sample(0.7);
	draw();
	const char *text = screen_text(&screen);
	assert_contains(text, "util 50 %");
	assert_contains(text, "$ fg\nloadline hold\nsynthetic load: ");
	assert_contains(strstr(text, "$ fg"), "util 70 %");
	put_sample(0.9);
	draw();
	text = screen_text(&screen);
	assert_contains(text, "util 90 %");
	assert_lacks(text, "util 70 %");
	end(true);
}

TEST(low_window_has_a_line_a_card)
{
	begin(6, 120, 2);
	put_sample(0.5);
	draw();
	const char *text = screen_text(&screen);
	assert_contains(text, "\ncard 0 ");
	assert_contains(text, "▄ util 50 % (50 %) holding, 0 yields");
	assert_contains(text, "\ncard 1:2 ");
	assert_int_equal(screen.row, 3);
	resize(3, 120);
	screen.rows = 3;
	screen.row = 2;
	draw();
	assert_contains(screen_text(&screen), "and 2 more");
	end(true);
}

TEST(frames_come_five_times_a_second_at_most)
{
	begin(24, 100, 1);
	draw();
	enter_terminal();
	for (int i = 0; i < 200; i++)
		ll_hold_output_tick(tty.output, tty.now_ns += LL_NS_PER_MS);
	restore_stdio();
	assert_int_equal(write(tty.slave_fd, "END\n", 4), 4);
	assert_in_range(read_until("END\r\n"), 1, 2);
	end(true);
}

TEST(ascii_locale_and_no_color_get_ascii)
{
	setenv("LC_ALL", "C", 1);
	setenv("NO_COLOR", "1", 1);
	begin(24, 60, 2);
	put_sample(0.55);
	draw();
	for (const char *c = screen_text(&screen); *c; c++)
		assert_true((unsigned char)*c < 0x80);
	assert_contains(screen.text, "  ----------------------------------.< target 50 %");
	assert_contains(screen.text, "card 1:2 say \"A100\"\\1g?\n");
	assert_int_equal(screen.colors, 0);
	end(true);
	setenv("LC_ALL", "C.UTF-8", 1);
	unsetenv("NO_COLOR");
}

TEST(dumb_terminal_gets_plain_lines)
{
	static struct test_capture capture;
	struct ll_hold_output_config config = test_config();
	struct ll_hold_output *output = NULL;
	struct ll_event event = test_event(LL_EVENT_SAMPLE, 1, "");
	config.is_live = true;
	setenv("TERM", "dumb", 1);
	test_capture_begin(&capture);
	assert_int_equal(ll_hold_output_new(&config, &output, NULL), 0);
	ll_hold_output_event(output, &event);
	ll_hold_output_tick(output, ll_now_ns() + LL_NS_PER_S);
	ll_hold_output_free(output);
	assert_string_equal(test_capture_end(&capture), "");
	setenv("TERM", "xterm", 1);
}

static int set_up(void **state)
{
	(void)state;
	return setenv("TERM", "xterm", 1) || setenv("LC_ALL", "C.UTF-8", 1) || unsetenv("NO_COLOR");
}

TEST_ALL(set_up, NULL);
