/*
 * The Vulkan back end. On an H200 a CUDA program does not preempt Vulkan kernels: a kernel of 8 ms ran to its end, and
 * the CUDA kernel saw the gap instead. So launches must be short (2 ms), and foreign work shows as LATE, not as GAP.
 *
 * Soundness: once in FENCE_INTERVAL_NS a launch has a fence, and check() reads the fence's status. An empty submit
 * would also show a lost device, but it puts the context on the card, which a load that has yielded must not do. A
 * device that is lost while nothing is launched is noticed at the next launch.
 */
#include <errno.h>
#include <malloc.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/payload.h"
#include "hold/payload_vulkan.h"

/* ---- the kernels ---- */

/*
 * The kernels as pipelines, their buffers, and how they are launched.
 *
 * Buffers: one page-sized buffer in host memory is shared by host and kernels. It is coherent and cached by the host,
 * so that the host reads a record without a bus access. It has the records, which kernels write, and the slots, which
 * the host writes before a submit. A second, tiny buffer lies on the card, for what only kernels read: they poll it
 * without a bus access. kernels/spin.comp declares the same layout.
 *
 * Command buffers: one for each slot and pipeline, recorded at first use. It binds the pipeline, names its slot by push
 * constant, and dispatches as many blocks as the slot says (vkCmdDispatchIndirect), so one recording serves every
 * launch. It ends with a barrier: the next kernel starts after this one, and the record reaches the host.
 *
 * One thread at a time.
 */

/* What one launch asks for. blocks is also the indirect dispatch's argument. */
struct vk_slot {
	uint32_t blocks[3];
	uint32_t epoch;
	uint64_t length_ns;
	uint64_t late_after_ns;
	uint64_t queued_ns; /* ll_now_ns */
	uint32_t gap_limit_ns;
	uint32_t loops; /* the length for kernels without the clock */
	uint32_t sequence;
	uint32_t unused[3];
};

struct vk_shared {
	struct ll_record records[LL_RECORD_SLOTS];
	struct vk_slot slots[LL_RECORD_SLOTS];
	uint32_t is_closing; /* not 0: kernels that have not begun end at once */
};

_Static_assert(LL_RECORD_SLOTS == 64, "spin.comp has the number too");
_Static_assert(sizeof(struct vk_slot) == 64, "spin.comp reads this layout");
_Static_assert(offsetof(struct vk_slot, length_ns) == 16, "spin.comp reads this layout");
_Static_assert(offsetof(struct vk_slot, sequence) == 48, "spin.comp reads this layout");
_Static_assert(offsetof(struct vk_shared, slots) == 2048, "spin.comp reads this layout");
_Static_assert(offsetof(struct vk_shared, is_closing) == 6144, "spin.comp reads this layout");

/* The size of the card's buffer: stopped_epoch, done_sequence, free_ns and sink of kernels/spin.comp. */
enum { CARD_BYTES = 32 };

struct vk_memory {
	VkBuffer host_buffer, card_buffer;
	VkDeviceMemory host_memory, card_memory;
	volatile struct vk_shared *shared; /* host_buffer, mapped and zeroed */
};

enum vk_variant {
	SPIN_32,
	SPIN_1024,
	FMA_32,
	FMA_1024,
	VARIANTS,
};

struct vk_kernels {
	const struct ll_vk_device *device;
	struct vk_memory memory;
	VkDescriptorSetLayout set_layout;
	VkDescriptorPool set_pool;
	VkDescriptorSet set;
	VkPipelineLayout layout;
	VkPipeline pipelines[VARIANTS]; /* the FMA ones only when asked for */
	VkCommandPool command_pool;
	VkCommandBuffer commands[VARIANTS][LL_RECORD_SLOTS];
	VkFence fence; /* of ll_vk_kernels_wait */
};

/* ---- buffers ---- */

struct buffer_purpose {
	const char *what;
	VkDeviceSize size;
	VkBufferUsageFlags usage;
	VkMemoryPropertyFlags need, like, avoid;
};

static const struct buffer_purpose for_host = {
    .what = "host buffer",
    .size = sizeof(struct vk_shared),
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
    .need = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    .like = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    .avoid = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
};

