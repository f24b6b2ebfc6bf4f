/*
 * Copies and memsets. What hooks of copies share: which of them are work of the card's SMs.
 *
 * Copies within and between cards use the SMs, or the memory as kernels do; copies between host and card run on the
 * copy engines beside other programs' kernels, and pass. Where the function does not say which it is, it is asked of
 * the addresses, and only while the gate is shut: through an open gate such a copy is not counted, and its time is in
 * that of its stream. A trace by events holds the gate shut, and sees them all.
 */
#include "abi/cuda_copy.h"
#include "abi/cuda_launch.h"
#include "abi/cupti.h"
#include "shim/hooks/launch.h"
#include "shim/interpose/hook.h"
#include "shim/time/waits.h"

/* ---- copies ---- */

struct copy_sides {
	bool is_to_card, is_from_card;
};

/* Hooks of symbol and of its variant: a launch where both sides, an expression of its parameters, are on a card. */
#define COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                    \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		if (ll_gate_is_open() || ll_reentry_is_inside())                                                       \
			return ll_real()->symbol args;                                                                 \
		struct copy_sides sides = sides_of;                                                                    \
		if (!(sides.is_to_card && sides.is_from_card) && !ll_trace_is_by_events())                             \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    begin_copy(#symbol, sides, bytes_of, stream);                                                      \
		return LL_LAUNCH_CALL(launch, ll_real()->symbol args);                                                 \
	}

