/*
 * payload_vulkan_kernels.h - the kernels as pipelines, and a command buffer for each slot and pipeline.
 *
 * A command buffer binds the pipeline, names its slot by push constant, and dispatches as many blocks as the slot
 * says (vkCmdDispatchIndirect), so one recording serves every launch; it is recorded at first use. It ends with a
 * barrier: the next kernel starts after this one, and the record reaches the host.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_KERNELS_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_KERNELS_H

#include "hold/payload_vulkan_memory.h"

enum ll_vk_variant {
	LL_VK_SPIN_32,
	LL_VK_SPIN_1024,
	LL_VK_FMA_32,
	LL_VK_FMA_1024,
	LL_VK_VARIANTS,
};

struct ll_vk_kernels {
	const struct ll_vk_device *device;
	struct ll_vk_memory memory;
	VkDescriptorSetLayout set_layout;
	VkDescriptorPool set_pool;
	VkDescriptorSet set;
	VkPipelineLayout layout;
	VkPipeline pipelines[LL_VK_VARIANTS]; /* the FMA ones only when asked for */
	VkCommandPool command_pool;
	VkCommandBuffer commands[LL_VK_VARIANTS][LL_RECORD_SLOTS];
	VkFence fence; /* of ll_vk_kernels_wait */
};

/* Makes buffers, pipelines and the queue's helpers, and zeroes the card's buffer. */
int ll_vk_kernels_init(struct ll_vk_kernels *kernels, const struct ll_vk_device *device, bool needs_fma,
		       struct ll_err *err);

/* Nothing may be queued any more. A zeroed or half-made one is fine. */
void ll_vk_kernels_fini(struct ll_vk_kernels *kernels);

/* The variant for a launch, or -1. */
int ll_vk_variant(enum ll_kernel kernel, uint32_t threads);

/* Queues what slots[slot] asks for. fence may be VK_NULL_HANDLE. Does not wait. */
int ll_vk_kernels_submit(struct ll_vk_kernels *kernels, enum ll_vk_variant variant, uint32_t slot, VkFence fence,
			 struct ll_err *err);

/* Waits until all that is queued has ended. -EIO when that takes longer than timeout_ns, or the device is lost. */
int ll_vk_kernels_wait(struct ll_vk_kernels *kernels, uint64_t timeout_ns, struct ll_err *err);

/* Zeroes what kernels keep on the card (stopped epoch, last sequence); waits for it. */
int ll_vk_kernels_reset(struct ll_vk_kernels *kernels, struct ll_err *err);

#endif
