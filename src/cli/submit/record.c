/*
 * The records of submitted jobs. They are files of the user, because without the system's service loadlined has no file
 * and ends 2 s after the last job, and `submit list`, `wait` and `log` need a job after that and after a new boot. Also
 * the service's list of ended jobs has the last 1000 of all users, without the log, and its history is of jobs that
 * came to it.
 */
#include "cli/submit/submit.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "advice/advice.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/table.h"

enum { NAME_SIZE = 256, HOST_SIZE = 128, DAYS_KEPT = 30, DAY_S = 86400, NUMBER_TRIES = 1000 };

static const char *const words[] = {N_("waiting"), N_("running"), N_("ended"), N_("not run"), N_("lost")};

const char *ll_submit_state_word(enum ll_submit_state state)
{
	return words[state];
}

/* ---- names ---- */

int ll_submit_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err)
{
	char parent[PATH_MAX], path[PATH_MAX], real[PATH_MAX];
	int rc = ll_earlier_folder(NULL, parent, err);
	if (rc)
		return rc;
	int n;
	if (sim_folder && *sim_folder)
		n = snprintf(path, sizeof path, "%s/jobs-sim-%016" PRIx64, parent,
			     ll_text_hash(realpath(sim_folder, real) ? real : sim_folder));
	else
		n = snprintf(path, sizeof path, "%s/jobs", parent);
	if (n < 0 || n >= PATH_MAX)
		return ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path");
	LL_SCOPE_CLOSE int fd = -1;
	rc = ll_earlier_folder_open(path, &fd, err);
	if (!rc)
		memcpy(ret_path, path, sizeof path);
	return rc;
}

static void read_host(char ret_host[HOST_SIZE])
{
	struct utsname name;
	const char *host = uname(&name) == 0 && name.nodename[0] ? name.nodename : "localhost";
	snprintf(ret_host, HOST_SIZE, "%s", host);
	for (char *at = ret_host; *at; at++)
		*at = *at == '/' ? '_' : *at;
}

static int put_path(char ret_path[PATH_MAX], const char *folder, uint64_t number, const char *suffix)
{
	char host[HOST_SIZE];
	read_host(host);
	int n = snprintf(ret_path, PATH_MAX, "%s/%s-%" PRIu64 ".json%s", folder, host, number, suffix);
	return n < 0 || n >= PATH_MAX ? -ENAMETOOLONG : 0;
}

/* The number in the name of a file of this machine; 0: it is another one. */
static uint64_t number_in_name(const char *name)
{
	char host[HOST_SIZE];
	read_host(host);
	size_t length = strlen(host);
	if (strncmp(name, host, length) != 0 || name[length] != '-' || name[length + 1] < '1' || name[length + 1] > '9')
		return 0;
	char *end;
	uint64_t number = strtoull(name + length + 1, &end, 10);
	return strcmp(end, ".json") == 0 ? number : 0;
}

/* ---- one file ---- */

static json_t *pack_process(const struct ll_process_id *process)
{
	return json_pack("{s:I, s:I, s:I}", "pid", (json_int_t)process->pid, "start_ticks",
			 (json_int_t)process->start_ticks, "namespaces", (json_int_t)process->namespaces);
}

static json_t *pack_record(const struct ll_submit_record *record)
{
	char job[2 * sizeof record->job + 1];
	snprintf(job, sizeof job, "%" PRIx64, record->job);
	return json_pack("{s:i, s:I, s:s, s:b, s:s, s:o, s:o, s:I, s:I, s:I, s:i, s:i, s:i, s:o, s:o, s:o, s:o}",
			 "version", 1, "number", (json_int_t)record->number, "job", job, "is_queued", record->is_queued,
			 "boot", record->boot, "supervisor", pack_process(&record->supervisor), "first",
			 pack_process(&record->first), "submitted", (json_int_t)record->submitted_s, "started",
			 (json_int_t)record->started_s, "ended", (json_int_t)record->ended_s, "state",
			 (int)record->state, "restarts", (int)record->restarts, "status", record->status, "reason",
			 ll_json_text(record->reason), "command", ll_json_text(record->command), "directory",
			 ll_json_text(record->directory), "log", ll_json_text(record->log));
}

