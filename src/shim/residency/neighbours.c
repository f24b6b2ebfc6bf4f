#include "shim/residency/neighbours.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "shim/interpose/device_uuid.h"
#include "shim/interpose/real.h"
#include "shim/memory/chunks.h"

enum { PROCESSES = 64, NAME_SIZE = 16 };

/* ---- the cards ---- */

/* Native atomics tell NVLink from the bus, over which a copy is no faster than to the host. */
static bool is_joined(ll_cu_device device, ll_cu_device other)
{
	int can = 0, has_atomics = 0;
	return ll_real()->cuDeviceCanAccessPeer(&can, device, other) == LL_CUDA_SUCCESS && can &&
	       ll_real()->cuDeviceGetP2PAttribute(&has_atomics, LL_CU_P2P_NATIVE_ATOMIC_SUPPORTED, device, other) ==
		   LL_CUDA_SUCCESS &&
	       has_atomics;
}

size_t ll_neighbours_find(const struct ll_device_state *dev, struct ll_neighbour neighbours[LL_NEIGHBOURS])
{
	size_t found = 0;
	int count = 0;
	if (ll_real()->cuDeviceGetCount(&count) != LL_CUDA_SUCCESS)
		return 0;
	for (ll_cu_device i = 0; i < count && found < LL_NEIGHBOURS; i++) {
		struct ll_neighbour *neighbour = &neighbours[found];
		neighbour->device = i;
		found += i != dev->device && is_joined(dev->device, i) &&
			 ll_device_uuid(i, neighbour->uuid, sizeof neighbour->uuid);
	}
	return found;
}

/* ---- what NVML says of them ---- */

static bool has_nvml(void)
{
	static _Atomic bool is_ready; /* a process has a link for each card */
	if (!is_ready)
		is_ready = ll_real_nvml()->nvmlInit_v2() == LL_NVML_SUCCESS;
	return is_ready;
}

/* Whether the process is a synthetic load, by its name. Its number means the same here, or NVML would not name it. */
static bool is_loadline(unsigned pid)
{
	char path[32], name[NAME_SIZE] = "";
	snprintf(path, sizeof path, "/proc/%u/comm", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return false;
	ssize_t length = read(fd, name, sizeof name - 1);
	close(fd);
	return length > 0 && strncmp(name, "loadline", strlen("loadline")) == 0;
}

typedef ll_nvml_result list_fn(struct ll_nvml_device *card, unsigned int *count, struct ll_nvml_process *processes);

static uint64_t count_loads(struct ll_nvml_device *card, list_fn *list)
{
	struct ll_nvml_process processes[PROCESSES];
	unsigned count = PROCESSES;
	uint64_t bytes = 0;
	if (list(card, &count, processes) != LL_NVML_SUCCESS)
		return 0;
	for (unsigned i = 0; i < count; i++) {
		if (processes[i].used_bytes != LL_NVML_VALUE_NOT_AVAILABLE && is_loadline(processes[i].pid))
			bytes += processes[i].used_bytes;
	}
	return bytes;
}

bool ll_neighbour_read(const char *uuid, uint64_t *ret_free_bytes, uint64_t *ret_used_bytes)
{
	struct ll_nvml_device *card;
	struct ll_nvml_memory_v2 memory = {.version = LL_NVML_MEMORY_V2};
	if (!has_nvml() || ll_real_nvml()->nvmlDeviceGetHandleByUUID(uuid, &card) != LL_NVML_SUCCESS ||
	    ll_real_nvml()->nvmlDeviceGetMemoryInfo_v2(card, &memory) != LL_NVML_SUCCESS)
		return false;
	uint64_t loads_bytes = count_loads(card, ll_real_nvml()->nvmlDeviceGetComputeRunningProcesses_v3) +
			       count_loads(card, ll_real_nvml()->nvmlDeviceGetGraphicsRunningProcesses_v3);
	*ret_free_bytes = memory.free_bytes;
	*ret_used_bytes = memory.used_bytes > loads_bytes ? memory.used_bytes - loads_bytes : 0;
	return true;
}

/* ---- memory there ---- */

ll_cu_result ll_neighbour_block_make(const struct ll_device_state *dev, ll_cu_device neighbour, uint64_t bytes,
				     struct ll_neighbour_block *ret_block)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, neighbour}};
	struct ll_neighbour_block block = {.bytes = bytes};
	ll_cu_result status = ll_real()->cuMemCreate(&block.handle, bytes, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_chunk_map_aside(dev, block.handle, bytes, &block.address);
	if (status == LL_CUDA_SUCCESS)
		*ret_block = block;
	else
		ll_real()->cuMemRelease(block.handle);
	return status;
}

void ll_neighbour_block_free(struct ll_neighbour_block *block)
{
	if (!block->address)
		return;
	ll_chunk_unmap_aside(block->address, block->bytes);
	ll_real()->cuMemRelease(block->handle);
	*block = (struct ll_neighbour_block){0};
}
