#include "cuda/local/state.h"

struct sim_cuda sim_cuda = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .proc = SIM_NONE,
};

_Thread_local bool sim_null_is_per_thread;

bool sim_location_is_device(const struct ll_cu_mem_location *location, ll_cu_device *ret_device)
{
	*ret_device = location->id;
	return location->type == LL_CU_MEM_LOCATION_TYPE_DEVICE && location->id >= 0 &&
	       location->id < sim_cuda.device_count;
}
