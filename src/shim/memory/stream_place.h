/* stream_place.h - a stream, as the place where a block of a pool is freed or allocated, or a graph is launched. */
#ifndef LOADLINE_SHIM_MEMORY_STREAM_PLACE_H
#define LOADLINE_SHIM_MEMORY_STREAM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/interpose/stream.h"

/* All zero: no stream. */
struct ll_stream_place {
	struct ll_cu_context *context; /* the stream's */
	struct ll_cu_stream *handle;   /* LL_CU_STREAM_LEGACY instead of NULL; NULL: no stream */
	uint64_t thread;               /* of LL_CU_STREAM_PER_THREAD: a number that no other thread gets; else 0 */
};

/* The stream as the driver's function without _ptsz takes it. Its context is found for a default stream alone; NULL:
 * there is none. */
struct ll_stream_place ll_stream_place_of(struct ll_cu_stream *stream);

/* Context counts for the default streams alone: other handles are streams of one context. No stream is like
 * another, nor is one whose context the driver did not tell. */
static inline bool ll_stream_place_is(const struct ll_stream_place *one, const struct ll_stream_place *other)
{
	return one->handle && one->handle == other->handle && one->thread == other->thread &&
	       (!ll_stream_is_default(one->handle) || (one->context && one->context == other->context));
}

#endif
