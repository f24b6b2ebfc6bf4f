/*
 * place.h - where an MPS daemon is: the folder of its pipes, the folder of its logs, its program.
 *
 * A client finds its daemon by the pipe folder alone, and a folder in which no daemon listens means to the driver: no
 * MPS, no limits, and not a word. So everything here is about one place, and it is chosen in one place: doc/mps.md
 * says why as it is.
 *
 * The driver's sockets are in the pipe folder, and a socket's path has 107 letters at most: a folder with a longer path
 * than LL_MPS_PIPE_MAX is refused.
 */
#ifndef LOADLINE_MPS_PLACE_H
#define LOADLINE_MPS_PLACE_H

#include <stdbool.h>
#include <stdint.h>

struct ll_err;

enum { LL_MPS_PATH_SIZE = 256, LL_MPS_PIPE_MAX = 90 };

struct ll_mps_place {
	char pipe[LL_MPS_PATH_SIZE];    /* CUDA_MPS_PIPE_DIRECTORY */
	char log[LL_MPS_PATH_SIZE];     /* CUDA_MPS_LOG_DIRECTORY */
	char program[LL_MPS_PATH_SIZE]; /* nvidia-cuda-mps-control; empty where there is none */
	bool is_named;                  /* the caller's environment names the pipe folder */
};

/*
 * The place of this user's daemon: CUDA_MPS_PIPE_DIRECTORY where the environment has it; else the simulated world's
 * folder (sim_folder, from ll_driver_sim_folder); else for root NVIDIA's own default, /tmp/nvidia-mps; else
 * $XDG_RUNTIME_DIR/loadline/mps, or /tmp/loadline-UID/mps. Nothing is made. -ENAMETOOLONG; a missing program is no
 * error here.
 */
int ll_mps_place_find(const char *sim_folder, struct ll_mps_place *ret_place, struct ll_err *err);

/* A private place: FOLDER/pipe and FOLDER/log, for a daemon of the caller's own. Nothing is made. */
int ll_mps_place_at(const char *sim_folder, const char *folder, struct ll_mps_place *ret_place, struct ll_err *err);

/*
 * Makes both folders, with their parents as far as they are ours, if they are not there. What is made is 0700, but
 * NVIDIA's own, which every user's client has to reach, are 0755. What is there keeps its mode. -EPERM: a folder of
 * somebody else, or one that others may write.
 */
int ll_mps_place_make(const struct ll_mps_place *place, struct ll_err *err);

/* Where this user's records (record.h) are: the simulated world's folder, /run/loadline/mps for root, else as above. */
int ll_mps_state_folder(const char *sim_folder, char ret_folder[LL_MPS_PATH_SIZE], struct ll_err *err);

/* Makes a folder with its parents, checks it as ll_mps_place_make does. */
int ll_mps_folder_make(const char *path, unsigned mode, struct ll_err *err);

/* -ENOENT with a hint where the machine has no nvidia-cuda-mps-control. */
int ll_mps_place_need_program(const struct ll_mps_place *place, struct ll_err *err);

/* Takes an exclusive lock on the folder itself, so that no file is left behind. It is free when *ret_fd is closed or
 * its holder has ended. -EAGAIN: another process held it until deadline_ns (ll_now_ns). */
int ll_mps_lock(const char *folder, uint64_t deadline_ns, int *ret_fd, struct ll_err *err);

#endif
