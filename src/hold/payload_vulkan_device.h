/*
 * payload_vulkan_device.h - one card's Vulkan device with one compute queue, and as little else as possible.
 *
 * No instance extension, no layer of ours, and two features: 64-bit integers and, where the card has it, the
 * device clock. Everything more costs memory on the card.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_DEVICE_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

#include "hold/payload_vulkan_instance.h"

struct ll_err;

struct ll_vk_wish {
	const uint8_t *uuid; /* 16 bytes, Vulkan's deviceUUID; NULL: a CPU device (lavapipe), for tests */
	const char *library; /* the only library to try; NULL: the loader, then NVIDIA's own libraries */
	bool wants_clock;
};

struct ll_vk_device {
	struct ll_vk_api api;            /* this device's functions, and its instance's */
	struct ll_vk_instance *instance; /* shared by all devices of the process */
	VkPhysicalDevice physical;
	VkDevice device;
	VkQueue queue;
	uint32_t family;
	bool is_cpu;
	bool has_clock;    /* shaderDeviceClock is there, enabled, and counts nanoseconds */
	uint32_t sm_count; /* 0 when unknown */
};

/* -ENODEV when no library knows such a device or it cannot run the kernels, -ENOMEM. Takes some 0.1 s. */
int ll_vk_device_open(struct ll_vk_device *device, const struct ll_vk_wish *wish, struct ll_err *err);

/* Destroys the device, and the instance with the last one; a zeroed or half-opened one is fine. */
void ll_vk_device_close(struct ll_vk_device *device);

/* A memory type of type_bits with all flags of `need`, with most of `like` and least of `avoid`; UINT32_MAX: none. */
uint32_t ll_vk_memory_type(const struct ll_vk_device *device, uint32_t type_bits, VkMemoryPropertyFlags need,
			   VkMemoryPropertyFlags like, VkMemoryPropertyFlags avoid);

#endif
