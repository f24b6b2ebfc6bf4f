#include "shim/hook.h"

LL_HOOK_EXPORT ll_cu_result cuMemAlloc_v2(ll_cu_deviceptr *ret_address, size_t bytes)
{
	return ll_real()->cuMemAlloc_v2(ret_address, bytes);
}
