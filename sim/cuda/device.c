/*
 * Attributes of cards.
 */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "abi/nvml.h"
#include "card/engine.h"
#include "cuda/enter.h"
#include "cuda/local/context.h"
#include "cuda/local/current.h"
#include "cuda/local/mps.h"

static const struct sim_card *card_of(ll_cu_device device)
{
	if (device < 0 || device >= sim_cuda.device_count)
		return NULL;
	return &sim_cuda.world->cards[sim_cuda.devices[device]];
}

static const struct sim_card *physical_card_of(const struct sim_card *card)
{
	return card->parent == SIM_NONE ? card : &sim_cuda.world->cards[card->parent];
}

ll_cu_result cuDeviceGetCount(int *ret_count)
{
	SIM_ENTER();
	if (!ret_count)
		return LL_CUDA_ERROR_INVALID_VALUE;
	*ret_count = sim_cuda.device_count;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceGet(ll_cu_device *ret_device, int ordinal)
{
	SIM_ENTER();
	if (!ret_device)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card_of(ordinal))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_device = ordinal;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceGetName(char *ret_name, int size, ll_cu_device device)
{
	SIM_ENTER();
	const struct sim_card *card = card_of(device);
	if (!ret_name || size <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	snprintf(ret_name, (size_t)size, "%s", card->name);
	return LL_CUDA_SUCCESS;
}

/* Parses the 32 hexadecimal digits of "GPU-…". */
static void uuid_bytes(const char *text, struct ll_cu_uuid *ret_uuid)
{
	int n = 0;
	for (const char *p = strchr(text, '-'); p && *p && n < 32; p++) {
		if (!isxdigit((unsigned char)*p))
			continue;
		unsigned digit = (unsigned)(isdigit((unsigned char)*p) ? *p - '0' : tolower(*p) - 'a' + 10);
		unsigned byte = n % 2 ? (unsigned char)ret_uuid->bytes[n / 2] | digit : digit << 4;
		ret_uuid->bytes[n / 2] = (char)byte;
		n++;
	}
}

static ll_cu_result answer_uuid(struct ll_cu_uuid *ret_uuid, ll_cu_device device, bool is_physical)
{
	const struct sim_card *card = card_of(device);
	if (!ret_uuid)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	uuid_bytes(is_physical ? physical_card_of(card)->uuid : card->uuid, ret_uuid);
	return LL_CUDA_SUCCESS;
}

/* The first version returns the card's own UUID, the second the slice's. */
ll_cu_result cuDeviceGetUuid(struct ll_cu_uuid *ret_uuid, ll_cu_device device)
{
	SIM_ENTER();
	return answer_uuid(ret_uuid, device, true);
}

ll_cu_result cuDeviceGetUuid_v2(struct ll_cu_uuid *ret_uuid, ll_cu_device device)
{
	SIM_ENTER();
	return answer_uuid(ret_uuid, device, false);
}

static void bus_id(const struct sim_card *card, char text[32])
{
	card = physical_card_of(card);
	snprintf(text, 32, "%04X:%02X:%02X.0", card->pci_domain, card->pci_bus, card->pci_device);
}

ll_cu_result cuDeviceGetPCIBusId(char *ret_text, int size, ll_cu_device device)
{
	SIM_ENTER();
	const struct sim_card *card = card_of(device);
	char text[32];
	if (!ret_text || size <= 0)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	bus_id(card, text);
	snprintf(ret_text, (size_t)size, "%s", text);
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceGetByPCIBusId(ll_cu_device *ret_device, const char *text)
{
	SIM_ENTER();
	if (!ret_device || !text)
		return LL_CUDA_ERROR_INVALID_VALUE;
	for (int i = 0; i < sim_cuda.device_count; i++) {
		char own[32];
		bus_id(card_of(i), own);
		/* The domain is optional. */
		if (strcasecmp(own, text) == 0 || strcasecmp(own + 5, text) == 0) {
			*ret_device = i;
			return LL_CUDA_SUCCESS;
		}
	}
	return LL_CUDA_ERROR_INVALID_DEVICE;
}

ll_cu_result cuDeviceTotalMem_v2(size_t *ret_bytes, ll_cu_device device)
{
	SIM_ENTER();
	const struct sim_card *card = card_of(device);
	if (!ret_bytes)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_bytes = card->memory_bytes;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceComputeCapability(int *ret_major, int *ret_minor, ll_cu_device device)
{
	SIM_ENTER();
	const struct sim_card *card = card_of(device);
	if (!ret_major || !ret_minor)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_major = (int)card->capability_major;
	*ret_minor = (int)card->capability_minor;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuDeviceCanAccessPeer(int *ret_can, ll_cu_device device, ll_cu_device peer)
{
	SIM_ENTER();
	if (!ret_can)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card_of(device) || !card_of(peer))
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_can = device != peer && card_of(device)->has_peers && card_of(peer)->has_peers;
	return LL_CUDA_SUCCESS;
}

/* NVLink joins cards that have peers. */
ll_cu_result cuDeviceGetP2PAttribute(int *ret_value, enum ll_cu_p2p_attribute attribute, ll_cu_device device,
				     ll_cu_device peer)
{
	SIM_ENTER();
	bool is_known = attribute >= LL_CU_P2P_PERFORMANCE_RANK && attribute <= LL_CU_P2P_ARRAY_ACCESS_SUPPORTED;
	if (!ret_value || !is_known)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card_of(device) || !card_of(peer) || device == peer)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_value = attribute != LL_CU_P2P_PERFORMANCE_RANK && card_of(device)->has_peers && card_of(peer)->has_peers;
	return LL_CUDA_SUCCESS;
}

/* Finds both contexts, and the index of the peer in the current context's list; peer_count: it is not in the list. */
static ll_cu_result find_peer(const struct ll_cu_context *peer, struct ll_cu_context **ret_context, unsigned *ret_at)
{
	ll_cu_result status = sim_current(ret_context);
	if (status)
		return status;
	if (!peer || peer->magic != SIM_MAGIC_CONTEXT)
		return LL_CUDA_ERROR_INVALID_CONTEXT;
	if (peer == *ret_context)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	*ret_at = 0;
	while (*ret_at < (*ret_context)->peer_count && (*ret_context)->peers[*ret_at] != peer->id)
		++*ret_at;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result enable_peer(struct ll_cu_context *context, const struct ll_cu_context *peer, unsigned at)
{
	const struct sim_card *own = card_of(context->device), *other = card_of(peer->device);
	if (own == other || !own->has_peers || !other->has_peers)
		return LL_CUDA_ERROR_PEER_ACCESS_UNSUPPORTED;
	if (at < context->peer_count)
		return LL_CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
	if (at == SIM_CONTEXT_PEERS)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	context->peers[context->peer_count++] = peer->id;
	return LL_CUDA_SUCCESS;
}

ll_cu_result cuCtxEnablePeerAccess(struct ll_cu_context *peer, unsigned int flags)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	unsigned at;
	if (flags)
		return LL_CUDA_ERROR_INVALID_VALUE;
	sim_cuda_lock();
	ll_cu_result status = find_peer(peer, &context, &at);
	if (!status)
		status = enable_peer(context, peer, at);
	sim_cuda_unlock();
	return status;
}

ll_cu_result cuCtxDisablePeerAccess(struct ll_cu_context *peer)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	unsigned at;
	sim_cuda_lock();
	ll_cu_result status = find_peer(peer, &context, &at);
	if (!status && at == context->peer_count)
		status = LL_CUDA_ERROR_PEER_ACCESS_NOT_ENABLED;
	if (!status)
		context->peers[at] = context->peers[--context->peer_count];
	sim_cuda_unlock();
	return status;
}

/* No cache is modelled. */
ll_cu_result cuCtxResetPersistingL2Cache(void)
{
	SIM_ENTER();
	struct ll_cu_context *context;
	sim_cuda_lock();
	ll_cu_result status = sim_current(&context);
	sim_cuda_unlock();
	return status;
}

/* Attributes that do not depend on the scenario, with the values of an H200. */
static const struct {
	enum ll_cu_device_attribute attribute;
	int value;
} constants[] = {
    {LL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, 49152},
    {LL_CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
    {LL_CU_DEVICE_ATTRIBUTE_WARP_SIZE, 32},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
    {LL_CU_DEVICE_ATTRIBUTE_KERNEL_EXEC_TIMEOUT, 0},
    {LL_CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
    {LL_CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
    {LL_CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
    {LL_CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_TCC_DRIVER, 0},
    {LL_CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 6144},
    {LL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 62914560},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
    {LL_CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 3},
    {LL_CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
    {LL_CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 233472},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR, 65536},
    {LL_CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY, 1},
    {LL_CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS, 1},
    {LL_CU_DEVICE_ATTRIBUTE_COMPUTE_PREEMPTION_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, 1},
    {LL_CU_DEVICE_ATTRIBUTE_COOPERATIVE_LAUNCH, 0},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 232448},
    {LL_CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR, 32},
    {LL_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED, 1},
    {LL_CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0},
    {LL_CU_DEVICE_ATTRIBUTE_MEMPOOL_SUPPORTED_HANDLE_TYPES, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR},
};

static int compute_mode(const struct sim_card *card)
{
	sim_lock(sim_cuda.world);
	sim_advance_to_now(sim_cuda.world);
	int mode = (int)physical_card_of(card)->compute_mode;
	sim_unlock(sim_cuda.world);
	return mode;
}

ll_cu_result cuDeviceGetAttribute(int *ret_value, enum ll_cu_device_attribute attribute, ll_cu_device device)
{
	SIM_ENTER();
	const struct sim_card *card = card_of(device);
	if (!ret_value)
		return LL_CUDA_ERROR_INVALID_VALUE;
	if (!card)
		return LL_CUDA_ERROR_INVALID_DEVICE;
	for (size_t i = 0; i < sizeof constants / sizeof constants[0]; i++) {
		if (constants[i].attribute == attribute) {
			*ret_value = constants[i].value;
			return LL_CUDA_SUCCESS;
		}
	}
	switch (attribute) {
	case LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT:
		*ret_value = (int)sim_cuda_sms(sim_cuda.devices[device]);
		break;
	case LL_CU_DEVICE_ATTRIBUTE_MPS_ENABLED:
		*ret_value = sim_cuda_is_mps_client();
		break;
	case LL_CU_DEVICE_ATTRIBUTE_CLOCK_RATE:
		*ret_value = (int)card->open_mhz * 1000;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE:
		*ret_value = (int)card->memory_mhz * 1000;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_COMPUTE_MODE:
		*ret_value = compute_mode(card);
		break;
	case LL_CU_DEVICE_ATTRIBUTE_PCI_BUS_ID:
		*ret_value = (int)physical_card_of(card)->pci_bus;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID:
		*ret_value = (int)physical_card_of(card)->pci_device;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID:
		*ret_value = (int)physical_card_of(card)->pci_domain;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR:
		*ret_value = (int)card->capability_major;
		break;
	case LL_CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR:
		*ret_value = (int)card->capability_minor;
		break;
	default:
		/* An attribute that is not modelled reads as 0. */
		if ((int)attribute <= 0 || (int)attribute > 200)
			return LL_CUDA_ERROR_INVALID_VALUE;
		*ret_value = 0;
	}
	return LL_CUDA_SUCCESS;
}