static const struct buffer_purpose for_card = {
    .what = "card buffer",
    .size = CARD_BYTES,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    .like = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    .avoid = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
};

static int make_buffer(const struct ll_vk_device *device, const struct buffer_purpose *purpose, VkBuffer *ret_buffer,
		       VkDeviceMemory *ret_memory, struct ll_err *err)
{
	const struct ll_vk_api *vk = &device->api;
	const VkBufferCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
	    .size = purpose->size,
	    .usage = purpose->usage,
	};
	VkResult result = vk->vkCreateBuffer(device->device, &info, NULL, ret_buffer);
	if (result != VK_SUCCESS) {
		*ret_buffer = VK_NULL_HANDLE;
		return ll_vk_fail(result, err, purpose->what);
	}
	VkMemoryRequirements requirements;
	vk->vkGetBufferMemoryRequirements(device->device, *ret_buffer, &requirements);
	const VkMemoryAllocateInfo allocation = {
	    .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
	    .allocationSize = requirements.size,
	    .memoryTypeIndex =
		ll_vk_memory_type(device, requirements.memoryTypeBits, purpose->need, purpose->like, purpose->avoid),
	};
	if (allocation.memoryTypeIndex == UINT32_MAX)
		return ll_vk_fail(VK_ERROR_FEATURE_NOT_PRESENT, err, purpose->what);
	result = vk->vkAllocateMemory(device->device, &allocation, NULL, ret_memory);
	if (result == VK_SUCCESS)
		result = vk->vkBindBufferMemory(device->device, *ret_buffer, *ret_memory, 0);
	else
		*ret_memory = VK_NULL_HANDLE;
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, purpose->what);
}

static int make_memory(struct vk_memory *memory, const struct ll_vk_device *device, struct ll_err *err)
{
	void *mapped = NULL;
	int rc = make_buffer(device, &for_host, &memory->host_buffer, &memory->host_memory, err);
	if (rc == 0)
		rc = make_buffer(device, &for_card, &memory->card_buffer, &memory->card_memory, err);
	if (rc < 0)
		return rc;
	VkResult result = device->api.vkMapMemory(device->device, memory->host_memory, 0, VK_WHOLE_SIZE, 0, &mapped);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "map the host buffer");
	memset(mapped, 0, sizeof(struct vk_shared));
	memory->shared = mapped;
	return 0;
}

/* ---- pipelines ---- */

static const uint32_t code_spin[] = {
#include "hold/spin.spv.inc"
};
static const uint32_t code_fma[] = {
#include "hold/spin_fma.spv.inc"
};
static const uint32_t code_spin_no_clock[] = {
#include "hold/spin_no_clock.spv.inc"
};
static const uint32_t code_fma_no_clock[] = {
#include "hold/spin_fma_no_clock.spv.inc"
};

struct code {
	const uint32_t *words;
	size_t bytes;
};

/* [is FMA][has clock] */
static const struct code codes[2][2] = {
    {{code_spin_no_clock, sizeof(code_spin_no_clock)}, {code_spin, sizeof(code_spin)}},
    {{code_fma_no_clock, sizeof(code_fma_no_clock)}, {code_fma, sizeof(code_fma)}},
};

/* Returns the variant for a launch, or -1 where there is none. */
static int choose_variant(enum ll_kernel kernel, uint32_t threads)
{
	if (threads != 32 && threads != 1024)
		return -1;
	if (kernel == LL_KERNEL_SPIN)
		return threads == 32 ? SPIN_32 : SPIN_1024;
	if (kernel == LL_KERNEL_FMA)
		return threads == 32 ? FMA_32 : FMA_1024;
	return -1;
}

