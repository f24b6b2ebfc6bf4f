#include "trace/command/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/utf8.h"
#include "cli/common/table.h"
#include "driver/readings.h"

enum { MOST_SEEN = 256, SAMPLES = 128 };

#define LOOK_EVERY_NS (200 * LL_NS_PER_MS) /* NVML's own window */
#define DEFAULT_NS (10 * LL_NS_PER_S)

static const char missing[] = "its kernels cannot be shown: it was not started under loadline trace";

struct seen {
	pid_t pid;
	unsigned looks; /* number of looks in which the process was there */
	uint64_t most_bytes;
	bool has_bytes;
	char name[32];
};

struct watched {
	const struct ll_card *card;
	struct ll_util_reader util;
	struct ll_process_list list;
	struct seen seen[MOST_SEEN];
	size_t count;
	unsigned looks;
	double percent_ns; /* sum of percent times window */
	uint64_t told_ns;
};

static void read_name(struct seen *seen)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)seen->pid);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? 0 : read(fd, seen->name, sizeof seen->name - 1);
	seen->name[n > 0 ? n : 0] = '\0';
	seen->name[strcspn(seen->name, "\n")] = '\0';
	ll_utf8_clean(seen->name);
}

static struct seen *find_seen(struct watched *watched, pid_t pid)
{
	for (size_t i = 0; i < watched->count; i++) {
		if (watched->seen[i].pid == pid)
			return &watched->seen[i];
	}
	if (watched->count == MOST_SEEN)
		return NULL;
	struct seen *seen = &watched->seen[watched->count++];
	seen->pid = pid;
	read_name(seen);
	return seen;
}

/* A failed call of NVML is ignored: it may succeed in the next look. */
static void look_at_process(struct watched *watched)
{
	struct ll_util_sample samples[SAMPLES];
	size_t count = 0;
	watched->looks++;
	if (ll_util_reader_next(&watched->util, samples, SAMPLES, &count, NULL) == 0) {
		for (size_t i = 0; i < count; i++) {
			watched->percent_ns += samples[i].percent * (double)samples[i].window_ns;
			watched->told_ns += samples[i].window_ns;
		}
	}
	if (ll_read_processes(watched->card, LL_PROCESS_ALL, &watched->list, NULL) < 0)
		return;
	for (size_t i = 0; i < watched->list.count; i++) {
		struct seen *seen = find_seen(watched, watched->list.items[i].pid);
		uint64_t bytes = watched->list.items[i].memory_bytes;
		if (!seen)
			continue;
		seen->looks++;
		if (bytes != LL_MEMORY_UNKNOWN) {
			seen->has_bytes = true;
			seen->most_bytes = bytes > seen->most_bytes ? bytes : seen->most_bytes;
		}
	}
}

static int print_json(const struct watched *watched, struct ll_err *err)
{
	const char *label = watched->card->label;
	json_t *util = watched->told_ns ? ll_json_real(watched->percent_ns / (double)watched->told_ns, 1) : json_null();
	int rc = ll_json_line(json_pack("{s:s, s:s, s:s, s:o, s:i, s:b}", "event", "card", "card", label, "uuid",
					watched->card->uuid, "busy_percent", util, "processes", (int)watched->count,
					"has_timeline", 0),
			      err);
	for (size_t i = 0; !rc && i < watched->count; i++) {
		const struct seen *seen = &watched->seen[i];
		json_t *bytes = seen->has_bytes ? json_integer((json_int_t)seen->most_bytes) : json_null();
		rc = ll_json_line(json_pack("{s:s, s:s, s:i, s:s, s:o, s:o, s:s}", "event", "stranger", "card", label,
					    "pid", (int)seen->pid, "name", seen->name, "present_percent",
					    ll_json_real(100.0 * seen->looks / watched->looks, 1), "peak_memory_bytes",
					    bytes, "missing", missing),
				  err);
	}
	return rc;
}

static void print_text(const struct watched *watched)
{
	printf("card %s  %s\n", watched->card->label, watched->card->uuid);
	if (watched->told_ns)
		printf("  busy      %5.1f %%   by NVML, which does not tell whose work it was, nor why the card "
		       "was idle\n",
		       watched->percent_ns / (double)watched->told_ns);
	else
		printf("  busy      NVML does not tell\n");
	for (size_t i = 0; i < watched->count; i++) {
		const struct seen *seen = &watched->seen[i];
		printf("  process %d %s", (int)seen->pid, seen->name);
		if (seen->has_bytes)
			printf(", %llu MiB", (unsigned long long)(seen->most_bytes >> 20));
		printf(": %s\n", missing);
	}
	if (!watched->count)
		printf("  no process\n");
}

/* Looks until the time is over, or until SIGINT or SIGTERM. The caller prints the result in each case. */
static void look_for(struct watched *cards, size_t count, uint64_t for_ns)
{
	sigset_t signals, before;
	uint64_t end_ns = ll_now_ns() + for_ns;
	sigemptyset(&signals);
	sigaddset(&signals, SIGINT);
	sigaddset(&signals, SIGTERM);
	sigprocmask(SIG_BLOCK, &signals, &before);
	for (int signal = -1; signal < 0;) {
		for (size_t i = 0; i < count; i++)
			look_at_process(&cards[i]);
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= end_ns)
			break;
		uint64_t rest_ns = end_ns - now_ns < LOOK_EVERY_NS ? end_ns - now_ns : LOOK_EVERY_NS;
		struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
		signal = sigtimedwait(&signals, NULL, &rest);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
}

int ll_trace_watch_cards(const char *names, uint64_t for_ns, bool is_json, struct ll_err *err)
{
	struct ll_driver *driver = NULL;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	LL_SCOPE_FREE struct watched *cards = NULL;
	size_t count = 0;
	int rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = ll_cards_select(driver, names, &chosen, &count, err);
	if (!rc) {
		cards = calloc(count + 1, sizeof *cards);
		rc = cards ? 0 : ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	}
	for (size_t i = 0; !rc && cards && i < count; i++) {
		cards[i].card = chosen[i];
		ll_util_reader_init(&cards[i].util, chosen[i]);
	}
	if (!rc && cards)
		look_for(cards, count, for_ns ? for_ns : DEFAULT_NS);
	for (size_t i = 0; !rc && cards && i < count; i++) {
		if (is_json)
			rc = print_json(&cards[i], err);
		else
			print_text(&cards[i]);
	}
	for (size_t i = 0; cards && i < count; i++)
		ll_process_list_fini(&cards[i].list);
	ll_driver_close(driver);
	return rc;
}
