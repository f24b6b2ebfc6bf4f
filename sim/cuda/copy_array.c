/*
 * Copies of one range of an array. A range is bytes of its rows, which are contiguous.
 */
#include "cuda/copy_pitched.h"
#include "cuda/enter.h"
#include "cuda/local/copy.h"

/* One end of such a copy. */
struct side {
	enum ll_cu_memory_type type;
	void *host;
	ll_cu_deviceptr device;
	struct ll_cu_array *array;
	size_t offset; /* in the array */
};

static struct side of_array(struct ll_cu_array *array, size_t offset)
{
	return (struct side){.type = LL_CU_MEMORYTYPE_ARRAY, .array = array, .offset = offset};
}

static struct side of_device(ll_cu_deviceptr address)
{
	return (struct side){.type = LL_CU_MEMORYTYPE_DEVICE, .device = address};
}

static struct side of_host(void *address)
{
	return (struct side){.type = LL_CU_MEMORYTYPE_HOST, .host = address};
}

static ll_cu_result copy_array_range(struct side to, struct side from, size_t bytes, struct ll_cu_stream *stream,
				     bool is_async)
{
	struct ll_cu_memcpy3d block = {
	    .from_type = from.type,
	    .from_host = from.host,
	    .from_device = from.device,
	    .from_array = from.array,
	    .from_x_bytes = from.offset,
	    .to_type = to.type,
	    .to_host = to.host,
	    .to_device = to.device,
	    .to_array = to.array,
	    .to_x_bytes = to.offset,
	    .width_bytes = bytes,
	    .height = 1,
	    .depth = 1,
	};
	return sim_copy_block(&block, stream, is_async);
}

ll_cu_result cuMemcpyAtoA_v2(struct ll_cu_array *to, size_t to_offset, struct ll_cu_array *from, size_t from_offset,
			     size_t bytes)
{
	SIM_ENTER();
	return copy_array_range(of_array(to, to_offset), of_array(from, from_offset), bytes, NULL, false);
}

ll_cu_result cuMemcpyAtoD_v2(ll_cu_deviceptr to, struct ll_cu_array *from, size_t from_offset, size_t bytes)
{
	SIM_ENTER();
	return copy_array_range(of_device(to), of_array(from, from_offset), bytes, NULL, false);
}

ll_cu_result cuMemcpyDtoA_v2(struct ll_cu_array *to, size_t to_offset, ll_cu_deviceptr from, size_t bytes)
{
	SIM_ENTER();
	return copy_array_range(of_array(to, to_offset), of_device(from), bytes, NULL, false);
}

ll_cu_result cuMemcpyAtoH_v2(void *to, struct ll_cu_array *from, size_t from_offset, size_t bytes)
{
	SIM_ENTER();
	return copy_array_range(of_host(to), of_array(from, from_offset), bytes, NULL, false);
}

ll_cu_result cuMemcpyAtoHAsync_v2(void *to, struct ll_cu_array *from, size_t from_offset, size_t bytes,
				  struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_array_range(of_host(to), of_array(from, from_offset), bytes, stream, true);
}

/* The source is only read. */
ll_cu_result cuMemcpyHtoA_v2(struct ll_cu_array *to, size_t to_offset, const void *from, size_t bytes)
{
	SIM_ENTER();
	return copy_array_range(of_array(to, to_offset), of_host((void *)(uintptr_t)from), bytes, NULL, false);
}

ll_cu_result cuMemcpyHtoAAsync_v2(struct ll_cu_array *to, size_t to_offset, const void *from, size_t bytes,
				  struct ll_cu_stream *stream)
{
	SIM_ENTER();
	return copy_array_range(of_array(to, to_offset), of_host((void *)(uintptr_t)from), bytes, stream, true);
}
