/* Copies within and between cards: copy.h says which. */
#include "abi/cuda_launch.h"
#include "shim/copy.h"
#include "shim/hook.h"
#include "shim/launch.h"

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

/* For each kind of description: whether both its sides are on a card. */
#define IS_WITHIN(copy)                                                                                                \
	((copy) && is_side_on_card((copy)->from_type, (copy)->from_device) &&                                          \
	 is_side_on_card((copy)->to_type, (copy)->to_device))

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

/* Arrays are always the card's. */
LL_LAUNCH_HOOKS(cuMemcpyAtoA_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
		(struct ll_cu_array * to, size_t to_offset, struct ll_cu_array *from, size_t from_offset, size_t bytes),
		(to, to_offset, from, from_offset, bytes))
LL_LAUNCH_HOOKS(cuMemcpyAtoD_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
		(ll_cu_deviceptr to, struct ll_cu_array *from, size_t from_offset, size_t bytes),
		(to, from, from_offset, bytes))
LL_LAUNCH_HOOKS(cuMemcpyDtoA_v2, _ptds, LL_LAUNCH_DEFAULT_STREAM,
		(struct ll_cu_array * to, size_t to_offset, ll_cu_deviceptr from, size_t bytes),
		(to, to_offset, from, bytes))

LL_COPY_HOOKS(cuMemcpy, _ptds, ll_copy_is_on_card(to) && ll_copy_is_on_card(from), LL_LAUNCH_DEFAULT_STREAM,
	      (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes), (to, from, bytes))
LL_COPY_HOOKS(cuMemcpyAsync, _ptsz, ll_copy_is_on_card(to) && ll_copy_is_on_card(from), stream,
	      (ll_cu_deviceptr to, ll_cu_deviceptr from, size_t bytes, struct ll_cu_stream *stream),
	      (to, from, bytes, stream))
LL_COPY_HOOKS(cuMemcpy2D_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM, (const struct ll_cu_memcpy2d *copy),
	      (copy))
LL_COPY_HOOKS(cuMemcpy2DUnaligned_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy2d *copy), (copy))
LL_COPY_HOOKS(cuMemcpy2DAsync_v2, _ptsz, IS_WITHIN(copy), stream,
	      (const struct ll_cu_memcpy2d *copy, struct ll_cu_stream *stream), (copy, stream))
LL_COPY_HOOKS(cuMemcpy3D_v2, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM, (const struct ll_cu_memcpy3d *copy),
	      (copy))
LL_COPY_HOOKS(cuMemcpy3DAsync_v2, _ptsz, IS_WITHIN(copy), stream,
	      (const struct ll_cu_memcpy3d *copy, struct ll_cu_stream *stream), (copy, stream))
LL_COPY_HOOKS(cuMemcpy3DPeer, _ptds, IS_WITHIN(copy), LL_LAUNCH_DEFAULT_STREAM,
	      (const struct ll_cu_memcpy3d_peer *copy), (copy))
LL_COPY_HOOKS(cuMemcpy3DPeerAsync, _ptsz, IS_WITHIN(copy), stream,
	      (const struct ll_cu_memcpy3d_peer *copy, struct ll_cu_stream *stream), (copy, stream))