/* How the kernels find their two buffers and the number of their slot. */
static VkResult create_layout(struct vk_kernels *kernels)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	VkDevice device = kernels->device->device;
	const VkDescriptorSetLayoutBinding bindings[2] = {
	    {0, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
	    {1, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1, VK_SHADER_STAGE_COMPUTE_BIT, NULL},
	};
	const VkDescriptorSetLayoutCreateInfo set = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
	    .bindingCount = 2,
	    .pBindings = bindings,
	};
	const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
	const VkDescriptorPoolCreateInfo pool = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
	    .maxSets = 1,
	    .poolSizeCount = 1,
	    .pPoolSizes = &size,
	};
	const VkPushConstantRange slot = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
	const VkPipelineLayoutCreateInfo layout = {
	    .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
	    .setLayoutCount = 1,
	    .pSetLayouts = &kernels->set_layout,
	    .pushConstantRangeCount = 1,
	    .pPushConstantRanges = &slot,
	};
	VkResult result = vk->vkCreateDescriptorSetLayout(device, &set, NULL, &kernels->set_layout);
	if (result == VK_SUCCESS)
		result = vk->vkCreateDescriptorPool(device, &pool, NULL, &kernels->set_pool);
	return result == VK_SUCCESS ? vk->vkCreatePipelineLayout(device, &layout, NULL, &kernels->layout) : result;
}

static VkResult create_set(struct vk_kernels *kernels)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkDescriptorSetAllocateInfo allocation = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
	    .descriptorPool = kernels->set_pool,
	    .descriptorSetCount = 1,
	    .pSetLayouts = &kernels->set_layout,
	};
	const VkDescriptorBufferInfo buffers[2] = {
	    {kernels->memory.host_buffer, 0, VK_WHOLE_SIZE},
	    {kernels->memory.card_buffer, 0, VK_WHOLE_SIZE},
	};
	VkResult result = vk->vkAllocateDescriptorSets(kernels->device->device, &allocation, &kernels->set);
	const VkWriteDescriptorSet write = {
	    .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
	    .dstSet = kernels->set,
	    .descriptorCount = 2, /* the second one goes to the next binding */
	    .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
	    .pBufferInfo = buffers,
	};
	if (result == VK_SUCCESS)
		vk->vkUpdateDescriptorSets(kernels->device->device, 1, &write, 0, NULL);
	return result;
}

static VkResult create_pipeline(struct vk_kernels *kernels, VkShaderModule module, uint32_t threads,
				VkPipeline *ret_pipeline)
{
	const uint32_t constants[2] = {threads, kernels->device->is_cpu};
	const VkSpecializationMapEntry entries[2] = {{0, 0, sizeof(uint32_t)}, {1, sizeof(uint32_t), sizeof(uint32_t)}};
	const VkSpecializationInfo specialization = {
	    .mapEntryCount = 2,
	    .pMapEntries = entries,
	    .dataSize = sizeof(constants),
	    .pData = constants,
	};
	const VkComputePipelineCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
	    .stage =
		{
		    .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
		    .stage = VK_SHADER_STAGE_COMPUTE_BIT,
		    .module = module,
		    .pName = "main",
		    .pSpecializationInfo = &specialization,
		},
	    .layout = kernels->layout,
	};
	return kernels->device->api.vkCreateComputePipelines(kernels->device->device, VK_NULL_HANDLE, 1, &info, NULL,
							     ret_pipeline);
}

/* The two block sizes of one kernel. */
static VkResult create_pipelines(struct vk_kernels *kernels, enum ll_kernel kernel)
{
	const struct ll_vk_device *device = kernels->device;
	const struct code *code = &codes[kernel == LL_KERNEL_FMA][device->has_clock];
	const VkShaderModuleCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
	    .codeSize = code->bytes,
	    .pCode = code->words,
	};
	VkShaderModule module = VK_NULL_HANDLE;
	VkResult result = device->api.vkCreateShaderModule(device->device, &info, NULL, &module);
	for (uint32_t threads = 32; result == VK_SUCCESS && threads <= 1024; threads += 1024 - 32)
		result =
		    create_pipeline(kernels, module, threads, &kernels->pipelines[choose_variant(kernel, threads)]);
	device->api.vkDestroyShaderModule(device->device, module, NULL);
	return result;
}

static VkResult create_queue_helpers(struct vk_kernels *kernels)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkCommandPoolCreateInfo pool = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
	    .queueFamilyIndex = kernels->device->family,
	};
	const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkResult result = vk->vkCreateCommandPool(kernels->device->device, &pool, NULL, &kernels->command_pool);
	if (result != VK_SUCCESS)
		return result;
	return vk->vkCreateFence(kernels->device->device, &fence, NULL, &kernels->fence);
}

