#include "trace/command/internal.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "abi/cupti.h"
#include "base/child.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/common/env_sim.h"
#include "cli/run/run.h"
#include "trace/trace.h"

/* ---- cupti ---- */

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

/* ---- sample ---- */

enum { STAT_SIZE = 512, COST_SHARE = 50 };

#define LIST_EVERY_NS (100 * LL_NS_PER_MS)

void ll_sampler_fini(struct ll_sampler *sampler)
{
	free(sampler->tree);
	ll_spans_fini(&sampler->host);
	ll_spans_fini(&sampler->io);
}

/* The file's format is "pid (name) state parent", and the name may have any character, even ')'. */
static bool read_stat(const char *path, char *ret_state, pid_t *ret_parent, bool *ret_is_ours)
{
	char text[STAT_SIZE];
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (length <= 0)
		return false;
	text[length] = '\0';
	const char *name = strchr(text, '('), *end = strrchr(text, ')');
	if (!name || !end || strlen(end) < 5)
		return false;
	*ret_state = end[2];
	*ret_parent = (pid_t)strtol(end + 4, NULL, 10);
	*ret_is_ours = strncmp(name, "(ll-", 4) == 0; /* threads of loadline's own in a program */
	return true;
}

static bool is_in_tree(const struct ll_sampler *sampler, pid_t pid)
{
	for (size_t i = 0; i < sampler->count; i++) {
		if (sampler->tree[i] == pid)
			return true;
	}
	return false;
}

static void add_to_tree(struct ll_sampler *sampler, pid_t pid)
{
	enum { FIRST_ROOM = 64 };
	if (sampler->count == sampler->room) {
		size_t room = sampler->room ? 2 * sampler->room : FIRST_ROOM;
		pid_t *tree = realloc(sampler->tree, room * sizeof *tree);
		if (!tree)
			return;
		sampler->tree = tree;
		sampler->room = room;
	}
	sampler->tree[sampler->count++] = pid;
}

/* Lists the command's processes. Children mostly have higher ids than their parents, and /proc is in the order of ids,
 * so one pass is enough. Orphans become children of this process. */
static void list_tree(struct ll_sampler *sampler)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	pid_t own = getpid();
	sampler->count = 0;
	add_to_tree(sampler, sampler->root);
	while (proc && (entry = readdir(proc))) {
		char path[64], state;
		pid_t parent, pid = (pid_t)strtol(entry->d_name, NULL, 10);
		bool is_ours;
		if (pid <= 0 || pid == sampler->root)
			continue;
		snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
		if (read_stat(path, &state, &parent, &is_ours) && (parent == own || is_in_tree(sampler, parent)))
			add_to_tree(sampler, pid);
	}
	if (proc)
		closedir(proc);
}

/* Returns the most important state of a process's threads: R, then D, then any other. */
static char state_of(pid_t pid)
{
	char path[300], worst = 'S';
	snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
	DIR *tasks = opendir(path);
	struct dirent *entry;
	while (tasks && worst != 'R' && (entry = readdir(tasks))) {
		char state;
		pid_t parent;
		bool is_ours;
		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof path, "/proc/%d/task/%.20s/stat", (int)pid, entry->d_name);
		if (read_stat(path, &state, &parent, &is_ours) && !is_ours && (state == 'R' || state == 'D'))
			worst = state;
	}
	if (tasks)
		closedir(tasks);
	return worst;
}

/* Looks once. The result counts for the time since the last look. */
static void look_at_threads(struct ll_sampler *sampler)
{
	uint64_t now_ns = ll_now_ns(), since_ns = sampler->looked_ns ? sampler->looked_ns : now_ns;
	uint64_t cpu_ns = ll_thread_cpu_ns();
	if (!sampler->count || now_ns - sampler->listed_ns >= LIST_EVERY_NS) {
		list_tree(sampler);
		sampler->listed_ns = now_ns;
	}
	char worst = 'S';
	for (size_t i = 0; worst != 'R' && i < sampler->count; i++) {
		char state = state_of(sampler->tree[i]);
		worst = state == 'R' || state == 'D' ? state : worst;
	}
	if (worst == 'R')
		ll_spans_add(&sampler->host, since_ns, now_ns);
	else if (worst == 'D')
		ll_spans_add(&sampler->io, since_ns, now_ns);
	sampler->looked_ns = now_ns;
	uint64_t rest_ns = COST_SHARE * (ll_thread_cpu_ns() - cpu_ns);
	sampler->next_ns = now_ns + (rest_ns > LL_SAMPLE_EVERY_NS ? rest_ns : LL_SAMPLE_EVERY_NS);
}

bool ll_sampler_is_alive(pid_t pid)
{
	char path[64], state;
	pid_t parent;
	bool is_ours;
	snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
	return read_stat(path, &state, &parent, &is_ours) && state != 'Z' && state != 'X';
}

/* ---- launch ---- */

/* From the program loadline-trace: installed, in a build folder, and in a folder that has loadline itself. */
static const char *const places[] = {".", "../trace", "src/trace", NULL};
static const struct ll_preload_library library = {"libloadline-trace.so", "LOADLINE_TRACE_LIBRARY", places};

