#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/translate.h"
#include "driver/library.h"

int ll_nvml_errno(ll_nvml_result status)
{
	switch (status) {
	case LL_NVML_SUCCESS:
		return 0;
	case LL_NVML_ERROR_UNINITIALIZED:
	case LL_NVML_ERROR_DRIVER_NOT_LOADED:
	case LL_NVML_ERROR_LIBRARY_NOT_FOUND:
	case LL_NVML_ERROR_GPU_IS_LOST:
	case LL_NVML_ERROR_GPU_NOT_FOUND:
	case LL_NVML_ERROR_RESET_REQUIRED:
	case LL_NVML_ERROR_LIB_RM_VERSION_MISMATCH:
		return -ENODEV;
	case LL_NVML_ERROR_NOT_SUPPORTED:
	case LL_NVML_ERROR_FUNCTION_NOT_FOUND:
	case LL_NVML_ERROR_DEPRECATED:
	case LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH:
		return -ENOSYS;
	case LL_NVML_ERROR_NO_PERMISSION:
		return -EPERM;
	case LL_NVML_ERROR_TIMEOUT:
	case LL_NVML_ERROR_NOT_READY:
	case LL_NVML_ERROR_NO_DATA:
		return -EAGAIN;
	case LL_NVML_ERROR_MEMORY:
	case LL_NVML_ERROR_INSUFFICIENT_RESOURCES:
		return -ENOMEM;
	default:
		return -EIO;
	}
}

int ll_cuda_errno(ll_cu_result status)
{
	switch (status) {
	case LL_CUDA_SUCCESS:
		return 0;
	case LL_CUDA_ERROR_NO_DEVICE:
	case LL_CUDA_ERROR_INVALID_DEVICE:
	case LL_CUDA_ERROR_STUB_LIBRARY:
	case LL_CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
	case LL_CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
		return -ENODEV;
	case LL_CUDA_ERROR_NOT_SUPPORTED:
	case LL_CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER:
	case LL_CUDA_ERROR_UNSUPPORTED_LIMIT:
	case LL_CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
	case LL_CUDA_ERROR_NO_BINARY_FOR_GPU:
		return -ENOSYS;
	case LL_CUDA_ERROR_NOT_PERMITTED:
		return -EPERM;
	case LL_CUDA_ERROR_NOT_READY:
	case LL_CUDA_ERROR_MPS_SERVER_NOT_READY:
	case LL_CUDA_ERROR_SYSTEM_NOT_READY:
		return -EAGAIN;
	case LL_CUDA_ERROR_OUT_OF_MEMORY:
		return -ENOMEM;
	case LL_CUDA_ERROR_DEVICE_UNAVAILABLE:
	case LL_CUDA_ERROR_MPS_MAX_CLIENTS_REACHED:
	case LL_CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED:
		return -EBUSY;
	default:
		return -EIO;
	}
}

const char *ll_cuda_status_text(const struct ll_cuda *cuda, ll_cu_result status, char text[LL_STATUS_TEXT_SIZE])
{
	const char *name = NULL;
	if (cuda && cuda->cuGetErrorName && cuda->cuGetErrorName(status, &name) == LL_CUDA_SUCCESS && name)
		snprintf(text, LL_STATUS_TEXT_SIZE, "%s (%d)", name, (int)status);
	else
		snprintf(text, LL_STATUS_TEXT_SIZE, "CUDA error %d", (int)status);
	return text;
}

const char *ll_nvml_status_text(const struct ll_nvml *nvml, ll_nvml_result status, char text[LL_STATUS_TEXT_SIZE])
{
	const char *name = nvml && nvml->nvmlErrorString ? nvml->nvmlErrorString(status) : NULL;
	if (name)
		snprintf(text, LL_STATUS_TEXT_SIZE, "%s (NVML error %d)", name, (int)status);
	else
		snprintf(text, LL_STATUS_TEXT_SIZE, "NVML error %d", (int)status);
	return text;
}

int ll_cuda_fail(const struct ll_cuda *cuda, ll_cu_result status, struct ll_err *err, const char *fmt, ...)
{
	char what[200];
	char why[LL_STATUS_TEXT_SIZE];
	int code = ll_cuda_errno(status);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, ll_translate(fmt), ap);
	va_end(ap);
	ll_err_set(err, code, "%s: %s", what, ll_cuda_status_text(cuda, status, why));
	if (status == LL_CUDA_ERROR_OUT_OF_MEMORY)
		ll_err_hint(err, "free memory on the card, or choose another one with -i");
	else if (status == LL_CUDA_ERROR_DEVICE_UNAVAILABLE)
		ll_err_hint(err, "the card's compute mode allows one process only, or none: see `loadline doctor`");
	return code;
}

int ll_nvml_fail(const struct ll_nvml *nvml, ll_nvml_result status, struct ll_err *err, const char *fmt, ...)
{
	char what[200];
	char why[LL_STATUS_TEXT_SIZE];
	int code = ll_nvml_errno(status);
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(what, sizeof what, ll_translate(fmt), ap);
	va_end(ap);
	ll_err_set(err, code, "%s: %s", what, ll_nvml_status_text(nvml, status, why));
	if (status == LL_NVML_ERROR_RESET_REQUIRED)
		ll_err_hint(err, "the card must be reset, or the machine restarted");
	return code;
}
