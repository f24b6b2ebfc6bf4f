#include "mps/record.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

#define RECORD_SUFFIX ".record"

/* ---- the files of records ---- */

/* FNV-1a: gives a file name of a fixed length for any path. */
static uint64_t hash_path(const char *text)
{
	uint64_t h = UINT64_C(0xcbf29ce484222325);
	for (; *text; text++)
		h = (h ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
	return h;
}

void ll_mps_record_path(const char *folder, const char *pipe, char ret_path[LL_MPS_RECORD_PATH])
{
	snprintf(ret_path, LL_MPS_RECORD_PATH, "%s/%016" PRIx64 RECORD_SUFFIX, folder, hash_path(pipe));
}

static bool is_record(const char *name)
{
	size_t length = strlen(name);
	size_t suffix = strlen(RECORD_SUFFIX);
	return length > suffix && strcmp(name + length - suffix, RECORD_SUFFIX) == 0;
}

static int add_record(const char *path, struct ll_mps_record **records, size_t *count, struct ll_err *err)
{
	struct ll_mps_record *more = realloc(*records, (*count + 1) * sizeof *more);
	if (!more)
		return ll_err_set(err, -ENOMEM, "MPS: records: %s", strerror(ENOMEM));
	*records = more;
	struct ll_err why = {0};
	int rc = ll_mps_record_read_file(path, &more[*count], &why);
	if (rc == 0)
		++*count;
	if (rc == 0 || rc == -ENOENT)
		return 0;
	if (err)
		*err = why;
	return rc;
}

int ll_mps_record_list(const char *folder, struct ll_mps_record **ret_records, size_t *ret_count, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_mps_record *records = NULL;
	size_t count = 0;
	int rc = 0;
	DIR *files = opendir(folder);
	if (!files && errno != ENOENT)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", folder, strerror(errno));
	struct dirent *entry;
	while (files && !rc && (entry = readdir(files))) {
		char path[LL_MPS_PATH_SIZE + 300];
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (is_record(entry->d_name))
			rc = add_record(path, &records, &count, err);
	}
	if (files)
		closedir(files);
	if (rc)
		return rc;
	*ret_records = records;
	*ret_count = count;
	records = NULL;
	return 0;
}

/* ---- records ---- */

enum { TEXT_SIZE = 16384 };

static const char first_line[] = "loadline mps 1\n";

int ll_mps_record_format(const struct ll_mps_record *record, char *ret_text, size_t size)
{
	size_t used = 0;
	int n = snprintf(ret_text, size, "%spipe %s\nlog %s\ndaemon %d %" PRIu64 "\n", first_line, record->pipe,
			 record->log, (int)record->pid, record->start_ticks);
	for (size_t i = 0; n >= 0 && (used += (size_t)n) < size && i < record->card_count; i++) {
		const struct ll_mps_record_card *card = &record->cards[i];
		n = snprintf(ret_text + used, size - used, "card %s %s %d\n", card->uuid,
			     card->is_changed ? "changed" : "kept", (int)card->before);
	}
	/* The last line shows that the file is complete. */
	if (used < size)
		n = snprintf(ret_text + used, size - used, "end\n");
	return n < 0 || used + (size_t)n >= size ? -ENOSPC : 0;
}

static int parse_card(const char *line, struct ll_mps_record *record)
{
	struct ll_mps_record_card card = {.is_changed = false};
	char word[16];
	int mode;
	_Static_assert(LL_UUID_SIZE == 96, "the width below");
	if (record->card_count >= LL_MPS_RECORD_CARDS || sscanf(line, "card %95s %15s %d", card.uuid, word, &mode) != 3)
		return -EBADMSG;
	if (mode < LL_MODE_DEFAULT || mode > LL_MODE_EXCLUSIVE_PROCESS)
		return -EBADMSG;
	card.is_changed = strcmp(word, "changed") == 0;
	card.before = (enum ll_compute_mode)mode;
	record->cards[record->card_count++] = card;
	return 0;
}

static int parse_path(const char *line, const char *key, char ret_path[LL_MPS_PATH_SIZE])
{
	size_t length = strlen(key);
	if (strncmp(line, key, length) != 0 || line[length] != '/' || strlen(line + length) >= LL_MPS_PATH_SIZE)
		return -EBADMSG;
	memcpy(ret_path, line + length, strlen(line + length) + 1);
	return 0;
}

static int parse_line(const char *line, struct ll_mps_record *record)
{
	int pid;
	if (strncmp(line, "pipe ", 5) == 0)
		return parse_path(line, "pipe ", record->pipe);
	if (strncmp(line, "log ", 4) == 0)
		return parse_path(line, "log ", record->log);
	if (strncmp(line, "card ", 5) == 0)
		return parse_card(line, record);
	if (sscanf(line, "daemon %d %" SCNu64, &pid, &record->start_ticks) != 2 || pid < 0)
		return -EBADMSG;
	record->pid = (pid_t)pid;
	return 0;
}

int ll_mps_record_parse(const char *text, struct ll_mps_record *ret_record)
{
	char copy[TEXT_SIZE];
	struct ll_mps_record record = {.pid = 0};
	size_t length = strlen(text);
	char *rest = NULL;
	bool has_end = false;
	if (length >= sizeof copy || strncmp(text, first_line, strlen(first_line)) != 0)
		return -EBADMSG;
	memcpy(copy, text, length + 1);
	for (char *line = strtok_r(copy + strlen(first_line), "\n", &rest); line; line = strtok_r(NULL, "\n", &rest)) {
		has_end = strcmp(line, "end") == 0;
		if (!has_end && parse_line(line, &record))
			return -EBADMSG;
	}
	if (!has_end || !*record.pipe || !*record.log)
		return -EBADMSG;
	*ret_record = record;
	return 0;
}

static int write_file(const char *path, const char *text, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	size_t length = strlen(text);
	if (write(fd, text, length) != (ssize_t)length || fsync(fd))
		return ll_err_set(err, -EIO, "MPS: %.200s: cannot be written", path);
	return 0;
}

int ll_mps_record_write(const char *folder, const struct ll_mps_record *record, struct ll_err *err)
{
	char text[TEXT_SIZE];
	char path[LL_MPS_RECORD_PATH];
	char fresh[LL_MPS_RECORD_PATH + 8];
	if (ll_mps_record_format(record, text, sizeof text))
		return ll_err_set(err, -ENOSPC, "MPS: its record is too long");
	ll_mps_record_path(folder, record->pipe, path);
	snprintf(fresh, sizeof fresh, "%s.new", path);
	int rc = write_file(fresh, text, err);
	if (!rc && rename(fresh, path))
		rc = ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	if (rc)
		unlink(fresh);
	return rc;
}

int ll_mps_record_read(const char *folder, const char *pipe, struct ll_mps_record *ret_record, struct ll_err *err)
{
	char path[LL_MPS_RECORD_PATH];
	ll_mps_record_path(folder, pipe, path);
	return ll_mps_record_read_file(path, ret_record, err);
}

int ll_mps_record_read_file(const char *path, struct ll_mps_record *ret_record, struct ll_err *err)
{
	char text[TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	ssize_t n = read(fd, text, sizeof text - 1);
	if (n < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	text[n] = '\0';
	if (ll_mps_record_parse(text, ret_record)) {
		ll_err_set(err, -EBADMSG, "MPS: %.200s: is garbled", path);
		return ll_err_hint(err, "look at the cards' compute modes, set them as they should be, and remove it");
	}
	return 0;
}

void ll_mps_record_remove(const char *folder, const char *pipe)
{
	char path[LL_MPS_RECORD_PATH];
	ll_mps_record_path(folder, pipe, path);
	unlink(path);
}
