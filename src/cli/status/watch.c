#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/status/jobs.h"
#include "cli/status/status.h"

#define HOME "\033[H"
#define CLEAR "\033[2J"
#define ERASE_LINE_END "\033[K"
#define ERASE_BELOW "\033[J"

/* The present reading, and the one before. */
struct watch {
	const struct ll_card *const *chosen;
	size_t count;
	struct ll_status_card *now, *earlier;
	bool has_earlier;
	const struct ll_status_style *style;
	const char *sim_folder;
	struct ll_daemon_view view;
};

bool ll_status_terminal(unsigned *ret_columns, unsigned *ret_rows)
{
	struct winsize size = {0};
	*ret_columns = *ret_rows = 0;
	if (!isatty(STDOUT_FILENO))
		return false;
	bool is_known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
	*ret_columns = is_known ? size.ws_col : 80;
	*ret_rows = is_known ? size.ws_row : 24;
	return true;
}

static int read_cards(struct watch *watch, struct ll_err *err)
{
	int rc = 0;
	ll_daemon_view_fini(&watch->view);
	ll_daemon_view_init(&watch->view, watch->sim_folder);
	for (size_t i = 0; i < watch->count; i++) {
		int card_rc = ll_status_card_init(&watch->now[i], watch->chosen[i], &watch->view, rc ? NULL : err);
		watch->now[i].earlier = watch->has_earlier ? &watch->earlier[i] : NULL;
		if (watch->has_earlier)
			ll_status_idle_go_on(&watch->now[i].idle, &watch->earlier[i].idle);
		rc = rc ? rc : card_rc;
	}
	return rc;
}

static void fini_cards(struct ll_status_card *cards, size_t count)
{
	for (size_t i = 0; i < count; i++)
		ll_status_card_fini(&cards[i]);
}

static void keep_earlier(struct watch *watch)
{
	struct ll_status_card *old = watch->earlier;
	if (watch->has_earlier)
		fini_cards(old, watch->count);
	watch->earlier = watch->now;
	watch->now = old;
	watch->has_earlier = true;
}

static size_t columns_of_line(const char *text)
{
	LL_SCOPE_FREE char *line = strndup(text, strcspn(text, "\n"));
	return line ? ll_utf8_columns(line) : 0;
}

/* Adds at most as many lines as the terminal has rows, because more lines would scroll the first ones away. */
static void add_frame(struct ll_strbuf *frame, const char *text, unsigned columns, unsigned rows)
{
	unsigned used = 1; /* the cursor's row */
	ll_strbuf_adds(frame, HOME);
	while (*text) {
		size_t length = strcspn(text, "\n");
		size_t width = columns_of_line(text);
		used += width ? (unsigned)((width + columns - 1) / columns) : 1;
		if (used > rows)
			break;
		ll_strbuf_add(frame, text, length);
		ll_strbuf_adds(frame, ERASE_LINE_END "\r\n");
		text += length + (text[length] == '\n');
	}
	ll_strbuf_adds(frame, ERASE_BELOW);
}

static int print_text(const struct watch *watch, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf frame = LL_STRBUF_INIT;
	unsigned columns, rows;
	bool is_terminal = ll_status_terminal(&columns, &rows);
	ll_status_add_text(&text, watch->now, watch->count, columns, watch->style->is_long);
	ll_status_add_daemon(&text, &watch->view);
	if (is_terminal) {
		ll_strbuf_adds(&frame, watch->has_earlier ? "" : CLEAR);
		add_frame(&frame, text.buf, columns, rows);
	} else {
		ll_strbuf_addf(&frame, "%s%s", watch->has_earlier ? "\n" : "", text.buf);
	}
	if (text.failed || frame.failed)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	fwrite(frame.buf, 1, frame.length, stdout);
	return fflush(stdout) == 0 ? 0 : ll_err_set(err, -EIO, "standard output: %s", strerror(errno));
}

static int print_json(const struct watch *watch, struct ll_err *err)
{
	int rc = 0;
	for (size_t i = 0; !rc && i < watch->count; i++)
		rc = ll_status_print_json(&watch->now[i], err);
	return rc ? rc : ll_status_print_daemon_json(&watch->view, err);
}

/* Returns true if a signal came. */
static bool wait_for_signal(const sigset_t *signals, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		uint64_t rest_ns = until_ns > now_ns ? until_ns - now_ns : 0;
		struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
		if (sigtimedwait(signals, NULL, &rest) > 0)
			return true;
		if (errno != EINTR)
			return false;
	}
}

static int run_watch(struct watch *watch, const sigset_t *signals, uint64_t every_ns, struct ll_err *err)
{
	uint64_t next_ns = ll_now_ns();
	do {
		int rc = read_cards(watch, err);
		if (!rc)
			rc = watch->style->is_json ? print_json(watch, err) : print_text(watch, err);
		keep_earlier(watch);
		if (rc)
			return rc;
		next_ns += every_ns;
		if (next_ns <
		    ll_now_ns()) /* after a stop of the program or of the machine there is no burst of readings */
			next_ns = ll_now_ns() + every_ns;
	} while (!wait_for_signal(signals, next_ns));
	return 0;
}

int ll_status_watch(const struct ll_card *const *cards, size_t count, uint64_t every_ns,
		    const struct ll_status_style *style, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_status_card *first = calloc(count + 1, sizeof *first);
	LL_SCOPE_FREE struct ll_status_card *second = calloc(count + 1, sizeof *second);
	struct watch watch = {.chosen = cards, .count = count, .now = first, .earlier = second, .style = style};
	watch.sim_folder = count ? ll_driver_sim_folder(cards[0]->driver) : NULL;
	sigset_t signals;
	if (!first || !second)
		return ll_err_set(err, -ENOMEM, "status: %s", strerror(ENOMEM));
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	int rc = run_watch(&watch, &signals, every_ns, err);
	if (watch.has_earlier)
		fini_cards(watch.earlier, count);
	ll_daemon_view_fini(&watch.view);
	return rc;
}
