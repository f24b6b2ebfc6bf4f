#include "hold/payload_vulkan.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <vulkan/vk_icd.h>

#include "base/err.h"
#include "base/scope.h"

/* ---- the library ---- */

/* The newest version of the interface between loader and driver that is needed here. */
enum { ICD_INTERFACE_VERSION = 5 };

#define FIND_SYMBOL(library, name, field)                                                                              \
	do {                                                                                                           \
		union {                                                                                                \
			void *pointer;                                                                                 \
			__typeof__(field) function;                                                                    \
		} symbol_ = {.pointer = dlsym((library), (name))};                                                     \
		(field) = symbol_.function;                                                                            \
	} while (0)

static int find_entry(struct ll_vk_api *api)
{
	PFN_vkNegotiateLoaderICDInterfaceVersion negotiate = NULL;
	uint32_t version = ICD_INTERFACE_VERSION;
	FIND_SYMBOL(api->library, "vk_icdGetInstanceProcAddr", api->vkGetInstanceProcAddr);
	if (!api->vkGetInstanceProcAddr) {
		FIND_SYMBOL(api->library, "vkGetInstanceProcAddr", api->vkGetInstanceProcAddr);
		return api->vkGetInstanceProcAddr ? 0 : -ENODEV;
	}
	FIND_SYMBOL(api->library, "vk_icdNegotiateLoaderICDInterfaceVersion", negotiate);
	return negotiate && negotiate(&version) == VK_SUCCESS ? 0 : -ENODEV;
}

int ll_vk_api_open(struct ll_vk_api *api, const char *library, struct ll_err *err)
{
	*api = (struct ll_vk_api){.library = dlopen(library, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)};
	if (!api->library)
		return ll_err_set(err, -ENODEV, "Vulkan: %s", dlerror());
	if (find_entry(api) == 0)
		api->vkCreateInstance =
		    (PFN_vkCreateInstance)api->vkGetInstanceProcAddr(VK_NULL_HANDLE, "vkCreateInstance");
	if (!api->vkCreateInstance) {
		ll_vk_api_close(api);
		return ll_err_set(err, -ENODEV, "Vulkan: %s is not a Vulkan library", library);
	}
	return 0;
}

void ll_vk_api_close(struct ll_vk_api *api)
{
	if (api->library)
		dlclose(api->library);
	*api = (struct ll_vk_api){0};
}

