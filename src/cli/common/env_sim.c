#include "cli/common/env_sim.h"

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/strbuf.h"
#include "cli/common/beside.h"

/* Relative to the program's folder: in a build folder, installed, and installed where /bin and /usr/bin are one folder.
 */
static const char *const places[] = {"sim", "../lib/loadline/sim", "../../sim", NULL};
static const char library[] = "libcuda.so.1";

static bool is_entered;

bool ll_sim_is_entered(void)
{
	return is_entered;
}

static int find_simulator(char ret_folder[PATH_MAX], struct ll_err *err)
{
	char own[PATH_MAX];
	int rc = ll_beside_folder(own, err);
	if (rc < 0)
		return ll_err_wrap(err, "--sim");
	rc = ll_beside_find(places, library, ret_folder);
	if (rc == 0) {
		*strrchr(ret_folder, '/') = '\0';
		return 0;
	}
	ll_err_set(err, -ENODEV, "--sim: no simulated driver beside %s, nor in %s/%s", own, own, places[1]);
	return ll_err_hint(err, "build it (meson setup build && ninja -C build) or install all of loadline");
}

/* If scenario has no slash and is not a file, it names a scenario of the simulator. */
static int find_scenario(const char *folder, const char *scenario, char *ret_path, struct ll_err *err)
{
	if (realpath(scenario, ret_path) && access(ret_path, R_OK) == 0)
		return 0;
	int why = errno;
	if (!strchr(scenario, '/')) {
		char path[2 * PATH_MAX];
		snprintf(path, sizeof path, "%s/scenarios/%s", folder, scenario);
		if (access(path, R_OK) == 0 && realpath(path, ret_path))
			return 0;
	}
	return ll_err_set(err, -EINVAL, "--sim: scenario '%.200s': %s", scenario, strerror(why));
}

/* Puts folder in front of the list of folders in this variable of the environment. *ret_changed: folder was not the
 * first one before. */
static int prepend_folder(const char *variable, const char *folder, bool *ret_changed, struct ll_err *err)
{
	const char *old = getenv(variable);
	size_t length = strlen(folder);
	*ret_changed = !old || strncmp(old, folder, length) != 0 || (old[length] && old[length] != ':');
	if (!*ret_changed)
		return 0;
	char *path = NULL;
	if (asprintf(&path, "%s%s%s", folder, old && *old ? ":" : "", old ? old : "") < 0)
		return ll_err_set(err, -ENOMEM, "--sim: out of memory");
	int rc = setenv(variable, path, 1);
	free(path);
	return rc < 0 ? ll_err_set(err, -errno, "--sim: %s: %s", variable, strerror(errno)) : 0;
}

static const struct {
	const char *real, *simulated;
} commands[] = {
    {"`loadline ", "`loadline --sim "},
    {"'loadline ", "'loadline --sim "},
    {": loadline ", ": loadline --sim "},
    {"nvidia-smi -c DEFAULT", "loadline-simctl card all mode default"},
};

/* Returns the simulator's form of the command that text begins with, and the length of the original. NULL: text begins
 * with none of these commands, or the command has --sim already. */
static const char *simulated_command(const char *text, size_t *ret_length)
{
	for (size_t i = 0; i < sizeof commands / sizeof *commands; i++) {
		size_t length = strlen(commands[i].real);
		if (strncmp(text, commands[i].real, length) != 0 || strncmp(text + length, "--sim", 5) == 0)
			continue;
		*ret_length = length;
		return commands[i].simulated;
	}
	return NULL;
}

void ll_sim_add_advice(struct ll_strbuf *text, const char *advice)
{
	while (*advice) {
		size_t length = 1;
		const char *simulated = is_entered ? simulated_command(advice, &length) : NULL;
		if (simulated)
			ll_strbuf_adds(text, simulated);
		else
			ll_strbuf_addc(text, *advice);
		advice += length;
	}
}

int ll_sim_enter(const char *scenario, char **argv, struct ll_err *err)
{
	char folder[PATH_MAX];
	char file[PATH_MAX];
	bool changed = false;
	int rc = find_simulator(folder, err);
	if (rc == 0 && *scenario) {
		rc = find_scenario(folder, scenario, file, err);
		if (rc == 0 && setenv("LOADLINE_SIM_SCENARIO", file, 1) < 0)
			rc = ll_err_set(err, -errno, "--sim: LOADLINE_SIM_SCENARIO: %s", strerror(errno));
	}
	/* PATH is for MPS's programs, and has effect at once. LD_LIBRARY_PATH has effect in a new process only. */
	if (rc == 0)
		rc = prepend_folder("PATH", folder, &changed, err);
	if (rc == 0)
		rc = prepend_folder("LD_LIBRARY_PATH", folder, &changed, err);
	is_entered = rc == 0;
	if (rc < 0 || !changed)
		return rc;
	execv("/proc/self/exe", argv);
	return ll_err_set(err, -errno, "--sim: run loadline again: %s", strerror(errno));
}
