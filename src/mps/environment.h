/*
 * environment.h - the variables by which a program becomes a client, and what in a caller's environment is in the way.
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
 * Whether the caller's own variables would do what they seem to. Refused (-EINVAL) is
 * a percentage that is not above 0 and at most 100, for the driver takes it as 100, and a memory limit that cannot be
 * read or that names a card which a client cannot see: the driver then drops every memory limit, and says nothing.
 * uuids: the cards that the client will see, in its order.
 */
int ll_mps_environment_check(const char *const *uuids, size_t count, struct ll_err *err);

/* The same for a given text of the memory limit: "0=8G,GPU-8f6a…=512M". */
int ll_mps_memory_text_check(const char *text, const char *const *uuids, size_t count, struct ll_err *err);

#endif
