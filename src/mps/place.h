/*
 * place.h - where an MPS daemon is: the folder of its pipes, the folder of its logs, its program.
 *
 * A client finds its daemon by the pipe folder alone. If no daemon listens in a folder, the driver silently uses
 * neither MPS nor limits. So everything here is about one place, which is chosen in one function. doc/mps.md gives the
 * reasons for the choice.
 *
 * The driver's sockets are in the pipe folder, and a socket's path has at most 107 letters. So a folder with a path
 * longer than LL_MPS_PIPE_MAX is refused.
 */
#ifndef LOADLINE_MPS_PLACE_H
#define LOADLINE_MPS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct ll_err;

/* Where the driver looks for a daemon if CUDA_MPS_PIPE_DIRECTORY is unset. */
#define LL_MPS_NVIDIA_PIPE "/tmp/nvidia-mps"

enum { LL_MPS_PATH_SIZE = 256, LL_MPS_PIPE_MAX = 90 };

struct ll_mps_place {
	char pipe[LL_MPS_PATH_SIZE];    /* CUDA_MPS_PIPE_DIRECTORY */
	char log[LL_MPS_PATH_SIZE];     /* CUDA_MPS_LOG_DIRECTORY */
	char program[LL_MPS_PATH_SIZE]; /* nvidia-cuda-mps-control; empty where there is none */
	bool is_named;                  /* the caller's environment names the pipe folder */
};

/*
 * Gives the place of this user's daemon: CUDA_MPS_PIPE_DIRECTORY if the environment has it; else in the simulated
 * world's folder (sim_folder, from ll_driver_sim_folder); else for root NVIDIA's default, /tmp/nvidia-mps; else
 * $XDG_RUNTIME_DIR/loadline/mps, or /tmp/loadline-UID/mps. Makes nothing. -ENAMETOOLONG. A missing program is no error
 * here.
 */
int ll_mps_place_find(const char *sim_folder, struct ll_mps_place *ret_place, struct ll_err *err);

/* Gives a private place: FOLDER/pipe and FOLDER/log, for a daemon of the caller's own. Makes nothing. */
int ll_mps_place_at(const char *sim_folder, const char *folder, struct ll_mps_place *ret_place, struct ll_err *err);

/*
 * Makes both folders, and those of their parents that are missing. New folders have mode 0700; NVIDIA's own, which
 * every user's client must reach, have 0755. Existing folders keep their mode. -EPERM: a folder is somebody else's, or
 * others may write to it.
 */
int ll_mps_place_make(const struct ll_mps_place *place, struct ll_err *err);

/* Gives the folder of this user's records (record.h): the simulated world's folder, /run/loadline/mps for root, else as
 * for ll_mps_place_find. */
int ll_mps_state_folder(const char *sim_folder, char ret_folder[LL_MPS_PATH_SIZE], struct ll_err *err);

/* Makes a folder with its parents, and checks it as ll_mps_place_make does. */
int ll_mps_folder_make(const char *path, unsigned mode, struct ll_err *err);

/* Returns -ENOENT, with a hint, if the machine has no nvidia-cuda-mps-control. */
int ll_mps_place_need_program(const struct ll_mps_place *place, struct ll_err *err);

/* Takes an exclusive lock on the folder itself, so that no file is left behind. It is free when *ret_fd is closed or
 * its holder has ended. -EAGAIN: another process held it until deadline_ns (ll_now_ns). */
int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err);

#endif
