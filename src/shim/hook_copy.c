/*
 * Copies within and between cards. Those use the SMs, or the memory as kernels do; copies between host and card run on
 * the copy engines beside other programs' kernels, and pass. Where the function does not say which it is, it is asked
 * of the addresses, and only while the gate is shut: through an open gate such a copy is not counted, and its time is
 * in that of its stream.
 */
#include "abi/cuda_launch.h"
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

/* For each kind of description: whether both its sides are on a card. */
#define IS_WITHIN(copy)                                                                                                \
	((copy) && is_side_on_card((copy)->from_type, (copy)->from_device) &&                                          \
	 is_side_on_card((copy)->to_type, (copy)->to_device))

#define COPY_HOOKS(symbol, suffix, is_within, stream, params, args)                                                    \
	LL_LAUNCH_HOOK_UNLESS(ll_launch_gate_is_open() || ll_reentry_is_inside() || !(is_within), symbol, stream,      \
			      ll_launch_kind(#symbol, 0), params, args)                                                \
	LL_LAUNCH_HOOK_UNLESS(ll_launch_gate_is_open() || ll_reentry_is_inside() || !(is_within), symbol##suffix,      \
			      ll_launch_per_thread(stream), ll_launch_kind(#symbol, 0), params, args)

LL_LAUNCH_HOOKS(cuMemcpyDtoD_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
		(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
LL_LAUNCH_HOOKS(cuMemcpyDtoDAsync_v2, _ptsz, stream,
		(ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
		(to, from, bytes, stream))
LL_LAUNCH_HOOKS(cuMemcpyPeer, _ptds, LL_LAUNCH_DEFAULT_STREAM,
		(ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
		 struct ll_cu_context *from_context, size_t bytes),
		(to, to_context, from, from_context, bytes))
LL_LAUNCH_HOOKS(cuMemcpyPeerAsync, _ptsz, stream,
		(ll_cu_deviceptr to, struct ll_cu_context *to_context, ll_cu_deviceptr from,
		 struct ll_cu_context *from_context, size_t bytes, struct ll_cu_stream *stream),
		(to, to_context, from, from_context, bytes, stream))

COPY_HOOKS(cuMemcpy, _ptds, is_on_card(to) && is_on_card(from), LL_LAUNCH_DEFAULT_STREAM,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
COPY_HOOKS(cuMemcpyAsync, _ptsz, is_on_card(to) && is_on_card(from), stream,
	   (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	   (to, from, bytes, stream))
COPY_HOOKS(cuMemcpy2D_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM, (const struct ll_cu_memcpy2d *copy), (copy))
COPY_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM,
	   (const struct ll_cu_memcpy2d *copy), (copy))
COPY_HOOKS(cuMemcpy2DAsync_v2, _ptsz, IS_WITHIN(copy), stream,
	   (const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream), (copy, stream))
COPY_HOOKS(cuMemcpy3D_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM, (const struct ll_cu_memcpy3d *copy), (copy))
COPY_HOOKS(cuMemcpy3DAsync_v2, _ptsz, IS_WITHIN(copy), stream,
	   (const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream), (copy, stream))
COPY_HOOKS(cuMemcpy3DPeer, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM, (const struct ll_cu_memcpy3d_peer *copy),
	   (copy))
COPY_HOOKS(cuMemcpy3DPeerAsync, _ptsz, IS_WITHIN(copy), stream,
	   (const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream), (copy, stream))
