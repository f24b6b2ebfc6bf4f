/*
 * library.h - the vendor's two libraries, opened at run time, as tables of typed function pointers.
 *
 * The fields are the rows of abi/cuda.def and abi/nvml.def that are opened:
 *
 *     cuda->cuLaunchKernel(...), nvml->nvmlDeviceGetUtilizationRates(...)
 *
 * If the library lacks a required function, opening fails. An optional function that is missing is NULL in the table,
 * and its users check for that. The tables are read-only after opening, so any thread may use them.
 *
 * The two are opened apart: NVML alone costs a few MiB of host memory, libcuda some 60 more (doc/facts.md).
 *
 * Errors: -ENODEV when the library is not there or finds no driver, with a hint; -ENOSYS naming a missing required
 * function and the driver's version; else what ll_nvml_errno and ll_cuda_errno say.
 */
#ifndef LOADLINE_DRIVER_LIBRARY_H
#define LOADLINE_DRIVER_LIBRARY_H

#include <stdbool.h>

#include "abi/cuda.h"
#include "abi/cuda_memory.h"
#include "abi/nvml.h"
#include "base/err.h"

struct ll_nvml {
	void *library;           /* from dlopen */
	char driver_version[32]; /* "580.159.03" */
#define LL_NVML_OPENED(ret, name, symbol, need, hook, params) ret(*name) params;
#include "abi/nvml.def"
};

struct ll_cuda {
	void *library;
	int version; /* of the driver API: 13000 is 13.0 */
#define LL_CUDA_OPENED(name, symbol, need, since, suffix, traced, hook, params, args) ll_cu_result(*name) params;
#include "abi/cuda.def"
};

/* Opens libnvidia-ml.so.1, fills the table, calls nvmlInit_v2. fini shuts NVML down again; it takes a zeroed table. */
int ll_nvml_init(struct ll_nvml *nvml, struct ll_err *err);
void ll_nvml_fini(struct ll_nvml *nvml);

/* Whether a library from dlopen is the simulator's. Advice about a real driver is then useless. */
bool ll_library_is_simulated(void *library);

/* Opens libcuda.so.1, fills the table and calls cuInit, which takes 0.1 s or more. Makes no context. fini zeroes the
 * table; libcuda stays mapped, because it does not survive being unloaded. */
int ll_cuda_init(struct ll_cuda *cuda, struct ll_err *err);
void ll_cuda_fini(struct ll_cuda *cuda);

/* Returns the errno of a status. 0: success. -ENODEV: no card, no driver, or the card is gone. -ENOSYS: this card or
 * driver does not support it. -EPERM. -EAGAIN: not ready, or timed out. -ENOMEM. Other statuses: -EIO. */
int ll_nvml_errno(ll_nvml_result status);

/* The same for CUDA. Also -EBUSY: the card's compute mode or another process refuses. -EIO for everything that means a
 * lost context. CUDA_ERROR_NOT_READY is -EAGAIN. */
int ll_cuda_errno(ll_cu_result status);

/* "CUDA_ERROR_OUT_OF_MEMORY (2)", "GPU is lost (NVML error 15)". cuda, nvml may be NULL: then the number alone. They
 * write to the caller's text and return it. */
enum { LL_STATUS_TEXT_SIZE = 120 };
const char *ll_cuda_status_text(const struct ll_cuda *cuda, ll_cu_result status, char text[LL_STATUS_TEXT_SIZE]);
const char *ll_nvml_status_text(const struct ll_nvml *nvml, ll_nvml_result status, char text[LL_STATUS_TEXT_SIZE]);

/* Set err to "what: CUDA_ERROR_... (n)" and return the errno of status; fmt is the "what". With a hint where there is
 * a known way out. */
int ll_cuda_fail(const struct ll_cuda *cuda, ll_cu_result status, struct ll_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
int ll_nvml_fail(const struct ll_nvml *nvml, ll_nvml_result status, struct ll_err *err, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));

#endif
