#include "advice/advice.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"

#define NS_PER_MS UINT64_C(1000000)

enum { FIELDS = 9, HEX = 16, DECIMAL = 10 };

static const char first_line[] = "loadline earlier 1\n";

/* ---- the records ---- */

static bool is_of(const struct ll_earlier_record *record, const char *card, uint64_t program, uint64_t others,
		  enum ll_way way)
{
	return record->program == program && record->others == others && record->way == way &&
	       strcmp(record->card, card) == 0;
}

const struct ll_earlier_record *ll_earlier_find(const struct ll_earlier *earlier, const char *card, uint64_t program,
						uint64_t others, enum ll_way way)
{
	for (size_t i = 0; i < earlier->count; i++) {
		if (is_of(&earlier->records[i], card, program, others, way))
			return &earlier->records[i];
	}
	return NULL;
}

static struct ll_earlier_record *find_place(struct ll_earlier *earlier, const struct ll_earlier_record *record)
{
	struct ll_earlier_record *oldest = &earlier->records[0];
	for (size_t i = 0; i < earlier->count; i++) {
		struct ll_earlier_record *at = &earlier->records[i];
		if (is_of(at, record->card, record->program, record->others, record->way))
			return at;
		oldest = at->ended_s < oldest->ended_s ? at : oldest;
	}
	return earlier->count < LL_EARLIER_RECORDS ? &earlier->records[earlier->count++] : oldest;
}

void ll_earlier_put(struct ll_earlier *earlier, const struct ll_earlier_record *record)
{
	*find_place(earlier, record) = *record;
}

/* ---- the text ---- */

void ll_earlier_format(struct ll_strbuf *text, const struct ll_earlier *earlier)
{
	ll_strbuf_adds(text, first_line);
	for (size_t i = 0; i < earlier->count; i++) {
		const struct ll_earlier_record *record = &earlier->records[i];
		uint64_t ms = record->ns / NS_PER_MS;
		ll_strbuf_addf(text,
			       "%" PRIu64 "\t%s\t%" PRIx64 "\t%" PRIx64 "\t%s\t%" PRIu64 ".%03u\t%" PRIu64 "\t%s\t%s\n",
			       record->ended_s, record->card, record->program, record->others, ll_way_name(record->way),
			       ms / 1000, (unsigned)(ms % 1000), record->launches, record->name, record->others_names);
	}
}

/* Digits alone: strtoull would take a sign, blanks, and nothing at all. */
static bool read_number(const char *text, int base, uint64_t *ret_number)
{
	size_t length = strlen(text);
	if (!length || strspn(text, base == HEX ? "0123456789abcdef" : "0123456789") != length)
		return false;
	errno = 0;
	*ret_number = strtoull(text, NULL, base);
	return !errno;
}

static bool read_seconds(char *text, uint64_t *ret_ns)
{
	uint64_t seconds, ms;
	char *point = strchr(text, '.');
	if (!point || strlen(point) != 4)
		return false;
	*point = '\0';
	if (!read_number(text, DECIMAL, &seconds) || !read_number(point + 1, DECIMAL, &ms) ||
	    seconds > UINT64_MAX / NS_PER_MS / 1000 - 1)
		return false;
	*ret_ns = (seconds * 1000 + ms) * NS_PER_MS;
	return true;
}

static bool read_way(const char *text, enum ll_way *ret_way)
{
	*ret_way = strcmp(text, "slices") == 0  ? LL_WAY_SLICES
		   : strcmp(text, "space") == 0 ? LL_WAY_SPACE
						: LL_WAY_NONE;
	return *ret_way != LL_WAY_NONE;
}

static bool read_text(const char *text, char *ret_text, size_t size)
{
	size_t length = strlen(text);
	if (!length || length >= size || !ll_message_text_is_valid(text, length + 1))
		return false;
	memcpy(ret_text, text, length + 1);
	return true;
}

/* Splits the line, which it changes. */
static bool read_record(char *line, struct ll_earlier_record *ret_record)
{
	char *fields[FIELDS];
	size_t count = 0;
	for (char *at = line; at && count < FIELDS; count++) {
		fields[count] = strsep(&at, "\t");
		if (count == FIELDS - 1 && at)
			return false;
	}
	return count == FIELDS && read_number(fields[0], DECIMAL, &ret_record->ended_s) &&
	       read_text(fields[1], ret_record->card, sizeof ret_record->card) &&
	       read_number(fields[2], HEX, &ret_record->program) && read_number(fields[3], HEX, &ret_record->others) &&
	       read_way(fields[4], &ret_record->way) && read_seconds(fields[5], &ret_record->ns) &&
	       read_number(fields[6], DECIMAL, &ret_record->launches) &&
	       read_text(fields[7], ret_record->name, sizeof ret_record->name) &&
	       read_text(fields[8], ret_record->others_names, sizeof ret_record->others_names);
}

