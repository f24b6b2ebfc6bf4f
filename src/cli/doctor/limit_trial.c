#include "cli/doctor/limit_trial.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/doctor/trial_ways.h"
#include "driver/library.h"
#include "hold/payload.h"
#include "protocol/run_settings.h"

#define KERNEL_NS (1 * LL_NS_PER_MS)

enum { PAGE_BYTES = 4096 }; /* the kernel rounds the address of its record down to this, to find the stop word */

extern const unsigned char ll_spin_ptx[];

struct trial {
	struct ll_cuda cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *spin;
	void *page;
	ll_cu_deviceptr record;
	uint32_t launches;
};

static int make_context(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	ll_cu_device device;
	ll_cu_result status = cuda->cuDeviceGet(&device, 0);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxCreate(&trial->context, LL_CU_CTX_SCHED_BLOCKING_SYNC | LL_CU_CTX_MAP_HOST, device);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "make a context");
}

static int try_memory(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	ll_cu_deviceptr first;
	ll_cu_deviceptr second;
	ll_cu_result status = cuda->cuMemAlloc(&first, LL_TRIAL_FIRST_BYTES);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "allocate within the limit");
	status = cuda->cuMemAlloc(&second, LL_TRIAL_SECOND_BYTES);
	if (status != LL_CUDA_SUCCESS && status != LL_CUDA_ERROR_OUT_OF_MEMORY)
		return ll_cuda_fail(cuda, status, err, "allocate past the limit");
	bool is_refused = status == LL_CUDA_ERROR_OUT_OF_MEMORY;
	printf("memory %d\n", is_refused ? LL_TRIAL_SECOND_BYTES : 0);
	if (!is_refused)
		cuda->cuMemFree(second);
	int rc = ll_trial_try_look_ups(cuda, err);
	cuda->cuMemFree(first);
	return rc;
}

static int load_kernel(struct trial *trial, struct ll_err *err)
{
	const struct ll_cuda *cuda = &trial->cuda;
	struct ll_cu_module *module;
	trial->page = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
	if (!trial->page)
		return ll_err_set(err, -ENOMEM, "host memory: %s", strerror(ENOMEM));
	memset(trial->page, 0, PAGE_BYTES);
	ll_cu_result status = cuda->cuModuleLoadData(&module, ll_spin_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuModuleGetFunction(&trial->spin, module, "spin_ns");
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostRegister(trial->page, PAGE_BYTES, LL_CU_MEMHOSTREGISTER_DEVICEMAP);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostGetDevicePointer(&trial->record, trial->page, 0);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "load a kernel");
}

static int launch_one(struct trial *trial, struct ll_err *err)
{
	uint64_t length_ns = KERNEL_NS, never = 0, epoch_and_sequence = UINT64_C(1) << 32 | ++trial->launches;
	void *params[] = {&length_ns, &trial->record, &never, &never, &epoch_and_sequence};
	ll_cu_result status = trial->cuda.cuLaunchKernel(trial->spin, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(&trial->cuda, status, err, "run a kernel");
}

/* It launches ahead and does not wait for each kernel: on a busy host such waits look like a limit. The kernels that
 * are still queued at the end are waited for, and their wait counts. */
static int try_compute(struct trial *trial, struct ll_err *err)
{
	const uint64_t run_ns = LL_TRIAL_RUN_MS * LL_NS_PER_MS;
	int rc = load_kernel(trial, err);
	uint64_t start_ns = ll_now_ns();
	while (!rc && trial->launches < run_ns / KERNEL_NS && ll_now_ns() - start_ns < run_ns)
		rc = launch_one(trial, err);
	ll_cu_result status = rc ? LL_CUDA_SUCCESS : trial->cuda.cuCtxSynchronize();
	if (status != LL_CUDA_SUCCESS)
		rc = ll_cuda_fail(&trial->cuda, status, err, "wait for kernels");
	if (!rc)
		printf("compute %llu\n",
		       (unsigned long long)(trial->launches * KERNEL_NS * 1000 / (ll_now_ns() - start_ns)));
	return rc;
}

bool ll_trial_is_asked(int argc, char **argv)
{
	return argc > 1 && strcmp(argv[1], LL_TRIAL_WORD) == 0;
}

int ll_trial_main(const char *word, struct ll_err *err)
{
	struct trial trial = {0};
	if (word)
		return ll_trial_be_other(word, err);
	if (!getenv(LL_RUN_VARIABLE)) {
		ll_err_set(err, -EINVAL, LL_TRIAL_WORD ": is for loadline itself");
		return ll_err_hint(err, "use 'loadline doctor'");
	}
	int rc = ll_cuda_init(&trial.cuda, err);
	if (!rc)
		rc = make_context(&trial, err);
	if (!rc)
		rc = try_memory(&trial, err);
	if (!rc)
		rc = try_compute(&trial, err);
	if (trial.context)
		trial.cuda.cuCtxDestroy(trial.context);
	free(trial.page);
	if (!rc)
		ll_trial_start_others();
	return rc;
}