/* ---- command buffers and the queue ---- */

#define RESET_TIMEOUT_NS (5 * LL_NS_PER_S)

static VkResult begin_commands(struct vk_kernels *kernels, VkCommandBuffer *ret_commands)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkCommandBufferAllocateInfo allocation = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
	    .commandPool = kernels->command_pool,
	    .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
	    .commandBufferCount = 1,
	};
	/* A slot is free as soon as its record is written, which is a moment before its commands have ended. */
	const VkCommandBufferBeginInfo begin = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
	    .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
	};
	VkResult result = vk->vkAllocateCommandBuffers(kernels->device->device, &allocation, ret_commands);
	return result == VK_SUCCESS ? vk->vkBeginCommandBuffer(*ret_commands, &begin) : result;
}

static VkResult end_commands(struct vk_kernels *kernels, VkCommandBuffer commands)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkPipelineStageFlags writers = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
	const VkPipelineStageFlags readers = writers | VK_PIPELINE_STAGE_HOST_BIT;
	const VkMemoryBarrier barrier = {
	    .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
	    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
	    .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
			     VK_ACCESS_HOST_READ_BIT,
	};
	vk->vkCmdPipelineBarrier(commands, writers, readers, 0, 1, &barrier, 0, NULL, 0, NULL);
	return vk->vkEndCommandBuffer(commands);
}

static VkResult record_launch(struct vk_kernels *kernels, enum vk_variant variant, uint32_t slot)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkDeviceSize arguments =
	    offsetof(struct vk_shared, slots) + slot * sizeof(struct vk_slot) + offsetof(struct vk_slot, blocks);
	VkCommandBuffer commands = VK_NULL_HANDLE;
	VkResult result = begin_commands(kernels, &commands);
	if (result != VK_SUCCESS)
		return result;
	vk->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels->pipelines[variant]);
	vk->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels->layout, 0, 1, &kernels->set, 0,
				    NULL);
	vk->vkCmdPushConstants(commands, kernels->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(slot), &slot);
	vk->vkCmdDispatchIndirect(commands, kernels->memory.host_buffer, arguments);
	result = end_commands(kernels, commands);
	if (result == VK_SUCCESS)
		kernels->commands[variant][slot] = commands;
	return result;
}

static VkResult submit_commands(struct vk_kernels *kernels, VkCommandBuffer commands, VkFence fence)
{
	const VkSubmitInfo info = {
	    .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
	    .commandBufferCount = 1,
	    .pCommandBuffers = &commands,
	};
	return kernels->device->api.vkQueueSubmit(kernels->device->queue, 1, &info, fence);
}

/* Queues what slots[slot] asks for, and does not wait. fence may be VK_NULL_HANDLE. */
static int submit_kernel(struct vk_kernels *kernels, enum vk_variant variant, uint32_t slot, VkFence fence,
			 struct ll_err *err)
{
	VkResult result = VK_SUCCESS;
	if (!kernels->commands[variant][slot])
		result = record_launch(kernels, variant, slot);
	if (result == VK_SUCCESS)
		result = submit_commands(kernels, kernels->commands[variant][slot], fence);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "launch");
}

/* Waits until all queued kernels have ended. -EIO: they took longer than timeout_ns, or the device is lost. */
static int wait_kernels(struct vk_kernels *kernels, uint64_t timeout_ns, struct ll_err *err)
{
	const struct ll_vk_device *device = kernels->device;
	VkResult result = device->api.vkResetFences(device->device, 1, &kernels->fence);
	if (result == VK_SUCCESS)
		result = device->api.vkQueueSubmit(device->queue, 0, NULL, kernels->fence);
	if (result == VK_SUCCESS)
		result = device->api.vkWaitForFences(device->device, 1, &kernels->fence, VK_TRUE, timeout_ns);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "wait for the kernels");
}

