/*
 * environment.h - the variables by which a program becomes a client: checking those of the caller, and making those of
 * a program that we start.
 */
#ifndef LOADLINE_MPS_ENVIRONMENT_H
#define LOADLINE_MPS_ENVIRONMENT_H

#include <stddef.h>

#include "mps/place.h"

struct ll_err;

#define LL_MPS_PIPE_VARIABLE "CUDA_MPS_PIPE_DIRECTORY"
#define LL_MPS_LOG_VARIABLE "CUDA_MPS_LOG_DIRECTORY"
#define LL_MPS_PERCENT_VARIABLE "CUDA_MPS_ACTIVE_THREAD_PERCENTAGE"
#define LL_MPS_MEMORY_VARIABLE "CUDA_MPS_PINNED_DEVICE_MEM_LIMIT"
#define LL_MPS_PROTOCOL_VARIABLE "CUDA_MPS_PROTOCOL_VERSION"

/*
 * Checks that the caller's own variables do what they seem to do. -EINVAL for a percentage that is not above 0 and at
 * most 100, because the driver takes it for 100. -EINVAL for a memory limit that cannot be read, or that names a card
 * which the client cannot see, because the driver then drops every memory limit and says nothing. uuids: the cards that
 * the client will see, in its order.
 */
int ll_mps_environment_check(const char *const *uuids, size_t count, struct ll_err *err);

/* The same for a given text of the memory limit: "0=8G,GPU-8f6a…=512M". */
int ll_mps_memory_text_check(const char *text, const char *const *uuids, size_t count, struct ll_err *err);

enum { LL_MPS_OWN_VARIABLES = 5 };

struct ll_mps_variables {
	char *own[LL_MPS_OWN_VARIABLES];
	char **list; /* NULL-ended: ours, then the caller's */
};

/*
 * Makes the caller's environment with this place in it, and without the variables that would govern, limit or preload
 * into the program: the caller's limits must not hold for a daemon that serves all. visible: the value of
 * CUDA_VISIBLE_DEVICES; NULL: it is left out. Free with ll_mps_variables_fini. -ENOMEM.
 */
int ll_mps_variables_make(const struct ll_mps_place *place, const char *visible, struct ll_mps_variables *ret_variables,
			  struct ll_err *err);
void ll_mps_variables_fini(struct ll_mps_variables *variables);

#endif