int ll_submit_write(const char *folder, const struct ll_submit_record *record, struct ll_err *err)
{
	char path[PATH_MAX], next[PATH_MAX];
	if (put_path(path, folder, record->number, "") || put_path(next, folder, record->number, ".new"))
		return ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path");
	json_t *object = pack_record(record);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	LL_SCOPE_CLOSE int fd = text ? open(next, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
	size_t length = text ? strlen(text) : 0;
	errno = text ? errno : ENOMEM;
	bool is_written =
	    fd >= 0 && write(fd, text, length) == (ssize_t)length && fsync(fd) == 0 && rename(next, path) == 0;
	int code = errno;
	free(text);
	return is_written ? 0 : ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
}

static void copy_text(const json_t *object, const char *key, char *ret_text, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));
	snprintf(ret_text, size, "%s", text ? text : "");
}

static uint64_t number_of(const json_t *object, const char *key)
{
	return (uint64_t)json_integer_value(json_object_get(object, key));
}

static struct ll_process_id process_of(const json_t *object, const char *key)
{
	const json_t *process = json_object_get(object, key);
	return (struct ll_process_id){.pid = (pid_t)number_of(process, "pid"),
				      .start_ticks = number_of(process, "start_ticks"),
				      .namespaces = number_of(process, "namespaces")};
}

static void unpack_record(const json_t *object, struct ll_submit_record *record)
{
	char job[2 * sizeof record->job + 1];
	uint64_t state = number_of(object, "state");
	copy_text(object, "job", job, sizeof job);
	*record = (struct ll_submit_record){
	    .number = number_of(object, "number"),
	    .job = strtoull(job, NULL, 16),
	    .is_queued = json_is_true(json_object_get(object, "is_queued")),
	    .supervisor = process_of(object, "supervisor"),
	    .first = process_of(object, "first"),
	    .submitted_s = number_of(object, "submitted"),
	    .started_s = number_of(object, "started"),
	    .ended_s = number_of(object, "ended"),
	    .state = state < LL_SUBMIT_LOST ? (enum ll_submit_state)state : LL_SUBMIT_WAITS,
	    .restarts = (unsigned)number_of(object, "restarts"),
	    .status = (int)number_of(object, "status"),
	};
	copy_text(object, "boot", record->boot, sizeof record->boot);
	copy_text(object, "reason", record->reason, sizeof record->reason);
	copy_text(object, "command", record->command, sizeof record->command);
	copy_text(object, "directory", record->directory, sizeof record->directory);
	copy_text(object, "log", record->log, sizeof record->log);
}

static bool read_file(const char *path, uint64_t number, struct ll_submit_record *ret_record)
{
	json_error_t fault;
	json_t *object = json_load_file(path, 0, &fault);
	bool is_good = json_is_object(object) && number_of(object, "number") == number;
	if (is_good)
		unpack_record(object, ret_record);
	json_decref(object);
	return is_good;
}

static enum ll_submit_state find_state(const struct ll_submit_record *record)
{
	char boot[LL_BOOT_ID_SIZE];
	if (record->state == LL_SUBMIT_ENDED || record->state == LL_SUBMIT_NOT_RUN)
		return record->state;
	ll_boot_id_read(boot);
	bool is_lost =
	    strcmp(boot, record->boot) != 0 || ll_process_is_gone(&record->supervisor, ll_process_namespaces());
	return is_lost ? LL_SUBMIT_LOST : record->state;
}

