/*
 * Green contexts. A green context has some of a card's SMs, and belongs to the card's primary context. Its streams are
 * streams of the primary context, so its work runs beside that context's. The number of its SMs is reported, and not
 * enforced. For functions that take a context, a green context has a second handle, a view. All objects of a view
 * belong to the primary context.
 */
#include <stdlib.h>

#include "cuda/enter.h"
#include "cuda/local/context.h"
#include "cuda/local/stream.h"

enum { PARTITION_SMS = 8 }; /* for a card of capability 9.0 */

/* The description of a green context to make. It is never freed, because the driver has no function for that. */
struct ll_cu_resource_desc {
	unsigned sm_count;
	struct ll_cu_resource_desc *next;
};

static struct ll_cu_resource_desc *descs;

static struct ll_cu_resource sm_resource(unsigned count)
{
	return (struct ll_cu_resource){.type = LL_CU_DEV_RESOURCE_TYPE_SM, .sm = {count, PARTITION_SMS, PARTITION_SMS}};
}

static bool is_green(const struct ll_cu_green_context *green)
{
	for (const struct ll_cu_green_context *g = sim_cuda.greens; g; g = g->next) {
		if (g == green)
			return true;
	}
	return false;
}

ll_cu_result cuDeviceGetDevResource(ll_cu_device device, struct ll_cu_resource *ret_resource, unsigned int type)
{
	SIM_ENTER();
	if (!ret_resource || type != LL_CU_DEV_RESOURCE_TYPE_SM)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (device < 0 || device >= sim_cuda.device_count)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_resource = sm_resource(sim_cuda.world->cards[sim_cuda.devices[device]].sm_count);
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDevSmResourceSplitByCount(struct ll_cu_resource *ret_groups, unsigned int *group_count,
					 const struct ll_cu_resource *input, struct ll_cu_resource *ret_rest,
					 unsigned int flags, unsigned int least_sms)
{
	SIM_ENTER();
	if (!group_count || !input || input->type != LL_CU_DEV_RESOURCE_TYPE_SM || flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	unsigned size = (least_sms + PARTITION_SMS - 1) / PARTITION_SMS * PARTITION_SMS;
	size = size ? size : PARTITION_SMS;
	unsigned count = input->sm.sm_count / size;
	if (!count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (ret_groups && *group_count < count)
		count = *group_count;
	for (unsigned i = 0; ret_groups && i < count; i++)
		ret_groups[i] = sm_resource(size);
	if (ret_rest)
		*ret_rest = sm_resource(input->sm.sm_count - count * size);
	*group_count = count;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDevResourceGenerateDesc(struct ll_cu_resource_desc **ret_desc, struct ll_cu_resource *resources,
				       unsigned int count)
{
	unsigned sm_count = 0;
	SIM_ENTER();
	if (!ret_desc || !resources || !count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		if (resources[i].type != LL_CU_DEV_RESOURCE_TYPE_SM || !resources[i].sm.sm_count)
			return LL_CUDA_ERROR_INVALID_VALUE;
		sm_count += resources[i].sm.sm_count;
	}
	struct ll_cu_resource_desc *desc = calloc(1, sizeof *desc);
	if (!desc)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	sim_cuda_lock();
	*desc = (struct ll_cu_resource_desc){.sm_count = sm_count, .next = descs};
	descs = desc;
	sim_cuda_unlock();
	*ret_desc = desc;
	return LL_CUDA_SUCCESS;
}

static struct ll_cu_green_context *make_green(struct ll_cu_context *primary, unsigned sm_count)
{
	struct ll_cu_green_context *green = calloc(1, sizeof *green);
	if (!green)
		return NULL;
	sim_cuda_lock();
	green->sm_count = sm_count;
	green->view = (struct ll_cu_context){
	    .magic = SIM_MAGIC_CONTEXT,
	    .slot = primary->slot,
	    .generation = primary->generation,
	    .card = primary->card,
	    .device = primary->device,
	    .flags = primary->flags,
	    .id = ++sim_cuda.last_context_id,
	    .whole = primary,
	};
	green->next = sim_cuda.greens;
	sim_cuda.greens = green;
	sim_cuda_unlock();
	return green;
}

ll_cu_result cuGreenCtxCreate(struct ll_cu_green_context **ret_green, struct ll_cu_resource_desc *resources,
			      ll_cu_device device, unsigned int flags)
{
	struct ll_cu_context *primary;
	SIM_ENTER();
	if (!ret_green || !resources || flags != LL_CU_GREEN_CTX_DEFAULT_STREAM)
		return LL_CUDA_ERROR_INVALID_VALUE;
	ll_cu_result status = sim_primary_retain(&primary, device);
	if (status)
		return status;
	*ret_green = make_green(primary, resources->sm_count);
	if (*ret_green) {
		sim_rm_open(&(*ret_green)->view.groups, primary->card, SIM_NONE);
		return LL_CUDA_SUCCESS;
	}
	sim_primary_drop(device, false);
	return LL_CUDA_ERROR_OUT_OF_MEMORY;
}

/* Streams that were made in the green context remain, and belong to the primary context from then on. */
static bool forget_green(struct ll_cu_green_context *green, ll_cu_device *ret_device, struct sim_rm_groups *ret_groups)
{
	struct ll_cu_green_context **link = &sim_cuda.greens;
	while (*link && *link != green)
		link = &(*link)->next;
	if (!*link)
		return false;
	*link = green->next;
	for (struct ll_cu_stream *s = green->view.whole->streams; s; s = s->next) {
		if (s->green == green)
			s->green = NULL;
	}
	*ret_device = green->view.device;
	*ret_groups = green->view.groups;
	free(green);
	return true;
}

ll_cu_result cuGreenCtxDestroy(struct ll_cu_green_context *green)
{
	ll_cu_device device;
	struct sim_rm_groups groups;
	SIM_ENTER();
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (is_green(green))
		status = sim_wait_context(green->view.whole);
	if (status != LL_CUDA_ERROR_INVALID_CONTEXT && !forget_green(green, &device, &groups))
		status = LL_CUDA_ERROR_INVALID_CONTEXT; /* another thread has destroyed it before */
	sim_cuda_unlock();
	if (status == LL_CUDA_ERROR_INVALID_CONTEXT)
		return status;
	sim_rm_close(&groups);
	return sim_primary_drop(device, false);
}

ll_cu_result cuCtxFromGreenCtx(struct ll_cu_context **ret_context, struct ll_cu_green_context *green)
{
	SIM_ENTER();
	if (!ret_context)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_known = is_green(green);
	if (is_known)
		*ret_context = &green->view;
	sim_cuda_unlock();
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_CONTEXT;
}

ll_cu_result cuGreenCtxStreamCreate(struct ll_cu_stream **ret_stream, struct ll_cu_green_context *green,
				    unsigned int flags, int priority)
{
	SIM_ENTER();
	if (!ret_stream || flags != LL_CU_STREAM_NON_BLOCKING)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = LL_CUDA_ERROR_INVALID_CONTEXT;
	if (is_green(green))
		status = sim_stream_make(green->view.whole, flags, priority, ret_stream);
	if (!status)
		(*ret_stream)->green = green;
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuGreenCtxGetDevResource(struct ll_cu_green_context *green, struct ll_cu_resource *ret_resource,
				      unsigned int type)
{
	SIM_ENTER();
	if (!ret_resource || type != LL_CU_DEV_RESOURCE_TYPE_SM)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	bool is_known = is_green(green);
	if (is_known)
		*ret_resource = sm_resource(green->sm_count);
	sim_cuda_unlock();
	return is_known ? LL_CUDA_SUCCESS : LL_CUDA_ERROR_INVALID_CONTEXT;
}
