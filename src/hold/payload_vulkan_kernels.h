/*
 * payload_vulkan_kernels.h - the kernels as pipelines, their buffers, and how they are launched.
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
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_KERNELS_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_KERNELS_H

#include <stddef.h>
#include <stdint.h>

#include "hold/payload.h"
#include "hold/payload_vulkan_device.h"

/* What one launch asks for. blocks is also the indirect dispatch's argument. */
struct ll_vk_slot {
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

struct ll_vk_shared {
	struct ll_record records[LL_RECORD_SLOTS];
	struct ll_vk_slot slots[LL_RECORD_SLOTS];
	uint32_t is_closing; /* not 0: kernels that have not begun end at once */
};

_Static_assert(LL_RECORD_SLOTS == 64, "spin.comp has the number too");
_Static_assert(sizeof(struct ll_vk_slot) == 64, "spin.comp reads this layout");
_Static_assert(offsetof(struct ll_vk_slot, length_ns) == 16, "spin.comp reads this layout");
_Static_assert(offsetof(struct ll_vk_slot, sequence) == 48, "spin.comp reads this layout");
_Static_assert(offsetof(struct ll_vk_shared, slots) == 2048, "spin.comp reads this layout");
_Static_assert(offsetof(struct ll_vk_shared, is_closing) == 6144, "spin.comp reads this layout");

/* The size of the card's buffer: stopped_epoch, done_sequence, free_ns and sink of kernels/spin.comp. */
enum { LL_VK_CARD_BYTES = 32 };

struct ll_vk_memory {
	VkBuffer host_buffer, card_buffer;
	VkDeviceMemory host_memory, card_memory;
	volatile struct ll_vk_shared *shared; /* host_buffer, mapped and zeroed */
};

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

/* Makes the buffers, the pipelines and the queue's helpers, and zeroes the card's buffer. Needs no fini where it fails.
 */
int ll_vk_kernels_init(struct ll_vk_kernels *kernels, const struct ll_vk_device *device, bool needs_fma,
		       struct ll_err *err);

/* Destroys them. No kernel may be queued any more. A zeroed or half-made one is fine. */
void ll_vk_kernels_fini(struct ll_vk_kernels *kernels);

/* Returns the variant for a launch, or -1 where there is none. */
int ll_vk_choose_variant(enum ll_kernel kernel, uint32_t threads);

/* Queues what slots[slot] asks for, and does not wait. fence may be VK_NULL_HANDLE. */
int ll_vk_kernels_submit(struct ll_vk_kernels *kernels, enum ll_vk_variant variant, uint32_t slot, VkFence fence,
			 struct ll_err *err);

/* Waits until all queued kernels have ended. -EIO: they took longer than timeout_ns, or the device is lost. */
int ll_vk_kernels_wait(struct ll_vk_kernels *kernels, uint64_t timeout_ns, struct ll_err *err);

/* Zeroes what kernels keep on the card (stopped epoch, last sequence), and waits for that. */
int ll_vk_kernels_reset(struct ll_vk_kernels *kernels, struct ll_err *err);

#endif
