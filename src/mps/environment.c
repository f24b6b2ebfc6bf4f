#include "mps/environment.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/err.h"
#include "mps/answers.h"

/* ---- a caller's variables ---- */

static bool names_card(const char *word, size_t length, const char *const *uuids, size_t count)
{
	char *end;
	unsigned long number = strtoul(word, &end, 10);
	if (end == word + length && length)
		return number < count;
	for (size_t i = 0; i < count; i++) {
		if (length && strncasecmp(uuids[i], word, length) == 0)
			return true;
	}
	return false;
}

/* "CARD=SIZE" */
static int check_entry(const char *entry, const char *const *uuids, size_t count, struct ll_err *err)
{
	uint64_t bytes;
	size_t length = strcspn(entry, "=");
	if (entry[length] != '=' || !ll_mps_answer_bytes(entry + length + 1, &bytes) || !bytes) {
		ll_err_set(err, -EINVAL, "%s: '%.60s' is not CARD=SIZE", LL_MPS_MEMORY_VARIABLE, entry);
		return ll_err_hint(err, "write it like 0=8G: otherwise the driver silently drops every memory limit");
	}
	if (names_card(entry, length, uuids, count))
		return 0;
	ll_err_set(err, -EINVAL, "%s: card '%.*s' is not visible to clients", LL_MPS_MEMORY_VARIABLE, (int)length,
		   entry);
	return ll_err_hint(err, "name only visible cards, numbered from 0: otherwise the driver silently drops every "
				"memory limit");
}

int ll_mps_memory_text_check(const char *text, const char *const *uuids, size_t count, struct ll_err *err)
{
	char copy[1024];
	char *rest = NULL;
	size_t length = strlen(text);
	if (length >= sizeof copy)
		return ll_err_set(err, -EINVAL, "%s: too long", LL_MPS_MEMORY_VARIABLE);
	memcpy(copy, text, length + 1);
	int rc = 0;
	for (char *entry = strtok_r(copy, ",", &rest); !rc && entry; entry = strtok_r(NULL, ",", &rest))
		rc = check_entry(entry + strspn(entry, " "), uuids, count, err);
	return rc;
}

static int check_percent(const char *text, struct ll_err *err)
{
	double percent;
	if (ll_mps_answer_percent(text, &percent) && percent > 0)
		return 0;
	ll_err_set(err, -EINVAL, "%s: '%.60s': not above 0 and at most 100", LL_MPS_PERCENT_VARIABLE, text);
	return ll_err_hint(err, "correct or unset it: the driver would take it for 100");
}

int ll_mps_environment_check(const char *const *uuids, size_t count, struct ll_err *err)
{
	const char *percent = getenv(LL_MPS_PERCENT_VARIABLE);
	const char *memory = getenv(LL_MPS_MEMORY_VARIABLE);
	int rc = percent && *percent ? check_percent(percent, err) : 0;
	if (!rc && memory && *memory)
		rc = ll_mps_memory_text_check(memory, uuids, count, err);
	return rc;
}

/* ---- the variables of programs that we start ---- */

static const char *const left_out[] = {LL_MPS_PIPE_VARIABLE,   LL_MPS_LOG_VARIABLE,      LL_MPS_PERCENT_VARIABLE,
				       LL_MPS_MEMORY_VARIABLE, LL_MPS_PROTOCOL_VARIABLE, "CUDA_VISIBLE_DEVICES",
				       "LD_PRELOAD",           "LOADLINE_RUN",           NULL};

static bool is_left_out(const char *variable)
{
	for (const char *const *name = left_out; *name; name++) {
		size_t length = strlen(*name);
		if (strncmp(variable, *name, length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

static bool add_variable(struct ll_mps_variables *variables, size_t *count, const char *name, const char *value)
{
	if (asprintf(&variables->own[*count], "%s=%s", name, value) < 0) {
		variables->own[*count] = NULL;
		return false;
	}
	variables->list[*count] = variables->own[*count];
	++*count;
	return true;
}

int ll_mps_variables_make(const struct ll_mps_place *place, const char *visible, struct ll_mps_variables *ret_variables,
			  struct ll_err *err)
{
	struct ll_mps_variables variables = {0};
	size_t count = 0;
	size_t others = 0;
	while (environ && environ[others])
		others++;
	variables.list = calloc(others + LL_MPS_OWN_VARIABLES + 1, sizeof *variables.list);
	/* loadline speaks protocol 2. Drivers that also know protocol 3 follow this variable; older ones ignore it. */
	bool is_made = variables.list && add_variable(&variables, &count, LL_MPS_PIPE_VARIABLE, place->pipe) &&
		       add_variable(&variables, &count, LL_MPS_LOG_VARIABLE, place->log) &&
		       add_variable(&variables, &count, LL_MPS_PROTOCOL_VARIABLE, "2") &&
		       (!visible || add_variable(&variables, &count, "CUDA_VISIBLE_DEVICES", visible));
	if (!is_made) {
		ll_mps_variables_fini(&variables);
		return ll_err_set(err, -ENOMEM, "environment: %s", strerror(ENOMEM));
	}
	for (size_t i = 0; i < others; i++) {
		if (!is_left_out(environ[i]))
			variables.list[count++] = environ[i];
	}
	*ret_variables = variables;
	return 0;
}

void ll_mps_variables_fini(struct ll_mps_variables *variables)
{
	for (size_t i = 0; i < LL_MPS_OWN_VARIABLES; i++)
		free(variables->own[i]);
	free(variables->list);
	*variables = (struct ll_mps_variables){0};
}
