/*
 * environment.h - makes the environment of a governed program.
 */
#ifndef LOADLINE_CLI_RUN_ENVIRONMENT_H
#define LOADLINE_CLI_RUN_ENVIRONMENT_H

#include <limits.h>

#include "protocol/run_settings.h"

struct ll_err;

/* Finds the library that is preloaded into governed programs: the file that LOADLINE_SHIM names, or the library
 * installed with loadline. -ENOENT, -EINVAL. */
int ll_run_find_shim(char ret_path[PATH_MAX], struct ll_err *err);

struct ll_run_environment {
	const struct ll_run_settings *settings;
	const char *shim;    /* path of the library; NULL: none is preloaded */
	const char *visible; /* the new value of CUDA_VISIBLE_DEVICES; NULL: as in this process's environment */
	const char *order;   /* of CUDA_DEVICE_ORDER; NULL: as in this process's environment */
	/* the values for a client of MPS; NULL: as in this process's environment */
	const char *mps_pipe, *mps_log, *mps_percent;
};

/*
 * Makes a copy of this process's environment with LOADLINE_RUN, CUDA_VISIBLE_DEVICES, CUDA_DEVICE_ORDER, the
 * variables of MPS, and the library last in LD_PRELOAD. *ret_environment is NULL-ended; the caller frees it by
 * ll_run_environment_free.
 */
int ll_run_environment_make(const struct ll_run_environment *wish, char ***ret_environment, struct ll_err *err);
void ll_run_environment_free(char **environment); /* NULL is fine */

#endif
