#include "mps/mps.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"

/* ---- place ---- */

#define NVIDIA_LOG "/var/log/nvidia-mps"

static const char program_name[] = "nvidia-cuda-mps-control";
/* Folders in which drivers put the program, for users whose PATH lacks some of them. */
static const char usual_folders[] =
    "/usr/bin:/usr/sbin:/usr/local/bin:/usr/local/nvidia/bin:/run/current-system/sw/bin";

static int put_path(char ret_path[LL_MPS_PATH_SIZE], const char *parent, const char *name, struct ll_err *err)
{
	int n = snprintf(ret_path, LL_MPS_PATH_SIZE, "%s%s", parent, name);
	if (n < 0 || n >= LL_MPS_PATH_SIZE)
		return ll_err_set(err, -ENAMETOOLONG, "MPS: '%.100s%s' is too long", parent, name);
	return 0;
}

static int check_pipe(const char *pipe, struct ll_err *err)
{
	if (*pipe != '/') {
		ll_err_set(err, -EINVAL, "MPS: pipe directory '%.100s': is not an absolute path", pipe);
		return ll_err_hint(err, "set CUDA_MPS_PIPE_DIRECTORY to an absolute path, or unset it");
	}
	if (strlen(pipe) > LL_MPS_PIPE_MAX) {
		ll_err_set(err, -ENAMETOOLONG, "MPS: pipe directory %.120s: longer than %d letters", pipe,
			   LL_MPS_PIPE_MAX);
		return ll_err_hint(err, "its sockets would not fit: set CUDA_MPS_PIPE_DIRECTORY to a shorter one");
	}
	return 0;
}

static bool find_in(const char *folders, char ret_path[LL_MPS_PATH_SIZE])
{
	while (folders && *folders) {
		size_t length = strcspn(folders, ":");
		int n = snprintf(ret_path, LL_MPS_PATH_SIZE, "%.*s/%s", (int)length, folders, program_name);
		if (length && n < LL_MPS_PATH_SIZE && access(ret_path, X_OK) == 0)
			return true;
		folders += length + (folders[length] == ':');
	}
	ret_path[0] = '\0';
	return false;
}

/* With the simulated driver only the simulated program is used: the real one would start a real daemon. */
static void find_program(bool is_simulated, char ret_path[LL_MPS_PATH_SIZE])
{
	if (is_simulated)
		find_in(getenv("LD_LIBRARY_PATH"), ret_path);
	else if (!find_in(getenv("PATH"), ret_path))
		find_in(usual_folders, ret_path);
}

static int check_folder(const char *path, struct ll_err *err)
{
	struct stat st;
	if (lstat(path, &st))
		return ll_err_set(err, -errno, "MPS: %.200s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode))
		return ll_err_set(err, -EPERM, "MPS: %.200s: is not a folder", path);
	if (st.st_uid != geteuid()) {
		ll_err_set(err, -EPERM, "MPS: %.160s: belongs to user %lu, not to you (%lu)", path,
			   (unsigned long)st.st_uid, (unsigned long)geteuid());
		return ll_err_hint(err, "set CUDA_MPS_PIPE_DIRECTORY to a folder of your own");
	}
	/* Sticky folders are refused too: a user who may make files here could pose as the daemon. */
	if (st.st_mode & (S_IWGRP | S_IWOTH)) {
		ll_err_set(err, -EPERM, "MPS: %.160s: others may write it (mode %04o)", path,
			   (unsigned)(st.st_mode & 07777));
		return ll_err_hint(err, "chmod go-w %.150s", path);
	}
	return 0;
}

/* Anybody may make a folder in /tmp. If another user has made this one, that user can replace all that is in it. */
static int check_own(const char *path, struct ll_err *err)
{
	return access(path, F_OK) && errno == ENOENT ? 0 : check_folder(path, err);
}

int ll_mps_state_folder(const char *sim_folder, char ret_folder[LL_MPS_PATH_SIZE], struct ll_err *err)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char own[40];
	if (sim_folder && *sim_folder)
		return put_path(ret_folder, sim_folder, "/mps", err);
	if (geteuid() == 0 && (access("/run/loadline", W_OK) == 0 || access("/run", W_OK) == 0))
		return put_path(ret_folder, "/run/loadline/mps", "", err);
	if (runtime && *runtime == '/')
		return put_path(ret_folder, runtime, "/loadline/mps", err);
	snprintf(own, sizeof own, "/tmp/loadline-%lu", (unsigned long)geteuid());
	int rc = check_own(own, err);
	return rc ? rc : put_path(ret_folder, own, "/mps", err);
}

