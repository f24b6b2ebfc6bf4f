#include "cli/run/run.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/strbuf.h"

enum { MOST = 8192, NODES_MAX = 1024 };

/* Linux 5.15; older headers do not have it. */
enum { PREFERRED_MANY = 5 };

/* CPUs or memory nodes. A cpu_set_t has room for 1024. */
struct set {
	cpu_set_t parts[MOST / CPU_SETSIZE];
};

static bool has(const struct set *set, unsigned number)
{
	return number < MOST && CPU_ISSET_S(number, sizeof *set, set->parts);
}

/* Adds a list such as "0-15,32", which may be empty. */
static bool add_list(const char *list, struct set *set)
{
	for (char *end; *list && *list != '\n'; list = *end == ',' ? end + 1 : end) {
		unsigned long first = strtoul(list, &end, 10), last = first;
		if (end == list)
			return false;
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		if (last >= MOST || (*end && *end != ',' && *end != '\n'))
			return false;
		for (; first <= last; first++)
			CPU_SET_S(first, sizeof *set, set->parts);
	}
	return true;
}

static void write_list(const struct set *set, struct ll_strbuf *text)
{
	for (unsigned i = 0; i < MOST; i++) {
		unsigned first = i;
		if (!has(set, i))
			continue;
		while (has(set, i + 1))
			i++;
		ll_strbuf_addf(text, "%s%u", text->length ? "," : "", first);
		if (i > first)
			ll_strbuf_addf(text, "-%u", i);
	}
}

struct near {
	struct set cpus, nodes;
	const struct ll_card *unknown; /* the kernel does not know its node */
};

static int add_card(const struct ll_card *card, struct near *near, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	int rc = ll_card_local_cpus(card, &list, err);
	int node = ll_card_numa_node(card);
	if (rc)
		return rc;
	if (!add_list(list.buf, &near->cpus))
		return ll_err_set(err, -EINVAL, "card %s: local_cpulist: %.*s", card->label,
				  (int)strcspn(list.buf, "\n"), list.buf);
	if (node < 0 || node >= NODES_MAX)
		near->unknown = card;
	else
		CPU_SET_S((unsigned)node, sizeof near->nodes, near->nodes.parts);
	return 0;
}

/* Preferred nodes: if they are full, the memory is elsewhere. The kernel leaves out those that are not allowed here. */
static void prefer_nodes(const struct set *nodes)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	int mode = CPU_COUNT_S(sizeof *nodes, nodes->parts) == 1 ? MPOL_PREFERRED : PREFERRED_MANY;
	write_list(nodes, &list);
	int code = list.length ? 0 : ENODATA;
	if (!code && syscall(SYS_set_mempolicy, mode, nodes->parts, NODES_MAX + 1) < 0)
		code = errno;
	if (code)
		ll_log(LL_LOG_INFO, "--cpus near: no memory node is preferred: %s", strerror(code));
	else
		ll_log(LL_LOG_INFO, "--cpus near: the command prefers memory of node %s", list.buf);
}

/* Of the CPUs near the cards the process gets those that it has. */
static int bind_process(struct near *near, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	struct set allowed = {0};
	if (sched_getaffinity(0, sizeof allowed, allowed.parts))
		return ll_err_set(err, -errno, "allowed CPUs: %s", strerror(errno));
	CPU_AND_S(sizeof allowed, near->cpus.parts, near->cpus.parts, allowed.parts);
	if (!CPU_COUNT_S(sizeof near->cpus, near->cpus.parts))
		return ll_err_set(err, -ENOENT, "none of the CPUs near the cards is allowed here");
	if (CPU_EQUAL_S(sizeof allowed, near->cpus.parts, allowed.parts)) {
		if (near->unknown)
			return ll_err_set(err, -ENODATA, "the kernel does not say which CPUs are near card %s",
					  near->unknown->label);
		ll_log(LL_LOG_INFO, "--cpus near: all CPUs of the command are near its cards");
		return 0;
	}
	if (sched_setaffinity(0, sizeof near->cpus, near->cpus.parts))
		return ll_err_set(err, -errno, "bind to CPUs: %s", strerror(errno));
	write_list(&near->cpus, &list);
	ll_log(LL_LOG_INFO, "--cpus near: the command runs on CPUs %s", list.buf);
	prefer_nodes(&near->nodes);
	return 0;
}

void ll_run_near_bind(const struct ll_card *const *cards, size_t count)
{
	struct near near = {0};
	struct ll_err err = {0};
	int rc = 0;
	for (size_t i = 0; i < count && !rc; i++)
		rc = add_card(cards[i], &near, &err);
	if (!rc)
		rc = bind_process(&near, &err);
	if (rc)
		ll_log(LL_LOG_WARN, "--cpus near: %s; the command may use all its CPUs", err.text);
}
