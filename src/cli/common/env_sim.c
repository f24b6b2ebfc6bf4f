#include "cli/common/env_sim.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/advice.h"
#include "base/err.h"
#include "base/scope.h"
#include "base/strbuf.h"

int ll_beside_folder(char ret_folder[PATH_MAX], struct ll_err *err)
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
	if (length < 0)
		return ll_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	ret_folder[length] = '\0';
	*strrchr(ret_folder, '/') = '\0';
	return 0;
}

int ll_beside_find(const char *const *folders, const char *name, char ret_path[PATH_MAX])
{
	char own[PATH_MAX];
	int rc = ll_beside_folder(own, NULL);
	for (; rc == 0 && *folders; folders++) {
		char path[3 * PATH_MAX];
		snprintf(path, sizeof path, "%s/%s/%s", own, *folders, name);
		if (access(path, R_OK) == 0 && realpath(path, ret_path))
			return 0;
	}
	return -ENOENT;
}

/* Relative to the program's folder: in a build folder, installed, and installed where /bin and /usr/bin are one folder.
 */
static const char *const places[] = {"sim", "../lib/loadline/sim", "../../sim", NULL};
static const char library[] = "libcuda.so.1";

static bool is_entered;

bool ll_sim_is_entered(void)
{
	return is_entered;
}

const char *ll_sim_entered_folder(void)
{
	return is_entered ? getenv("LOADLINE_SIM_DIR") : NULL;
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
	return ll_err_hint(err, "apt install loadline-sim, or install all of loadline");
}