/* Zeroes what kernels keep on the card (stopped epoch, last sequence), and waits for that. */
static int clear_card(struct vk_kernels *kernels, struct ll_err *err)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	VkCommandBuffer commands = VK_NULL_HANDLE;
	VkResult result = begin_commands(kernels, &commands);
	if (result == VK_SUCCESS) {
		vk->vkCmdFillBuffer(commands, kernels->memory.card_buffer, 0, VK_WHOLE_SIZE, 0);
		result = end_commands(kernels, commands);
	}
	if (result == VK_SUCCESS)
		result = submit_commands(kernels, commands, VK_NULL_HANDLE);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "clear the card's buffer");
	return wait_kernels(kernels, RESET_TIMEOUT_NS, err);
}

/* Destroys them. No kernel may be queued any more. A zeroed or half-made one is fine. */
static void destroy_kernels(struct vk_kernels *kernels)
{
	if (!kernels->device)
		return;
	const struct ll_vk_api *vk = &kernels->device->api;
	VkDevice device = kernels->device->device;
	vk->vkDestroyFence(device, kernels->fence, NULL);
	vk->vkDestroyCommandPool(device, kernels->command_pool, NULL);
	for (unsigned i = 0; i < VARIANTS; i++)
		vk->vkDestroyPipeline(device, kernels->pipelines[i], NULL);
	vk->vkDestroyPipelineLayout(device, kernels->layout, NULL);
	vk->vkDestroyDescriptorPool(device, kernels->set_pool, NULL);
	vk->vkDestroyDescriptorSetLayout(device, kernels->set_layout, NULL);
	vk->vkDestroyBuffer(device, kernels->memory.host_buffer, NULL);
	vk->vkDestroyBuffer(device, kernels->memory.card_buffer, NULL);
	vk->vkFreeMemory(device, kernels->memory.host_memory, NULL); /* unmaps */
	vk->vkFreeMemory(device, kernels->memory.card_memory, NULL);
	*kernels = (struct vk_kernels){0};
}

/* Makes the buffers, the pipelines and the queue's helpers, and zeroes the card's buffer. After an error there is
 * nothing to destroy. */
static int make_kernels(struct vk_kernels *kernels, const struct ll_vk_device *device, bool needs_fma,
			struct ll_err *err)
{
	*kernels = (struct vk_kernels){.device = device};
	int rc = make_memory(&kernels->memory, device, err);
	if (rc == 0) {
		VkResult result = create_layout(kernels);
		if (result == VK_SUCCESS)
			result = create_set(kernels);
		if (result == VK_SUCCESS)
			result = create_pipelines(kernels, LL_KERNEL_SPIN);
		if (result == VK_SUCCESS && needs_fma)
			result = create_pipelines(kernels, LL_KERNEL_FMA);
		if (result == VK_SUCCESS)
			result = create_queue_helpers(kernels);
		rc = result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "make the kernels");
	}
	if (rc == 0)
		rc = clear_card(kernels, err);
	if (rc < 0)
		destroy_kernels(kernels);
	return rc;
}

/*
 * ---- the first runs ----
 *
 * Every pipeline runs once at opening, so that the driver's work for a first launch is done. If a device has no clock,
 * or its clock has an unknown unit, its kernels run a counted number of loops instead of a time. The loops are timed
 * here with one block. That is an estimate, which becomes wrong when the card's clock rate changes or when blocks
 * compete.
 */

struct loop_rates {
	double loops_per_ns[VARIANTS]; /* 0 with the clock */
};

#define RUN_TIMEOUT_NS (5 * LL_NS_PER_S)
#define LOOP_RUN_NS (3 * LL_NS_PER_MS)
enum {
	TRIES = 5,
	MAX_LOOPS = 1 << 28,
};

struct probe {
	struct vk_kernels *kernels;
	enum vk_variant variant;
	uint32_t sequence;
};

