#include "hold/payload_vulkan_device.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

enum {
	MAX_DEVICES = 64,
	MAX_FAMILIES = 32,
	BLOCK_THREADS = 1024, /* the larger of the payload's two block sizes */
	NVIDIA_VENDOR = 0x10de,
};

static bool is_wanted(const struct ll_vk_api *api, VkPhysicalDevice physical, const uint8_t *uuid)
{
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceProperties2 properties = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
	    .pNext = &id,
	};

	api->vkGetPhysicalDeviceProperties(physical, &properties.properties);
	if (properties.properties.apiVersion < VK_API_VERSION_1_1)
		return false;
	if (!uuid)
		return properties.properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
	api->vkGetPhysicalDeviceProperties2(physical, &properties);
	return memcmp(id.deviceUUID, uuid, VK_UUID_SIZE) == 0;
}

static int find_physical(struct ll_vk_device *device, const uint8_t *uuid, struct ll_err *err)
{
	VkPhysicalDevice all[MAX_DEVICES];
	uint32_t count = MAX_DEVICES;
	VkResult result = device->api.vkEnumeratePhysicalDevices(device->instance->handle, &count, all);

	if (result != VK_SUCCESS && result != VK_INCOMPLETE)
		return ll_vk_fail(result, err, "list devices");
	for (uint32_t i = 0; i < count; i++) {
		if (is_wanted(&device->api, all[i], uuid)) {
			device->physical = all[i];
			return 0;
		}
	}
	ll_err_set(err, -ENODEV, "Vulkan: none of the %u devices is this card", count);
	return ll_err_hint(err, "in a container, NVIDIA_DRIVER_CAPABILITIES needs graphics");
}

static bool has_extension(const struct ll_vk_device *device, const char *name)
{
	LL_SCOPE_FREE void *storage = NULL;
	VkExtensionProperties *extensions;
	uint32_t count = 0;

	if (device->api.vkEnumerateDeviceExtensionProperties(device->physical, NULL, &count, NULL) != VK_SUCCESS)
		return false;
	extensions = storage = calloc(count, sizeof(*extensions));
	if (!extensions ||
	    device->api.vkEnumerateDeviceExtensionProperties(device->physical, NULL, &count, extensions) < VK_SUCCESS)
		return false;
	for (uint32_t i = 0; i < count; i++)
		if (strcmp(extensions[i].extensionName, name) == 0)
			return true;
	return false;
}

/* A family that can also draw took 49.6 MiB on an H200, a compute-only one 53.9 (doc/facts.md). */
static int find_family(struct ll_vk_device *device, struct ll_err *err)
{
	VkQueueFamilyProperties families[MAX_FAMILIES];
	uint32_t count = MAX_FAMILIES;
	const VkQueueFlags wishes[] = {VK_QUEUE_COMPUTE_BIT | VK_QUEUE_GRAPHICS_BIT, VK_QUEUE_COMPUTE_BIT};

	device->api.vkGetPhysicalDeviceQueueFamilyProperties(device->physical, &count, families);
	for (unsigned w = 0; w < sizeof(wishes) / sizeof(wishes[0]); w++) {
		for (uint32_t i = 0; i < count; i++) {
			if ((families[i].queueFlags & wishes[w]) == wishes[w]) {
				device->family = i;
				return 0;
			}
		}
	}
	return ll_err_set(err, -ENODEV, "Vulkan: the device has no compute queue");
}

static uint32_t read_sm_count(const struct ll_vk_device *device)
{
	VkPhysicalDeviceShaderSMBuiltinsPropertiesNV sm = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_SM_BUILTINS_PROPERTIES_NV,
	};
	VkPhysicalDeviceProperties2 properties = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
	    .pNext = &sm,
	};

	if (!has_extension(device, VK_NV_SHADER_SM_BUILTINS_EXTENSION_NAME))
		return 0;
	device->api.vkGetPhysicalDeviceProperties2(device->physical, &properties);
	return sm.shaderSMCount;
}

static int read_abilities(struct ll_vk_device *device, bool wants_clock, struct ll_err *err)
{
	VkPhysicalDeviceShaderClockFeaturesKHR clock = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR,
	};
	VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
	VkPhysicalDeviceProperties properties;

	if (has_extension(device, VK_KHR_SHADER_CLOCK_EXTENSION_NAME))
		features.pNext = &clock;
	device->api.vkGetPhysicalDeviceFeatures2(device->physical, &features);
	device->api.vkGetPhysicalDeviceProperties(device->physical, &properties);
	if (!features.features.shaderInt64 || properties.limits.maxComputeWorkGroupInvocations < BLOCK_THREADS ||
	    properties.limits.maxComputeWorkGroupSize[0] < BLOCK_THREADS)
		return ll_err_set(err, -ENODEV, "Vulkan: %s cannot run the kernels", properties.deviceName);
	device->is_cpu = properties.deviceType == VK_PHYSICAL_DEVICE_TYPE_CPU;
	/* Vulkan leaves the unit to the driver: of others than these two it is not known. */
	device->has_clock =
	    wants_clock && clock.shaderDeviceClock && (properties.vendorID == NVIDIA_VENDOR || device->is_cpu);
	device->sm_count = read_sm_count(device);
	return 0;
}

