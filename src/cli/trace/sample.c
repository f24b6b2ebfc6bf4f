#include "cli/trace/sample.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

enum { STAT_SIZE = 512, COST_SHARE = 50 };

#define LIST_EVERY_NS (100 * LL_NS_PER_MS)

void ll_sampler_init(struct ll_sampler *sampler, pid_t root)
{
	*sampler = (struct ll_sampler){.root = root};
}

void ll_sampler_fini(struct ll_sampler *sampler)
{
	free(sampler->tree);
	ll_spans_fini(&sampler->host);
	ll_spans_fini(&sampler->io);
}

/* The file's format is "pid (name) state parent", and the name may have any character, even ')'. */
static bool read_stat(const char *path, char *ret_state, pid_t *ret_parent, bool *ret_is_ours)
{
	char text[STAT_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	if (!name || !end || strlen(end) < 5)
		return false;
	*ret_state = end[2];
	*ret_parent = (pid_t)strtol(end + 4, NULL, 10);
	*ret_is_ours = strncmp(name, "(ll-", 4) == 0; /* threads of loadline's own in a program */
	return true;
}

static bool is_in_tree(const struct ll_sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->count; i++) {
		if (sampler->tree[i] == pid)
			return true;
	}
	return false;
}

static void add_to_tree(struct ll_sampler *sampler, pid_t pid)
{
	enum { FIRST_ROOM = 64 };
	if (sampler->count == sampler->room) {
		size_t room = sampler->room ? 2 * sampler->room : FIRST_ROOM;
		pid_t *tree = realloc(sampler->tree, room * sizeof *tree);
		if (!tree)
			return;
		sampler->tree = tree;
		sampler->room = room;
	}
	sampler->tree[sampler->count++] = pid;
}

/* Lists the command's processes. Children mostly have higher ids than their parents, and /proc is in the order of ids,
 * so one pass is enough. Orphans become children of this process (cli/trace/launch.c). */
static void list_tree(struct ll_sampler *sampler)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t own = getpid();
	sampler->count = 0;
	add_to_tree(sampler, sampler->root);
	while (proc && (entry = readdir(proc))) {
		char path[64], state;
		pid_t parent, pid = (pid_t)strtol(entry->d_name, NULL, 10);
		bool is_ours;
		if (pid <= 0 || pid == sampler->root)
			continue;
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		if (read_stat(path, &state, &parent, &is_ours) && (parent == own || is_in_tree(sampler, parent)))
			add_to_tree(sampler, pid);
	}
	if (proc)
		closedir(proc);
}

/* Returns the most important state of a process's threads: R, then D, then any other. */
static char state_of(pid_t pid)
{
	char path[300], worst = 'S';
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	struct dirent *entry;
	while (tasks && worst != 'R' && (entry = readdir(tasks))) {
		char state;
		pid_t parent;
		bool is_ours;
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
		if (read_stat(path, &state, &parent, &is_ours) && !is_ours && (state == 'R' || state == 'D'))
			worst = state;
	}
	if (tasks)
		closedir(tasks);
	return worst;
}

void ll_sampler_look(struct ll_sampler *sampler)
{
	uint64_t now_ns = ll_now_ns(), since_ns = sampler->looked_ns ? sampler->looked_ns : now_ns;
	uint64_t cpu_ns = ll_thread_cpu_ns();
	if (!sampler->count || now_ns - sampler->listed_ns >= LIST_EVERY_NS) {
		list_tree(sampler);
		sampler->listed_ns = now_ns;
	}
	char worst = 'S';
	for (size_t i = 0; worst != 'R' && i < sampler->count; i++) {
		char state = state_of(sampler->tree[i]);
		worst = state == 'R' || state == 'D' ? state : worst;
	}
	if (worst == 'R')
		ll_spans_add(&sampler->host, since_ns, now_ns);
	else if (worst == 'D')
		ll_spans_add(&sampler->io, since_ns, now_ns);
	sampler->looked_ns = now_ns;
	uint64_t rest_ns = COST_SHARE * (ll_thread_cpu_ns() - cpu_ns);
	sampler->next_ns = now_ns + (rest_ns > LL_SAMPLE_EVERY_NS ? rest_ns : LL_SAMPLE_EVERY_NS);
}

bool ll_sampler_is_alive(pid_t pid)
{
	char path[64], state;
	pid_t parent;
	bool is_ours;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return read_stat(path, &state, &parent, &is_ours) && state != 'Z' && state != 'X';
}
