#include "shim/residency/plain.h"

#include "shim/interpose/real.h"
#include "shim/memory/backing.h"
#include "shim/memory/contexts.h"
#include "shim/residency/link.h"

static ll_cu_result allocate_backed(struct ll_device_state *dev, ll_cu_deviceptr *ret_address, size_t bytes)
{
	ll_cu_result status;
	do
		status = ll_backing_allocate(dev, bytes, ret_address);
	while (status == LL_CUDA_ERROR_OUT_OF_MEMORY && ll_residency_make_room(dev, bytes));
	return status;
}

ll_cu_result ll_plain_allocate(ll_cu_deviceptr *ret_address, size_t bytes)
{
	LL_REENTRY_SCOPE();
	LL_CHARGE(charge, ll_place_current(), ll_footprint_plain(bytes));
	if (charge.is_refused)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	struct ll_device_state *dev = charge.place.dev;
	bool is_backed = ret_address && bytes && ll_residency_backs(dev);
	LL_CHARGED_CALL(status, dev,
			is_backed ? allocate_backed(dev, ret_address, bytes)
				  : ll_real()->cuMemAlloc_v2(ret_address, bytes));
	if (status == LL_CUDA_SUCCESS && ret_address)
		ll_charge_keep_plain(&charge, *ret_address, bytes, is_backed);
	return status;
}

ll_cu_result ll_plain_free(const struct ll_extent *plain)
{
	ll_cu_result status = ll_real()->cuCtxSynchronize();
	if (status == LL_CUDA_SUCCESS)
		ll_backing_free(plain);
	return status;
}
