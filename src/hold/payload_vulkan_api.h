/*
 * payload_vulkan_api.h - the Vulkan functions that the payload uses, opened at run time.
 *
 * One X-macro row per function; the fields have Vulkan's own names. A library is either the loader
 * (libvulkan.so.1) or a driver's own ICD library, which is asked through the loader's interface: that serves
 * machines where the loader is not installed or does not know of the driver.
 */
#ifndef LOADLINE_HOLD_PAYLOAD_VULKAN_API_H
#define LOADLINE_HOLD_PAYLOAD_VULKAN_API_H

#define VK_NO_PROTOTYPES
#include <vulkan/vulkan_core.h>

struct ll_err;

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

/* Opens the library and finds what makes an instance. -ENODEV when it is not there or is no Vulkan library. */
int ll_vk_api_open(struct ll_vk_api *api, const char *library, struct ll_err *err);

/* The library stays mapped: drivers register thread and exit handlers that point into it. */
void ll_vk_api_close(struct ll_vk_api *api);

/* Fill the functions of an instance, of a device. -ENODEV naming the missing one. */
int ll_vk_api_load_instance(struct ll_vk_api *api, VkInstance instance, struct ll_err *err);
int ll_vk_api_load_device(struct ll_vk_api *api, VkDevice device, struct ll_err *err);

/* Sets err to "what: VK_ERROR_... (n)" and returns the errno: -EIO a lost device, -ENOMEM no memory on card or host,
 * -ENODEV where Vulkan cannot work here at all, else -EIO. */
int ll_vk_fail(VkResult result, struct ll_err *err, const char *what);

#endif
