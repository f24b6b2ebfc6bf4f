/* arguments: wrong arguments that allocate, free, map or report: all NULL at once, sizes of nothing and of everything,
 * handles of nothing. Prints each answer, or the signal that ended the process: under a limit they are what they are
 * without one, but for what is refused for want of memory. */
#include "case.h"

/* More than the limit, and less than the card has. */
#define LARGE (100 * 1024 * MIB)

#define CALLS(X)                                                                                                       \
	X(cuMemAlloc_v2(NULL, LARGE))                                                                                  \
	X(cuMemAllocManaged(NULL, LARGE, 1))                                                                           \
	X(cuMemAllocPitch_v2(NULL, &size, MIB, LARGE / MIB, 4))                                                        \
	X(cuMemAllocPitch_v2(&address, NULL, MIB, LARGE / MIB, 4))                                                     \
	X(cuMemAllocAsync(NULL, LARGE, NULL))                                                                          \
	X(cuMemCreate(NULL, LARGE, &prop, 0))                                                                          \
	X(cuArrayCreate_v2(NULL, &flat))                                                                               \
	X(cuArray3DCreate_v2(NULL, &deep))                                                                             \
	X(cuMipmappedArrayCreate(NULL, &deep, 1))                                                                      \
	X(cuMemAlloc_v2(NULL, 0))                                                                                      \
	X(cuMemAlloc_v2(&address, 0))                                                                                  \
	X(cuMemAlloc_v2(NULL, SIZE_MAX))                                                                               \
	X(cuMemAlloc_v2(&address, SIZE_MAX))                                                                           \
	X(cuMemAlloc_v2(&address, SIZE_MAX - 511))                                                                     \
	X(cuMemAlloc_v2(&address, SIZE_MAX / 2 + 1))                                                                   \
	X(cuMemAllocManaged(&address, 0, 1))                                                                           \
	X(cuMemAllocManaged(&address, SIZE_MAX, 1))                                                                    \
	X(cuMemAllocManaged(NULL, 0, 0))                                                                               \
	X(cuMemAllocManaged(&address, 4096, 99))                                                                       \
	X(cuMemAllocPitch_v2(NULL, NULL, 0, 0, 0))                                                                     \
	X(cuMemAllocPitch_v2(&address, &size, 0, 16, 4))                                                               \
	X(cuMemAllocPitch_v2(&address, &size, 16, 0, 4))                                                               \
	X(cuMemAllocPitch_v2(&address, &size, 16, 16, 3))                                                              \
	X(cuMemAllocPitch_v2(&address, &size, SIZE_MAX, SIZE_MAX, 4))                                                  \
	X(cuMemAllocPitch_v2(&address, &size, SIZE_MAX / 2, 4, 16))                                                    \
	X(cuMemAllocPitch_v2(&address, &size, (size_t)1 << 33, (size_t)1 << 33, 4))                                    \
	X(cuMemAllocAsync(NULL, 0, NULL))                                                                              \
	X(cuMemAllocAsync(&address, 0, NULL))                                                                          \
	X(cuMemAllocAsync(&address, SIZE_MAX, NULL))                                                                   \
	X(cuMemAllocFromPoolAsync(&address, 4096, NULL, NULL))                                                         \
	X(cuMemAllocFromPoolAsync(NULL, 0, NULL, NULL))                                                                \
	X(cuMemFree_v2(0))                                                                                             \
	X(cuMemFree_v2(1))                                                                                             \
	X(cuMemFree_v2(block + 4096))                                                                                  \
	X(cuMemFree_v2(UINT64_MAX))                                                                                    \
	X(cuMemFreeAsync(0, NULL))                                                                                     \
	X(cuMemFreeAsync(UINT64_MAX, NULL))                                                                            \
	X(cuMemCreate(NULL, 0, NULL, 0))                                                                               \
	X(cuMemCreate(&handle, 0, &prop, 0))                                                                           \
	X(cuMemCreate(&handle, 4096, &prop, 0))                                                                        \
	X(cuMemCreate(&handle, SIZE_MAX, &prop, 0))                                                                    \
	X(cuMemCreate(&handle, 2 * MIB, NULL, 0))                                                                      \
	X(cuMemCreate(&handle, 2 * MIB, &prop, 77))                                                                    \
	X(cuMemRelease(0))                                                                                             \
	X(cuMemRelease(99999))                                                                                         \
	X(cuMemMap(0, 0, 0, 0, 0))                                                                                     \
	X(cuMemMap(UINT64_MAX, SIZE_MAX, 0, 0, 0))                                                                     \
	X(cuMemUnmap(0, 0))                                                                                            \
	X(cuMemUnmap(block, MIB))                                                                                      \
	X(cuMemExportToShareableHandle(NULL, 0, LL_CU_MEM_HANDLE_TYPE_NONE, 0))                                        \
	X(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)-1, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))  \
	X(cuMemImportFromShareableHandle(&handle, NULL, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR))                  \
	X(cuMemRetainAllocationHandle(NULL, NULL))                                                                     \
	X(cuMemRetainAllocationHandle(&handle, (void *)(uintptr_t)block))                                              \
	X(cuMemPoolCreate(NULL, NULL))                                                                                 \
	X(cuMemPoolCreate(&pool, NULL))                                                                                \
	X(cuMemPoolDestroy(NULL))                                                                                      \
	X(cuMemPoolTrimTo(NULL, 0))                                                                                    \
	X(cuMemPoolSetAttribute(NULL, LL_CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &size))                                    \
	X(cuMemPoolGetAttribute(NULL, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &size))                                 \
	X(cuDeviceGetDefaultMemPool(NULL, 99))                                                                         \
	X(cuDeviceSetMemPool(0, NULL))                                                                                 \
	X(cuArrayCreate_v2(NULL, NULL))                                                                                \
	X(cuArrayCreate_v2(&array, NULL))                                                                              \
	X(cuArrayDestroy(NULL))                                                                                        \
	X(cuMipmappedArrayCreate(&mipmap, NULL, 0))                                                                    \
	X(cuMipmappedArrayDestroy(NULL))                                                                               \
	X(cuIpcGetMemHandle(NULL, 0))                                                                                  \
	X(cuIpcGetMemHandle(&ipc, 1))                                                                                  \
	X(cuIpcOpenMemHandle_v2(&address, ipc, 1))                                                                     \
	X(cuIpcOpenMemHandle_v2(NULL, ipc, 0))                                                                         \
	X(cuIpcCloseMemHandle(0))                                                                                      \
	X(cuIpcCloseMemHandle(block))                                                                                  \
	X(cuGraphLaunch(NULL, NULL))                                                                                   \
	X(cuGraphUpload(NULL, NULL))                                                                                   \
	X(cuGraphExecDestroy(NULL))                                                                                    \
	X(cuGraphExecUpdate_v2(NULL, NULL, NULL))                                                                      \
	X(cuGraphInstantiateWithFlags(NULL, NULL, 0))                                                                  \
	X(cuGraphInstantiateWithParams(NULL, NULL, NULL))                                                              \
	X(cuGraphAddMemAllocNode(NULL, NULL, NULL, 0, NULL))                                                           \
	X(cuMemGetInfo_v2(NULL, NULL))                                                                                 \
	X(cuDeviceTotalMem_v2(NULL, 99))                                                                               \
	X(cuDeviceTotalMem_v2(&size, 99))                                                                              \
	X(cuCtxCreate_v2(NULL, 0, 99))                                                                                 \
	X(cuCtxCreate_v2(&context, ~0U, 0))                                                                            \
	X(cuCtxDestroy_v2(NULL))                                                                                       \
	X(cuDevicePrimaryCtxRetain(&context, -1))                                                                      \
	X(cuDevicePrimaryCtxRelease_v2(99))                                                                            \
	X(cuDevicePrimaryCtxReset_v2(-1))                                                                              \
	X(cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, SIZE_MAX))                                                       \
	X(cuCtxSetLimit((enum ll_cu_limit)99, 1))                                                                      \
	X(cuLaunchKernel(NULL, 0, 0, 0, 0, 0, 0, 0, NULL, NULL, NULL))                                                 \
	X(cuGetProcAddress_v2(NULL, NULL, 0, 0, NULL))                                                                 \
	X(cuGetProcAddress_v2("cuMemAlloc", NULL, 12000, 0, NULL))                                                     \
	X(cuGetProcAddress_v2("", &pointer, 12000, 0, NULL))                                                           \
	X(cuGetProcAddress_v2("cuMemAlloc", &pointer, -5, ~0ULL, NULL))                                                \
	X(cuMemcpyDtoH_v2(NULL, 0, 0))                                                                                 \
	X(cuMemcpyDtoH_v2(NULL, block, SIZE_MAX))                                                                      \
	X(cuMemsetD8_v2(0, 0, SIZE_MAX))                                                                               \
	X(cuMemsetD32_v2(block, 0, SIZE_MAX))                                                                          \
	X(cuEventRecord(NULL, NULL))                                                                                   \
	X(cuStreamSynchronize(NULL))                                                                                   \
	X(cuMemAllocHost_v2(NULL, 0))                                                                                  \
	X(cuMemHostAlloc(&pointer, SIZE_MAX, 0))                                                                       \
	X(cuMemHostRegister_v2(NULL, 0, 0))                                                                            \
	X(cuPointerGetAttribute(NULL, (enum ll_cu_pointer_attribute)0, 0))

