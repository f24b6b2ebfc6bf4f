#include "shim/time/captures.h"

#include "base/clock.h"
#include "shim/interpose/real.h"

#define OWN_NS (1 * LL_NS_PER_S)

static bool goes_on(const struct ll_capture *capture)
{
	enum ll_cu_capture_status status = LL_CU_STREAM_CAPTURE_STATUS_NONE;
	if (capture->stream.thread)
		return ll_now_ns() - capture->begun_ns < OWN_NS;
	return ll_real()->cuStreamIsCapturing(capture->stream.handle, &status) == LL_CUDA_SUCCESS &&
	       status != LL_CU_STREAM_CAPTURE_STATUS_NONE;
}

static void drop_capture(struct ll_captures *captures, unsigned index)
{
	captures->begun[index] = captures->begun[--captures->count];
}

bool ll_captures_go_on(struct ll_captures *captures)
{
	for (unsigned i = captures->count; i-- > 0;) {
		if (!goes_on(&captures->begun[i]))
			drop_capture(captures, i);
	}
	return captures->count;
}

void ll_captures_add(struct ll_captures *captures, struct ll_cu_context *context, struct ll_timing_stream stream)
{
	if (captures->count == LL_CAPTURES)
		ll_captures_go_on(captures);
	if (captures->count < LL_CAPTURES)
		captures->begun[captures->count++] = (struct ll_capture){context, stream, ll_now_ns()};
}

void ll_captures_forget_stream(struct ll_captures *captures, struct ll_timing_stream stream)
{
	for (unsigned i = captures->count; i-- > 0;) {
		if (ll_timing_stream_is(captures->begun[i].stream, stream))
			drop_capture(captures, i);
	}
}

void ll_captures_forget_context(struct ll_captures *captures, struct ll_cu_context *context)
{
	for (unsigned i = captures->count; i-- > 0;) {
		if (captures->begun[i].context == context)
			drop_capture(captures, i);
	}
}
