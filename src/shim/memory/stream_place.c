#include "shim/memory/stream_place.h"

/* Returns a number for the calling thread. pthread_self is no such number, because a new thread may get the value of an
 * ended one. */
static uint64_t own_number(void)
{
	static _Thread_local uint64_t number __attribute__((tls_model("initial-exec")));
	static _Atomic uint64_t last;
	if (!number)
		number = atomic_fetch_add(&last, 1) + 1;
	return number;
}

struct ll_stream_place ll_stream_place_of(struct ll_cu_stream *stream)
{
	struct ll_stream_place place = {.handle = stream ? stream : LL_CU_STREAM_LEGACY};
	if (stream == LL_CU_STREAM_PER_THREAD)
		place.thread = own_number();
	if (ll_stream_is_default(stream) && ll_real()->cuCtxGetCurrent(&place.context) != LL_CUDA_SUCCESS)
		place.context = NULL;
	return place;
}
