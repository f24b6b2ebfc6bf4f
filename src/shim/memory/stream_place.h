/* stream_place.h - identifies the stream in which a block of a pool is freed or allocated, or a graph is launched. */
#ifndef LOADLINE_SHIM_MEMORY_STREAM_PLACE_H
#define LOADLINE_SHIM_MEMORY_STREAM_PLACE_H

#include <stdbool.h>
#include <stdint.h>

#include "shim/interpose/stream.h"

/* All zero: no stream. */
struct ll_stream_place {
	struct ll_cu_context *context; /* the stream's context */
	struct ll_cu_stream *handle;   /* LL_CU_STREAM_LEGACY instead of NULL; NULL: no stream */
	uint64_t thread;               /* for LL_CU_STREAM_PER_THREAD: a number that no other thread gets; else 0 */
};

/* Returns the place of a stream handle, as the driver's function without _ptsz interprets it. The context is found only
 * for a default stream; NULL: there is none. */
struct ll_stream_place ll_stream_place_of(struct ll_cu_stream *stream);

/* Returns whether two places are the same stream. The context is compared only for default streams, because every other
 * handle belongs to one context. Returns false for an empty place, and for a default stream without a known context. */
static inline bool ll_stream_place_is(const struct ll_stream_place *one, const struct ll_stream_place *other)
{
	return one->handle && one->handle == other->handle && one->thread == other->thread &&
	       (!ll_stream_is_default(one->handle) || (one->context && one->context == other->context));
}

#endif