static int is_scenario(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Calls show for each scenario of the simulator, by name. False: there are none. */
static bool for_each_scenario(const char *folder, void (*show)(const char *path, const char *name, void *data),
			      void *data)
{
	struct dirent **entries = NULL;
	char path[2 * PATH_MAX], file[3 * PATH_MAX];
	snprintf(path, sizeof path, "%s/scenarios", folder);
	int count = scandir(path, &entries, is_scenario, alphasort);
	for (int i = 0; i < count; i++) {
		snprintf(file, sizeof file, "%s/%s", path, entries[i]->d_name);
		show(file, entries[i]->d_name, data);
		free(entries[i]);
	}
	free(entries);
	return count > 0;
}

static void add_name(const char *path, const char *name, void *names)
{
	(void)path;
	ll_strbuf_addf(names, "%s, ", name);
}

/* The first line of a scenario is a comment that says what the scenario is. */
static void print_scenario(const char *path, const char *name, void *data)
{
	(void)data;
	char line[200] = "";
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	if (file && !fgets(line, sizeof line, file))
		line[0] = '\0';
	line[strcspn(line, "\n")] = '\0';
	printf("%-16s %s\n", name, line + strspn(line, "# "));
}

int ll_sim_print_scenarios(struct ll_err *err)
{
	char folder[PATH_MAX];
	int rc = find_simulator(folder, err);
	if (rc == 0 && !for_each_scenario(folder, print_scenario, NULL))
		rc = ll_err_set(err, -ENODEV, "--sim=list: no scenarios in %s/scenarios", folder);
	return rc;
}

static bool is_readable_file(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 && !S_ISDIR(st.st_mode) && access(path, R_OK) == 0;
}

/* If scenario has no slash and is not a file, it names a scenario of the simulator. */
static int find_scenario(const char *folder, const char *scenario, char *ret_path, struct ll_err *err)
{
	if (is_readable_file(scenario) && realpath(scenario, ret_path))
		return 0;
	int why = access(scenario, R_OK) == 0 ? EISDIR : errno;
	if (!strchr(scenario, '/')) {
		char path[2 * PATH_MAX];
		snprintf(path, sizeof path, "%s/scenarios/%s", folder, scenario);
		if (is_readable_file(path) && realpath(path, ret_path))
			return 0;
	}
	LL_SCOPE_STRBUF struct ll_strbuf names = LL_STRBUF_INIT;
	ll_err_set(err, -EINVAL, "--sim: scenario '%.200s': %s", scenario, strerror(why));
	if (for_each_scenario(folder, add_name, &names))
		ll_err_hint(err, "name a file, or one of %.*s", (int)strlen(names.buf) - 2, names.buf);
	return -EINVAL;
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

/* Puts the library that answers as the kernel driver last into LD_PRELOAD. *ret_changed: it was not there before. A
 * path with a blank or a colon cannot be there; programs then have no channel groups. */
static int preload_kernel(const char *folder, bool *ret_changed, struct ll_err *err)
{
	const char *old = getenv("LD_PRELOAD");
	LL_SCOPE_FREE char *path = NULL;
	LL_SCOPE_FREE char *list = NULL;
	if (asprintf(&path, "%s/" LL_SIM_KERNEL_LIBRARY, folder) < 0)
		path = NULL;
	*ret_changed = path && access(path, R_OK) == 0 && !strpbrk(path, ": ") && !(old && strstr(old, path));
	if (path && !*ret_changed)
		return 0;
	if (!path || asprintf(&list, "%s%s%s", old && *old ? old : "", old && *old ? ":" : "", path) < 0) {
		list = NULL;
		return ll_err_set(err, -ENOMEM, "--sim: out of memory");
	}
	return setenv("LD_PRELOAD", list, 1) < 0
		   ? ll_err_set(err, -errno, "--sim: %s: %s", "LD_PRELOAD", strerror(errno))
		   : 0;
}

void ll_sim_leave_kernel(void)
{
	static const char separators[] = ": ";
	LL_SCOPE_STRBUF struct ll_strbuf rest = LL_STRBUF_INIT;
	const char *word = getenv("LD_PRELOAD");
	for (size_t length; word && *(word += strspn(word, separators)); word += length) {
		length = strcspn(word, separators);
		if (!memmem(word, length, "/" LL_SIM_KERNEL_LIBRARY, strlen("/" LL_SIM_KERNEL_LIBRARY)))
			ll_strbuf_addf(&rest, "%s%.*s", rest.length ? ":" : "", (int)length, word);
	}
	if (rest.length)
		setenv("LD_PRELOAD", rest.buf, 1);
	else
		unsetenv("LD_PRELOAD");
}

void ll_sim_add_advice(struct ll_strbuf *text, const char *advice)
{
	char nothing[1];
	size_t size = ll_advice_copy(nothing, sizeof nothing, advice) + 1;
	LL_SCOPE_FREE char *copy = malloc(size);
	if (!copy) {
		text->failed = true;
		return;
	}
	ll_advice_copy(copy, size, advice);
	ll_strbuf_adds(text, copy);
}

void ll_sim_print_advice(const char *advice)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_sim_add_advice(&text, advice);
	fputs(text.buf, stdout);
}

/* The option as the user wrote it, for the commands that this program and its children print. */
static int set_option(const char *scenario, struct ll_err *err)
{
	LL_SCOPE_FREE char *option = NULL;
	if (asprintf(&option, "--sim%s%s", *scenario ? "=" : "", scenario) < 0) {
		option = NULL;
		return ll_err_set(err, -ENOMEM, "--sim: out of memory");
	}
	return setenv(LL_SIM_VARIABLE, option, 1) < 0
		   ? ll_err_set(err, -errno, "--sim: " LL_SIM_VARIABLE ": %s", strerror(errno))
		   : 0;
}

int ll_sim_enter(const char *scenario, char **argv, struct ll_err *err)
{
	char folder[PATH_MAX];
	char file[PATH_MAX];
	bool changed = false, is_preloaded_now = false;
	int rc = find_simulator(folder, err);
	if (rc == 0)
		rc = set_option(scenario, err);
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
	if (rc == 0)
		rc = preload_kernel(folder, &is_preloaded_now, err);
	is_entered = rc == 0;
	if (rc < 0 || (!changed && !is_preloaded_now))
		return rc;
	execv("/proc/self/exe", argv);
	return ll_err_set(err, -errno, "--sim: run loadline again: %s", strerror(errno));
}
