#include "fence/list.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/strbuf.h"

/* A list of one line for each of the devices of a large machine has some 100 KiB. */
enum { MOST_BYTES = 16 << 20, ENTRY_SIZE = 64 };

struct entry {
	char text[ENTRY_SIZE]; /* "c 195:* rwm" */
	char type;
	bool is_any_major;
	uint32_t major;
	bool opens; /* it allows to read or to write */
};

static int write_entry(int group_fd, const char *file, const char *entry)
{
	LL_SCOPE_CLOSE int fd = openat(group_fd, file, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	return write(fd, entry, strlen(entry)) < 0 ? -errno : 0;
}

/* Returns the next line; NULL: there is none. */
static const char *take_entry(const char *text, struct entry *ret_entry)
{
	char major[16], access[8];
	size_t length = strcspn(text, "\n");
	if (!*text)
		return NULL;
	*ret_entry = (struct entry){.type = '\0'};
	snprintf(ret_entry->text, sizeof ret_entry->text, "%.*s", (int)length, text);
	if (sscanf(ret_entry->text, "%c %15[^:]:%*s %7s", &ret_entry->type, major, access) == 3) {
		ret_entry->is_any_major = strcmp(major, "*") == 0;
		ret_entry->major = (uint32_t)strtoul(major, NULL, 10);
		ret_entry->opens = strpbrk(access, "rw") != NULL;
	}
	return text + length + (text[length] == '\n');
}

/* A group that allows all but some shows this one line. */
static bool allows_all(const char *list)
{
	return strncmp(list, "a ", 2) == 0;
}

static bool is_of_majors(const struct entry *entry, const struct ll_fence_majors *majors)
{
	for (size_t i = 0; entry->type == 'c' && entry->opens && !entry->is_any_major && i < majors->count; i++) {
		if (entry->major == majors->items[i])
			return true;
	}
	return false;
}

static int write_majors(int group_fd, const char *file, const struct ll_fence_majors *majors)
{
	char entry[ENTRY_SIZE];
	int rc = 0;
	for (size_t i = 0; !rc && i < majors->count; i++) {
		snprintf(entry, sizeof entry, "c %u:* rw", majors->items[i]);
		rc = write_entry(group_fd, file, entry);
	}
	return rc;
}

/* ---- closing ---- */

struct closing {
	const struct ll_fence_majors *majors;
	struct ll_strbuf *record;
};

/* Denied at the top, a device is denied below too, and entries for it go there. */
static int record_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	const struct closing *closing = data;
	struct entry entry;
	int rc = ll_strbuf_add_file(&list, group_fd, "devices.list", MOST_BYTES);
	(void)verdict;
	for (const char *at = list.buf; !rc && !allows_all(list.buf) && (at = take_entry(at, &entry));) {
		if (is_of_majors(&entry, closing->majors))
			ll_strbuf_addf(closing->record, "%s\t%s\n", group, entry.text);
	}
	return rc;
}

/* An entry is denied as it was allowed: the kernel looks for the same numbers. */
static int close_entries(int group_fd, const char *list, const struct ll_fence_majors *majors)
{
	struct entry entry;
	int rc = 0;
	for (const char *at = list; !rc && (at = take_entry(at, &entry));) {
		if (is_of_majors(&entry, majors))
			rc = write_entry(group_fd, "devices.deny", entry.text);
	}
	return rc;
}

int ll_fence_list_close(const struct ll_fence_tree *tree, const char *group, int group_fd,
			const struct ll_fence_majors *majors, struct ll_strbuf *record)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	struct closing closing = {majors, record};
	int rc = ll_fence_walk_below(tree, group, record_group, &closing);
	if (!rc)
		rc = ll_strbuf_add_file(&list, group_fd, "devices.list", MOST_BYTES);
	if (rc)
		return rc;
	return allows_all(list.buf) ? write_majors(group_fd, "devices.deny", majors)
				    : close_entries(group_fd, list.buf, majors);
}

/* ---- opening ---- */

struct opening {
	const struct ll_fence_majors *majors;
	const char *record;
};

static int allow_recorded(const char *record, const char *group, int group_fd)
{
	char entry[ENTRY_SIZE];
	size_t length = strlen(group);
	int rc = 0;
	for (const char *line = record; !rc && *line; line += strcspn(line, "\n") + 1) {
		if (strncmp(line, group, length) == 0 && line[length] == '\t') {
			const char *text = line + length + 1;
			snprintf(entry, sizeof entry, "%.*s", (int)strcspn(text, "\n"), text);
			rc = write_entry(group_fd, "devices.allow", entry);
		}
	}
	return rc;
}

/* A group cannot allow what the one above denies. Then the device stays denied for it, as it was before. */
static int open_group(void *data, const char *group, int group_fd, enum ll_fence_verdict verdict)
{
	LL_SCOPE_STRBUF struct ll_strbuf list = LL_STRBUF_INIT;
	const struct opening *opening = data;
	int rc = ll_strbuf_add_file(&list, group_fd, "devices.list", MOST_BYTES);
	(void)verdict;
	if (!rc && allows_all(list.buf))
		rc = write_majors(group_fd, "devices.allow", opening->majors);
	if (!rc)
		rc = allow_recorded(opening->record, group, group_fd);
	return rc == -EPERM ? 0 : rc;
}

int ll_fence_list_open(const struct ll_fence_tree *tree, const char *group, const struct ll_fence_majors *majors,
		       const char *record)
{
	struct opening opening = {majors, record};
	return ll_fence_walk_below(tree, group, open_group, &opening);
}
