#include "mps/place.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "mps/environment.h"

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
