#include "cli/run/near.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mempolicy.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "cli/common/beside.h"

/* hwloc reads the topology of a machine of eight cards within a tenth of a second. */
#define ANSWER_NS (10 * LL_NS_PER_S)

enum { REPLY_SIZE = 2560, LIST_SIZE = 1024, NODES_MAX = 1024, WORD_BITS = 8 * sizeof(unsigned long) };

/* Linux 5.15; older headers do not have it. */
enum { PREFERRED_MANY = 5 };

static const char *const places[] = {"src/near", "../lib/loadline", ".", NULL};

/* Reads until the end, or until the time is over. */
static int read_reply(int fd, char ret_reply[REPLY_SIZE])
{
	uint64_t until_ns = ll_now_ns() + ANSWER_NS;
	size_t length = 0;
	ssize_t n = 1;
	while (n > 0 && length < REPLY_SIZE - 1) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		int count = poll(&ready, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1);
		n = count > 0 ? read(fd, ret_reply + length, REPLY_SIZE - 1 - length) : 1;
		if (n < 0)
			return -errno;
		length += count > 0 ? (size_t)n : 0;
	}
	ret_reply[length] = '\0';
	ret_reply[strcspn(ret_reply, "\n")] = '\0';
	return 0;
}

static int ask_program(const char *path, const char *const *words, char ret_reply[REPLY_SIZE], struct ll_err *err)
{
	int ends[2];
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC))
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	struct ll_child child = {
	    .path = path, .words = words, .in = LL_CHILD_NULL, .out = ends[1], .err = LL_CHILD_NULL};
	int rc = ll_child_start(&child, &pid, err);
	close(ends[1]);
	if (!rc) {
		rc = read_reply(ends[0], ret_reply);
		if (rc) {
			kill(pid, SIGKILL);
			ll_err_set(err, rc, "loadline-near: %s", strerror(-rc));
		}
		waitpid(pid, NULL, 0);
	}
	close(ends[0]);
	return rc;
}

/* Takes a list such as "0,2-3". Returns how many nodes it has; 0: it is none. */
static unsigned read_nodes(const char *list, unsigned long *mask)
{
	unsigned count = 0;
	for (char *end; *list; list = *end ? end + 1 : end) {
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (end == list)
			return 0;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last >= NODES_MAX || (*end && *end != ','))
			return 0;
		for (; first <= last; first++, count++)
			mask[first / WORD_BITS] |= 1UL << first % WORD_BITS;
	}
	return count;
}

/* Preferred nodes: if they are full, the memory is elsewhere. */
static int prefer_nodes(const char *list)
{
	unsigned long mask[NODES_MAX / WORD_BITS] = {0};
	unsigned count = read_nodes(list, mask);
	if (!count)
		return -EINVAL;
	return syscall(SYS_set_mempolicy, count == 1 ? MPOL_PREFERRED : PREFERRED_MANY, mask, NODES_MAX + 1) < 0
		   ? -errno
		   : 0;
}

static void take_reply(const char *reply)
{
	char cpus[LIST_SIZE] = "", nodes[LIST_SIZE] = "";
	if (strncmp(reply, "failed ", strlen("failed ")) == 0) {
		ll_log(LL_LOG_WARN, "--cpus near: %s; the command may use all its CPUs", reply + strlen("failed "));
	} else if (strcmp(reply, "all") == 0) {
		ll_log(LL_LOG_INFO, "--cpus near: all CPUs of the command are near its cards");
	} else if (sscanf(reply, "bound %1023s %1023s", cpus, nodes) < 1) {
		ll_log(LL_LOG_WARN, "--cpus near: loadline-near gave no answer; the command may use all its CPUs");
	} else {
		int rc = prefer_nodes(nodes);
		ll_log(LL_LOG_INFO, "--cpus near: the command runs on CPUs %s", cpus);
		if (rc)
			ll_log(LL_LOG_INFO, "--cpus near: no memory node is preferred: %s", strerror(-rc));
		else
			ll_log(LL_LOG_INFO, "--cpus near: the command prefers memory of node %s", nodes);
	}
}

void ll_run_near_bind(const struct ll_card *const *cards, size_t count)
{
	char path[PATH_MAX], reply[REPLY_SIZE] = "";
	struct ll_err err = {0};
	LL_SCOPE_FREE const char **words = calloc(count + 2, sizeof *words);
	if (!words)
		return;
	words[0] = "loadline-near";
	for (size_t i = 0; i < count; i++)
		words[i + 1] = cards[i]->pci;
	int rc = ll_beside_find(places, words[0], path);
	if (rc)
		ll_err_set(&err, rc, "this loadline was built without hwloc");
	else
		rc = ask_program(path, words, reply, &err);
	if (rc)
		ll_log(LL_LOG_WARN, "--cpus near: %s; the command may use all its CPUs", err.text);
	else
		take_reply(reply);
}
