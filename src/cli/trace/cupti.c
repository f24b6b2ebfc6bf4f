#include "cli/trace/cupti.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "base/child.h"
#include "base/scope.h"
#include "cli/common/env_sim.h"

static const char *const files[] = {"libcupti.so.13",   "libcupti.so.12", "libcupti.so.11",
				    "libcupti.so.11.*", "libcupti.so",    NULL};

/* Takes the last match of a pattern, which is the newest of several versions. */
static bool try_pattern(const char *pattern, char ret_path[PATH_MAX])
{
	glob_t found;
	bool is_found = glob(pattern, 0, NULL, &found) == 0 && found.gl_pathc > 0;
	if (is_found)
		is_found = access(found.gl_pathv[found.gl_pathc - 1], R_OK) == 0 &&
			   realpath(found.gl_pathv[found.gl_pathc - 1], ret_path);
	globfree(&found);
	return is_found;
}

static bool try_folder(const char *folder, char ret_path[PATH_MAX])
{
	for (const char *const *file = files; *file; file++) {
		char pattern[PATH_MAX];
		int n = snprintf(pattern, sizeof pattern, "%s/%s", folder, *file);
		if (n > 0 && (size_t)n < sizeof pattern && try_pattern(pattern, ret_path))
			return true;
	}
	return false;
}

/* Searches folders below folder, which may be a pattern. */
static bool try_below(const char *folder, const char *const *below, char ret_path[PATH_MAX])
{
	for (; *below; below++) {
		char path[PATH_MAX];
		int n = snprintf(path, sizeof path, "%s/%s", folder, *below);
		if (n > 0 && (size_t)n < sizeof path && try_folder(path, ret_path))
			return true;
	}
	return false;
}

static bool try_list(const char *list, char ret_path[PATH_MAX])
{
	LL_SCOPE_FREE char *copy = list ? strdup(list) : NULL;
	char *rest = copy;
	for (char *folder; copy && (folder = strsep(&rest, ":"));) {
		if (*folder && try_folder(folder, ret_path))
			return true;
	}
	return false;
}

static bool try_toolkits(char ret_path[PATH_MAX])
{
	static const char *const below[] = {"extras/CUPTI/lib64", "targets/*/lib", "lib64", NULL};
	const char *named[] = {getenv("CUDA_HOME"), getenv("CUDA_PATH"), "/usr/local/cuda", "/usr/local/cuda-*",
			       "/opt/cuda"};
	for (size_t i = 0; i < sizeof named / sizeof *named; i++) {
		if (named[i] && *named[i] && try_below(named[i], below, ret_path))
			return true;
	}
	return false;
}

/* PREFIX/bin/python has its packages in PREFIX/lib/pythonX.Y/site-packages. In a virtual environment PREFIX is that of
 * the link, otherwise that of the system. */
static bool try_python(const char *interpreter, char ret_path[PATH_MAX])
{
	static const char *const below[] = {"../lib/python3*/site-packages/nvidia/cuda_cupti/lib",
					    "../lib/python3*/site-packages/nvidia/cu13/lib",
					    "../lib/python3*/dist-packages/nvidia/cuda_cupti/lib",
					    "../lib/python3*/dist-packages/nvidia/cu13/lib",
					    "../local/lib/python3*/dist-packages/nvidia/cuda_cupti/lib",
					    "../local/lib/python3*/dist-packages/nvidia/cu13/lib",
					    NULL};
	char folder[PATH_MAX];
	const char *slash = interpreter ? strrchr(interpreter, '/') : NULL;
	if (!slash)
		return false;
	snprintf(folder, sizeof folder, "%.*s", (int)(slash - interpreter), interpreter);
	return try_below(*folder ? folder : "/", below, ret_path);
}

int ll_trace_find_cupti(const char *interpreter, char ret_path[PATH_MAX])
{
	static const char *const system_folders[] = {"/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu",
						     "/usr/lib64", "/usr/lib", NULL};
	const char *named = getenv("LOADLINE_CUPTI");
	if (named && *named)
		return access(named, R_OK) == 0 && realpath(named, ret_path) ? 0 : -ENOENT;
	if (ll_sim_is_entered()) /* a toolkit's is made for the real driver */
		return -ENOENT;
	if (try_list(getenv("LD_LIBRARY_PATH"), ret_path) || try_toolkits(ret_path) ||
	    try_python(interpreter, ret_path))
		return 0;
	for (const char *const *folder = system_folders; *folder; folder++) {
		if (try_folder(*folder, ret_path))
			return 0;
	}
	return -ENOENT;
}

/* Runs in the child. Returns CUPTI's API version, or 0. Output that the library leaves in stdio's buffers is lost with
 * the child. */
static uint32_t ask_version(const char *path)
{
	uint32_t version = 0;
	void *library = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
	void *address = library ? dlsym(library, "cuptiGetVersion") : NULL;
	ll_cupti_result (*get_version)(uint32_t * ret_version) = NULL;
	memcpy(&get_version, &address, sizeof address);
	return get_version && get_version(&version) == LL_CUPTI_SUCCESS ? version : 0;
}

const char *ll_trace_cupti_fault(const char *path, char *text, int size)
{
	int ends[2];
	uint32_t version = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return NULL; /* the file could not be tried here; the traced program will try it */
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0) {
		int tell_fd = ll_child_keep_only(ends[1]);
		version = tell_fd < 0 ? 0 : ask_version(path);
		ssize_t n = write(tell_fd, &version, sizeof version);
		_exit(n == (ssize_t)sizeof version ? 0 : 1);
	}
	close(ends[1]);
	ssize_t n = pid > 0 ? read(ends[0], &version, sizeof version) : 0;
	close(ends[0]);
	if (pid > 0)
		waitpid(pid, NULL, 0);
	if (pid < 0)
		return NULL;
	if (n != (ssize_t)sizeof version || !version) {
		snprintf(text, (size_t)size, "%s cannot be loaded", path);
		return text;
	}
	if (ll_cupti_is_known(version))
		return NULL;
	snprintf(text, (size_t)size, "%s has API version %u, which is not known", path, version);
	return text;
}
