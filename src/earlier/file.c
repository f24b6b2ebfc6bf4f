#include "earlier/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"

/* Of the largest text, more than all records need. */
enum { TEXT_MAX = 256 * 1024 };

static const char new_file[] = LL_EARLIER_FILE ".new";

/* A file with a NUL, or one that is too long, is none of ours. */
static int read_text(int folder_fd, char **ret_text)
{
	LL_SCOPE_CLOSE int fd = openat(folder_fd, LL_EARLIER_FILE, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	char *text = calloc(1, TEXT_MAX + 1);
	size_t used = 0;
	ssize_t n = text ? 1 : -1;
	while (n > 0 && used < TEXT_MAX) {
		n = read(fd, text + used, TEXT_MAX - used);
		used += n > 0 ? (size_t)n : 0;
	}
	int rc = !text ? -ENOMEM : n < 0 ? -errno : used == TEXT_MAX || strlen(text) != used ? -EBADMSG : 0;
	if (rc)
		free(text);
	else
		*ret_text = text;
	return rc;
}

static int read_at(int folder_fd, struct ll_earlier *ret_earlier)
{
	LL_SCOPE_FREE char *text = NULL;
	ret_earlier->count = 0;
	int rc = read_text(folder_fd, &text);
	return rc ? rc : ll_earlier_parse(text, ret_earlier);
}

int ll_earlier_read(const char *folder, struct ll_earlier *ret_earlier, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ret_earlier->count = 0;
	int rc = fd < 0 ? -errno : read_at(fd, ret_earlier);
	if (!rc || rc == -ENOENT)
		return 0;
	return ll_err_set(err, rc, "%.200s/" LL_EARLIER_FILE ": %s", folder,
			  rc == -EBADMSG ? _("is damaged") : strerror(-rc));
}

static int write_all(int fd, const struct ll_strbuf *text)
{
	for (size_t done = 0; done < text->length;) {
		ssize_t n = write(fd, text->buf + done, text->length - done);
		if (n < 0)
			return -errno;
		done += (size_t)n;
	}
	return fdatasync(fd) ? -errno : 0;
}

static int write_at(int folder_fd, const struct ll_earlier *earlier)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_earlier_format(&text, earlier);
	if (text.failed)
		return -ENOMEM;
	LL_SCOPE_CLOSE int fd =
	    openat(folder_fd, new_file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	int rc = fd < 0 ? -errno : write_all(fd, &text);
	if (!rc && renameat(folder_fd, new_file, folder_fd, LL_EARLIER_FILE))
		rc = -errno;
	if (rc)
		unlinkat(folder_fd, new_file, 0);
	return rc;
}

/* The folder is locked: a monitor that writes at the same time waits. */
static int note_at(int folder_fd, struct ll_earlier *earlier, const struct ll_earlier_record *records, size_t count)
{
	if (flock(folder_fd, LOCK_EX))
		return -errno;
	int rc = read_at(folder_fd, earlier);
	if (rc == -EBADMSG)
		rc = renameat(folder_fd, LL_EARLIER_FILE, folder_fd, LL_EARLIER_DAMAGED) ? -errno : 0;
	else if (rc == -ENOENT)
		rc = 0;
	for (size_t i = 0; i < count; i++)
		ll_earlier_put(earlier, &records[i]);
	return rc ? rc : write_at(folder_fd, earlier);
}

int ll_earlier_note(const char *folder, const struct ll_earlier_record *records, size_t count, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = -1;
	if (!count)
		return 0;
	int rc = ll_earlier_folder_open(folder, &fd, err);
	if (rc)
		return rc;
	LL_SCOPE_FREE struct ll_earlier *earlier = malloc(sizeof *earlier);
	rc = earlier ? note_at(fd, earlier, records, count) : -ENOMEM;
	return rc ? ll_err_set(err, rc, "%.200s/" LL_EARLIER_FILE ": %s", folder, strerror(-rc)) : 0;
}

bool ll_earlier_has_damaged(const char *folder)
{
	char path[PATH_MAX];
	int n = snprintf(path, sizeof path, "%s/" LL_EARLIER_DAMAGED, folder);
	return n > 0 && n < PATH_MAX && access(path, F_OK) == 0;
}
