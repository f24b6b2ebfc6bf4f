#include "probe/probe.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"

/* ---- the environment of a process ---- */

static bool is_changed(const char *variable, const char *const *wishes)
{
	for (; wishes && *wishes; wishes++) {
		size_t length = strcspn(*wishes, "=");
		if (strncmp(variable, *wishes, length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

/* Makes this process's environment with the wanted changes. The strings are not copied. */
static const char **make_environment(const char *const *wishes)
{
	size_t count = 0, kept = 0;
	for (char **at = environ; *at; at++)
		count++;
	for (const char *const *at = wishes; at && *at; at++)
		count++;
	const char **environment = calloc(count + 1, sizeof *environment);
	if (!environment)
		return NULL;
	for (char **at = environ; *at; at++) {
		if (!is_changed(*at, wishes))
			environment[kept++] = *at;
	}
	for (const char *const *at = wishes; at && *at; at++) {
		if (strchr(*at, '='))
			environment[kept++] = *at;
	}
	return environment;
}

/* ---- the crew ---- */

/* A context takes 0.3 s on an H200; a machine may be loaded, and a driver may load its firmware first. */
#define START_WITHIN_NS (60 * LL_NS_PER_S)
#define RUN_WITHIN_NS (60 * LL_NS_PER_S)
#define END_WITHIN_NS (3 * LL_NS_PER_S)

struct member {
	pid_t pid; /* 0: gone */
	int pid_fd;
	int call_fd;
};

struct ll_probe_crew {
	struct ll_probe_crew_config config;
	struct ll_probe_page *page;
	int page_fd;
	int answer_fd;
	struct member members[LL_PROBE_PARTIES];
	size_t count;
};

static int fail_with_errno(struct ll_err *err, const char *what)
{
	return ll_err_set(err, -errno, "%s: %s", what, strerror(errno));
}

static uint64_t time_limit_ns(const struct ll_probe_crew *crew, uint64_t usual_ns)
{
	return crew->config.order_within_ns ? crew->config.order_within_ns : usual_ns;
}

static int make_page(struct ll_probe_crew *crew, struct ll_err *err)
{
	static const char what[] = "memory for the probe's processes";
	crew->answer_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	crew->page_fd = memfd_create("loadline-probe", MFD_CLOEXEC);
	if (crew->answer_fd < 0 || crew->page_fd < 0 || ftruncate(crew->page_fd, sizeof *crew->page) < 0)
		return fail_with_errno(err, what);
	void *memory = mmap(NULL, sizeof *crew->page, PROT_READ | PROT_WRITE, MAP_SHARED, crew->page_fd, 0);
	if (memory == MAP_FAILED)
		return fail_with_errno(err, what);
	crew->page = memory;
	crew->page->parent = getpid();
	snprintf(crew->page->card_uuid, sizeof crew->page->card_uuid, "%s", crew->config.card->uuid);
	return 0;
}

int ll_probe_crew_open(const struct ll_probe_crew_config *config, struct ll_probe_crew **ret_crew, struct ll_err *err)
{
	struct ll_probe_crew *crew = calloc(1, sizeof *crew);
	if (!crew)
		return fail_with_errno(err, "the probe's processes");
	crew->config = *config;
	int rc = make_page(crew, err);
	if (rc < 0)
		ll_probe_crew_close(crew);
	else
		*ret_crew = crew;
	return rc;
}

/* ---- waiting ---- */

/* Whether all have answered, or one has failed: the others may be waiting for that one. */
static bool is_settled(const struct ll_probe_crew *crew, uint32_t members)
{
	bool is_waiting = false;
	for (size_t i = 0; i < crew->count; i++) {
		uint32_t state = atomic_load(&crew->page->slots[i].state);
		if (members >> i & 1 && state == LL_PROBE_FAILED)
			return true;
		is_waiting |= members >> i & 1 && (state == LL_PROBE_STARTING || state == LL_PROBE_BUSY);
	}
	return !is_waiting;
}

static int look_at_dead(struct ll_probe_crew *crew, const struct pollfd *fds, struct ll_err *err)
{
	for (size_t i = 0; i < crew->count; i++) {
		int status = 0;
		if (!(fds[i].revents & POLLIN) || !crew->members[i].pid ||
		    waitpid(crew->members[i].pid, &status, WNOHANG) <= 0)
			continue;
		crew->members[i].pid = 0;
		if (WIFSIGNALED(status))
			return ll_err_set(err, -EIO, "the probe's process %zu died of signal %d (%s)", i,
					  WTERMSIG(status), strsignal(WTERMSIG(status)));
		return ll_err_set(err, -EIO, "the probe's process %zu ended with status %d", i, WEXITSTATUS(status));
	}
	return 0;
}

/* Waits until every one of these members has answered. */
static int wait_settled(struct ll_probe_crew *crew, uint32_t members, uint64_t within_ns, struct ll_err *err)
{
	uint64_t deadline_ns = ll_now_ns() + within_ns;
	while (!is_settled(crew, members)) {
		struct pollfd fds[LL_PROBE_PARTIES + 2];
		nfds_t count = 0;
		for (size_t i = 0; i < crew->count; i++)
			fds[count++] = (struct pollfd){.fd = crew->members[i].pid ? crew->members[i].pid_fd : -1,
						       .events = POLLIN};
		fds[count++] = (struct pollfd){.fd = crew->answer_fd, .events = POLLIN};
		fds[count++] = (struct pollfd){.fd = crew->config.signal_fd, .events = POLLIN};
		uint64_t now_ns = ll_now_ns(), answers;
		if (now_ns >= deadline_ns)
			return ll_err_set(err, -EIO, "the probe's processes did not answer within %.1f s",
					  (double)within_ns / LL_NS_PER_S);
		poll(fds, count, (int)((deadline_ns - now_ns) / LL_NS_PER_MS + 1));
		if (fds[count - 1].revents & POLLIN)
			return ll_err_set(err, -EINTR, "interrupted");
		ssize_t n = read(crew->answer_fd, &answers, sizeof answers);
		(void)n;
		if (is_settled(crew, members))
			break;
		int rc = look_at_dead(crew, fds, err);
		if (rc < 0)
			return rc;
	}
	return 0;
}

static void call_member(struct ll_probe_crew *crew, size_t member, enum ll_probe_call what)
{
	uint64_t one = 1;
	atomic_store(&crew->page->slots[member].call, what);
	ssize_t n = write(crew->members[member].call_fd, &one, sizeof one);
	(void)n;
}

/* ---- members ---- */

/* Starts this program once more, with its descriptors (probe.h) and nothing else. The kernel sends it SIGKILL when the
 * calling thread ends. */
static int start_member(const struct ll_probe_crew *crew, struct member *member, struct ll_err *err)
{
	static const char what[] = "start the probe's process";
	char title[48], slot[16];
	const char *words[] = {title, LL_PROBE_WORKER_WORD, slot, NULL};
	const int fds[] = {crew->page_fd, member->call_fd, crew->answer_fd}; /* from LL_PROBE_FD_PAGE on */
	LL_SCOPE_FREE const char **environment = make_environment(crew->config.environment);
	sigset_t quiet;
	if (!environment)
		return ll_err_set(err, -ENOMEM, "%s: %s", what, strerror(ENOMEM));
	snprintf(title, sizeof title, "loadline-probe: party %zu", crew->count);
	snprintf(slot, sizeof slot, "%zu", crew->count);
	ll_child_group_signals(&quiet);
	struct ll_child child = {
	    .words = words,
	    .environment = environment,
	    .in = LL_CHILD_NULL,
	    .out = LL_CHILD_NULL,
	    .err = LL_CHILD_RELAYED,
	    .fds = fds,
	    .fd_count = sizeof fds / sizeof *fds,
	    .mask = &quiet,
	};
	if (ll_child_start(&child, &member->pid, err) < 0)
		return ll_err_wrap(err, "%s", what);
	member->pid_fd = ll_process_open_pidfd(member->pid); /* readable when it has ended */
	if (member->pid_fd >= 0)
		return 0;
	int rc = fail_with_errno(err, "watch the probe's process");
	kill(member->pid, SIGKILL);
	waitpid(member->pid, NULL, 0);
	return rc;
}

int ll_probe_crew_add(struct ll_probe_crew *crew, struct ll_err *err)
{
	size_t slot = crew->count;
	if (slot == LL_PROBE_PARTIES)
		return ll_err_set(err, -EINVAL, "more than %d processes", LL_PROBE_PARTIES);
	struct member *member = &crew->members[slot];
	atomic_store(&crew->page->slots[slot].state, LL_PROBE_STARTING);
	member->call_fd = eventfd(0, EFD_CLOEXEC);
	if (member->call_fd < 0)
		return fail_with_errno(err, "start the probe's process");
	int rc = start_member(crew, member, err);
	if (rc < 0) {
		close(member->call_fd);
		return rc;
	}
	crew->count++;
	return wait_settled(crew, UINT32_C(1) << slot, START_WITHIN_NS, err);
}

size_t ll_probe_crew_count(const struct ll_probe_crew *crew)
{
	return crew->count;
}

const char *ll_probe_crew_refusal(const struct ll_probe_crew *crew, size_t count)
{
	for (size_t i = 0; i < count && i < crew->count; i++) {
		if (atomic_load(&crew->page->slots[i].state) == LL_PROBE_NO_CONTEXT)
			return crew->page->slots[i].text;
	}
	return NULL;
}

uint32_t ll_probe_crew_sms(const struct ll_probe_crew *crew)
{
	return crew->page->slots[0].sm_count;
}

/* Processes are asked to end before they are killed: if a client of MPS is killed, its server has work to clean up. */
void ll_probe_crew_close(struct ll_probe_crew *crew)
{
	if (!crew)
		return;
	uint64_t deadline_ns = ll_now_ns() + time_limit_ns(crew, END_WITHIN_NS);
	for (size_t i = 0; i < crew->count; i++) {
		if (crew->members[i].pid)
			call_member(crew, i, LL_PROBE_CALL_END);
	}
	for (size_t i = 0; i < crew->count; i++) {
		struct member *member = &crew->members[i];
		struct pollfd fd = {.fd = member->pid_fd, .events = POLLIN};
		uint64_t now_ns = ll_now_ns();
		if (member->pid) {
			int left_ms = now_ns < deadline_ns ? (int)((deadline_ns - now_ns) / LL_NS_PER_MS) : 0;
			if (poll(&fd, 1, left_ms) <= 0)
				kill(member->pid, SIGKILL);
			waitpid(member->pid, NULL, 0);
		}
		close(member->pid_fd);
		close(member->call_fd);
	}
	if (crew->page)
		munmap(crew->page, sizeof *crew->page);
	if (crew->page_fd >= 0)
		close(crew->page_fd);
	if (crew->answer_fd >= 0)
		close(crew->answer_fd);
	free(crew);
}

/* ---- orders ---- */

static int prepare_order(struct ll_probe_crew *crew, const struct ll_probe_order *order, struct ll_err *err)
{
	pthread_barrierattr_t attr;
	pthread_barrierattr_init(&attr);
	pthread_barrierattr_setpshared(&attr, PTHREAD_PROCESS_SHARED);
	int rc = pthread_barrier_init(&crew->page->start, &attr, ll_probe_order_threads(order));
	pthread_barrierattr_destroy(&attr);
	if (rc != 0)
		return ll_err_set(err, -rc, "a common start: %s", strerror(rc));
	crew->page->order = *order;
	atomic_store(&crew->page->go_ns, 0);
	memset(crew->page->kernels, 0, sizeof crew->page->kernels);
	return 0;
}

static uint64_t time_of(const struct ll_probe_order *order)
{
	uint64_t sum_ns = 0;
	for (uint32_t i = 0; i < order->launch_count; i++)
		sum_ns += order->launches[i].length_ns * (order->launches[i].rounds + 1);
	return sum_ns;
}

int ll_probe_crew_run(struct ll_probe_crew *crew, const struct ll_probe_order *order,
		      const struct ll_probe_kernel **ret_kernels, struct ll_err *err)
{
	uint32_t members = 0;
	int rc = prepare_order(crew, order, err);
	if (rc < 0)
		return rc;
	for (uint32_t i = 0; i < order->party_count; i++)
		members |= UINT32_C(1) << order->parties[i].worker;
	for (size_t i = 0; i < crew->count; i++) {
		if (members >> i & 1)
			atomic_store(&crew->page->slots[i].state, LL_PROBE_BUSY);
	}
	for (size_t i = 0; i < crew->count; i++) {
		if (members >> i & 1)
			call_member(crew, i, LL_PROBE_CALL_RUN);
	}
	rc = wait_settled(crew, members, time_limit_ns(crew, RUN_WITHIN_NS + 20 * time_of(order)), err);
	for (size_t i = 0; rc == 0 && i < crew->count; i++) {
		const struct ll_probe_slot *slot = &crew->page->slots[i];
		if (members >> i & 1 && atomic_load(&slot->state) == LL_PROBE_FAILED)
			rc = ll_err_set(err, -EIO, "the probe's process %zu: %.300s", i, slot->text);
	}
	if (rc == 0)
		*ret_kernels = crew->page->kernels;
	return rc;
}