/* *ret_ns: from before the submit to after the wait. */
static int run_once(struct probe *probe, uint32_t loops, uint64_t *ret_ns, struct ll_err *err)
{
	volatile struct vk_shared *shared = probe->kernels->memory.shared;
	volatile struct vk_slot *slot = &shared->slots[0];
	uint64_t before_ns = ll_now_ns();
	slot->blocks[0] = slot->blocks[1] = slot->blocks[2] = 1;
	slot->epoch = 1;
	slot->length_ns = 0;
	slot->late_after_ns = UINT64_MAX;
	slot->queued_ns = before_ns;
	slot->gap_limit_ns = UINT32_MAX;
	slot->loops = loops;
	slot->sequence = ++probe->sequence;
	int r = submit_kernel(probe->kernels, probe->variant, 0, VK_NULL_HANDLE, err);
	if (r == 0)
		r = wait_kernels(probe->kernels, RUN_TIMEOUT_NS, err);
	if (r < 0)
		return r;
	if (shared->records[0].sequence != probe->sequence)
		return ll_err_set(err, -EIO, "Vulkan: a kernel ended without writing its record");
	*ret_ns = ll_now_ns() - before_ns;
	return 0;
}

/* Returns the shortest of several runs, because it was disturbed least. */
static int run_best(struct probe *probe, uint32_t loops, uint64_t *ret_ns, struct ll_err *err)
{
	uint64_t best_ns = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		uint64_t ns = 0;
		int r = run_once(probe, loops, &ns, err);

		if (r < 0)
			return r;
		if (ns < best_ns)
			best_ns = ns;
	}
	*ret_ns = best_ns;
	return 0;
}

/* Times two lengths. The cost of the launch itself is in both, so their difference is without it. */
static int measure_loop(struct probe *probe, double *ret_loops_per_ns, struct ll_err *err)
{
	uint64_t short_ns = 0, long_ns = 0;
	uint32_t loops = 1024;
	int r;
	do {
		loops *= 2;
		r = run_once(probe, loops, &short_ns, err);
		if (r < 0)
			return r;
	} while (short_ns < LOOP_RUN_NS && loops < MAX_LOOPS);
	r = run_best(probe, loops, &short_ns, err);
	if (r == 0)
		r = run_best(probe, 2 * loops, &long_ns, err);
	if (r < 0)
		return r;
	*ret_loops_per_ns = (double)loops / (double)(long_ns > short_ns ? long_ns - short_ns : long_ns);
	return 0;
}

/* Takes some ms, or without a clock about 50 ms for each pipeline. Leaves records and card buffer zeroed. -EIO: a
 * kernel does not end. */
static int calibrate_kernels(struct vk_kernels *kernels, struct loop_rates *ret_rates, struct ll_err *err)
{
	struct probe probe = {.kernels = kernels};
	bool has_clock = kernels->device->has_clock;
	int r = 0;
	*ret_rates = (struct loop_rates){0};
	for (unsigned i = 0; i < VARIANTS && r == 0; i++) {
		uint64_t ns;
		probe.variant = (enum vk_variant)i;
		if (kernels->pipelines[i])
			r = has_clock ? run_once(&probe, 0, &ns, err)
				      : measure_loop(&probe, &ret_rates->loops_per_ns[i], err);
	}
	if (r == 0)
		r = clear_card(kernels, err);
	if (r < 0)
		return r;
	volatile struct ll_record *record = &kernels->memory.shared->records[0];
	record->start_ns = record->end_ns = record->gap_ns = 0;
	record->flags = record->sequence = 0;
	return 0;
}

/* Returns how many loops last that long. */
static uint32_t count_loops(const struct loop_rates *rates, enum vk_variant variant, uint64_t length_ns)
{
	double loops = (double)length_ns * rates->loops_per_ns[variant];
	return loops < (double)UINT32_MAX ? (uint32_t)loops : UINT32_MAX;
}

/* ---- the payload ---- */

#define FENCE_INTERVAL_NS (100 * LL_NS_PER_MS)
#define CLOSE_TIMEOUT_NS (500 * LL_NS_PER_MS)

struct vulkan_payload {
	struct ll_payload base;
	struct ll_vk_device device;
	struct vk_kernels kernels;
	struct loop_rates rates;
	uint32_t pending[LL_RECORD_SLOTS]; /* the sequence each slot was last launched with; 0: never */
	VkFence fence;
	bool fence_is_queued;
	uint64_t fence_due_ns;
	bool is_lost;
};

