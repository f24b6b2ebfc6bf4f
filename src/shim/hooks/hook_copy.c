/* Copies within and between cards: copy.h says which. */
#include "abi/cuda_launch.h"
#include "abi/cupti.h"
#include "shim/hooks/copy.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/time/waits.h"

bool ll_copy_is_on_card(ll_cu_deviceptr address)
{
	LL_REENTRY_SCOPE();
	unsigned int type = 0;
	ll_cu_result status = ll_real()->cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
	return status == LL_CUDA_SUCCESS && type != LL_CU_MEMORYTYPE_HOST;
}

static bool is_side_on_card(enum ll_cu_memory_type type, ll_cu_deviceptr address)
{
	return type == LL_CU_MEMORYTYPE_DEVICE || type == LL_CU_MEMORYTYPE_ARRAY ||
	       (type == LL_CU_MEMORYTYPE_UNIFIED && ll_copy_is_on_card(address));
}

/* For each kind of description: which of its sides are on a card. */
#define SIDES_OF(copy)                                                                                                 \
	((copy) ? (struct ll_copy_sides){is_side_on_card((copy)->to_type, (copy)->to_device),                          \
					 is_side_on_card((copy)->from_type, (copy)->from_device)}                      \
		: (struct ll_copy_sides){false, false})
#define SIDES_AT(to, from) ((struct ll_copy_sides){ll_copy_is_on_card(to), ll_copy_is_on_card(from)})

uint64_t ll_copy_note(const char *symbol, struct ll_copy_sides sides, uint64_t bytes)
{
	uint64_t kind = ll_launch_named(symbol, LL_TRACE_COPY, bytes);
	ll_trace_next.to = sides.is_to_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	ll_trace_next.from = sides.is_from_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	return kind;
}

struct ll_launch ll_copy_begin(const char *symbol, struct ll_copy_sides sides, uint64_t bytes,
			       struct ll_cu_stream *stream)
{
	uint64_t kind = ll_copy_note(symbol, sides, bytes);
	return sides.is_to_card && sides.is_from_card ? ll_launch_begin(stream, kind) : ll_launch_begin_ungated(stream);
}

#define ROWS_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height : 0)
#define BOX_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height * (copy)->depth : 0)

/* Those whose names say that both sides are on cards. */
#define WITHIN_HOOKS(symbol, suffix, stream, params, args)                                                             \
	LL_LAUNCH_HOOKS_OF_KIND(symbol, suffix, stream,                                                                \
				ll_copy_note(#symbol, (struct ll_copy_sides){true, true}, bytes), params, args)

WITHIN_HOOKS(cuMemcpyDtoD_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM, (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes),
	     (to, from, bytes))
WITHIN_HOOKS(cuMemcpyDtoDAsync_v2, _ptsz, stream,
	     (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	     (to, from, bytes, stream))
WITHIN_HOOKS(cuMemcpyPeer, _ptds, LL_LAUNCH_DEFAULT_STREAM,
	     (ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
	      struct ll_cu_context *from_context, size_t bytes),
	     (to, to_context, from, from_context, bytes))
WITHIN_HOOKS(cuMemcpyPeerAsync, _ptsz, stream,
	     (ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
	      struct ll_cu_context *from_context, size_t bytes, struct ll_cu_stream *stream),
	     (to, to_context, from, from_context, bytes, stream))

/* Arrays are always the card's. */
WITHIN_HOOKS(cuMemcpyAtoA_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
	     (struct ll_cu_array * to, size_t to_offset, struct ll_cu_array *from, size_t from_offset, size_t bytes),
	     (to, to_offset, from, from_offset, bytes))
WITHIN_HOOKS(cuMemcpyAtoD_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
	     (ll_cu_deviceptr to, struct ll_cu_array *from, size_t from_offset, size_t bytes),
	     (to, from, from_offset, bytes))
WITHIN_HOOKS(cuMemcpyDtoA_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
	     (struct ll_cu_array * to, size_t to_offset, ll_cu_deviceptr from, size_t bytes),
	     (to, to_offset, from, bytes))

LL_COPY_HOOKS(cuMemcpy, _ptds, SIDES_AT(to, from), bytes, LL_LAUNCH_DEFAULT_STREAM,
	      (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
LL_COPY_HOOKS(cuMemcpyAsync, _ptsz, SIDES_AT(to, from), bytes, stream,
	      (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	      (to, from, bytes, stream))
LL_COPY_HOOKS(cuMemcpy2D_v2, _ptds, SIDES_OF(copy), ROWS_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy2d *copy), (copy))
LL_COPY_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, SIDES_OF(copy), ROWS_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy2d *copy), (copy))
LL_COPY_HOOKS(cuMemcpy2DAsync_v2, _ptsz, SIDES_OF(copy), ROWS_BYTES(copy), stream,
	      (const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream), (copy, stream))
LL_COPY_HOOKS(cuMemcpy3D_v2, _ptds, SIDES_OF(copy), BOX_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy3d *copy), (copy))
LL_COPY_HOOKS(cuMemcpy3DAsync_v2, _ptsz, SIDES_OF(copy), BOX_BYTES(copy), stream,
	      (const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream), (copy, stream))
LL_COPY_HOOKS(cuMemcpy3DPeer, _ptds, SIDES_OF(copy), BOX_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy3d_peer *copy), (copy))
LL_COPY_HOOKS(cuMemcpy3DPeerAsync, _ptsz, SIDES_OF(copy), BOX_BYTES(copy), stream,
	      (const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream), (copy, stream))

/* Those whose names say that one side is not: hooked for traces, and to know how the program waits (waits.h). note: a
 * call before. */
#define TRANSFER_HOOK(symbol, is_to_card, stream, params, args, note)                                                  \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		note;                                                                                                  \
		if (ll_gate_is_open() || ll_reentry_is_inside() || !ll_trace_is_by_events())                           \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    ll_copy_begin(#symbol, (struct ll_copy_sides){is_to_card, !(is_to_card)}, bytes, stream);          \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}
#define TRANSFER_HOOKS(symbol, suffix, is_to_card, stream, params, args, note)                                         \
	TRANSFER_HOOK(symbol, is_to_card, stream, params, args, note)                                                  \
	TRANSFER_HOOK(symbol##suffix, is_to_card, ll_launch_per_thread(stream), params, args, note)

TRANSFER_HOOKS(cuMemcpyHtoD_v2, _ptds, true, LL_LAUNCH_DEFAULT_STREAM,
	       (ll_cu_deviceptr to, const void *from, size_t bytes), (to, from, bytes), )
/* It waits for all that was launched in its stream before. */
TRANSFER_HOOKS(cuMemcpyDtoH_v2, _ptds, false, LL_LAUNCH_DEFAULT_STREAM, (void *to, ll_cu_deviceptr from, size_t bytes),
	       (to, from, bytes), ll_waits_count())
TRANSFER_HOOKS(cuMemcpyHtoDAsync_v2, _ptsz, true, stream,
	       (ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream),
	       (to, from, bytes, stream), )
TRANSFER_HOOKS(cuMemcpyDtoHAsync_v2, _ptsz, false, stream,
	       (void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream), (to, from, bytes, stream), )
