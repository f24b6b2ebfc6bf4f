/*
 * payload_vulkan_memory.h - the two buffers that host and kernels share, as both see them.
 *
 * One page-sized buffer in host memory, coherent and cached by the host, so that reading a record costs no bus
 * access: records (written by kernels) and slots (written by the host before a submit). One tiny buffer on the card,
 * for what only kernels read: polling it costs no bus access either. kernels/spin.comp declares the same layout.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_MEMORY_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_MEMORY_H

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

/* stopped_epoch, done_sequence, free_ns, sink: the kernels' own. */
enum { LL_VK_CARD_BYTES = 32 };

struct ll_vk_memory {
	VkBuffer host_buffer, card_buffer;
	VkDeviceMemory host_memory, card_memory;
	volatile struct ll_vk_shared *shared; /* host_buffer, mapped and zeroed */
};

int ll_vk_memory_init(struct ll_vk_memory *memory, const struct ll_vk_device *device, struct ll_err *err);

/* A zeroed or half-made one is fine. */
void ll_vk_memory_fini(struct ll_vk_memory *memory, const struct ll_vk_device *device);

#endif