/* Tests choose lavapipe, another library, and a device without a clock. */
static struct ll_vk_wish wish_for(const struct ll_card *card)
{
	const char *device = secure_getenv("LOADLINE_VULKAN_DEVICE");
	const char *clock = secure_getenv("LOADLINE_VULKAN_CLOCK");
	bool wants_cpu = !card || (device && strcmp(device, "cpu") == 0);
	return (struct ll_vk_wish){
	    .uuid = wants_cpu ? NULL : card->uuid_bytes,
	    .library = secure_getenv("LOADLINE_VULKAN_LIBRARY"),
	    .wants_clock = !clock || strcmp(clock, "off") != 0,
	};
}

static uint64_t used_bytes(const struct ll_card *card)
{
	struct ll_memory memory;
	return card && ll_read_memory(card, &memory, NULL) == 0 ? memory.used_bytes : 0;
}

/* Compares the limit with the growth of the card's used memory since before_bytes, whoever allocated it, because a user
 * sees the same reading. */
static int check_memory(const struct ll_card *card, uint64_t before_bytes, uint64_t max_bytes, struct ll_err *err)
{
	uint64_t after_bytes = max_bytes > 0 ? used_bytes(card) : 0;
	uint64_t gained_bytes = after_bytes > before_bytes ? after_bytes - before_bytes : 0;
	if (gained_bytes <= max_bytes)
		return 0;
	ll_err_set(err, -EDQUOT, "Vulkan: the card gained %.1f MiB of %.1f allowed", (double)gained_bytes / (1 << 20),
		   (double)max_bytes / (1 << 20));
	return ll_err_hint(err, "allow more with --max-memory");
}

static int open_parts(struct vulkan_payload *vulkan, const struct ll_vk_wish *wish, bool needs_fma, struct ll_err *err)
{
	const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	int r = ll_vk_device_open(&vulkan->device, wish, err);
	if (r == 0)
		r = make_kernels(&vulkan->kernels, &vulkan->device, needs_fma, err);
	if (r == 0)
		r = calibrate_kernels(&vulkan->kernels, &vulkan->rates, err);
	if (r < 0)
		return r;
	VkResult result = vulkan->device.api.vkCreateFence(vulkan->device.device, &fence, NULL, &vulkan->fence);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "create fence");
}

static void vulkan_close(struct ll_payload *payload)
{
	struct vulkan_payload *vulkan = (struct vulkan_payload *)payload;
	if (!payload)
		return;
	if (vulkan->kernels.device) {
		vulkan->kernels.memory.shared->is_closing = 1;
		/* After a time-out the close goes on: destroying the device ends its kernels. */
		(void)wait_kernels(&vulkan->kernels, CLOSE_TIMEOUT_NS, NULL);
		if (vulkan->fence)
			vulkan->device.api.vkDestroyFence(vulkan->device.device, vulkan->fence, NULL);
	}
	destroy_kernels(&vulkan->kernels);
	ll_vk_device_close(&vulkan->device);
	free(vulkan);
	malloc_trim(0);
}

static int vulkan_open(const struct ll_card *card, const struct ll_payload_config *config,
		       struct ll_payload **ret_payload, struct ll_err *err)
{
	const struct ll_vk_wish wish = wish_for(card);
	uint64_t before_bytes = config->max_memory_bytes > 0 ? used_bytes(card) : 0;
	struct vulkan_payload *vulkan = calloc(1, sizeof(*vulkan));
	if (!vulkan)
		return ll_err_set(err, -ENOMEM, "Vulkan: no host memory");
	int r = open_parts(vulkan, &wish, config->needs_fma, err);
	if (r == 0)
		r = check_memory(card, before_bytes, config->max_memory_bytes, err);
	if (r < 0) {
		vulkan_close(&vulkan->base);
		return r;
	}
	vulkan->base.ops = &ll_payload_vulkan;
	vulkan->base.records = vulkan->kernels.memory.shared->records;
	vulkan->base.sm_count = vulkan->device.sm_count;
	vulkan->base.has_card_clock = vulkan->device.has_clock;
	/* The shader compiler leaves tens of MiB that are never needed again. */
	malloc_trim(0);
	*ret_payload = &vulkan->base;
	return 0;
}