static int parse_lines(char *rest, struct ll_earlier *earlier)
{
	for (char *line; *rest;) {
		struct ll_earlier_record record;
		memset(&record, 0, sizeof record);
		line = rest;
		rest = strchr(line, '\n');
		if (!rest || earlier->count == LL_EARLIER_RECORDS)
			return -EBADMSG;
		*rest++ = '\0';
		if (!read_record(line, &record))
			return -EBADMSG;
		earlier->records[earlier->count++] = record;
	}
	return 0;
}

int ll_earlier_parse(const char *text, struct ll_earlier *ret_earlier)
{
	size_t length = sizeof first_line - 1;
	ret_earlier->count = 0;
	if (strncmp(text, first_line, length) != 0)
		return -EBADMSG;
	char *copy = strdup(text + length);
	int rc = copy ? parse_lines(copy, ret_earlier) : -ENOMEM;
	free(copy);
	if (rc)
		ret_earlier->count = 0;
	return rc;
}

/* Of the largest text, more than all records need. */
enum { TEXT_MAX = 256 * 1024 };

static const char new_file[] = LL_EARLIER_FILE ".new";

/* A file with a NUL, or one that is too long, is none of ours. */
static int read_file(int folder_fd, char **ret_text)
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
	int rc = read_file(folder_fd, &text);
	return text ? ll_earlier_parse(text, ret_earlier) : rc;
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

/* ---- Where the file is ---- */

static int put_path(char ret_path[PATH_MAX], const char *parent, const char *name, struct ll_err *err)
{
	int n = snprintf(ret_path, PATH_MAX, "%s%s", parent, name);
	return n < 0 || n >= PATH_MAX ? ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path") : 0;
}

int ll_earlier_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
	if (sim_folder && *sim_folder)
		return put_path(ret_path, sim_folder, "", err);
	if (state && *state == '/')
		return put_path(ret_path, state, "/loadline", err);
	if (home && *home == '/')
		return put_path(ret_path, home, "/.local/state/loadline", err);
	return ll_err_set(err, -ENOENT, "state folder: neither XDG_STATE_HOME nor HOME is set");
}

/* Root with the HOME of another user (sudo) makes nothing there. */
static int check_owner(int fd, const char *path, struct ll_err *err)
{
	struct stat st;
	if (fstat(fd, &st))
		return ll_err_set(err, -errno, "state folder: %.200s: %s", path, strerror(errno));
	if (st.st_uid != geteuid())
		return ll_err_set(err, -EPERM, "state folder: %.200s: belongs to user %lu, not to you (%lu)", path,
				  (unsigned long)st.st_uid, (unsigned long)geteuid());
	return 0;
}

static int open_folder(const char *path, int *ret_fd, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ll_err_set(err, -errno, "state folder: %.200s: %s", path, strerror(errno));
	int rc = check_owner(fd, path, err);
	if (rc)
		return rc;
	*ret_fd = fd;
	fd = -1;
	return 0;
}

/* Makes what is missing, in a folder that is the user's own. */
static int make_folder(char *path, struct ll_err *err)
{
	LL_SCOPE_CLOSE int parent_fd = -1;
	char *slash = strrchr(path, '/');
	if (access(path, F_OK) == 0)
		return 0;
	if (!slash || slash == path)
		return ll_err_set(err, -ENOENT, "state folder: %.200s: %s", path, strerror(ENOENT));
	*slash = '\0';
	int rc = make_folder(path, err);
	if (!rc)
		rc = open_folder(path, &parent_fd, err);
	*slash = '/';
	if (!rc && mkdir(path, 0700) && errno != EEXIST)
		rc = ll_err_set(err, -errno, "state folder: make %.200s: %s", path, strerror(errno));
	return rc;
}

int ll_earlier_folder_open(const char *path, int *ret_fd, struct ll_err *err)
{
	char copy[PATH_MAX];
	int rc = put_path(copy, path, "", err);
	if (!rc)
		rc = make_folder(copy, err);
	return rc ? rc : open_folder(path, ret_fd, err);
}
