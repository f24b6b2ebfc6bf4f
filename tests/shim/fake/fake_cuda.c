/*
 * fake_cuda.c - a libcuda.so.1 that does what the simulator does not: its symbols have a version, cuGetProcAddress
 * answers with addresses that it does not export, some functions are folded into one, it can be unloaded, and it has a
 * variant that nobody knows yet. An allocation's address says which function made it.
 */
#include <string.h>

#include "abi/cuda_prototypes.h"

#define EXPORT __attribute__((visibility("default")))

EXPORT ll_cu_result cuCtxDestroy(struct ll_cu_context *context);
EXPORT ll_cu_result cuCtxDestroy_v3(struct ll_cu_context *context, int more);
EXPORT ll_cu_result cuMemAlloc(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes);
EXPORT ll_cu_result cuFolded(ll_cu_deviceptr *ret_address, size_t bytes);

EXPORT ll_cu_result cuInit(unsigned int flags)
{
	return flags ? LL_CUDA_ERROR_INVALID_VALUE : LL_CUDA_SUCCESS;
}

EXPORT ll_cu_result cuMemAlloc(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes)
{
	*ret_address = 100 + bytes;
	return LL_CUDA_SUCCESS;
}

EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	*ret_address = 200 + bytes;
	return LL_CUDA_SUCCESS;
}

EXPORT ll_cu_result cuFolded(ll_cu_deviceptr *ret_address, size_t bytes) __attribute__((alias("cuMemAlloc_v2")));

EXPORT ll_cu_result cuCtxDestroy(struct ll_cu_context *context)
{
	(void)context;
	return LL_CUDA_ERROR_INVALID_CONTEXT;
}

EXPORT ll_cu_result cuCtxDestroy_v2(struct ll_cu_context *context)
{
	return cuCtxDestroy(context);
}

EXPORT ll_cu_result cuCtxDestroy_v3(struct ll_cu_context *context, int more)
{
	(void)more;
	return cuCtxDestroy(context);
}

EXPORT ll_cu_result cuLaunchKernel(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
				   unsigned int grid_z, unsigned int block_x, unsigned int block_y,
				   unsigned int block_z, unsigned int shared_bytes, struct ll_cu_stream *stream,
				   void **params, void **extra)
{
	/* Arguments beyond the registers: the last one comes back. */
	(void)function, (void)grid_x, (void)grid_y, (void)grid_z, (void)block_x, (void)block_y, (void)block_z;
	(void)shared_bytes, (void)stream, (void)params;
	return extra ? *(ll_cu_result *)extra : LL_CUDA_SUCCESS;
}

EXPORT ll_cu_result cuLaunchKernel_ptsz(struct ll_cu_function *function, unsigned int grid_x, unsigned int grid_y,
					unsigned int grid_z, unsigned int block_x, unsigned int block_y,
					unsigned int block_z, unsigned int shared_bytes, struct ll_cu_stream *stream,
					void **params, void **extra)
{
	return cuLaunchKernel(function, grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, stream, params,
			      extra);
}

/* What the look-up answers with: addresses inside that nothing is exported at. Nobody calls them. */
static char inside[6];

#define FLAG_PER_THREAD LL_CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM

static void *address_of(void (*function)(void))
{
	void *address;
	memcpy(&address, &function, sizeof address);
	return address;
}

#define EXPORTED(symbol) address_of((void (*)(void))(symbol))

static void *answer(const char *name, int version, uint64_t flags)
{
	if (strcmp(name, "cuMemAlloc") == 0)
		return version < 3020 ? &inside[0] : &inside[1];
	if (strcmp(name, "cuLaunchKernel") == 0)
		return flags & FLAG_PER_THREAD ? &inside[2] : &inside[3];
	if (strcmp(name, "cuCtxDestroy") == 0)
		return &inside[4];
	if (strcmp(name, "cuInit") == 0)
		return &inside[5];
	if (strcmp(name, "cuGetProcAddress") == 0)
		return version < 12000 ? EXPORTED(cuGetProcAddress) : EXPORTED(cuGetProcAddress_v2);
	/* A name that has come to mean a function of another name; and one that does the same as another. */
	if (strcmp(name, "cuRenamed") == 0)
		return EXPORTED(cuLaunchKernel);
	return strcmp(name, "cuFolded") == 0 ? EXPORTED(cuFolded) : NULL;
}

EXPORT ll_cu_result cuGetProcAddress_v2(const char *symbol, void **ret_function, int version, uint64_t flags,
					enum ll_cu_proc_address_result *ret_status)
{
	*ret_function = answer(symbol, version, flags);
	if (ret_status)
		*ret_status = *ret_function ? LL_CU_GET_PROC_ADDRESS_SUCCESS : LL_CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	return LL_CUDA_SUCCESS;
}

EXPORT ll_cu_result cuGetProcAddress_v2_ptsz(const char *symbol, void **ret_function, int version, uint64_t flags,
					     enum ll_cu_proc_address_result *ret_status)
{
	return cuGetProcAddress_v2(symbol, ret_function, version, flags ? flags : FLAG_PER_THREAD, ret_status);
}

EXPORT ll_cu_result cuGetProcAddress(const char *symbol, void **ret_function, int version, uint64_t flags)
{
	enum ll_cu_proc_address_result found;
	cuGetProcAddress_v2(symbol, ret_function, version, flags, &found);
	return found == LL_CU_GET_PROC_ADDRESS_SUCCESS ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_NOT_FOUND;
}
