#include "cuda/local/rm.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "card/defaults.h"
#include "card/rm.h"
#include "cuda/local/mps.h"
#include "cuda/local/state.h"

enum {
	HIGH_FD = 512, /* programs close or reuse low descriptors */
	CHANNEL_CLASS = 0xc86f,
	CHANNEL_PARAMS_BYTES = 360,
	COPY_CHANNELS = 4,
};

/* The engines of a context's groups: compute and copies. */
static const uint32_t engines[SIM_RM_GROUPS] = {LL_RM_ENGINE_COMPUTE, 11, 12, 13};

struct card_objects {
	uint32_t device, subdevice;
};

static struct {
	pthread_mutex_t lock;
	bool is_absent; /* nothing answers */
	int fd;
	uint32_t client, last_handle;
	struct card_objects cards[SIM_CARDS];
} rm = {.lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1, .last_handle = 0x5c000000};

/* ---- requests ---- */

static uint32_t make_object(uint32_t parent, uint32_t class, void *params, uint32_t size)
{
	struct ll_rm_alloc alloc = {
	    .root = rm.client,
	    .parent = parent,
	    .object = class == LL_RM_CLASS_ROOT ? 0 : ++rm.last_handle,
	    .class = class,
	    .params = (uintptr_t)params,
	    .params_size = size,
	};
	bool is_made = ioctl(rm.fd, LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc), &alloc) == 0 && !alloc.status;
	return is_made ? alloc.object : 0;
}

static void free_object(uint32_t parent, uint32_t object)
{
	struct ll_rm_free freed = {.root = rm.client, .parent = parent, .object = object};
	ioctl(rm.fd, LL_RM_REQUEST(LL_RM_ESC_FREE, struct ll_rm_free), &freed);
}

static void set_slice(uint32_t group, uint64_t us)
{
	struct ll_rm_control control = {.client = rm.client,
					.object = group,
					.command = LL_RM_CONTROL_SET_SLICE,
					.params = (uintptr_t)&us,
					.params_size = sizeof us};
	ioctl(rm.fd, LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control), &control);
}

/* ---- once in a process ---- */

/* A file in memory stands for /dev/nvidiactl (kernel/answer.h). */
static int open_driver(void)
{
	int low = memfd_create("nvidiactl", MFD_CLOEXEC);
	int high = low < 0 ? -1 : fcntl(low, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high < 0)
		return low;
	close(low);
	return high;
}

static bool has_client(void)
{
	if (rm.client || rm.is_absent)
		return rm.client;
	rm.fd = open_driver();
	rm.client = rm.fd < 0 ? 0 : make_object(0, LL_RM_CLASS_ROOT, NULL, 0);
	rm.is_absent = !rm.client;
	if (rm.is_absent && rm.fd >= 0)
		close(rm.fd);
	return rm.client;
}

static uint32_t device_of(uint32_t card)
{
	struct card_objects *objects = &rm.cards[card];
	uint32_t device_params[14] = {card}, subdevice_params = 0;
	if (!objects->device)
		objects->device = make_object(rm.client, LL_RM_CLASS_DEVICE, device_params, sizeof device_params);
	if (objects->device && !objects->subdevice)
		objects->subdevice =
		    make_object(objects->device, LL_RM_CLASS_SUBDEVICE, &subdevice_params, sizeof subdevice_params);
	return objects->device;
}

/* ---- for each context ---- */

uint32_t sim_rm_connections(bool *ret_is_told)
{
	const char *text = getenv("CUDA_DEVICE_MAX_CONNECTIONS");
	long wanted = text ? strtol(text, NULL, 10) : 0;
	*ret_is_told = wanted >= 1;
	return wanted < 1 ? 8 : wanted > 32 ? 32 : (uint32_t)wanted;
}

static void make_channels(uint32_t group, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		uint64_t params[CHANNEL_PARAMS_BYTES / sizeof(uint64_t)] = {0};
		make_object(group, CHANNEL_CLASS, params, 0); /* the real one says no size */
	}
}

static uint32_t make_group(uint32_t device, uint32_t engine, uint32_t address_space)
{
	struct ll_rm_group_params params = {.address_space = address_space, .engine = engine};
	bool is_compute = engine == LL_RM_ENGINE_COMPUTE;
	uint32_t group = make_object(device, LL_RM_CLASS_CHANNEL_GROUP, &params, sizeof params);
	if (!group)
		return 0;
	bool is_told;
	uint32_t channels = sim_rm_connections(&is_told);
	make_channels(group, is_compute || is_told ? channels : COPY_CHANNELS);
	return group;
}

void sim_rm_open(struct sim_rm_groups *groups, uint32_t card, uint32_t slot)
{
	const struct sim_card *at = &sim_cuda.world->cards[card];
	uint32_t physical = at->parent == SIM_NONE ? card : at->parent;
	uint32_t address_space = slot == SIM_NONE ? 0 : sim_rm_address_space(slot);
	*groups = (struct sim_rm_groups){0};
	pthread_mutex_lock(&rm.lock);
	if (has_client())
		groups->device = device_of(physical);
	for (int i = 0; i < SIM_RM_GROUPS && groups->device; i++) {
		/* The clients of an MPS server compute in the server's group. */
		if (engines[i] != LL_RM_ENGINE_COMPUTE || !sim_cuda_is_mps_client())
			groups->groups[i] = make_group(groups->device, engines[i], address_space);
	}
	if (groups->groups[0])
		set_slice(groups->groups[0], at->slice_ns * SIM_SLICE_ASKED / SIM_SLICE_LASTS / LL_NS_PER_US);
	pthread_mutex_unlock(&rm.lock);
}

void sim_rm_close(const struct sim_rm_groups *groups)
{
	pthread_mutex_lock(&rm.lock);
	for (int i = 0; i < SIM_RM_GROUPS; i++) {
		if (groups->groups[i])
			free_object(groups->device, groups->groups[i]);
	}
	pthread_mutex_unlock(&rm.lock);
}
