/* Arrays and mipmaps. The driver says what one takes only of those that take nothing yet, so its tiles are counted
 * here. */
#include "shim/interpose/hook.h"
#include "shim/memory/charge.h"

static struct ll_cu_array3d_descriptor as_3d(const struct ll_cu_array_descriptor *d)
{
	return (struct ll_cu_array3d_descriptor){
	    .width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
}

static struct ll_cu_array3d_descriptor from_v1(const struct ll_cu_array_descriptor_v1 *d)
{
	return (struct ll_cu_array3d_descriptor){
	    .width = d->width, .height = d->height, .format = d->format, .channels = d->channels};
}

static struct ll_cu_array3d_descriptor from_3d_v1(const struct ll_cu_array3d_descriptor_v1 *d)
{
	return (struct ll_cu_array3d_descriptor){.width = d->width,
						 .height = d->height,
						 .depth = d->depth,
						 .format = d->format,
						 .channels = d->channels,
						 .flags = d->flags};
}

#define CREATE(kind, call, ret_handle, given, levels)                                                                  \
	LL_REENTRY_SCOPE();                                                                                            \
	struct ll_cu_array3d_descriptor shape = given;                                                                 \
	LL_CHARGE(charge, ll_place_current(), ll_footprint_array(&shape, levels));                                     \
	if (charge.is_refused)                                                                                         \
		return LL_CUDA_ERROR_OUT_OF_MEMORY;                                                                    \
	LL_CHARGED_CALL(status, charge.place.dev, call);                                                               \
	if (status == LL_CUDA_SUCCESS)                                                                                 \
		ll_charge_keep(&charge, kind, ll_charge_name(*(ret_handle)));                                          \
	return status

LL_HOOK_EXPORT ll_cu_result cuArrayCreate(struct ll_cu_array **ret_array,
					  const struct ll_cu_array_descriptor_v1 *descriptor)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArrayCreate(ret_array, descriptor);
	CREATE(LL_SIZE_ARRAY, ll_real()->cuArrayCreate(ret_array, descriptor), ret_array, from_v1(descriptor), 1);
}

LL_HOOK_EXPORT ll_cu_result cuArrayCreate_v2(struct ll_cu_array **ret_array,
					     const struct ll_cu_array_descriptor *descriptor)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArrayCreate_v2(ret_array, descriptor);
	CREATE(LL_SIZE_ARRAY, ll_real()->cuArrayCreate_v2(ret_array, descriptor), ret_array, as_3d(descriptor), 1);
}

LL_HOOK_EXPORT ll_cu_result cuArray3DCreate(struct ll_cu_array **ret_array,
					    const struct ll_cu_array3d_descriptor_v1 *descriptor)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArray3DCreate(ret_array, descriptor);
	CREATE(LL_SIZE_ARRAY, ll_real()->cuArray3DCreate(ret_array, descriptor), ret_array, from_3d_v1(descriptor), 1);
}

LL_HOOK_EXPORT ll_cu_result cuArray3DCreate_v2(struct ll_cu_array **ret_array,
					       const struct ll_cu_array3d_descriptor *descriptor)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuArray3DCreate_v2(ret_array, descriptor);
	CREATE(LL_SIZE_ARRAY, ll_real()->cuArray3DCreate_v2(ret_array, descriptor), ret_array, *descriptor, 1);
}

LL_HOOK_EXPORT ll_cu_result cuMipmappedArrayCreate(struct ll_cu_mipmapped_array **ret_mipmap,
						   const struct ll_cu_array3d_descriptor *descriptor,
						   unsigned int levels)
{
	if (ll_charge_passes() || !descriptor)
		return ll_real()->cuMipmappedArrayCreate(ret_mipmap, descriptor, levels);
	CREATE(LL_SIZE_MIPMAP, ll_real()->cuMipmappedArrayCreate(ret_mipmap, descriptor, levels), ret_mipmap,
	       *descriptor, levels);
}

#define DESTROY(kind, symbol, handle)                                                                                  \
	struct ll_size size;                                                                                           \
	if (ll_charge_passes())                                                                                        \
		return ll_real()->symbol(handle);                                                                      \
	LL_REENTRY_SCOPE();                                                                                            \
	bool is_known = ll_charge_take(kind, ll_charge_name(handle), &size);                                           \
	ll_cu_result status = ll_real()->symbol(handle);                                                               \
	if (is_known)                                                                                                  \
		ll_charge_freed(kind, ll_charge_name(handle), &size, status);                                          \
	return status

LL_HOOK_EXPORT ll_cu_result cuArrayDestroy(struct ll_cu_array *array)
{
	DESTROY(LL_SIZE_ARRAY, cuArrayDestroy, array);
}

LL_HOOK_EXPORT ll_cu_result cuMipmappedArrayDestroy(struct ll_cu_mipmapped_array *mipmap)
{
	DESTROY(LL_SIZE_MIPMAP, cuMipmappedArrayDestroy, mipmap);
}