/* FOLDER/pipe and FOLDER/log. */
static int put_both(struct ll_mps_place *place, const char *folder, struct ll_err *err)
{
	int rc = put_path(place->pipe, folder, "/pipe", err);
	return rc ? rc : put_path(place->log, folder, "/log", err);
}

static int choose_default(const char *sim_folder, struct ll_mps_place *place, struct ll_err *err)
{
	char folder[LL_MPS_PATH_SIZE];
	bool is_simulated = sim_folder && *sim_folder;
	int rc;
	if (geteuid() == 0 && !is_simulated) {
		rc = put_path(place->pipe, LL_MPS_NVIDIA_PIPE, "", err);
		return rc ? rc : put_path(place->log, NVIDIA_LOG, "", err);
	}
	rc = ll_mps_state_folder(sim_folder, folder, err);
	return rc ? rc : put_both(place, folder, err);
}

int ll_mps_place_find(const char *sim_folder, struct ll_mps_place *ret_place, struct ll_err *err)
{
	const char *pipe = getenv(LL_MPS_PIPE_VARIABLE);
	const char *log = getenv(LL_MPS_LOG_VARIABLE);
	struct ll_mps_place place = {.is_named = pipe && *pipe};
	int rc = choose_default(sim_folder, &place, err);
	if (!rc && place.is_named)
		rc = put_path(place.pipe, pipe, "", err);
	if (!rc && log && *log)
		rc = put_path(place.log, log, "", err);
	/* A pipe folder of the user's own gets a log folder beside it, not NVIDIA's: two daemons must not share a log
	 * folder. */
	else if (!rc && place.is_named && strcmp(place.pipe, LL_MPS_NVIDIA_PIPE) != 0)
		rc = put_path(place.log, pipe, "/log", err);
	if (!rc)
		rc = check_pipe(place.pipe, err);
	if (rc)
		return rc;
	find_program(sim_folder && *sim_folder, place.program);
	*ret_place = place;
	return 0;
}

int ll_mps_place_at(const char *sim_folder, const char *folder, struct ll_mps_place *ret_place, struct ll_err *err)
{
	struct ll_mps_place place = {.is_named = true};
	int rc = put_both(&place, folder, err);
	if (!rc)
		rc = check_pipe(place.pipe, err);
	if (rc)
		return rc;
	find_program(sim_folder && *sim_folder, place.program);
	*ret_place = place;
	return 0;
}

static int make_folder(const char *path, unsigned mode, struct ll_err *err)
{
	/* The socket of the system's loadlined is in it too. */
	if (mkdir(path, strcmp(path, "/run/loadline") == 0 ? 0755 : mode) == 0 || errno == EEXIST)
		return 0;
	ll_err_set(err, -errno, "MPS: make %.200s: %s", path, strerror(errno));
	return ll_err_hint(err, "set XDG_RUNTIME_DIR or CUDA_MPS_PIPE_DIRECTORY to a folder of your own");
}

/* Existing folders are not changed. */
int ll_mps_folder_make(const char *path, unsigned mode, struct ll_err *err)
{
	char copy[LL_MPS_PATH_SIZE];
	int n = snprintf(copy, sizeof copy, "%s", path);
	if (n < 0 || n >= (int)sizeof copy)
		return ll_err_set(err, -ENAMETOOLONG, "MPS: '%.200s' is too long", path);
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		int rc = make_folder(copy, mode, err);
		if (rc)
			return rc;
		*slash = '/';
	}
	int rc = make_folder(copy, mode, err);
	return rc ? rc : check_folder(copy, err);
}

int ll_mps_place_make(const struct ll_mps_place *place, struct ll_err *err)
{
	unsigned mode = strcmp(place->pipe, LL_MPS_NVIDIA_PIPE) == 0 ? 0755 : 0700;
	int rc = ll_mps_folder_make(place->pipe, mode, err);
	return rc ? rc : ll_mps_folder_make(place->log, mode, err);
}

int ll_mps_place_need_program(const struct ll_mps_place *place, struct ll_err *err)
{
	if (*place->program)
		return 0;
	ll_err_set(err, -ENOENT, "MPS: no %s on this machine", program_name);
	return ll_err_hint(err, "install the driver's compute utilities (nvidia-compute-utils, "
				"nvidia-driver-cuda); in a container, ask for the driver capability 'compute'");
}

