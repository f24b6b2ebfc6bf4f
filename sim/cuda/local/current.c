#include "cuda/local/current.h"

static _Thread_local struct ll_cu_context *stack[SIM_CONTEXT_STACK];
static _Thread_local int depth;

bool sim_context_is_known(const struct ll_cu_context *context)
{
	for (const struct ll_cu_context *c = sim_cuda.contexts; c; c = c->next) {
		if (c == context)
			return true;
	}
	return false;
}

static bool is_green_view(const struct ll_cu_context *context)
{
	for (const struct ll_cu_green_context *g = sim_cuda.greens; g; g = g->next) {
		if (&g->view == context)
			return true;
	}
	return false;
}

bool sim_context_may_be_current(const struct ll_cu_context *context)
{
	return sim_context_is_known(context) || is_green_view(context);
}

ll_cu_result sim_context_status(const struct ll_cu_context *context)
{
	struct sim_world *w = sim_cuda.world;
	if (!sim_context_may_be_current(context))
		return LL_CUDA_ERROR_CONTEXT_IS_DESTROYED;
	sim_lock(w);
	ll_cu_result status = (ll_cu_result)w->contexts[context->slot].error;
	sim_unlock(w);
	return status;
}

ll_cu_result sim_current(struct ll_cu_context **ret_context)
{
	if (depth == 0 || !stack[depth - 1])
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	ll_cu_result status = sim_context_status(stack[depth - 1]);
	if (status == LL_CUDA_SUCCESS)
		*ret_context = stack[depth - 1]->whole ? stack[depth - 1]->whole : stack[depth - 1];
	return status;
}

/* A green context can be current in only one thread at a time. */
static bool begin_use(struct ll_cu_context *context)
{
	if (context->whole && context->uses && !pthread_equal(context->thread, pthread_self()))
		return false;
	context->thread = pthread_self();
	context->uses++;
	return true;
}

static void end_use(struct ll_cu_context *context)
{
	if (context && sim_context_may_be_current(context) && context->uses)
		context->uses--;
}

ll_cu_result sim_current_push(struct ll_cu_context *context)
{
	if (depth == SIM_CONTEXT_STACK)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!begin_use(context))
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	stack[depth++] = context;
	return LL_CUDA_SUCCESS;
}

struct ll_cu_context *sim_current_top(void)
{
	return depth ? stack[depth - 1] : NULL;
}

bool sim_current_is_empty(void)
{
	return depth == 0;
}

struct ll_cu_context *sim_current_pop(void)
{
	struct ll_cu_context *context = stack[--depth];
	end_use(context);
	return context;
}

ll_cu_result sim_current_replace(struct ll_cu_context *context)
{
	if (depth == 0)
		return sim_current_push(context);
	if (!begin_use(context))
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	end_use(stack[depth - 1]);
	stack[depth - 1] = context;
	return LL_CUDA_SUCCESS;
}

void sim_current_forget(const struct ll_cu_context *context)
{
	for (int i = 0; i < depth; i++) {
		if (stack[i] == context)
			stack[i] = NULL;
	}
}

void sim_current_drop_forgotten(void)
{
	while (depth && !stack[depth - 1])
		depth--;
}
