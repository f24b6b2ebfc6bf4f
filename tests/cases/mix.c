/* mix: sixteen threads take and give back memory of every kind, until the limit. */
#include <pthread.h>

#include "case.h"

enum { THREADS = 16, ROUNDS = 150, KINDS = 7 };

static struct ll_cu_context *context;

struct piece {
	unsigned kind;
	ll_cu_deviceptr address;
	struct ll_cu_array *array;
	struct ll_cu_mipmapped_array *mipmap;
	ll_cu_mem_handle handle;
};

static bool take(struct piece *piece, size_t mib, struct ll_cu_stream *stream)
{
	struct ll_cu_array_descriptor flat = {1024, mib * 256, LL_CU_AD_FORMAT_FLOAT, 1};
	struct ll_cu_array3d_descriptor deep = {512, 512, mib, LL_CU_AD_FORMAT_FLOAT, 1, 0};
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	size_t pitch;
	switch (piece->kind) {
	case 0:
		return MADE(cuMemAlloc_v2(&piece->address, mib * MIB - 1));
	case 1:
		return MADE(cuMemAllocManaged(&piece->address, mib * MIB, LL_CU_MEM_ATTACH_GLOBAL));
	case 2:
		return MADE(cuMemAllocPitch_v2(&piece->address, &pitch, 4095, mib * 256, 4));
	case 3:
		return MADE(cuArrayCreate_v2(&piece->array, &flat));
	case 4:
		return MADE(cuMipmappedArrayCreate(&piece->mipmap, &deep, 4));
	case 5:
		return MADE(cuMemCreate(&piece->handle, (mib + 1) / 2 * 2 * MIB, &prop, 0));
	default:
		return MADE(cuMemAllocAsync(&piece->address, mib * MIB, stream));
	}
}

static void give_back(struct piece *piece, struct ll_cu_stream *stream)
{
	switch (piece->kind) {
	case 3:
		TRY(cuArrayDestroy(piece->array));
		break;
	case 4:
		TRY(cuMipmappedArrayDestroy(piece->mipmap));
		break;
	case 5:
		TRY(cuMemRelease(piece->handle));
		break;
	case 6:
		TRY(cuMemFreeAsync(piece->address, stream));
		break;
	default:
		TRY(cuMemFree_v2(piece->address));
	}
}

static void *use(void *arg)
{
	enum { HELD = 6 };
	struct piece held[HELD];
	bool has[HELD] = {false};
	unsigned seed = (unsigned)(uintptr_t)arg;
	TRY(cuCtxSetCurrent(context));
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < ROUNDS; i++) {
		seed = seed * 1103515245 + 12345;
		unsigned at = seed / 65536 % HELD;
		if (has[at])
			give_back(&held[at], stream);
		held[at].kind = seed / 7919 % KINDS;
		has[at] = take(&held[at], 1 + seed / 1024 % 40, stream);
	}
	TRY(cuStreamSynchronize(stream));
	return NULL;
}

int main(void)
{
	pthread_t threads[THREADS];
	context = begin();
	for (uintptr_t i = 0; i < THREADS; i++)
		NEED(pthread_create(&threads[i], NULL, use, (void *)(i + 7)) == 0);
	for (int i = 0; i < THREADS; i++)
		NEED(pthread_join(threads[i], NULL) == 0);
	full();
	return 0;
}
