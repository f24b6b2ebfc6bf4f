#include "cli/evict/evict.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/utf8.h"
#include "cli/common/still.h"

#define SHOW_EVERY_NS (200 * LL_NS_PER_MS)
#define SHOW_FROM_NS (300 * LL_NS_PER_MS) /* what is done sooner needs no line */
/* Off a terminal. loadlined says each second what it waits for; of several programs each has its own reason. */
#define SAY_FROM_NS (1500 * LL_NS_PER_MS)
#define SAY_SELDOM_NS (10 * LL_NS_PER_S)

enum { USUAL_COLUMNS = 80, SAY_SOON = 4 };

static const char erase_line[] = "\r\033[K";

struct run {
	struct ll_evict_watch *watch;
	int done_fd, signal_fd;
	sigset_t before;
	uint64_t begun_ns;
	bool has_line;
	uint64_t said_ns; /* 0: nothing was said */
	unsigned said_count;
	char said[LL_EVICT_WAITS_SIZE];
	int signal_number;
};

void ll_evict_watch_init(struct ll_evict_watch *watch)
{
	atomic_init(&watch->interrupt.is_set, false);
	watch->interrupt.fd = eventfd(0, EFD_CLOEXEC);
	pthread_mutex_init(&watch->interrupt.lock, NULL);
}

void ll_evict_watch_fini(struct ll_evict_watch *watch)
{
	if (watch->interrupt.fd >= 0)
		close(watch->interrupt.fd);
	pthread_mutex_destroy(&watch->interrupt.lock);
}

static void *work_main(void *arg)
{
	const struct run *run = arg;
	const uint64_t one = 1;
	run->watch->work(run->watch->data);
	ssize_t n = write(run->done_fd, &one, sizeof one);
	(void)n;
	return NULL;
}

/* ---- the line ---- */

static size_t terminal_columns(void)
{
	struct winsize size = {0};
	return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col ? size.ws_col : USUAL_COLUMNS;
}

static void erase(struct run *run)
{
	if (run->has_line)
		fputs(erase_line, stderr);
	run->has_line = false;
}

static void say(struct run *run)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	struct ll_evict_interrupt *interrupt = &run->watch->interrupt;
	uint64_t now_ns = ll_now_ns();
	uint64_t pause_ns = run->said_count < SAY_SOON ? SAY_FROM_NS : SAY_SELDOM_NS;
	if (run->signal_number || now_ns < (run->said_ns ? run->said_ns : run->begun_ns) + pause_ns)
		return;
	pthread_mutex_lock(&interrupt->lock);
	bool is_new = !run->said_ns || strcmp(run->said, interrupt->waits_for) != 0;
	memcpy(run->said, interrupt->waits_for, sizeof run->said);
	pthread_mutex_unlock(&interrupt->lock);
	if (!is_new)
		return;
	run->watch->describe(run->watch->data, &text);
	fprintf(stderr, "loadline: %s\n", text.failed ? run->said : text.buf);
	run->said_ns = now_ns;
	run->said_count++;
}

static void show(struct run *run)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf line = LL_STRBUF_INIT;
	uint64_t passed_ns = ll_now_ns() - run->begun_ns;
	if (!run->watch->is_shown)
		say(run);
	if (!run->watch->is_shown || passed_ns < SHOW_FROM_NS)
		return;
	run->watch->describe(run->watch->data, &text);
	ll_strbuf_addf(&text, ", %.1f s", (double)passed_ns / (double)LL_NS_PER_S);
	ll_utf8_add(&line, text.buf, terminal_columns() - 1);
	fprintf(stderr, "%s%s", erase_line, line.buf);
	run->has_line = true;
}

/* ---- signals ---- */

static void block_endings(struct run *run)
{
	static const int endings[] = {SIGINT, SIGTERM, SIGHUP};
	run->signal_fd = ll_endings_block(endings, sizeof endings / sizeof *endings, &run->before);
}

static void take_signal(struct run *run)
{
	const uint64_t one = 1;
	struct signalfd_siginfo info;
	if (read(run->signal_fd, &info, sizeof info) != (ssize_t)sizeof info)
		return;
	erase(run);
	if (run->signal_number) {
		signal((int)info.ssi_signo, SIG_DFL);
		pthread_sigmask(SIG_SETMASK, &run->before, NULL);
		raise((int)info.ssi_signo);
	}
	run->signal_number = (int)info.ssi_signo;
	pthread_mutex_lock(&run->watch->interrupt.lock);
	atomic_store(&run->watch->interrupt.is_set, true);
	pthread_mutex_unlock(&run->watch->interrupt.lock);
	run->watch->on_first_signal(run->watch->data);
	fprintf(stderr, "loadline: %s\n", run->watch->on_signal);
	ssize_t n = write(run->watch->interrupt.fd, &one, sizeof one);
	(void)n;
}

static void wait_until_done(struct run *run)
{
	struct pollfd fds[2] = {{.fd = run->done_fd, .events = POLLIN}, {.fd = run->signal_fd, .events = POLLIN}};
	while (!fds[0].revents) {
		poll(fds, 2, (int)(SHOW_EVERY_NS / LL_NS_PER_MS));
		if (fds[1].revents)
			take_signal(run);
		else if (!fds[0].revents)
			show(run);
	}
	erase(run);
}

int ll_evict_watch_run(struct ll_evict_watch *watch)
{
	struct run run = {.watch = watch, .begun_ns = ll_now_ns()};
	pthread_t thread;
	run.done_fd = eventfd(0, EFD_CLOEXEC);
	block_endings(&run);
	if (run.done_fd >= 0 && pthread_create(&thread, NULL, work_main, &run) == 0) {
		wait_until_done(&run);
		pthread_join(thread, NULL);
	} else {
		watch->work(watch->data);
	}
	if (run.done_fd >= 0)
		close(run.done_fd);
	if (run.signal_fd >= 0)
		close(run.signal_fd);
	pthread_sigmask(SIG_SETMASK, &run.before, NULL);
	return run.signal_number;
}
