/*
 * payload_vulkan_instance.h - one Vulkan instance for all devices of this process.
 *
 * NVIDIA's driver puts 16 MiB on the machine's first card for an instance (doc/facts.md), so the cards that a process
 * holds share it: the first user makes it, the last one destroys it. All calls here may come from any thread. One that
 * waits for another's instance is itself about to open or to close, never between two kernels.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_INSTANCE_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_INSTANCE_H

#include "hold/payload_vulkan_api.h"

struct ll_vk_instance {
	struct ll_vk_api api; /* library and instance functions; copy it to load a device's */
	VkInstance handle;
	char *library;
	unsigned users;
	struct ll_vk_instance *next;
};

/* Of this library, by its name. -ENODEV: it cannot be opened or makes no instance; -ENOMEM. */
int ll_vk_instance_get(const char *library, struct ll_vk_instance **ret_instance, struct ll_err *err);

void ll_vk_instance_put(struct ll_vk_instance *instance); /* NULL is fine */

#endif
