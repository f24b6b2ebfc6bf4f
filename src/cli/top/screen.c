/* The terminal of `loadline top`, by ncursesw. */
#include <curses.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <term.h>
#include <unistd.h>
/* Common names, of which term.h makes macros. */
#undef columns
#undef lines

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/top/top.h"

enum { SIGNALLED = 128, CTRL_U = 21, ESCAPE = 27, DELETE = 127, INPUT_SIZE = 200 };

static volatile sig_atomic_t ended_by, has_continued;

static void on_end(int number)
{
	ended_by = number;
}

static void on_continue(int number)
{
	(void)number;
	has_continued = 1;
}

/* ---- begin and end ---- */

/* These signals come only while keys are waited for, so none is missed between a look and the wait. ncurses keeps those
 * of Ctrl-Z and of a change of the size. ret_before may be NULL. */
static void take_signals(sigset_t *ret_before)
{
	static const int ends[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
	struct sigaction action = {.sa_handler = on_end}, old;
	sigset_t blocked;
	sigemptyset(&blocked);
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		sigaddset(&blocked, ends[i]);
		if (sigaction(ends[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN)
			sigaction(ends[i], &action, NULL);
	}
	action.sa_handler = on_continue;
	sigaction(SIGCONT, &action, NULL);
	sigaddset(&blocked, SIGCONT);
	sigaddset(&blocked, SIGWINCH);
	pthread_sigmask(SIG_BLOCK, &blocked, ret_before);
}

static int check_terminal(struct ll_err *err)
{
	int found;
	const char *term = getenv("TERM");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		ll_err_set(err, -ENOTTY, "top: standard input and output are not a terminal");
	} else if (setupterm(NULL, STDOUT_FILENO, &found) != OK) {
		ll_err_set(err, -ENOTTY, "top: the terminal '%.40s' is not known here", term ? term : "");
	} else {
		bool can_place = tigetstr("cup") && tigetstr("clear");
		del_curterm(cur_term);
		if (can_place)
			return 0;
		ll_err_set(err, -ENOTTY, "top: the terminal '%.40s' cannot place text", term ? term : "");
	}
	return ll_err_hint(err, "`loadline top --plain` prints one frame");
}

static void begin_colours(void)
{
	static const short colours[] = {
	    [LL_TOP_GOOD] = COLOR_CYAN, [LL_TOP_WARN] = COLOR_YELLOW, [LL_TOP_ALARM] = COLOR_RED};
	const char *no_colour = getenv("NO_COLOR");
	if ((no_colour && *no_colour) || !has_colors() || start_color() != OK)
		return;
	use_default_colors();
	for (int i = LL_TOP_GOOD; i <= LL_TOP_ALARM; i++)
		init_pair((short)i, colours[i], -1);
}

/* ---- a frame ---- */

static void look_as(enum ll_top_look look)
{
	static const attr_t attributes[] = {
	    [LL_TOP_PLAIN] = A_NORMAL, [LL_TOP_DIM] = A_DIM,    [LL_TOP_BOLD] = A_BOLD,       [LL_TOP_GOOD] = A_NORMAL,
	    [LL_TOP_WARN] = A_NORMAL,  [LL_TOP_ALARM] = A_BOLD, [LL_TOP_SELECTED] = A_REVERSE};
	bool is_coloured = look >= LL_TOP_GOOD && look <= LL_TOP_ALARM && COLOR_PAIRS > LL_TOP_ALARM;
	attr_set(attributes[look], is_coloured ? (short)look : 0, NULL);
}

static void draw_lines(const char *text, int from, int to)
{
	for (int line = from; line < to; line++) {
		move(line, 0);
		look_as(LL_TOP_PLAIN);
		while (*text && *text != '\n') {
			size_t length = strcspn(text, "\n\1\2\3\4\5\6\7");
			addnstr(text, (int)length);
			text += length;
			if (*text && *text != '\n')
				look_as((enum ll_top_look) * text++);
		}
		look_as(LL_TOP_PLAIN);
		clrtoeol();
		text += *text == '\n';
	}
}

static void draw(const struct ll_top *top, struct ll_top_view *view)
{
	LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT, bottom = LL_STRBUF_INIT;
	int lines = LINES, columns = COLS;
	ll_top_add_frame(&frame, top, view, (size_t)columns, (size_t)lines);
	ll_top_add_bottom(&bottom, top, view, (size_t)columns);
	draw_lines(frame.buf, 0, lines > 2 ? lines - 2 : lines);
	draw_lines(bottom.buf, lines > 2 ? lines - 2 : lines, lines);
	refresh();
}

/* ---- keys ---- */

/* What is typed: nothing, a text, or the answer to a question. */
enum mode { BROWSE, FILTER, WORDS, ANSWER };

struct typing {
	struct ll_top *top;
	struct ll_top_view *view;
	enum mode mode;
	enum ll_top_act act;
	struct ll_top_row row; /* about which is asked: a copy, since rows come and go */
	char input[INPUT_SIZE], question[INPUT_SIZE + 240];
	bool is_over, wants_reading;
};

/* Waits for a key, a signal, or that time. Returns ERR without a key. */
static int wait_for_key(const sigset_t *mask, uint64_t until_ns, bool *ret_is_gone)
{
	uint64_t now_ns = ll_now_ns(), rest_ns = until_ns > now_ns ? until_ns - now_ns : 0;
	struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
	struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
	int key = getch(); /* one may have been read before */
	if (key != ERR)
		return key;
	ppoll(&input, 1, &rest, mask);
	*ret_is_gone = input.revents & (POLLHUP | POLLERR | POLLNVAL);
	return getch();
}

static void say(struct typing *typing, const char *text)
{
	snprintf(typing->view->message, sizeof typing->view->message, "%s", text);
}

static void show_input(struct typing *typing)
{
	char text[sizeof typing->view->message];
	if (typing->mode == FILTER)
		snprintf(text, sizeof text, "/%s_", typing->input);
	else if (typing->mode == WORDS)
		snprintf(text, sizeof text, _("options of set, such as --compute 30%%: %s_"), typing->input);
	else
		snprintf(text, sizeof text, "%s %s", typing->question, _("y/n"));
	say(typing, text);
}

static void ask_first(struct typing *typing)
{
	bool is_possible =
	    ll_top_question(&typing->row, typing->act, typing->input, typing->question, sizeof typing->question);
	typing->mode = is_possible ? ANSWER : BROWSE;
	if (is_possible)
		show_input(typing);
	else
		say(typing, typing->question);
}

static void begin_act(struct typing *typing, enum ll_top_act act)
{
	const struct ll_top_row *row = ll_top_choose(typing->top, typing->view, 0);
	if (!row)
		return;
	typing->row = *row;
	typing->act = act;
	typing->input[0] = '\0';
	typing->mode = WORDS;
	if (act != LL_TOP_SET || !ll_top_question(row, act, "", typing->question, sizeof typing->question))
		ask_first(typing);
	else
		show_input(typing);
}

static void take_answer(struct typing *typing, int key)
{
	char said[sizeof typing->view->message];
	typing->mode = BROWSE;
	if (key != 'y' && key != 'Y') {
		say(typing, _("nothing was changed"));
		return;
	}
	say(typing, _("at work; Ctrl-C interrupts it"));
	draw(typing->top, typing->view);
	ll_top_do(&typing->row, typing->act, typing->input, said, sizeof said);
	take_signals(NULL); /* a command that is interrupted twice lets the signal end its program */
	say(typing, said);
	typing->wants_reading = true;
}

/* Removes the last character, however many bytes it has. */
static void erase_last(char *text)
{
	size_t length = strlen(text);
	while (length && ((unsigned char)text[--length] & 0xc0) == 0x80)
		;
	text[length] = '\0';
}

static void take_text(struct typing *typing, int key)
{
	size_t length = strlen(typing->input);
	if (key == ESCAPE) {
		typing->mode = BROWSE;
		say(typing, "");
		return;
	}
	if (key == '\n' || key == '\r' || key == KEY_ENTER) {
		if (typing->mode == WORDS && typing->input[0]) {
			ask_first(typing);
			return;
		}
		if (typing->mode == FILTER)
			snprintf(typing->view->filter, sizeof typing->view->filter, "%.60s", typing->input);
		ll_utf8_mend(typing->view->filter);
		typing->mode = BROWSE;
		say(typing, "");
		return;
	}
	if (key == KEY_BACKSPACE || key == DELETE || key == '\b')
		erase_last(typing->input);
	else if (key == CTRL_U)
		typing->input[0] = '\0';
	else if (key >= ' ' && key < 256 && length + 1 < sizeof typing->input)
		snprintf(typing->input + length, 2, "%c", key);
	show_input(typing);
}

static void take_key(struct typing *typing, int key)
{
	static const char acts[] = "sepk"; /* in the order of enum ll_top_act */
	struct ll_top_view *view = typing->view;
	const char *act = key > 0 && key < DELETE ? strchr(acts, key) : NULL;
	say(typing, "");
	if (view->is_help && key != 'q') {
		view->is_help = false;
		return;
	}
	if (act)
		begin_act(typing, (enum ll_top_act)(act - acts));
	switch (key) {
	case 'q':
		typing->is_over = true;
		break;
	case 'h':
	case '?':
		view->is_help = true;
		break;
	case KEY_UP:
	case KEY_DOWN:
		ll_top_choose(typing->top, view, key == KEY_UP ? -1 : 1);
		break;
	case KEY_PPAGE:
	case KEY_NPAGE:
		ll_top_choose(typing->top, view, key == KEY_PPAGE ? -10 : 10);
		break;
	case KEY_HOME:
	case KEY_END:
		ll_top_choose(typing->top, view, key == KEY_HOME ? -(1L << 30) : 1L << 30);
		break;
	case '/':
		typing->mode = FILTER;
		snprintf(typing->input, sizeof typing->input, "%s", view->filter);
		show_input(typing);
		break;
	case 'o':
		view->order = (enum ll_top_order)((view->order + 1) % LL_TOP_ORDERS);
		break;
	case 't':
		view->is_flat = !view->is_flat;
		break;
	case ' ':
		typing->wants_reading = true;
		break;
	default:
		break;
	}
}

/* ---- the loop ---- */

static int show_frames(struct ll_top *top, struct ll_top_view *view, const sigset_t *mask, struct ll_err *err)
{
	struct typing typing = {.top = top, .view = view, .wants_reading = true};
	uint64_t next_ns = 0;
	bool is_gone = false;
	while (!typing.is_over && !ended_by && !is_gone) {
		if (typing.wants_reading || ll_now_ns() >= next_ns) {
			int rc = ll_top_read(top, err);
			if (rc)
				return rc;
			next_ns = ll_now_ns() + top->every_ns;
			typing.wants_reading = false;
		}
		draw(top, view);
		int key = wait_for_key(mask, next_ns, &is_gone);
		if (has_continued) {
			has_continued = 0;
			reset_prog_mode();
			clearok(curscr, TRUE);
		}
		if (key == ERR || key == KEY_RESIZE)
			continue;
		if (typing.mode == BROWSE)
			take_key(&typing, key);
		else if (typing.mode == ANSWER)
			take_answer(&typing, key);
		else
			take_text(&typing, key);
	}
	return 0;
}

int ll_top_screen(struct ll_top *top, struct ll_top_view *view, struct ll_err *err)
{
	sigset_t mask;
	int rc = check_terminal(err);
	if (rc)
		return rc;
	/* What a library prints meanwhile does not go into the frame, which has a descriptor of its own. */
	int fd = dup(STDOUT_FILENO);
	FILE *file = fd < 0 ? NULL : fdopen(fd, "w");
	SCREEN *screen = file ? newterm(NULL, file, stdin) : NULL;
	if (!screen) {
		if (file)
			fclose(file);
		return ll_err_set(err, -ENOTTY, "top: the terminal: %s", strerror(errno));
	}
	take_signals(&mask);
	cbreak();
	noecho();
	nonl();
	keypad(stdscr, TRUE);
	nodelay(stdscr, TRUE);
	set_escdelay(50);
	curs_set(0);
	begin_colours();
	rc = show_frames(top, view, &mask, err);
	endwin();
	delscreen(screen);
	fclose(file);
	/* Ctrl-C ends it as q does. */
	return rc ? rc : ended_by && ended_by != SIGINT ? SIGNALLED + ended_by : 0;
}
