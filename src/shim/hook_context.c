#include "shim/hook.h"

LL_HOOK_EXPORT ll_cu_result cuCtxDestroy_v2(struct ll_cu_context *context)
{
	return ll_real()->cuCtxDestroy_v2(context);
}