/* ---- the lock of a folder ---- */

enum { POLL_MS = 5 };

int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err)
{
	LL_SCOPE_CLOSE int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return ll_err_set(err, -errno, "MPS: %.200s: %s", folder, strerror(errno));
	while (flock(fd, LOCK_EX | LOCK_NB)) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return ll_err_set(err, -errno, "MPS: lock %.200s: %s", folder, strerror(errno));
		if (ll_now_ns() >= deadline_ns) {
			ll_err_set(err, -EAGAIN, "MPS: another loadline is at work at %.200s", folder);
			return ll_err_hint(err, "try again when it is done");
		}
		ll_sleep_until_ns(ll_now_ns() + POLL_MS * LL_NS_PER_MS);
	}
	*ret_fd = fd;
	fd = -1;
	return 0;
}

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

/* ---- the control program ---- */

enum { OWN_VARIABLES = 4 };

static bool is_left_out(const char *variable)
{
	static const char *const names[] = {LL_MPS_PIPE_VARIABLE,
					    LL_MPS_LOG_VARIABLE,
					    LL_MPS_PERCENT_VARIABLE,
					    LL_MPS_MEMORY_VARIABLE,
					    LL_MPS_PROTOCOL_VARIABLE,
					    "CUDA_VISIBLE_DEVICES",
					    "LD_PRELOAD",
					    "LOADLINE_RUN"};
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		size_t length = strlen(names[i]);
		if (strncmp(variable, names[i], length) == 0 && variable[length] == '=')
			return true;
	}
	return false;
}

/* Returns the list for free(3), NULL-ended: the texts of `own`, then the caller's. NULL: no memory. */
static const char **list_variables(const struct ll_strbuf own[OWN_VARIABLES])
{
	size_t count = 0, others = 0;
	while (environ && environ[others])
		others++;
	const char **list = calloc(others + OWN_VARIABLES + 1, sizeof *list);
	for (size_t i = 0; list && i < OWN_VARIABLES; i++) {
		if (own[i].length)
			list[count++] = own[i].buf;
	}
	for (size_t i = 0; list && i < others; i++) {
		if (!is_left_out(environ[i]))
			list[count++] = environ[i];
	}
	return list;
}

int ll_mps_program_run(const struct ll_mps_place *place, const char *input, const char *visible, uint64_t deadline_ns,
		       struct ll_strbuf *output, int *ret_status, struct ll_err *err)
{
	/* loadline speaks protocol 2. Drivers that also know protocol 3 follow this variable; older ones ignore it. */
	const char *const values[OWN_VARIABLES][2] = {{LL_MPS_PIPE_VARIABLE, place->pipe},
						      {LL_MPS_LOG_VARIABLE, place->log},
						      {LL_MPS_PROTOCOL_VARIABLE, "2"},
						      {"CUDA_VISIBLE_DEVICES", visible}};
	const char *words[] = {place->program, input ? NULL : "-d", NULL};
	struct ll_strbuf own[OWN_VARIABLES];
	int rc = ll_mps_place_need_program(place, err);
	if (rc)
		return rc;
	for (size_t i = 0; i < OWN_VARIABLES; i++) {
		own[i] = (struct ll_strbuf)LL_STRBUF_INIT;
		if (values[i][1])
			ll_strbuf_addf(&own[i], "%s=%s", values[i][0], values[i][1]);
		rc = own[i].failed ? -ENOMEM : rc;
	}
	LL_SCOPE_FREE const char **list = rc ? NULL : list_variables(own);
	struct ll_child_run run = {.child = {.path = place->program,
					     .words = words,
					     .environment = list,
					     .in = LL_CHILD_NULL,
					     .out = LL_CHILD_COLLECTED,
					     .err = LL_CHILD_COLLECTED,
					     .flags = LL_CHILD_MORTAL},
				   .input = input,
				   .deadline_ns = deadline_ns,
				   .leaves_daemon = !input};
	rc = list ? ll_child_run(&run, output, ret_status, err) : ll_err_set(err, -ENOMEM, "%s", strerror(ENOMEM));
	for (size_t i = 0; i < OWN_VARIABLES; i++)
		ll_strbuf_fini(&own[i]);
	if (rc == -ETIMEDOUT)
		return ll_err_set(err, rc, "MPS: %.200s: no answer in time", place->program);
	return rc ? ll_err_wrap(err, "MPS: start %.200s", place->program) : 0;
}