#define LOAD(get, handle, name)                                                                                        \
	api->name = (PFN_##name)api->get(handle, #name);                                                               \
	if (!api->name)                                                                                                \
		return ll_err_set(err, -ENODEV, "Vulkan: the driver lacks %s", #name);
#define LOAD_OF_INSTANCE(name) LOAD(vkGetInstanceProcAddr, instance, name)
#define LOAD_OF_DEVICE(name) LOAD(vkGetDeviceProcAddr, device, name)

int ll_vk_api_load_instance(struct ll_vk_api *api, VkInstance instance, struct ll_err *err)
{
	LL_VK_INSTANCE_FUNCTIONS(LOAD_OF_INSTANCE)
	return 0;
}

int ll_vk_api_load_device(struct ll_vk_api *api, VkDevice device, struct ll_err *err)
{
	LL_VK_DEVICE_FUNCTIONS(LOAD_OF_DEVICE)
	return 0;
}

#define ROW(result, code)                                                                                              \
	{                                                                                                              \
		result, code, #result                                                                                  \
	}
static const struct {
	VkResult result;
	int code;
	const char *name;
} results[] = {
    ROW(VK_TIMEOUT, -EIO),
    ROW(VK_ERROR_DEVICE_LOST, -EIO),
    ROW(VK_ERROR_OUT_OF_DEVICE_MEMORY, -ENOMEM),
    ROW(VK_ERROR_OUT_OF_HOST_MEMORY, -ENOMEM),
    ROW(VK_ERROR_OUT_OF_POOL_MEMORY, -ENOMEM),
    ROW(VK_ERROR_TOO_MANY_OBJECTS, -ENOMEM),
    ROW(VK_ERROR_INITIALIZATION_FAILED, -ENODEV),
    ROW(VK_ERROR_INCOMPATIBLE_DRIVER, -ENODEV),
    ROW(VK_ERROR_EXTENSION_NOT_PRESENT, -ENODEV),
    ROW(VK_ERROR_FEATURE_NOT_PRESENT, -ENODEV),
    ROW(VK_ERROR_LAYER_NOT_PRESENT, -ENODEV),
};
#undef ROW

int ll_vk_fail(VkResult result, struct ll_err *err, const char *what)
{
	for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++)
		if (results[i].result == result)
			return ll_err_set(err, results[i].code, "Vulkan: %s: %s (%d)", what, results[i].name, result);
	return ll_err_set(err, -EIO, "Vulkan: %s: VkResult %d", what, result);
}

/* ---- the instance ---- */

/* Held while an instance is made or destroyed, so that no second one is made at the same time. */
static pthread_mutex_t instances_lock = PTHREAD_MUTEX_INITIALIZER;
static struct ll_vk_instance *instances;

static int create_instance(struct ll_vk_instance *instance, struct ll_err *err)
{
	const VkApplicationInfo application = {
	    .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
	    .pApplicationName = "loadline",
	    .apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
	    .pApplicationInfo = &application,
	};
	VkResult result = instance->api.vkCreateInstance(&info, NULL, &instance->handle);
	if (result != VK_SUCCESS) {
		instance->handle = VK_NULL_HANDLE;
		return ll_vk_fail(result, err, "create instance");
	}
	return ll_vk_api_load_instance(&instance->api, instance->handle, err);
}

static void destroy_instance(struct ll_vk_instance *instance)
{
	if (instance->handle && instance->api.vkDestroyInstance)
		instance->api.vkDestroyInstance(instance->handle, NULL);
	ll_vk_api_close(&instance->api);
	free(instance->library);
	free(instance);
}

static int make_instance(const char *library, struct ll_vk_instance **ret_instance, struct ll_err *err)
{
	struct ll_vk_instance *instance = calloc(1, sizeof(*instance));
	if (!instance || !(instance->library = strdup(library))) {
		free(instance);
		ll_err_set(err, -ENOMEM, "Vulkan: no host memory");
		return -ENOMEM; /* the analyzer does not know that of ll_err_set */
	}
	int r = ll_vk_api_open(&instance->api, library, err);
	if (r == 0)
		r = create_instance(instance, err);
	if (r < 0)
		destroy_instance(instance);
	else
		*ret_instance = instance;
	return r;
}

/* Returns the instance of the library of this name. -ENODEV: the library cannot be opened, or makes no instance. */
static int get_instance(const char *library, struct ll_vk_instance **ret_instance, struct ll_err *err)
{
	struct ll_vk_instance *instance;
	int r;
	LL_SCOPE_LOCK(&instances_lock);
	for (instance = instances; instance && strcmp(instance->library, library) != 0;)
		instance = instance->next;
	if (!instance) {
		r = make_instance(library, &instance, err);
		if (r < 0)
			return r;
		instance->next = instances;
		instances = instance;
	}
	instance->users++;
	*ret_instance = instance;
	return 0;
}

/* NULL is fine. */
static void put_instance(struct ll_vk_instance *instance)
{
	struct ll_vk_instance **link = &instances;
	LL_SCOPE_LOCK(&instances_lock);
	if (!instance || --instance->users > 0)
		return;
	while (*link != instance)
		link = &(*link)->next;
	*link = instance->next;
	destroy_instance(instance);
}

/* ---- the device ---- */

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
	/* Vulkan leaves the unit of the clock to the driver. It is known only for these two. */
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
	int r = get_instance(library, &device->instance, err);
	if (r < 0)
		return r;
	device->api = device->instance->api;
	r = find_physical(device, uuid, err);
	if (r < 0)
		ll_vk_device_close(device);
	return r;
}

/* The first library's error is returned, because a user can act on that one. */
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
	put_instance(device->instance);
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
