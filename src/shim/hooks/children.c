#include "shim/hooks/children.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "shim/device_state.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/say.h"

/* Returns whether the current context belongs to a client of MPS. *ret_is_told is false for drivers before CUDA 12.1,
 * which do not report this. */
static bool is_client(bool *ret_is_told)
{
	ll_cu_device device;
	int value = 0;
	if (ll_real()->cuCtxGetDevice(&device) != LL_CUDA_SUCCESS)
		device = 0;
	*ret_is_told =
	    ll_real()->cuDeviceGetAttribute(&value, LL_CU_DEVICE_ATTRIBUTE_MPS_ENABLED, device) == LL_CUDA_SUCCESS;
	return value != 0;
}

/* The line explains the error, because the program may show only "not supported". Older drivers have no special error
 * for it. */
void ll_children_say(const char *symbol, ll_cu_result status)
{
	static _Atomic bool is_said;
	if (is_said || ll_reentry_is_inside() || !ll_device_state_settings())
		return;
	LL_REENTRY_SCOPE();
	bool is_told, is_mps = is_client(&is_told);
	bool is_meant = is_mps || (!is_told && status == LL_CUDA_ERROR_CDP_NOT_SUPPORTED);
	if (is_meant && !atomic_exchange(&is_said, true))
		ll_say("%s: CUDA error %d: MPS loads no code that launches kernels from kernels (dynamic parallelism); "
		       "run this program without MPS, by slices",
		       symbol, status);
}