int ll_submit_read(const char *folder, uint64_t number, struct ll_submit_record *ret_record, struct ll_err *err)
{
	char path[PATH_MAX];
	if (put_path(path, folder, number, ""))
		return ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path");
	if (access(path, F_OK)) {
		ll_err_set(err, -ENOENT, "job %" PRIu64 ": you have not submitted it on this machine", number);
		return ll_err_hint(err, "`loadline submit list` has your jobs");
	}
	bool is_good = read_file(path, number, ret_record);
	/* The supervisor may have written the end, and ended, since the file was read. */
	if (is_good && find_state(ret_record) == LL_SUBMIT_LOST) {
		is_good = read_file(path, number, ret_record);
		ret_record->state = find_state(ret_record);
	}
	return is_good ? 0 : ll_err_set(err, -EBADMSG, "%.200s: damaged", path);
}

/* ---- all files ---- */

static int by_number(const void *a, const void *b)
{
	const struct ll_submit_record *first = a, *second = b;
	return (first->number > second->number) - (first->number < second->number);
}

/* A file that cannot be read is left out. */
static int add_file(const char *folder, uint64_t number, struct ll_submit_record **records, size_t *count)
{
	struct ll_submit_record *larger = realloc(*records, (*count + 1) * sizeof **records);
	if (!larger)
		return -ENOMEM;
	*records = larger;
	*count += ll_submit_read(folder, number, &larger[*count], NULL) == 0;
	return 0;
}

int ll_submit_read_all(const char *folder, struct ll_submit_record **ret_records, size_t *ret_count, struct ll_err *err)
{
	struct ll_submit_record *records = NULL;
	size_t count = 0;
	int rc = 0;
	DIR *files = opendir(folder);
	if (!files)
		return ll_err_set(err, -errno, "%.200s: %s", folder, strerror(errno));
	for (struct dirent *entry; !rc && (entry = readdir(files));) {
		uint64_t number = number_in_name(entry->d_name);
		rc = number ? add_file(folder, number, &records, &count) : 0;
	}
	closedir(files);
	if (rc) {
		free(records);
		return ll_err_set(err, rc, "jobs: %s", strerror(-rc));
	}
	if (count)
		qsort(records, count, sizeof *records, by_number);
	*ret_records = records;
	*ret_count = count;
	return 0;
}

static uint64_t highest_number(const char *folder)
{
	uint64_t highest = 0;
	DIR *files = opendir(folder);
	for (struct dirent *entry; files && (entry = readdir(files));) {
		uint64_t number = number_in_name(entry->d_name);
		highest = number > highest ? number : highest;
	}
	if (files)
		closedir(files);
	return highest;
}

int ll_submit_take_number(const char *folder, uint64_t *ret_number, struct ll_err *err)
{
	uint64_t number = highest_number(folder);
	char path[PATH_MAX];
	for (int i = 0; i < NUMBER_TRIES; i++) {
		number++;
		if (put_path(path, folder, number, ""))
			return ll_err_set(err, -ENAMETOOLONG, "state folder: too long a path");
		LL_SCOPE_CLOSE int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (fd >= 0) {
			*ret_number = number;
			return 0;
		}
		if (errno != EEXIST)
			break;
	}
	return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
}

void ll_submit_prune(const char *folder)
{
	struct ll_submit_record *records = NULL;
	size_t count = 0;
	uint64_t now_s = (uint64_t)time(NULL);
	if (ll_submit_read_all(folder, &records, &count, NULL))
		return;
	for (size_t i = 0; i < count; i++) {
		char path[PATH_MAX];
		uint64_t last_s = records[i].ended_s ? records[i].ended_s : records[i].submitted_s;
		if (records[i].state >= LL_SUBMIT_ENDED && last_s + (uint64_t)DAYS_KEPT * DAY_S < now_s &&
		    !put_path(path, folder, records[i].number, ""))
			unlink(path);
	}
	free(records);
}

bool ll_submit_first_lives(const struct ll_submit_record *record)
{
	char boot[LL_BOOT_ID_SIZE];
	ll_boot_id_read(boot);
	return record->first.pid > 0 && strcmp(boot, record->boot) == 0 &&
	       !ll_process_is_gone(&record->first, ll_process_namespaces());
}