static const char *const events_places[] = {".", "../trace/preload", "src/trace/preload", NULL};
static const struct ll_preload_library events_library = {"libloadline-events.so", "LOADLINE_EVENTS_LIBRARY",
							 events_places};

int ll_trace_find_library(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&library, ret_path, err);
}

int ll_trace_find_events_library(char ret_path[PATH_MAX], struct ll_err *err)
{
	return ll_preload_find(&events_library, ret_path, err);
}

/* Adds the libraries to LD_PRELOAD: libloadline-trace.so after those already there, and libloadline-events.so last,
 * because libraries in front of the driver pass calls on to the next one.
 */
static int set_preload(const struct ll_trace_how *how)
{
	LL_SCOPE_FREE char *list = ll_preload_append(getenv("LD_PRELOAD"), how->library);
	LL_SCOPE_FREE char *with_events = list && *how->events ? ll_preload_append(list, how->events) : NULL;
	if (!list || (*how->events && !with_events))
		return -1;
	return setenv("LD_PRELOAD", with_events ? with_events : list, 1);
}

/* Runs in the child. */
static int set_environment(const struct ll_trace_how *how)
{
	static const char *const words[] = {"auto", "cupti", "events"};
	char most[32];
	snprintf(most, sizeof most, "%" PRIu64, how->most_events);
	if (!how->is_preloaded)
		ll_sim_leave_kernel();
	if (setenv(LL_TRACE_FOLDER, how->folder, 1) || setenv(LL_TRACE_BY, words[how->by], 1) ||
	    setenv(LL_TRACE_CUPTI, how->cupti, 1) || setenv(LL_TRACE_MOST, most, 1) ||
	    (how->is_preloaded && set_preload(how)))
		return -1;
	return how->by == LL_TRACE_BY_EVENTS ? 0 : setenv(LL_TRACE_INJECTION, how->library, 1);
}

/* Executes the command in the child. On failure the child writes exec's errno into the pipe, which closes when exec
 * succeeds. */
static void exec_command(const struct ll_trace_how *how, const char *path, char **words, const sigset_t *mask, int tell)
{
	sigprocmask(SIG_SETMASK, mask, NULL);
	if (set_environment(how) == 0)
		execvp(path, words);
	int code = errno;
	ssize_t n = write(tell, &code, sizeof code);
	(void)n;
	_exit(LL_RUN_NOT_EXECUTABLE);
}

static int start_command(const struct ll_trace_how *how, const char *path, char **words, const sigset_t *mask,
			 pid_t *ret_pid, struct ll_err *err)
{
	int ends[2], code = 0;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		exec_command(how, path, words, mask, ends[1]);
	int fork_code = errno;
	close(ends[1]);
	ssize_t n = pid > 0 ? read(ends[0], &code, sizeof code) : 0;
	close(ends[0]);
	if (pid < 0)
		return ll_err_set(err, -fork_code, "fork: %s", strerror(fork_code));
	if (n != (ssize_t)sizeof code) {
		*ret_pid = pid;
		return 0;
	}
	waitpid(pid, NULL, 0);
	ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
	if (err)
		err->status = code == ENOENT ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

/* Passes a signal on to the command. A signal from the terminal went to the whole foreground group, so the command has
 * it already. */
static void pass_on(const siginfo_t *info, pid_t pid)
{
	bool is_from_terminal = (info->si_signo == SIGINT || info->si_signo == SIGQUIT) && info->si_code == SI_KERNEL;
	if (!is_from_terminal)
		kill(pid, info->si_signo);
}

/* Waits for ended children, which include orphans of the command. Returns true if the command itself has ended. */
static bool reap_children(pid_t pid, int *ret_status)
{
	bool has_ended = false;
	int status;
	for (pid_t ended; (ended = waitpid(-1, &status, WNOHANG)) > 0;) {
		if (ended != pid)
			continue;
		has_ended = true;
		*ret_status = WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
	}
	return has_ended;
}

static void watch_command(pid_t pid, const sigset_t *signals, struct ll_sampler *sampler, int *ret_status)
{
	for (;;) {
		siginfo_t info;
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= sampler->next_ns)
			look_at_threads(sampler);
		now_ns = ll_now_ns();
		uint64_t rest_ns = sampler->next_ns > now_ns ? sampler->next_ns - now_ns : 0;
		struct timespec rest = {(time_t)(rest_ns / LL_NS_PER_S), (long)(rest_ns % LL_NS_PER_S)};
		int signal = sigtimedwait(signals, &info, &rest);
		if (signal > 0 && signal != SIGCHLD)
			pass_on(&info, pid);
		else if (reap_children(pid, ret_status)) /* after each wake-up, whatever its cause */
			return;
	}
}

int ll_trace_start_program(const struct ll_trace_how *how, const char *path, char **words, struct ll_sampler *sampler,
			   int *ret_status, struct ll_err *err)
{
	static const int passed[] = {SIGCHLD, SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
	sigset_t signals, before;
	pid_t pid = -1;
	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
		sigaddset(&signals, passed[i]);
	sigprocmask(SIG_BLOCK, &signals, &before);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	int rc = start_command(how, path, words, &before, &pid, err);
	if (!rc) {
		*sampler = (struct ll_sampler){.root = pid};
		watch_command(pid, &signals, sampler, ret_status);
	}
	sigprocmask(SIG_SETMASK, &before, NULL);
	return rc;
}
