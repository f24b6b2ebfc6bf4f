#include "cli/run/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "cli/common/env_sim.h"
#include "mps/mps.h"
#include "protocol/inherited.h"
#include "protocol/run_settings.h"

enum { OWN_VARIABLES = 7, PRELOAD = 1 };

/* LOADLINE_RUN is always replaced, the others only if the wish has a value for them. */
static const char *const names[OWN_VARIABLES] = {LL_RUN_VARIABLE,        "LD_PRELOAD",         "CUDA_VISIBLE_DEVICES",
						 "CUDA_DEVICE_ORDER",    LL_MPS_PIPE_VARIABLE, LL_MPS_LOG_VARIABLE,
						 LL_MPS_PERCENT_VARIABLE};

static const char *const places[] = {"src/shim", "../lib/loadline", NULL};
static const struct ll_preload_library own_library = {"libloadline-cuda.so", "LOADLINE_SHIM", places};

int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&own_library, ret_path, err);
}

/* Refuses a second library of loadline in LD_PRELOAD. The first of two gets the calls, and may be of a version that
 * does not know these limits. */
static int check_preload(const char *shim, struct ll_err *err)
{
	size_t tail = strlen(own_library.name);
	size_t length;
	for (const char *word = ll_preload_word(getenv("LD_PRELOAD"), &length); length;
	     word = ll_preload_word(word + length, &length)) {
		bool is_named_so = length > tail && strncmp(word + length - tail, own_library.name, tail) == 0;
		if (is_named_so && (strncmp(word, shim, length) != 0 || shim[length])) {
			ll_err_set(err, -EINVAL, "LD_PRELOAD has another %s: %.*s", own_library.name, (int)length,
				   word);
			return ll_err_hint(err, "take it out: with it limits may not be in force");
		}
	}
	return 0;
}

static char *make_variable(const char *name, const char *value)
{
	char *text = NULL;
	return asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text;
}

/* Makes the value of LD_PRELOAD. The library is last, because other libraries in front of the driver pass calls on to
 * the next one, and this library passes them to the driver. Only the library by which `loadline trace` times launches
 * comes after it, so that a launch is timed after it has waited for its turn. */
static char *make_preload(const char *shim)
{
	LL_SCOPE_FREE char *list = ll_preload_insert(getenv("LD_PRELOAD"), shim, "libloadline-events.so");
	return list ? make_variable("LD_PRELOAD", list) : NULL;
}

