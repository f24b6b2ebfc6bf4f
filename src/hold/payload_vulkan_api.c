#include "hold/payload_vulkan_api.h"

#include <dlfcn.h>
#include <errno.h>
#include <stddef.h>
#include <vulkan/vk_icd.h>

#include "base/err.h"

/* The newest version of the interface between loader and driver that we need nothing beyond. */
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

int ll_vk_api_load_instance(struct ll_vk_api *api, VkInstance instance, struct ll_err *err)
{
#define LOAD(name)                                                                                                     \
	api->name = (PFN_##name)api->vkGetInstanceProcAddr(instance, #name);                                           \
	if (!api->name)                                                                                                \
		return ll_err_set(err, -ENODEV, "Vulkan: the driver lacks %s", #name);
	LL_VK_INSTANCE_FUNCTIONS(LOAD)
#undef LOAD
	return 0;
}

int ll_vk_api_load_device(struct ll_vk_api *api, VkDevice device, struct ll_err *err)
{
#define LOAD(name)                                                                                                     \
	api->name = (PFN_##name)api->vkGetDeviceProcAddr(device, #name);                                               \
	if (!api->name)                                                                                                \
		return ll_err_set(err, -ENODEV, "Vulkan: the driver lacks %s", #name);
	LL_VK_DEVICE_FUNCTIONS(LOAD)
#undef LOAD
	return 0;
}

struct result_row {
	VkResult result;
	int code;
	const char *name;
};

#define ROW(result, code)                                                                                              \
	{                                                                                                              \
		result, code, #result                                                                                  \
	}
static const struct result_row results[] = {
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
