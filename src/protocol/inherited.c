#include "protocol/inherited.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "protocol/run_settings.h"

/* PARENTS_MAX bounds the search. Real process trees are much less deep. */
enum { PARENTS_MAX = 128, BLOCK_SIZE = 4096, STAT_SIZE = 1024, PATH_SIZE = 40 };

static const char variable[] = LL_RUN_VARIABLE "=";
static const char file_link[] = "/memfd:" LL_RUN_FILE;

/* ---- the environment with which a process began ---- */

/* Looks for the variable in the bytes of an environment, which are read block by block. */
struct search {
	char text[LL_RUN_TEXT_SIZE]; /* the value, as far as it is read */
	size_t length;               /* of the text */
	size_t matched;              /* bytes of "NAME=" that the current entry begins with */
	bool is_other;               /* the current entry is another variable */
	bool is_whole;               /* the value has ended */
};

static void take_byte(struct search *search, char byte)
{
	bool is_in_value = search->matched == sizeof variable - 1;
	if (!byte) {
		search->is_whole = is_in_value;
		search->matched = 0;
		search->is_other = false;
	} else if (is_in_value) {
		/* A text that does not fit is cut. The cut text is too long to be valid. */
		if (search->length < sizeof search->text)
			search->text[search->length++] = byte;
	} else if (!search->is_other && byte == variable[search->matched]) {
		search->matched++;
	} else {
		search->is_other = true;
	}
}

static int read_text(const struct search *search, struct ll_run_settings *ret_settings)
{
	char text[LL_RUN_TEXT_SIZE];
	if (search->length >= sizeof text)
		return -EINVAL;
	memcpy(text, search->text, search->length);
	text[search->length] = '\0';
	return ll_run_settings_read(text, ret_settings);
}

static int look_in_environment(int process_fd, struct ll_run_settings *ret_settings)
{
	struct search search = {.length = 0};
	char block[BLOCK_SIZE];
	ssize_t count = 0;
	LL_SCOPE_CLOSE int fd = openat(process_fd, "environ", O_RDONLY | O_CLOEXEC);
	while (fd >= 0 && !search.is_whole && (count = read(fd, block, sizeof block)) > 0) {
		for (ssize_t i = 0; i < count && !search.is_whole; i++)
			take_byte(&search, block[i]);
	}
	return search.is_whole ? read_text(&search, ret_settings) : -ENOENT;
}

/* ---- its descriptors ---- */

static int read_file(int folder_fd, const char *name, struct ll_run_settings *ret_settings)
{
	struct search search = {.length = 0};
	LL_SCOPE_CLOSE int fd = openat(folder_fd, name, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, search.text, sizeof search.text);
	if (length < 0)
		return -ENOENT;
	search.length = (size_t)length;
	return read_text(&search, ret_settings);
}

static int look_in_descriptors(int process_fd, struct ll_run_settings *ret_settings)
{
	int rc = -ENOENT;
	int folder_fd = openat(process_fd, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *folder = folder_fd < 0 ? NULL : fdopendir(folder_fd);
	const struct dirent *entry;
	if (!folder) {
		if (folder_fd >= 0)
			close(folder_fd);
		return rc;
	}
	while (rc == -ENOENT && (entry = readdir(folder))) {
		char target[sizeof file_link];
		ssize_t length = readlinkat(folder_fd, entry->d_name, target, sizeof target);
		bool is_file = length >= (ssize_t)sizeof file_link - 1 &&
			       strncmp(target, file_link, sizeof file_link - 1) == 0 &&
			       (length == sizeof file_link - 1 || target[length - 1] == ' ');
		if (is_file)
			rc = read_file(folder_fd, entry->d_name, ret_settings);
	}
	closedir(folder);
	return rc;
}

/* ---- parents ---- */

/* Opens the process's folder in /proc. Files in it stay this process's, even if another process gets its number. */
static int open_process(const char *name)
{
	char path[PATH_SIZE];
	snprintf(path, sizeof path, "/proc/%s", name);
	return open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* The format is "pid (name) state ppid ...", and the name may contain any character. 0: it has no parent here. */
static unsigned long parent_of(int process_fd)
{
	char text[STAT_SIZE];
	LL_SCOPE_CLOSE int fd = openat(process_fd, "stat", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	const char *end = strrchr(text, ')');
	return end && strlen(end) > 4 ? strtoul(end + 4, NULL, 10) : 0;
}

static bool is_own_user(int process_fd)
{
	struct stat st;
	return fstat(process_fd, &st) == 0 && st.st_uid == geteuid();
}

static int look_at(int process_fd, struct ll_run_settings *ret_settings)
{
	int rc = look_in_environment(process_fd, ret_settings);
	return rc == -ENOENT ? look_in_descriptors(process_fd, ret_settings) : rc;
}

/* Opens the parent's folder. -1: there is none. While the child has the same parent as before, the number is the
 * parent's. */
static int open_parent(int process_fd)
{
	char name[24];
	unsigned long parent = parent_of(process_fd);
	snprintf(name, sizeof name, "%lu", parent);
	int fd = parent ? open_process(name) : -1;
	if (fd >= 0 && parent_of(process_fd) != parent) {
		close(fd);
		return -1;
	}
	return fd;
}

static int search_processes(struct ll_run_settings *ret_settings)
{
	int worst = -ENOENT;
	LL_SCOPE_CLOSE int fd = open_process("self");
	for (int i = 0; fd >= 0 && i < PARENTS_MAX; i++) {
		int rc = i == 0 || is_own_user(fd) ? look_at(fd, ret_settings) : -ENOENT;
		if (rc == 0)
			return 0;
		if (rc == -EINVAL)
			worst = rc;
		int parent_fd = open_parent(fd);
		close(fd);
		fd = parent_fd;
	}
	return worst;
}

int ll_run_settings_find(struct ll_run_settings *ret_settings)
{
	const char *text = getenv(LL_RUN_VARIABLE);
	int code = errno;
	if (text)
		return ll_run_settings_read(text, ret_settings);
	LL_SCOPE_NO_CANCEL;
	int rc = search_processes(ret_settings);
	errno = code;
	return rc;
}

int ll_run_settings_of_process(int pid, struct ll_run_settings *ret_settings)
{
	char name[24];
	snprintf(name, sizeof name, "%d", pid);
	LL_SCOPE_CLOSE int fd = open_process(name);
	return fd < 0 ? -ENOENT : look_at(fd, ret_settings);
}
