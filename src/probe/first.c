#include "probe/first.h"

#include <string.h>

#include "base/err.h"

extern const unsigned char ll_first_ptx[];

struct first_run {
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *kernel;
	ll_cu_deviceptr numbers;
};

static ll_cu_result launch_blocks(const struct first_run *run, uint32_t blocks, int32_t numbers[LL_FIRST_NUMBERS])
{
	const struct ll_cuda *cuda = run->cuda;
	ll_cu_deviceptr out = run->numbers;
	void *params[] = {&out};
	ll_cu_result status = cuda->cuMemsetD32(run->numbers, (unsigned)LL_FIRST_UNTOUCHED, LL_FIRST_NUMBERS);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuLaunchKernel(run->kernel, blocks, 1, 1, LL_FIRST_THREADS, 1, 1, 0, NULL, params, NULL);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuCtxSynchronize();
	return status == LL_CUDA_SUCCESS ? cuda->cuMemcpyDtoH(numbers, run->numbers, LL_FIRST_NUMBERS * sizeof *numbers)
					 : status;
}

static int prepare_run(struct first_run *run, const struct ll_card *card, struct ll_err *err)
{
	ll_cu_device device;
	struct ll_cu_module *module;
	int rc = ll_card_cuda_device(card, &run->cuda, &device, err);
	if (rc < 0)
		return rc;
	ll_cu_result status = run->cuda->cuCtxCreate(&run->context, LL_CU_CTX_SCHED_BLOCKING_SYNC, device);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(run->cuda, status, err, "card %s: make a context", card->label);
	status = run->cuda->cuModuleLoadData(&module, ll_first_ptx);
	if (status == LL_CUDA_SUCCESS)
		status = run->cuda->cuModuleGetFunction(&run->kernel, module, "write_index");
	if (status == LL_CUDA_SUCCESS)
		status = run->cuda->cuMemAlloc(&run->numbers, LL_FIRST_NUMBERS * sizeof(int32_t));
	return status == LL_CUDA_SUCCESS
		   ? 0
		   : ll_cuda_fail(run->cuda, status, err, "card %s: the first kernel", card->label);
}

int ll_probe_first_run(const struct ll_card *card, struct ll_probe_first *ret_first, struct ll_err *err)
{
	struct first_run run = {0};
	struct ll_probe_first first = {
	    .blocks = LL_FIRST_BLOCKS,
	    .threads = LL_FIRST_THREADS,
	    .enough_blocks = LL_FIRST_NUMBERS / LL_FIRST_THREADS,
	};
	int rc = prepare_run(&run, card, err);
	if (rc == 0) {
		ll_cu_result status = launch_blocks(&run, first.blocks, first.numbers);
		if (status == LL_CUDA_SUCCESS)
			status = launch_blocks(&run, first.enough_blocks, first.enough);
		if (status != LL_CUDA_SUCCESS)
			rc = ll_cuda_fail(run.cuda, status, err, "card %s: the first kernel", card->label);
	}
	if (run.context)
		run.cuda->cuCtxDestroy(run.context);
	if (rc == 0)
		*ret_first = first;
	return rc;
}

size_t ll_probe_first_written(const int32_t numbers[LL_FIRST_NUMBERS])
{
	size_t count = 0;
	for (size_t i = 0; i < LL_FIRST_NUMBERS; i++)
		count += numbers[i] != LL_FIRST_UNTOUCHED;
	return count;
}

int ll_probe_first_is_in_order(const int32_t numbers[LL_FIRST_NUMBERS])
{
	size_t written = ll_probe_first_written(numbers);
	for (size_t i = 0; i < written; i++) {
		if (numbers[i] != (int32_t)i)
			return 0;
	}
	return 1;
}
