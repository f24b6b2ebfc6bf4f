/*
 * payload_vulkan.h - the Vulkan payload's way to a card: the loader's functions and the device.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_H

#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

#include "hold/payload.h"

struct ll_err;

/*
 * Vulkan from the library's file to one card's device with one compute queue.
 *
 * Library: opened at run time. It is either the loader (libvulkan.so.1), or a driver's own ICD library, which is asked
 * through the loader's interface. The second way works where no loader is installed, or where it does not know of the
 * driver.
 *
 * Instance: one for all devices of the process, because NVIDIA's driver puts 16 MiB on the machine's first card for
 * each instance (doc/facts.md). The first device makes it, the last one destroys it.
 *
 * Device: no instance extension, no layer of ours, and two features: 64-bit integers and, where the card has it, the
 * device clock. Every further feature costs memory on the card.
 *
 * All functions may be called from any thread. A call that waits for another thread's instance is itself about to open
 * or close a device, so no kernel waits for it.
 */

#define VK_NO_PROTOTYPES

/* ---- the library's functions: one X-macro row each; the fields have Vulkan's own names ---- */

#define LL_VK_INSTANCE_FUNCTIONS(X)                                                                                    \
	X(vkCreateDevice)                                                                                              \
	X(vkDestroyInstance)                                                                                           \
	X(vkEnumerateDeviceExtensionProperties)                                                                        \
	X(vkEnumeratePhysicalDevices)                                                                                  \
	X(vkGetDeviceProcAddr)                                                                                         \
	X(vkGetPhysicalDeviceFeatures2)                                                                                \
	X(vkGetPhysicalDeviceMemoryProperties)                                                                         \
	X(vkGetPhysicalDeviceProperties)                                                                               \
	X(vkGetPhysicalDeviceProperties2)                                                                              \
	X(vkGetPhysicalDeviceQueueFamilyProperties)

#define LL_VK_DEVICE_FUNCTIONS(X)                                                                                      \
	X(vkAllocateCommandBuffers)                                                                                    \
	X(vkAllocateDescriptorSets)                                                                                    \
	X(vkAllocateMemory)                                                                                            \
	X(vkBeginCommandBuffer)                                                                                        \
	X(vkBindBufferMemory)                                                                                          \
	X(vkCmdBindDescriptorSets)                                                                                     \
	X(vkCmdBindPipeline)                                                                                           \
	X(vkCmdDispatchIndirect)                                                                                       \
	X(vkCmdFillBuffer)                                                                                             \
	X(vkCmdPipelineBarrier)                                                                                        \
	X(vkCmdPushConstants)                                                                                          \
	X(vkCreateBuffer)                                                                                              \
	X(vkCreateCommandPool)                                                                                         \
	X(vkCreateComputePipelines)                                                                                    \
	X(vkCreateDescriptorPool)                                                                                      \
	X(vkCreateDescriptorSetLayout)                                                                                 \
	X(vkCreateFence)                                                                                               \
	X(vkCreatePipelineLayout)                                                                                      \
	X(vkCreateShaderModule)                                                                                        \
	X(vkDestroyBuffer)                                                                                             \
	X(vkDestroyCommandPool)                                                                                        \
	X(vkDestroyDescriptorPool)                                                                                     \
	X(vkDestroyDescriptorSetLayout)                                                                                \
	X(vkDestroyDevice)                                                                                             \
	X(vkDestroyFence)                                                                                              \
	X(vkDestroyPipeline)                                                                                           \
	X(vkDestroyPipelineLayout)                                                                                     \
	X(vkDestroyShaderModule)                                                                                       \
	X(vkEndCommandBuffer)                                                                                          \
	X(vkFreeMemory)                                                                                                \
	X(vkGetBufferMemoryRequirements)                                                                               \
	X(vkGetDeviceQueue)                                                                                            \
	X(vkGetFenceStatus)                                                                                            \
	X(vkMapMemory)                                                                                                 \
	X(vkQueueSubmit)                                                                                               \
	X(vkResetFences)                                                                                               \
	X(vkUpdateDescriptorSets)                                                                                      \
	X(vkWaitForFences)

struct ll_vk_api {
	void *library; /* from dlopen */
	PFN_vkGetInstanceProcAddr vkGetInstanceProcAddr;
	PFN_vkCreateInstance vkCreateInstance;
#define LL_VK_FIELD(name) PFN_##name name;
	LL_VK_INSTANCE_FUNCTIONS(LL_VK_FIELD)
	LL_VK_DEVICE_FUNCTIONS(LL_VK_FIELD)
#undef LL_VK_FIELD
};

/* Opens the library and finds what makes an instance. -ENODEV: the file is not there, or is no Vulkan library. */
int ll_vk_api_open(struct ll_vk_api *api, const char *library, struct ll_err *err);

/* Closes the library. It stays mapped, because drivers register thread and exit handlers that point into it. */
void ll_vk_api_close(struct ll_vk_api *api);

/* Fill in the functions of an instance, and of a device. -ENODEV: one is missing; err names it. */
int ll_vk_api_load_instance(struct ll_vk_api *api, VkInstance instance, struct ll_err *err);
int ll_vk_api_load_device(struct ll_vk_api *api, VkDevice device, struct ll_err *err);

/* Sets err to "what: VK_ERROR_... (n)" and returns the errno: -ENOMEM without memory on card or host, -ENODEV where
 * Vulkan cannot work at all, -EIO for a lost device and everything else. */
int ll_vk_fail(VkResult result, struct ll_err *err, const char *what);

/* ---- the device ---- */

struct ll_vk_instance {
	struct ll_vk_api api; /* library and instance functions; copied to load a device's */
	VkInstance handle;
	char *library;
	unsigned users;
	struct ll_vk_instance *next;
};

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

/*
 * Opens the device that the wish names. -ENODEV: no library knows such a device, or the device cannot run the kernels.
 * -ENOMEM: no memory on card or host. Takes about 0.1 s.
 */
int ll_vk_device_open(struct ll_vk_device *device, const struct ll_vk_wish *wish, struct ll_err *err);

/* Destroys the device, and with the process's last device the instance. A zeroed or half-opened one is fine. */
void ll_vk_device_close(struct ll_vk_device *device);

/* Returns a memory type of type_bits that has all flags of `need`. Among several one that has all of `like` wins, then
 * one that has none of `avoid`. UINT32_MAX: there is none. */
uint32_t ll_vk_memory_type(const struct ll_vk_device *device, uint32_t type_bits, VkMemoryPropertyFlags need,
			   VkMemoryPropertyFlags like, VkMemoryPropertyFlags avoid);

#endif
