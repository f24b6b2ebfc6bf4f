/* launcher MS [COUNT]: a CUDA program that launches so many kernels of so many ms, eight at a time; without a number
 * for ever. */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "abi/cuda.h"

static struct {
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params) ret(*name) params;
#include "abi/cuda_functions.def"
} cu;

static const char kernel[] = ".version 6.0\n.target sm_70\n.address_size 64\n"
			     ".visible .entry work_ns(.param .u64 length)\n{\n\tret;\n}\n";

static int open_driver(void)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOW), *found;
	if (!library)
		return -1;
#define LL_CUDA_FUNCTION(ret, name, symbol, need, params)                                                              \
	found = dlsym(library, #symbol);                                                                               \
	memcpy(&cu.name, &found, sizeof found);
#include "abi/cuda_functions.def"
	return 0;
}

int main(int argc, char **argv)
{
	uint64_t length_ns = argc > 1 ? strtoull(argv[1], NULL, 10) * 1000000 : 1000000;
	long left = argc > 2 ? atol(argv[2]) : -1;
	void *params[] = {&length_ns};
	struct ll_cu_context *context;
	struct ll_cu_module *module;
	struct ll_cu_function *work;
	if (open_driver() || cu.cuInit(0) || cu.cuCtxCreate(&context, 0, 0) || cu.cuModuleLoadData(&module, kernel) ||
	    cu.cuModuleGetFunction(&work, module, "work_ns"))
		return 1;
	while (left) {
		for (int i = 0; i < 8 && left; i++, left -= left > 0) {
			if (cu.cuLaunchKernel(work, 1, 1, 1, 32, 1, 1, 0, NULL, params, NULL))
				return 1;
		}
		if (cu.cuCtxSynchronize())
			return 1;
	}
	return 0;
}
