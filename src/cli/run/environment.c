#include "cli/run/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/run/preload.h"
#include "mps/environment.h"

enum { OWN_VARIABLES = 7, PRELOAD = 1 };

/* LOADLINE_RUN is always replaced, the others only if the wish has a value for them. */
static const char *const names[OWN_VARIABLES] = {LL_RUN_VARIABLE,        "LD_PRELOAD",         "CUDA_VISIBLE_DEVICES",
						 "CUDA_DEVICE_ORDER",    LL_MPS_PIPE_VARIABLE, LL_MPS_LOG_VARIABLE,
						 LL_MPS_PERCENT_VARIABLE};

static const char *const places[] = {"src/shim", "../lib/loadline", NULL};
static const struct ll_preload_library library = {"libloadline-cuda.so", "LOADLINE_SHIM", places};

int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&library, ret_path, err);
}

/* Refuses a second library of loadline in LD_PRELOAD. The first of two gets the calls, and may be of a version that
 * does not know these limits. */
static int check_preload(const char *shim, struct ll_err *err)
{
	size_t tail = strlen(library.name);
	size_t length;
	for (const char *word = ll_preload_word(getenv("LD_PRELOAD"), &length); length;
	     word = ll_preload_word(word + length, &length)) {
		bool is_named_so = length > tail && strncmp(word + length - tail, library.name, tail) == 0;
		if (is_named_so && (strncmp(word, shim, length) != 0 || shim[length])) {
			ll_err_set(err, -EINVAL, "LD_PRELOAD has another %s: %.*s", library.name, (int)length, word);
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
