/* proc: what cuGetProcAddress gives for each version that was, and for the flags for legacy and per-thread streams,
 * takes no more than the limit. */
#include "case.h"

enum { MOST = 4096 };

static ll_cu_deviceptr held[MOST];

typedef ll_cu_result alloc_old_fn(ll_cu_deviceptr_v1 *ret_address, unsigned int bytes);

static bool alloc(void *found, bool is_old, bool is_async, size_t bytes, ll_cu_deviceptr *ret_address)
{
	alloc_old_fn *old;
	__typeof__(&cuMemAlloc_v2) plain;
	__typeof__(&cuMemAllocAsync) async;
	ll_cu_deviceptr_v1 address = 0;
	memcpy(&old, &found, sizeof found);
	memcpy(&plain, &found, sizeof found);
	memcpy(&async, &found, sizeof found);
	if (!is_old)
		return MADE(is_async ? async(ret_address, bytes, NULL) : plain(ret_address, bytes));
	/* An address of more than 32 bits cannot be answered: the driver may refuse for that. */
	if (old(&address, (unsigned int)bytes))
		return false;
	*ret_address = address;
	return true;
}

static void take(const char *name, int version, uint64_t flags)
{
	void *found = NULL;
	size_t count = 0;
	bool is_old = version < 3020, is_async = strcmp(name, "cuMemAllocAsync") == 0;
	if (cuGetProcAddress_v2(name, &found, version, flags, NULL) || !found)
		return;
	for (size_t each = 64; each >= 2; each /= 2) {
		while (count < MOST && alloc(found, is_old, is_async, each * MIB, &held[count]))
			count++;
	}
	size_t free_bytes, total_bytes;
	TRY(cuMemGetInfo_v2(&free_bytes, &total_bytes));
	printf("%s %d %d: %zu pieces, %zu MiB free of %zu\n", name, version, (int)flags, count, free_bytes / MIB,
	       total_bytes / MIB);
	NEED(count < 200);
	for (size_t i = 0; i < count && !is_old; i++)
		TRY(cuMemFree_v2(held[i]));
}

int main(void)
{
	static const char *const names[] = {"cuMemAlloc", "cuMemAllocAsync"};
	static const int versions[] = {2000, 3020, 4000, 11020, 11030, 12000, 13000, 99990};
	begin();
	for (size_t n = 0; n < 2; n++) {
		for (size_t v = 0; v < sizeof versions / sizeof versions[0]; v++) {
			for (uint64_t flags = 0; flags < 4; flags++)
				take(names[n], versions[v], flags);
		}
	}
	TRY(cuCtxSynchronize());
	full();
	return 0;
}
