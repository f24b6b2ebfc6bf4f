#include "cli/trace/outputs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/trace/write.h"

static bool ends_with(const char *text, const char *tail)
{
	size_t length = strlen(text), tail_length = strlen(tail);
	return length > tail_length && strcmp(text + length - tail_length, tail) == 0;
}

static int check_pattern(const char *name, struct ll_err *err)
{
	for (const char *c = strchr(name, '%'); c; c = strchr(c + 2, '%')) {
		if (c[1] != 'p' && c[1] != '%')
			return ll_err_set(err, -EINVAL, "-o: '%.200s': only %%p and %%%% are known", name);
	}
	if (ends_with(name, ".csv"))
		return 0;
	if (!ends_with(name, ".json")) {
		ll_err_set(err, -EINVAL, "-o: '%.200s': neither .csv nor .json", name);
		return ll_err_hint(err,
				   "use a .csv name for a table of one process, a .json name for the timeline of all");
	}
	if (strstr(name, "%p"))
		return ll_err_set(err, -EINVAL, "-o: '%.200s': a .json has all processes, so its name has no %%p",
				  name);
	return 0;
}

static int fail_output(const char *path, int code, struct ll_err *err)
{
	ll_err_set(err, -code, "-o: %.200s: %s", path, strerror(code));
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

/* Checks the folder before the command runs, so that a bad name does not waste a long run. */
static int check_place(const char *name, struct ll_err *err)
{
	char folder[PATH_MAX];
	struct stat st;
	snprintf(folder, sizeof folder, "%s", name);
	char *slash = strrchr(folder, '/');
	if (slash)
		slash[slash == folder] = '\0';
	else
		snprintf(folder, sizeof folder, ".");
	bool is_there = stat(name, &st) == 0;
	if (is_there && S_ISDIR(st.st_mode))
		return fail_output(name, EISDIR, err);
	if (access(is_there ? name : folder, W_OK) == 0)
		return 0;
	return fail_output(name, errno, err);
}

/* Calls fn for each name in the comma-separated list. */
static int for_each(const char *list, const struct ll_trace_run *run,
		    int (*fn)(const char *name, const struct ll_trace_run *run, struct ll_err *err), struct ll_err *err)
{
	LL_SCOPE_FREE char *copy = list ? strdup(list) : NULL;
	int rc = list && !copy ? ll_err_set(err, -ENOMEM, "-o: %s", strerror(ENOMEM)) : 0;
	char *rest = copy;
	for (char *name; !rc && (name = strsep(&rest, ","));) {
		if (!*name)
			rc = ll_err_set(err, -EINVAL, "-o: '%.200s': an empty name", list);
		else
			rc = fn(name, run, err);
	}
	return rc;
}

static int check_one(const char *name, const struct ll_trace_run *run, struct ll_err *err)
{
	(void)run;
	int rc = check_pattern(name, err);
	return rc ? rc : check_place(name, err);
}

int ll_trace_outputs_check(const char *list, struct ll_err *err)
{
	return for_each(list, NULL, check_one, err);
}

void ll_trace_outputs_name(const char *pattern, pid_t pid, bool is_alone, struct ll_strbuf *ret_path)
{
	const char *suffix = strrchr(pattern, '.');
	bool has_pid = false;
	ll_strbuf_reset(ret_path);
	for (const char *c = pattern; *c; c++) {
		if (c == suffix && !has_pid && !is_alone)
			ll_strbuf_addf(ret_path, "-%d", (int)pid);
		if (*c != '%') {
			ll_strbuf_addc(ret_path, *c);
			continue;
		}
		c++;
		has_pid |= *c == 'p';
		if (*c == 'p')
			ll_strbuf_addf(ret_path, "%d", (int)pid);
		else
			ll_strbuf_addc(ret_path, '%');
	}
}

static FILE *open_output(const char *path, struct ll_err *err)
{
	FILE *file = fopen(path, "we");
	if (!file)
		fail_output(path, errno, err);
	return file;
}

static int close_output(FILE *file, const char *path, struct ll_err *err)
{
	bool failed = ferror(file) != 0;
	int code = fclose(file) != 0 ? errno : failed ? EIO : 0;
	return code ? fail_output(path, code, err) : 0;
}

static int write_one(const char *name, const struct ll_trace_run *run, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf path = LL_STRBUF_INIT;
	bool is_csv = ends_with(name, ".csv");
	int rc = 0;
	for (size_t i = 0; !rc && i < (is_csv ? run->process_count : 1); i++) {
		pid_t pid = is_csv ? run->processes[i].pid : 0;
		ll_trace_outputs_name(name, pid, !is_csv || run->process_count == 1, &path);
		if (path.failed)
			return ll_err_set(err, -ENOMEM, "-o: %s", strerror(ENOMEM));
		FILE *file = open_output(path.buf, err);
		if (!file)
			return err ? err->code : -EIO;
		if (is_csv)
			ll_trace_write_csv(file, run, &run->processes[i]);
		else
			ll_trace_write_chrome(file, run);
		rc = close_output(file, path.buf, err);
	}
	return rc;
}

int ll_trace_outputs_write(const char *list, const struct ll_trace_run *run, struct ll_err *err)
{
	return for_each(list, run, write_one, err);
}
