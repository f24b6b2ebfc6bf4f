#include "card/scenario.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "card/command.h"
#include "card/world.h"

enum { MAX_FILE_BYTES = 1 << 16 };

static uint64_t hash_text(const char *text)
{
	uint64_t hash = UINT64_C(14695981039346656037); /* FNV-1a */
	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * UINT64_C(1099511628211);
	return hash ? hash : 1;
}

int sim_scenario_load(const char *path, struct sim_scenario *ret_scenario, struct ll_err *err)
{
	struct sim_scenario scenario = {0};
	if (path && path[0]) {
		LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
		if (!file)
			return ll_err_set(err, -EINVAL, "scenario %s: %s", path, strerror(errno));
		LL_SCOPE_FREE char *text = calloc(1, MAX_FILE_BYTES + 1);
		if (!text)
			return ll_err_set(err, -ENOMEM, "scenario %s: no memory", path);
		size_t n = fread(text, 1, MAX_FILE_BYTES, file);
		if (ferror(file) || n == MAX_FILE_BYTES || memchr(text, '\0', n))
			return ll_err_set(err, -EINVAL, "scenario %s: not a text of less than 64 KiB", path);
		scenario.is_named = true;
		scenario.hash = hash_text(text);
		scenario.path = strdup(path);
		scenario.text = text;
		text = NULL;
	}
	*ret_scenario = scenario;
	return 0;
}

int sim_scenario_apply(const struct sim_scenario *scenario, struct sim_world *w, struct ll_err *err)
{
	if (!scenario->text)
		return 0;
	LL_SCOPE_FREE char *copy = strdup(scenario->text);
	if (!copy)
		return ll_err_set(err, -ENOMEM, "scenario: no memory");
	int number = 0;
	for (char *line = copy; line;) {
		char *end = strchr(line, '\n');
		if (end)
			*end = '\0';
		number++;
		line[strcspn(line, "#")] = '\0';
		int rc = sim_command_run(w, line, SIM_COMMAND_START, err);
		if (rc < 0) {
			ll_err_wrap(err, "scenario %s:%d", scenario->path, number);
			return rc;
		}
		sim_commit(w);
		line = end ? end + 1 : NULL;
	}
	return 0;
}

void sim_scenario_fini(struct sim_scenario *scenario)
{
	free(scenario->path);
	free(scenario->text);
	*scenario = (struct sim_scenario){0};
}
