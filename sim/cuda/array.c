/*
 * Arrays and mipmaps for the program: make, query, destroy.
 */
#include "cuda/local/array.h"
#include "cuda/enter.h"

enum { ALIGNMENT = 65536 };

ll_cu_result cuArray3DCreate_v2(struct ll_cu_array **ret_array, const struct ll_cu_array3d_descriptor *descriptor)
{
	SIM_ENTER();
	struct ll_cu_mipmapped_array *mipmap;
	if (!ret_array || !descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_mipmap_new(descriptor, 1, true, &mipmap);
	if (!status)
		*ret_array = &mipmap->levels[0];
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuArrayCreate_v2(struct ll_cu_array **ret_array, const struct ll_cu_array_descriptor *descriptor)
{
	SIM_ENTER();
	if (!descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	struct ll_cu_array3d_descriptor shape = {
	    .width = descriptor->width,
	    .height = descriptor->height,
	    .format = descriptor->format,
	    .channels = descriptor->channels,
	};
	return cuArray3DCreate_v2(ret_array, &shape);
}

ll_cu_result cuArray3DGetDescriptor_v2(struct ll_cu_array3d_descriptor *ret_descriptor, struct ll_cu_array *array)
{
	SIM_ENTER();
	if (!ret_descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_known = sim_array_of(array) != NULL;
	if (is_known)
		*ret_descriptor = array->shape;
	sim_cuda_unlock();
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}

ll_cu_result cuArrayGetDescriptor_v2(struct ll_cu_array_descriptor *ret_descriptor, struct ll_cu_array *array)
{
	SIM_ENTER();
	struct ll_cu_array3d_descriptor shape;
	if (!ret_descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = cuArray3DGetDescriptor_v2(&shape, array);
	if (!status)
		*ret_descriptor =
		    (struct ll_cu_array_descriptor){shape.width, shape.height, shape.format, shape.channels};
	return status;
}

/* Only for arrays that are mapped later; other arrays have their memory already. */
static ll_cu_result get_requirements(struct ll_cu_array_requirements *ret_requirements,
				     const struct ll_cu_mipmapped_array *mipmap, ll_cu_device device)
{
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	if (!ret_requirements || !(mipmap->levels[0].shape.flags & LL_CUDA_ARRAY3D_DEFERRED_MAPPING))
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_requirements = (struct ll_cu_array_requirements){
	    .bytes = (mipmap->taken_bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT, .alignment = ALIGNMENT};
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuArrayGetMemoryRequirements(struct ll_cu_array_requirements *ret_requirements, struct ll_cu_array *array,
					  ll_cu_device device)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = sim_array_of(array) ? get_requirements(ret_requirements, array->mipmap, device)
						  : LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuArrayDestroy(struct ll_cu_array *array)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool is_known = sim_array_of(array) != NULL;
	if (is_known && array->mipmap->is_array)
		sim_mipmap_destroy(array->mipmap);
	sim_cuda_unlock();
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}

ll_cu_result cuMipmappedArrayCreate(struct ll_cu_mipmapped_array **ret_mipmap,
				    const struct ll_cu_array3d_descriptor *descriptor, unsigned int levels)
{
	SIM_ENTER();
	if (!ret_mipmap || !descriptor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = sim_mipmap_new(descriptor, levels, false, ret_mipmap);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMipmappedArrayGetLevel(struct ll_cu_array **ret_array, struct ll_cu_mipmapped_array *mipmap,
				      unsigned int level)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_ERROR_INVALID_HANDLE;
	if (sim_is_mipmap(mipmap))
		status = ret_array && level < mipmap->level_count ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_VALUE;
	if (!status)
		*ret_array = &mipmap->levels[level];
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMipmappedArrayGetMemoryRequirements(struct ll_cu_array_requirements *ret_requirements,
						   struct ll_cu_mipmapped_array *mipmap, ll_cu_device device)
{
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status =
	    sim_is_mipmap(mipmap) ? get_requirements(ret_requirements, mipmap, device) : LL_CUDA_ERROR_INVALID_HANDLE;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuMipmappedArrayDestroy(struct ll_cu_mipmapped_array *mipmap)
{
	SIM_ENTER();
	sim_cuda_lock();
	bool is_known = sim_is_mipmap(mipmap);
	if (is_known)
		sim_mipmap_destroy(mipmap);
	sim_cuda_unlock();
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_HANDLE;
}
