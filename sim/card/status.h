/*
 * status.h - names and sentences of the status codes of both libraries.
 */
#ifndef LOADLINE_SIM_CARD_STATUS_H
#define LOADLINE_SIM_CARD_STATUS_H

#include <stdint.h>

#include "abi/cuda.h"
#include "abi/nvml.h"

struct ll_err;

/* Return a status's name ("CUDA_ERROR_OUT_OF_MEMORY") and its text ("out of memory"). NULL: there is no such status. */
const char *sim_cuda_status_name(ll_cu_result status);
const char *sim_cuda_status_text(ll_cu_result status);

/* Returns the text of a status of NVML ("GPU is lost"). Never NULL. */
const char *sim_nvml_status_text(ll_nvml_result status);

/* Parses a status: a number, or a name of either library. -EINVAL: it is none. */
int sim_status_parse(const char *text, uint32_t *ret_status, struct ll_err *err);

#endif
