/*
 * environment.h - what makes a program a governed one: its environment.
 */
#ifndef LOADLINE_CLI_RUN_ENVIRONMENT_H
#define LOADLINE_CLI_RUN_ENVIRONMENT_H

#include <limits.h>

#include "ledger/run_settings.h"

struct ll_err;

/* The library that goes into governed programs: LOADLINE_SHIM, or the one that came with loadline. -ENOENT, -EINVAL. */
int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err);

struct ll_run_environment {
	const struct ll_run_settings *settings;
	const char *shim;    /* NULL: nothing of ours is preloaded */
	const char *visible; /* what CUDA_VISIBLE_DEVICES becomes; NULL: as in this process's environment */
	/* of a client of MPS; NULL: as in this process's environment */
	const char *mps_pipe, *mps_log, *mps_percent;
};

/*
 * This process's environment with LOADLINE_RUN, CUDA_VISIBLE_DEVICES, those of MPS, and the shim last in LD_PRELOAD.
 * NULL-ended; for ll_run_environment_free.
 */
int ll_run_environment_make(const struct ll_run_environment *wish, char ***ret_environment, struct ll_err *err);
void ll_run_environment_free(char **environment); /* NULL is fine */

#endif
