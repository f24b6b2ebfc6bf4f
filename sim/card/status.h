/*
 * status.h - names and sentences of the status codes of both libraries.
 */
#ifndef LOADLINE_SIM_CARD_STATUS_H
#define LOADLINE_SIM_CARD_STATUS_H

#include <stdint.h>

#include "abi/cuda.h"
#include "abi/nvml.h"

struct ll_err;

/* "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"; NULL for a number that is none. */
const char *sim_cuda_status_name(ll_cu_result status);
const char *sim_cuda_status_text(ll_cu_result status);

/* "GPU is lost"; never NULL. */
const char *sim_nvml_status_text(ll_nvml_result status);

/* A number or a name of either library. -EINVAL. */
int sim_status_parse(const char *text, uint32_t *ret_status, struct ll_err *err);

#endif
