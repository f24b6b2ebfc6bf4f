#include "notify/hook.h"

#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <pwd.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"

enum { TIME_SIZE = 40, HOST_SIZE = 256 };

/* ---- what may be run ---- */

static bool is_below(const char *path, const char *folder)
{
	char resolved[PATH_MAX];
	size_t length = realpath(folder, resolved) ? strlen(resolved) : 0;
	return length && strncmp(path, resolved, length) == 0 && path[length] == '/';
}

static bool is_in_folders(const struct ll_hook_rules *rules, const char *path)
{
	for (int i = 0; i < LL_HOOK_FOLDERS && rules->folders[i]; i++) {
		if (is_below(path, rules->folders[i]))
			return true;
	}
	return false;
}

/* In a folder with the sticky bit, such as /tmp, nobody else can replace what belongs to root or the owner. */
static int check_part(const struct ll_hook_rules *rules, const char *path, struct ll_err *err)
{
	struct stat st;
	if (lstat(path, &st))
		return ll_err_set(err, -errno, "%.200s: %s", path, strerror(errno));
	bool is_sticky = S_ISDIR(st.st_mode) && (st.st_mode & S_ISVTX);
	if (st.st_uid != 0 && st.st_uid != rules->owner)
		return ll_err_set(err, -EACCES, "%.200s belongs to uid %u, not to root", path, (unsigned)st.st_uid);
	if ((st.st_mode & (S_IWGRP | S_IWOTH)) && !is_sticky)
		return ll_err_set(err, -EACCES, "%.200s: others than its owner may write to it", path);
	return 0;
}

static int check_parts(const struct ll_hook_rules *rules, const char *path, struct ll_err *err)
{
	char part[PATH_MAX];
	int rc = check_part(rules, "/", err);
	for (const char *slash = strchr(path + 1, '/'); slash && !rc; slash = strchr(slash + 1, '/')) {
		snprintf(part, sizeof part, "%.*s", (int)(slash - path), path);
		rc = check_part(rules, part, err);
	}
	return rc ? rc : check_part(rules, path, err);
}

int ll_hook_check(const struct ll_hook_rules *rules, const char *path, char ret_resolved[PATH_MAX], struct ll_err *err)
{
	char resolved[PATH_MAX];
	struct stat st;
	if (path[0] != '/' || !realpath(path, resolved))
		return ll_err_set(err, path[0] == '/' ? -errno : -EINVAL, "%.200s: %s", path,
				  path[0] == '/' ? strerror(errno) : "not an absolute path");
	if (!is_in_folders(rules, resolved))
		return ll_err_set(err, -EACCES, "%.200s: not in a folder for such commands (--from)", resolved);
	int rc = check_parts(rules, resolved, err);
	if (rc)
		return rc;
	if (stat(resolved, &st) || !S_ISREG(st.st_mode) || access(resolved, X_OK))
		return ll_err_set(err, -EACCES, "%.200s: not a file that can be executed", resolved);
	memcpy(ret_resolved, resolved, sizeof resolved);
	return 0;
}

/* ---- its input ---- */

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *moment(uint64_t at_s)
{
	char text[TIME_SIZE] = "";
	time_t at = (time_t)at_s;
	struct tm parts;
	if (localtime_r(&at, &parts))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts);
	return text_or_null(text);
}

static json_t *host_name(void)
{
	char name[HOST_SIZE] = "";
	gethostname(name, sizeof name - 1);
	return text_or_null(name);
}

static json_t *user_name(const struct ll_message_event *event)
{
	const struct passwd *user = event->flags & LL_EVENT_HAS_USER ? getpwuid(event->uid) : NULL;
	return user ? json_string(user->pw_name) : json_null();
}

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known ? json_integer((json_int_t)number) : json_null();
}

static json_t *make_object(const struct ll_message_event *event)
{
	bool has_card = event->flags & LL_EVENT_HAS_CARD;
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "event", event->name,
			 "time", moment(event->at_s), "host", host_name(), "text", event->text, "job",
			 number_or_null(event->job != 0, event->job), "tenant", text_or_null(event->tenant), "uid",
			 number_or_null(event->flags & LL_EVENT_HAS_USER, event->uid), "user", user_name(event),
			 "command", text_or_null(event->command), "card",
			 number_or_null(has_card && event->card != UINT32_MAX, event->card), "slice",
			 number_or_null(has_card && event->slice >= 0, (uint64_t)event->slice), "uuid",
			 text_or_null(event->uuid), "dropped", (json_int_t)event->dropped);
}

/*
 * The event as the commands get it:
 *
 *     {"event":"time-ending","time":"2026-12-03T14:00:00+0100","host":"gpu1","text":"job 12 …","job":12,
 *      "tenant":"research","uid":1001,"user":"alice","command":"python","card":3,"slice":null,"uuid":"GPU-…","dropped":0}
 *
 * What an event does not have is null. doc/department.md explains the fields. Returns one line, with its newline, which
 * the caller frees; NULL: out of memory. Looks up the name of the user, which may take long.
 */
static char *event_json(const struct ll_message_event *event)
{
	json_t *object = make_object(event);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	size_t length = text ? strlen(text) : 0;
	char *line = text ? realloc(text, length + 2) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	line[length] = '\n';
	line[length + 1] = '\0';
	return line;
}

/* ---- its process ---- */

/* The directory that has the users may hang. So the process that is ended at the deadline asks it. */
static int make_input(const struct ll_message_event *event)
{
	LL_SCOPE_FREE char *text = event_json(event);
	int fd = memfd_create("event", MFD_CLOEXEC);
	size_t length = text ? strlen(text) : 0;
	if (!text || fd < 0 || write(fd, text, length) != (ssize_t)length || lseek(fd, 0, SEEK_SET) < 0)
		return -1;
	return fd;
}

static void run_hook(const struct ll_message_event *event, const char *path)
{
	char *const words[] = {(char *)path, NULL};
	sigset_t none;
	sigemptyset(&none);
	setpgid(0, 0);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int fd = make_input(event);
	if (fd >= 0 && dup2(fd, STDIN_FILENO) >= 0 && dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) {
		ll_close_from(STDERR_FILENO + 1);
		execv(path, words);
	}
	_exit(LL_HOOK_NO_EXEC);
}

int ll_hook_start(const struct ll_message_event *event, const char *path, pid_t *ret_pid)
{
	pid_t pid = fork();
	if (pid < 0)
		return -errno;
	if (pid == 0)
		run_hook(event, path);
	setpgid(pid, pid);
	*ret_pid = pid;
	return 0;
}
