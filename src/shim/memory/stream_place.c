#include "shim/memory/stream_place.h"

/* pthread_self gives an ended thread's number again. */
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