static int create_device(struct ll_vk_device *device, struct ll_err *err)
{
	const float priority = 1;
	const char *const extensions[] = {VK_KHR_SHADER_CLOCK_EXTENSION_NAME};
	const VkPhysicalDeviceFeatures features = {.shaderInt64 = VK_TRUE};
	VkPhysicalDeviceShaderClockFeaturesKHR clock = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SHADER_CLOCK_FEATURES_KHR,
	    .shaderDeviceClock = VK_TRUE,
	};
	const VkDeviceQueueCreateInfo queue = {
	    .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
	    .queueFamilyIndex = device->family,
	    .queueCount = 1,
	    .pQueuePriorities = &priority,
	};
	const VkDeviceCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
	    .pNext = device->has_clock ? &clock : NULL,
	    .queueCreateInfoCount = 1,
	    .pQueueCreateInfos = &queue,
	    .enabledExtensionCount = device->has_clock ? 1 : 0,
	    .ppEnabledExtensionNames = extensions,
	    .pEnabledFeatures = &features,
	};
	VkResult result = device->api.vkCreateDevice(device->physical, &info, NULL, &device->device);
	int r;

	if (result != VK_SUCCESS) {
		device->device = VK_NULL_HANDLE;
		return ll_vk_fail(result, err, "create device");
	}
	r = ll_vk_api_load_device(&device->api, device->device, err);
	if (r < 0)
		return r;
	device->api.vkGetDeviceQueue(device->device, device->family, 0, &device->queue);
	return 0;
}

/* From a library's name to a physical device. */
static int find_device(struct ll_vk_device *device, const char *library, const uint8_t *uuid, struct ll_err *err)
{
	int r = ll_vk_instance_get(library, &device->instance, err);

	if (r < 0)
		return r;
	device->api = device->instance->api;
	r = find_physical(device, uuid, err);
	if (r < 0)
		ll_vk_device_close(device);
	return r;
}

/* The first library's error is the one a user can do something about. */
static int find_in_libraries(struct ll_vk_device *device, const struct ll_vk_wish *wish, struct ll_err *err)
{
	static const char *const libraries[] = {"libvulkan.so.1", "libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};
	int first;

	if (wish->library)
		return find_device(device, wish->library, wish->uuid, err);
	first = find_device(device, libraries[0], wish->uuid, err);
	if (first == 0 || first == -ENOMEM)
		return first;
	for (size_t i = 1; i < sizeof(libraries) / sizeof(libraries[0]); i++)
		if (find_device(device, libraries[i], wish->uuid, NULL) == 0)
			return 0;
	return first;
}

int ll_vk_device_open(struct ll_vk_device *device, const struct ll_vk_wish *wish, struct ll_err *err)
{
	int r;

	*device = (struct ll_vk_device){0};
	r = find_in_libraries(device, wish, err);
	if (r == 0)
		r = find_family(device, err);
	if (r == 0)
		r = read_abilities(device, wish->wants_clock, err);
	if (r == 0)
		r = create_device(device, err);
	if (r < 0)
		ll_vk_device_close(device);
	return r;
}

void ll_vk_device_close(struct ll_vk_device *device)
{
	if (device->device && device->api.vkDestroyDevice)
		device->api.vkDestroyDevice(device->device, NULL);
	ll_vk_instance_put(device->instance);
	*device = (struct ll_vk_device){0};
}

uint32_t ll_vk_memory_type(const struct ll_vk_device *device, uint32_t type_bits, VkMemoryPropertyFlags need,
			   VkMemoryPropertyFlags like, VkMemoryPropertyFlags avoid)
{
	VkPhysicalDeviceMemoryProperties memory;
	uint32_t best = UINT32_MAX;
	int best_score = -1;

	device->api.vkGetPhysicalDeviceMemoryProperties(device->physical, &memory);
	for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
		VkMemoryPropertyFlags flags = memory.memoryTypes[i].propertyFlags;
		int score = ((flags & like) == like ? 2 : 0) + ((flags & avoid) == 0 ? 1 : 0);

		if ((type_bits >> i & 1) && (flags & need) == need && score > best_score) {
			best_score = score;
			best = i;
		}
	}
	return best;
}
