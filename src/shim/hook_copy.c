/*
 * Copies within and between cards. Those use the SMs, or the memory as kernels do; copies between host and card run on
 * the copy engines beside other programs' kernels, and pass. Where the function does not say which it is, it is asked
 * of the addresses, and only while the gate is shut: through an open gate such a copy is not counted, and its time is
 * in that of its stream. A trace by events holds the gate shut, and sees them all.
 */
#include "abi/cuda_launch.h"
#include "abi/cupti.h"
#include "shim/hook.h"
#include "shim/launch.h"

/* Memory that the driver does not know is the host's. Managed memory counts as the card's. */
static bool is_on_card(ll_cu_deviceptr address)
{
	LL_REENTRY_SCOPE();
	unsigned int type = 0;
	ll_cu_result status = ll_real()->cuPointerGetAttribute(&type, LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
	return status == LL_CUDA_SUCCESS && type != LL_CU_MEMORYTYPE_HOST;
}

static bool is_side_on_card(enum ll_cu_memory_type type, ll_cu_deviceptr address)
{
	return type == LL_CU_MEMORYTYPE_DEVICE || type == LL_CU_MEMORYTYPE_ARRAY ||
	       (type == LL_CU_MEMORYTYPE_UNIFIED && is_on_card(address));
}

struct sides {
	bool is_to_card, is_from_card;
};

/* For each kind of description: which of its sides are on a card. */
#define SIDES_OF(copy)                                                                                                 \
	((copy) ? (struct sides){is_side_on_card((copy)->to_type, (copy)->to_device),                                  \
				 is_side_on_card((copy)->from_type, (copy)->from_device)}                              \
		: (struct sides){false, false})
#define SIDES_AT(to, from) ((struct sides){is_on_card(to), is_on_card(from)})

/* For a trace: what is copied, and from where to where. */
static uint64_t note_copy(const char *symbol, struct sides sides, uint64_t bytes)
{
	uint64_t kind = ll_launch_named(symbol, LL_TRACE_COPY, bytes);
	ll_trace_next.to = sides.is_to_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	ll_trace_next.from = sides.is_from_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	return kind;
}

/* Between host and card nothing waits; it is timed where a trace wants that. */
static struct ll_launch begin_copy(const char *symbol, struct sides sides, uint64_t bytes, struct ll_cu_stream *stream)
{
	uint64_t kind = note_copy(symbol, sides, bytes);
	return sides.is_to_card && sides.is_from_card ? ll_launch_begin(stream, kind) : ll_launch_begin_ungated(stream);
}

#define COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                    \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (ll_launch_gate_is_open() || ll_reentry_is_inside())                                                \
			return ll_real()->symbol args;                                                                 \
		struct sides sides = sides_of;                                                                         \
		if (!(sides.is_to_card && sides.is_from_card) && !ll_trace_is_by_events())                             \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    begin_copy(#symbol, sides, bytes_of, stream);                                                      \
		return launch.status = ll_real()->symbol args;                                                         \
	}

#define COPY_HOOKS(symbol, suffix, sides_of, bytes_of, stream, params, args)                                           \
	COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                    \
	COPY_HOOK(symbol##suffix, sides_of, bytes_of, ll_launch_per_thread(stream), params, args)

#define ROWS_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height : 0)
#define BOX_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height * (copy)->depth : 0)

/* Those whose names say that both sides are on cards. */
#define WITHIN_HOOKS(symbol, suffix, stream, params, args)                                                             \
	LL_LAUNCH_HOOKS_OF_KIND(symbol, suffix, stream, note_copy(#symbol, (struct sides){true, true}, bytes), params, \
				args)

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

COPY_HOOKS(cuMemcpy, _ptds, SIDES_AT(to, from), bytes, LL_LAUNCH_DEFAULT_STREAM,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
COPY_HOOKS(cuMemcpyAsync, _ptsz, SIDES_AT(to, from), bytes, stream,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, bytes, stream))
COPY_HOOKS(cuMemcpy2D_v2, _ptds, SIDES_OF(copy), ROWS_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	   (const struct ll_cu_memcpy2d *copy), (copy))
COPY_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, SIDES_OF(copy), ROWS_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	   (const struct ll_cu_memcpy2d *copy), (copy))
COPY_HOOKS(cuMemcpy2DAsync_v2, _ptsz, SIDES_OF(copy), ROWS_BYTES(copy), stream,
	   (const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream), (copy, stream))
COPY_HOOKS(cuMemcpy3D_v2, _ptds, SIDES_OF(copy), BOX_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	   (const struct ll_cu_memcpy3d *copy), (copy))
COPY_HOOKS(cuMemcpy3DAsync_v2, _ptsz, SIDES_OF(copy), BOX_BYTES(copy), stream,
	   (const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream), (copy, stream))
COPY_HOOKS(cuMemcpy3DPeer, _ptds, SIDES_OF(copy), BOX_BYTES(copy), LL_LAUNCH_DEFAULT_STREAM,
	   (const struct ll_cu_memcpy3d_peer *copy), (copy))
COPY_HOOKS(cuMemcpy3DPeerAsync, _ptsz, SIDES_OF(copy), BOX_BYTES(copy), stream,
	   (const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream), (copy, stream))

/* Those whose names say that one side is not: hooked for traces alone. */
#define TRANSFER_HOOK(symbol, is_to_card, stream, params, args)                                                        \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		if (ll_launch_gate_is_open() || ll_reentry_is_inside() || !ll_trace_is_by_events())                    \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    begin_copy(#symbol, (struct sides){is_to_card, !(is_to_card)}, bytes, stream);                     \
		return launch.status = ll_real()->symbol args;                                                         \
	}
#define TRANSFER_HOOKS(symbol, suffix, is_to_card, stream, params, args)                                               \
	TRANSFER_HOOK(symbol, is_to_card, stream, params, args)                                                        \
	TRANSFER_HOOK(symbol##suffix, is_to_card, ll_launch_per_thread(stream), params, args)

TRANSFER_HOOKS(cuMemcpyHtoD_v2, _ptds, true, LL_LAUNCH_DEFAULT_STREAM,
	       (ll_cu_deviceptr to, const void *from, size_t bytes), (to, from, bytes))
TRANSFER_HOOKS(cuMemcpyDtoH_v2, _ptds, false, LL_LAUNCH_DEFAULT_STREAM, (void *to, ll_cu_deviceptr from, size_t bytes),
	       (to, from, bytes))
TRANSFER_HOOKS(cuMemcpyHtoDAsync_v2, _ptsz, true, stream,
	       (ll_cu_deviceptr to, const void *from, size_t bytes, struct ll_cu_stream *stream),
	       (to, from, bytes, stream))
TRANSFER_HOOKS(cuMemcpyDtoHAsync_v2, _ptsz, false, stream,
	       (void *to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream), (to, from, bytes, stream))
