#include "mps/variables.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "mps/environment.h"

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

static bool add(struct ll_mps_variables *variables, size_t *count, const char *name, const char *value)
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
	/* Protocol 2 is what we speak; drivers that know a third follow this variable, older ones do not know it. */
	bool is_made = variables.list && add(&variables, &count, LL_MPS_PIPE_VARIABLE, place->pipe) &&
		       add(&variables, &count, LL_MPS_LOG_VARIABLE, place->log) &&
		       add(&variables, &count, LL_MPS_PROTOCOL_VARIABLE, "2") &&
		       (!visible || add(&variables, &count, "CUDA_VISIBLE_DEVICES", visible));
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