static int check_launch(const struct vulkan_payload *vulkan, const struct ll_payload_launch *launch, struct ll_err *err)
{
	int variant = choose_variant(launch->kernel, launch->threads);
	uint32_t slot = launch->sequence % LL_RECORD_SLOTS;
	if (variant < 0 || !vulkan->kernels.pipelines[variant] || launch->blocks == 0 || launch->epoch == 0 ||
	    launch->sequence == 0)
		return ll_err_set(err, -EINVAL, "Vulkan: a launch that the payload was not opened for");
	if (vulkan->is_lost)
		return ll_err_set(err, -EIO, "Vulkan: the device is lost");
	if (vulkan->pending[slot] != 0 && vulkan->base.records[slot].sequence != vulkan->pending[slot])
		return ll_err_set(err, -EAGAIN, "Vulkan: %d kernels are queued already", LL_RECORD_SLOTS);
	return variant;
}

static void fill_slot(struct vulkan_payload *vulkan, const struct ll_payload_launch *launch, enum vk_variant variant,
		      uint64_t now_ns)
{
	volatile struct vk_slot *slot = &vulkan->kernels.memory.shared->slots[launch->sequence % LL_RECORD_SLOTS];
	bool has_gap_limit = launch->gap_limit_ns > 0 && launch->gap_limit_ns < UINT32_MAX;
	slot->blocks[0] = launch->blocks;
	slot->blocks[1] = slot->blocks[2] = 1;
	slot->epoch = launch->epoch;
	slot->length_ns = launch->length_ns;
	slot->late_after_ns = launch->late_after_ns > 0 ? launch->late_after_ns : UINT64_MAX;
	slot->queued_ns = now_ns;
	slot->gap_limit_ns = has_gap_limit ? (uint32_t)launch->gap_limit_ns : UINT32_MAX;
	slot->loops = count_loops(&vulkan->rates, variant, launch->length_ns);
	slot->sequence = launch->sequence;
}

static int vulkan_launch(struct ll_payload *payload, const struct ll_payload_launch *launch, struct ll_err *err)
{
	struct vulkan_payload *vulkan = (struct vulkan_payload *)payload;
	uint64_t now_ns = ll_now_ns();
	bool takes_fence = !vulkan->fence_is_queued && now_ns >= vulkan->fence_due_ns;
	uint32_t slot = launch->sequence % LL_RECORD_SLOTS;
	int variant = check_launch(vulkan, launch, err);
	if (variant < 0)
		return variant;
	fill_slot(vulkan, launch, (enum vk_variant)variant, now_ns);
	int r = submit_kernel(&vulkan->kernels, (enum vk_variant)variant, slot,
			      takes_fence ? vulkan->fence : VK_NULL_HANDLE, err);
	if (r < 0) {
		vulkan->is_lost |= r == -EIO;
		return r;
	}
	vulkan->pending[slot] = launch->sequence;
	if (takes_fence) {
		vulkan->fence_is_queued = true;
		vulkan->fence_due_ns = now_ns + FENCE_INTERVAL_NS;
	}
	return 0;
}

static int vulkan_check(struct ll_payload *payload, struct ll_err *err)
{
	struct vulkan_payload *vulkan = (struct vulkan_payload *)payload;
	const struct ll_vk_device *device = &vulkan->device;
	if (vulkan->is_lost)
		return ll_err_set(err, -EIO, "Vulkan: the device is lost");
	if (!vulkan->fence_is_queued)
		return 0;
	VkResult result = device->api.vkGetFenceStatus(device->device, vulkan->fence);
	if (result == VK_NOT_READY)
		return 0;
	if (result == VK_SUCCESS)
		result = device->api.vkResetFences(device->device, 1, &vulkan->fence);
	vulkan->fence_is_queued = false;
	if (result == VK_SUCCESS)
		return 0;
	vulkan->is_lost = true;
	return ll_vk_fail(result, err, "check");
}

const struct ll_payload_ops ll_payload_vulkan = {
    .name = "vulkan",
    .is_restless = true, /* its driver's threads wake 113 times a second: 0.4 % of a core (doc/facts.md) */
    .open = vulkan_open,
    .launch = vulkan_launch,
    .check = vulkan_check,
    .close = vulkan_close,
};
