#include "hold/stranger.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/utf8.h"
#include "driver/readings.h"
#include "hold/governed.h"

/* Smaller ranks are more likely to have run kernels. */
enum rank { RANK_HAS_WORK, RANK_PROGRAM, RANK_SERVES_OTHERS };

struct search {
	const struct ll_governed *governed;
	size_t governed_count;
	struct ll_hold_stranger best;
	enum rank best_rank;
	unsigned programs;
};

/* The kernel cuts the name at 15 characters. */
static void read_name(pid_t pid, char *ret_name, size_t size)
{
	char path[48];
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, ret_name, size - 1);
	if (fd >= 0)
		close(fd);
	ret_name[n > 0 ? n : 0] = '\0';
	ret_name[strcspn(ret_name, "\n")] = '\0';
	ll_utf8_clean(ret_name);
}

static bool serves_others(const char *name)
{
	return strncmp(name, "nvidia-cuda-mps", 15) == 0 || strncmp(name, "loadline", 8) == 0;
}

static const struct ll_governed *governed_of(const struct search *search, pid_t pid)
{
	for (size_t i = 0; i < search->governed_count; i++) {
		if (search->governed[i].pid == pid)
			return &search->governed[i];
	}
	return NULL;
}

/* governed: NULL for a program that is not governed. */
static void consider_process(struct search *search, pid_t pid, const struct ll_governed *governed)
{
	struct ll_hold_stranger found = {.pid = pid};
	read_name(pid, found.name, sizeof found.name);
	enum rank rank = !governed && serves_others(found.name) ? RANK_SERVES_OTHERS
			 : governed && governed->has_work       ? RANK_HAS_WORK
								: RANK_PROGRAM;
	if (governed && governed->tenant[0])
		snprintf(found.name, sizeof found.name, "%s", governed->tenant);
	if (!found.name[0]) /* it has ended, or is of another PID namespace */
		return;
	search->programs += rank != RANK_SERVES_OTHERS;
	if (search->best.pid && rank >= search->best_rank)
		return;
	search->best = found;
	search->best_rank = rank;
}

static bool is_listed(const struct ll_process_list *processes, pid_t pid)
{
	for (size_t i = 0; i < processes->count; i++) {
		if (processes->items[i].pid == pid)
			return true;
	}
	return false;
}

void ll_hold_stranger_find(const struct ll_process_list *processes, pid_t own_pid, const struct ll_governed *governed,
			   size_t governed_count, struct ll_hold_stranger *stranger)
{
	struct search search = {.governed = governed, .governed_count = governed_count};
	for (size_t i = 0; i < processes->count; i++) {
		pid_t pid = processes->items[i].pid;
		if (pid != own_pid && pid != getpid())
			consider_process(&search, pid, governed_of(&search, pid));
	}
	/* NVML shows a new process late, and no process of another PID namespace. */
	for (size_t i = 0; i < governed_count; i++) {
		if (!is_listed(processes, governed[i].pid))
			consider_process(&search, governed[i].pid, &governed[i]);
	}
	if (!search.best.pid)
		return;
	*stranger = search.best;
	stranger->others = search.programs > 1 ? search.programs - 1 : 0;
}