static void call(int number)
{
	ll_cu_deviceptr address = 0, block;
	ll_cu_mem_handle handle = 0;
	struct ll_cu_mem_pool *pool;
	struct ll_cu_array *array;
	struct ll_cu_mipmapped_array *mipmap;
	struct ll_cu_ipc_mem_handle ipc = {{0}};
	struct ll_cu_context *context;
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	struct ll_cu_array_descriptor flat = {65536, 65536, LL_CU_AD_FORMAT_FLOAT, 4};
	struct ll_cu_array3d_descriptor deep = {2048, 2048, 2048, LL_CU_AD_FORMAT_FLOAT, 4, 0};
	void *pointer;
	size_t size = 0;
	int count = 0;
	begin();
	TRY(cuMemAlloc_v2(&block, 4 * MIB));
#define ONE(expression)                                                                                                \
	if (count++ == number) {                                                                                       \
		printf("%s: %d\n", #expression, (int)(expression));                                                    \
		fflush(stdout);                                                                                        \
	}
	CALLS(ONE)
}

#define COUNT(expression) +1

int main(void)
{
	for (int i = 0; i < 0 CALLS(COUNT); i++) {
		int status;
		pid_t pid = fork();
		NEED(pid >= 0);
		if (pid == 0) {
			call(i);
			_exit(0);
		}
		NEED(waitpid(pid, &status, 0) == pid);
		if (WIFSIGNALED(status))
			printf("number %d: signal %d\n", i, WTERMSIG(status));
		else if (WEXITSTATUS(status))
			printf("number %d: exit %d\n", i, WEXITSTATUS(status));
		fflush(stdout);
	}
	return 0;
}