#define COPY_HOOKS(symbol, suffix, sides_of, bytes_of, stream, params, args)                                           \
	COPY_HOOK(symbol, sides_of, bytes_of, stream, params, args)                                                    \
	COPY_HOOK(symbol##suffix, sides_of, bytes_of, ll_launch_per_thread(stream), params, args)

/* Memory that the driver does not know is the host's. Managed memory counts as the card's. Calls the driver. */
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

/* For each kind of description: which of its sides are on a card. */
#define SIDES_OF(copy)                                                                                                 \
	((copy) ? (struct copy_sides){is_side_on_card((copy)->to_type, (copy)->to_device),                             \
				      is_side_on_card((copy)->from_type, (copy)->from_device)}                         \
		: (struct copy_sides){false, false})
#define SIDES_AT(to, from) ((struct copy_sides){is_on_card(to), is_on_card(from)})

/* Tells a trace what is copied, and from where to where. Returns the kind of the launch (launch.h). */
static uint64_t note_copy(const char *symbol, struct copy_sides sides, uint64_t bytes)
{
	uint64_t kind = ll_launch_named(symbol, LL_TRACE_COPY, bytes);
	ll_trace_next.to = sides.is_to_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	ll_trace_next.from = sides.is_from_card ? LL_CUPTI_MEMORY_DEVICE : LL_CUPTI_MEMORY_UNKNOWN;
	return kind;
}

/* A copy between host and card does not wait. It is timed if a trace wants that. */
static struct ll_launch begin_copy(const char *symbol, struct copy_sides sides, uint64_t bytes,
				   struct ll_cu_stream *stream)
{
	uint64_t kind = note_copy(symbol, sides, bytes);
	return sides.is_to_card && sides.is_from_card ? ll_launch_begin(stream, kind) : ll_launch_begin_ungated(stream);
}

#define ROWS_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height : 0)
#define BOX_BYTES(copy) ((copy) ? (uint64_t)(copy)->width_bytes * (copy)->height * (copy)->depth : 0)

/* Those whose names say that both sides are on cards. */
#define WITHIN_HOOKS(symbol, suffix, stream, params, args)                                                             \
	LL_LAUNCH_HOOKS_OF_KIND(symbol, suffix, stream, note_copy(#symbol, (struct copy_sides){true, true}, bytes),    \
				params, args)

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

/* Those whose names say that one side is not: hooked for traces, and to know how the program waits (waits.h). note: a
 * call before. */
#define TRANSFER_HOOK(symbol, is_to_card, stream, params, args, note)                                                  \
	LL_HOOK_EXPORT ll_cu_result symbol params                                                                      \
	{                                                                                                              \
		LL_DRIVER_CALL(symbol);                                                                                \
		note;                                                                                                  \
		if (ll_gate_is_open() || ll_reentry_is_inside() || !ll_trace_is_by_events())                           \
			return ll_real()->symbol args;                                                                 \
		struct ll_launch launch __attribute__((cleanup(ll_launch_end))) =                                      \
		    begin_copy(#symbol, (struct copy_sides){is_to_card, !(is_to_card)}, bytes, stream);                \
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

/* ---- copies in batches ---- */

/*
 * Copies in batches: the driver runs a batch as one thing in its stream's order, so it waits, and is timed, as one. It
 * does when any copy of it is within the card or between cards, as in hook_copy.c; the hints of a batch change nothing
 * of that.
 */
static bool has_line_on_card(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count)
{
	for (size_t i = 0; to && from && i < count; i++) {
		if (is_on_card(to[i]) && is_on_card(from[i]))
			return true;
	}
	return false;
}

static bool is_operand_on_card(const struct ll_cu_copy_operand *operand)
{
	return operand->type == LL_CU_MEMCPY_OPERAND_TYPE_ARRAY || is_on_card(operand->at.pointer.address);
}

static bool has_block_on_card(const struct ll_cu_copy3d_op *ops, size_t count)
{
	for (size_t i = 0; ops && i < count; i++) {
		if (is_operand_on_card(&ops[i].to) && is_operand_on_card(&ops[i].from))
			return true;
	}
	return false;
}

/* Where none is, the first one says for a trace which way they go. */
static struct copy_sides sides_of_lines(const ll_cu_deviceptr *to, const ll_cu_deviceptr *from, size_t count)
{
	if (has_line_on_card(to, from, count))
		return (struct copy_sides){true, true};
	if (!to || !from || !count)
		return (struct copy_sides){false, false};
	return (struct copy_sides){is_on_card(to[0]), is_on_card(from[0])};
}

static struct copy_sides sides_of_blocks(const struct ll_cu_copy3d_op *ops, size_t count)
{
	if (has_block_on_card(ops, count))
		return (struct copy_sides){true, true};
	if (!ops || !count)
		return (struct copy_sides){false, false};
	return (struct copy_sides){is_operand_on_card(&ops[0].to), is_operand_on_card(&ops[0].from)};
}

static uint64_t bytes_of_lines(const size_t *bytes, size_t count)
{
	uint64_t sum = 0;
	for (size_t i = 0; bytes && i < count; i++)
		sum += bytes[i];
	return sum;
}

COPY_HOOKS(cuMemcpyBatchAsync_v2, _ptsz, sides_of_lines(to, from, count), bytes_of_lines(bytes, count), stream,
	   (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	    struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, count, attributes, first_of, attribute_count, stream))
COPY_HOOKS(cuMemcpyBatchAsync, _ptsz, sides_of_lines(to, from, count), bytes_of_lines(bytes, count), stream,
	   (ll_cu_deviceptr * to, ll_cu_deviceptr *from, size_t *bytes, size_t count,
	    struct ll_cu_copy_attributes *attributes, size_t *first_of, size_t attribute_count, size_t *ret_failed,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, count, attributes, first_of, attribute_count, ret_failed, stream))
COPY_HOOKS(cuMemcpy3DBatchAsync_v2, _ptsz, sides_of_blocks(ops, count), 0, stream,
	   (size_t count, struct ll_cu_copy3d_op *ops, unsigned long long flags, struct ll_cu_stream *stream),
	   (count, ops, flags, stream))
COPY_HOOKS(cuMemcpy3DBatchAsync, _ptsz, sides_of_blocks(ops, count), 0, stream,
	   (size_t count, struct ll_cu_copy3d_op *ops, size_t *ret_failed, unsigned long long flags,
	    struct ll_cu_stream *stream),
	   (count, ops, ret_failed, flags, stream))

/* From CUDA 13.2: one of them each. */
COPY_HOOKS(cuMemcpyWithAttributesAsync, _ptsz, sides_of_lines(&to, &from, 1), bytes, stream,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_copy_attributes *attributes,
	    struct ll_cu_stream *stream),
	   (to, from, bytes, attributes, stream))
COPY_HOOKS(cuMemcpy3DWithAttributesAsync, _ptsz, sides_of_blocks(op, 1), 0, stream,
	   (struct ll_cu_copy3d_op * op, unsigned long long flags, struct ll_cu_stream *stream), (op, flags, stream))

/* ---- memsets ---- */

/* Memsets of the card's memory are kernels of the driver. */
#define MEMSET(symbol, elements, bits) ll_launch_named(symbol, LL_TRACE_MEMSET, (uint64_t)(elements) * ((bits) / 8))

#define MEMSET_HOOKS(bits, value_type)                                                                                 \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD##bits##_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,                                 \
				MEMSET("cuMemsetD" #bits "_v2", count, bits),                                          \
				(ll_cu_deviceptr to, value_type value, size_t count), (to, value, count))              \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD##bits##Async, _ptsz, stream, MEMSET("cuMemsetD" #bits "Async", count, bits), \
				(ll_cu_deviceptr to, value_type value, size_t count, struct ll_cu_stream * stream),    \
				(to, value, count, stream))                                                            \
	LL_LAUNCH_HOOKS_OF_KIND(                                                                                       \
	    cuMemsetD2D##bits##_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,                                                   \
	    MEMSET("cuMemsetD2D" #bits "_v2", width *height, bits),                                                    \
	    (ll_cu_deviceptr to, size_t pitch_bytes, value_type value, size_t width, size_t height),                   \
	    (to, pitch_bytes, value, width, height))                                                                   \
	LL_LAUNCH_HOOKS_OF_KIND(cuMemsetD2D##bits##Async, _ptsz, stream,                                               \
				MEMSET("cuMemsetD2D" #bits "Async", width *height, bits),                              \
				(ll_cu_deviceptr to, size_t pitch_bytes, value_type value, size_t width,               \
				 size_t height, struct ll_cu_stream * stream),                                         \
				(to, pitch_bytes, value, width, height, stream))

MEMSET_HOOKS(8, unsigned char)
MEMSET_HOOKS(16, unsigned short)
MEMSET_HOOKS(32, unsigned int)