static bool is_own(const char *variable, char *const *own)
{
	for (size_t i = 0; i < OWN_VARIABLES; i++) {
		size_t length = strlen(names[i]);
		if (own[i] && strncmp(variable, names[i], length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

/* Returns false if memory ran out. */
static bool make_own(const struct ll_run_environment *wish, const char *settings, char *own[OWN_VARIABLES])
{
	const char *values[OWN_VARIABLES] = {settings,       wish->shim,    wish->visible,    wish->order,
					     wish->mps_pipe, wish->mps_log, wish->mps_percent};
	bool is_made = true;
	for (size_t i = 0; i < OWN_VARIABLES; i++) {
		if (values[i])
			own[i] = i == PRELOAD ? make_preload(values[i]) : make_variable(names[i], values[i]);
		is_made &= own[i] || !values[i];
	}
	return is_made;
}

static void free_own(char *own[OWN_VARIABLES])
{
	for (size_t i = 0; i < OWN_VARIABLES; i++)
		free(own[i]);
}

/* The texts that loadline allocates are stored before the list that exec gets, so that ll_run_environment_free finds
 * them. */
struct environment {
	char *own[OWN_VARIABLES];
	char *list[];
};

int ll_run_environment_make(const struct ll_run_environment *wish, char ***ret_environment, struct ll_err *err)
{
	char text[LL_RUN_TEXT_SIZE];
	size_t count = 0;
	size_t used = 0;
	int rc = wish->shim ? check_preload(wish->shim, err) : 0;
	if (rc < 0)
		return rc;
	rc = ll_run_settings_write(wish->settings, text);
	if (rc < 0)
		return ll_err_set(err, rc, "tenant %s: its settings: %s", wish->settings->tenant, strerror(-rc));
	while (environ && environ[count])
		count++;
	struct environment *made = calloc(1, sizeof *made + (count + OWN_VARIABLES + 1) * sizeof *made->list);
	if (!made || !make_own(wish, text, made->own)) {
		if (made)
			free_own(made->own);
		free(made);
		return ll_err_set(err, -ENOMEM, "environment: %s", strerror(ENOMEM));
	}
	for (size_t i = 0; i < OWN_VARIABLES; i++) {
		if (made->own[i])
			made->list[used++] = made->own[i];
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_own(environ[i], made->own))
			made->list[used++] = environ[i];
	}
	*ret_environment = made->list;
	return 0;
}

void ll_run_environment_free(char **environment)
{
	if (!environment)
		return;
	struct environment *made = (struct environment *)((char *)environment - offsetof(struct environment, list));
	free_own(made->own);
	free(made);
}

static const char separators[] = ": ";

static int find_named(const struct ll_preload_library *library, const char *path, char ret_path[PATH_MAX],
		      struct ll_err *err)
{
	if (access(path, R_OK) == 0 && realpath(path, ret_path))
		return 0;
	ll_err_set(err, -ENOENT, "%s=%.200s: %s", library->variable, path, strerror(errno));
	return ll_err_hint(err, "unset it, or name the file of %s", library->name);
}

int ll_preload_find(const struct ll_preload_library *library, char ret_path[PATH_MAX], struct ll_err *err)
{
	const char *named = getenv(library->variable);
	if (named && *named) {
		int rc = find_named(library, named, ret_path, err);
		if (rc < 0)
			return rc;
	} else if (ll_beside_find(library->places, library->name, ret_path) < 0) {
		ll_err_set(err, -ENOENT, "%s is not beside this program, nor in %s", library->name, library->places[1]);
		return ll_err_hint(err, "install all of loadline, or set %s to the library's file", library->variable);
	}
	if (!strpbrk(ret_path, separators))
		return 0;
	ll_err_set(err, -EINVAL, "%.200s: the loader takes no blank or colon in the path of a library to preload",
		   ret_path);
	return ll_err_hint(err, "install loadline elsewhere");
}

const char *ll_preload_word(const char *list, size_t *ret_length)
{
	const char *word = list ? list : "";
	word += strspn(word, separators);
	*ret_length = strcspn(word, separators);
	return word;
}

static bool is_same(const char *word, size_t length, const char *text)
{
	return strlen(text) == length && strncmp(word, text, length) == 0;
}

static bool is_file_named(const char *word, size_t length, const char *name)
{
	const char *slash = memrchr(word, '/', length);
	size_t folder = slash ? (size_t)(slash + 1 - word) : 0;
	return is_same(word + folder, length - folder, name);
}

char *ll_preload_insert(const char *list, const char *path, const char *name)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	bool is_in = false;
	size_t length;
	for (const char *word = ll_preload_word(list, &length); length;
	     word = ll_preload_word(word + length, &length)) {
		if (is_same(word, length, path))
			continue;
		bool is_behind =
		    (name && is_file_named(word, length, name)) || is_file_named(word, length, LL_SIM_KERNEL_LIBRARY);
		if (!is_in && is_behind) {
			ll_strbuf_addf(&text, "%s%s", text.length ? ":" : "", path);
			is_in = true;
		}
		ll_strbuf_addf(&text, "%s%.*s", text.length ? ":" : "", (int)length, word);
	}
	if (!is_in)
		ll_strbuf_addf(&text, "%s%s", text.length ? ":" : "", path);
	return ll_strbuf_detach(&text);
}

char *ll_preload_append(const char *list, const char *path)
{
	return ll_preload_insert(list, path, NULL);
}

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3; may be compulsory from then on (vm.memfd_noexec) */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* Beside the job's lifeline, higher than those of shells and scripts. */

static int make_file(void)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(LL_RUN_FILE, flags | MFD_NOEXEC_SEAL);
	return fd < 0 ? memfd_create(LL_RUN_FILE, flags) : fd;
}

void ll_run_bequeath(const struct ll_run_settings *settings)
{
	char text[LL_RUN_TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = make_file();
	if (fd < 0 || ll_run_settings_write(settings, text) < 0)
		return;
	ssize_t length = (ssize_t)strlen(text);
	if (write(fd, text, (size_t)length) != length ||
	    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
		return;
	if (fcntl(fd, F_DUPFD, LL_RUN_FIRST_FD) < 0)
		fcntl(fd, F_DUPFD, STDERR_FILENO + 1);
}
