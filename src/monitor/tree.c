#include "monitor/monitor.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
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

/* ---- signals ---- */

void ll_tree_signal_process(int fd, int number)
{
	if (syscall(SYS_pidfd_send_signal, fd, number, NULL, 0) == 0 || errno == ESRCH)
		return;
	pid_t pid = ll_process_id_of_fd(fd);
	if (pid > 0)
		kill(pid, number);
}

/* Whether the process has the writable end of the pipe. The link of a descriptor has the mode with which it is open. */
static bool has_lifeline(int folder_fd, const char *pid, const struct stat *lifeline)
{
	char path[WORD_SIZE];
	bool is_found = false;
	snprintf(path, sizeof path, "%.20s/fd", pid);
	int fd = openat(folder_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *entry; folder && !is_found && (entry = readdir(folder));) {
		struct stat link, file;
		is_found = fstatat(fd, entry->d_name, &link, AT_SYMLINK_NOFOLLOW) == 0 && link.st_mode & S_IWUSR &&
			   fstatat(fd, entry->d_name, &file, 0) == 0 && S_ISFIFO(file.st_mode) &&
			   file.st_ino == lifeline->st_ino && file.st_dev == lifeline->st_dev;
	}
	if (folder)
		closedir(folder);
	else if (fd >= 0)
		close(fd);
	return is_found;
}

void ll_tree_signal(const struct ll_tree *tree, int number)
{
	char word[WORD_SIZE];
	struct stat lifeline = {.st_ino = 0};
	snprintf(word, sizeof word, "%s%" PRIx64 ";", variable, tree->id);
	if (tree->lifeline_fd >= 0 && fstat(tree->lifeline_fd, &lifeline) < 0)
		lifeline.st_ino = 0;
	if (tree->first_fd >= 0)
		ll_tree_signal_process(tree->first_fd, number);
	pid_t first = tree->first_fd >= 0 ? ll_process_id_of_fd(tree->first_fd) : 0;
	DIR *folder = opendir("/proc");
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		pid_t pid = (pid_t)atoi(entry->d_name);
		if (pid <= 0 || pid == getpid() || pid == first)
			continue;
		/* The descriptor is opened first: another process may get the pid. */
		int fd = ll_process_open(pid);
		if (fd >= 0 && (is_of_job(dirfd(folder), entry->d_name, word) ||
				(lifeline.st_ino && has_lifeline(dirfd(folder), entry->d_name, &lifeline))))
			ll_tree_signal_process(fd, number);
		if (fd >= 0)
			close(fd);
	}
	if (folder)
		closedir(folder);
}

/* ---- the end ---- */

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
