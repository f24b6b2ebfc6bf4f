#include "monitor/tree.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/process.h"
#include "base/scope.h"

/* The beginning of LOADLINE_RUN (protocol/run_settings.h); a test compares the two. */
static const char variable[] = "LOADLINE_RUN=id=";
enum { WORD_SIZE = 48, CHUNK = 4096 };

/* Whether the text has the word at the beginning of a NUL-terminated entry. The text is read in chunks. */
static bool has_variable(int fd, const char *word)
{
	char chunk[CHUNK];
	size_t length = strlen(word), matched = 0;
	bool is_begin = true;
	ssize_t n;
	while ((n = read(fd, chunk, sizeof chunk)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (is_begin && chunk[i] == word[matched])
				matched++;
			else
				is_begin = false;
			if (matched == length)
				return true;
			if (chunk[i] == '\0') {
				is_begin = true;
				matched = 0;
			}
		}
	}
	return false;
}

static bool is_of_job(int folder_fd, const char *pid, const char *word)
{
	char path[WORD_SIZE];
	struct stat st;
	snprintf(path, sizeof path, "%.20s/environ", pid);
	LL_SCOPE_CLOSE int fd = openat(folder_fd, path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && fstat(fd, &st) == 0 && has_variable(fd, word);
}

int ll_tree_find(uint64_t id)
{
	char word[WORD_SIZE];
	int found = -1;
	snprintf(word, sizeof word, "%s%" PRIx64 ";", variable, id);
	DIR *folder = opendir("/proc");
	for (struct dirent *entry; folder && found < 0 && (entry = readdir(folder));) {
		if (!isdigit((unsigned char)entry->d_name[0]) || !is_of_job(dirfd(folder), entry->d_name, word))
			continue;
		int fd = ll_process_open((pid_t)atoi(entry->d_name));
		/* The pid may be another process's by now. A process that has just ended need not be waited for. */
		if (fd >= 0 && !ll_process_has_ended(fd) && is_of_job(dirfd(folder), entry->d_name, word))
			found = fd;
		else if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
	return found;
}

static bool has_hung_up(int fd)
{
	struct pollfd end = {.fd = fd, .events = 0};
	return poll(&end, 1, 0) > 0 && end.revents & (POLLHUP | POLLERR | POLLNVAL);
}

bool ll_tree_has_ended(struct ll_tree *tree)
{
	if (tree->lifeline_fd >= 0 && has_hung_up(tree->lifeline_fd))
		tree->lifeline_fd = -1;
	if (tree->first_fd >= 0 && ll_process_has_ended(tree->first_fd))
		tree->first_fd = -1;
	if (tree->found_fd >= 0 && ll_process_has_ended(tree->found_fd)) {
		close(tree->found_fd);
		tree->found_fd = -1;
	}
	if (tree->lifeline_fd >= 0 || tree->first_fd >= 0)
		return false;
	if (tree->found_fd < 0)
		tree->found_fd = ll_tree_find(tree->id);
	return tree->found_fd < 0;
}

int ll_tree_process(const struct ll_tree *tree)
{
	return tree->first_fd >= 0 ? tree->first_fd : tree->found_fd;
}
