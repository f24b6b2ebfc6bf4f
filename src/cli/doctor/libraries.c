
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/doctor/doctor.h"
#include "hold/payload.h"
#include "hold/payload_vulkan_device.h"

/* ---- Vulkan ---- */

enum { DEVICES_MAX = 64 };

static int open_instance(struct ll_vk_api *api, VkInstance *ret_instance, struct ll_err *err)
{
	const VkApplicationInfo application = {
	    .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
	    .apiVersion = VK_API_VERSION_1_1,
	};
	const VkInstanceCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
	    .pApplicationInfo = &application,
	};
	VkResult result = api->vkCreateInstance(&info, NULL, ret_instance);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "Vulkan: create instance");
	return ll_vk_api_load_instance(api, *ret_instance, err);
}

static bool is_card(const struct ll_vk_api *api, VkPhysicalDevice device, const uint8_t uuid[VK_UUID_SIZE])
{
	VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
	VkPhysicalDeviceProperties2 properties = {
	    .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
	    .pNext = &id,
	};
	api->vkGetPhysicalDeviceProperties(device, &properties.properties);
	if (properties.properties.apiVersion < VK_API_VERSION_1_1)
		return false;
	api->vkGetPhysicalDeviceProperties2(device, &properties);
	return memcmp(id.deviceUUID, uuid, VK_UUID_SIZE) == 0;
}

static int find_card(const struct ll_vk_api *api, VkInstance instance, const uint8_t uuid[VK_UUID_SIZE],
		     struct ll_err *err)
{
	VkPhysicalDevice devices[DEVICES_MAX];
	uint32_t count = DEVICES_MAX;
	VkResult result = api->vkEnumeratePhysicalDevices(instance, &count, devices);
	if (result != VK_SUCCESS && result != VK_INCOMPLETE)
		return ll_vk_fail(result, err, "Vulkan: list devices");
	for (uint32_t i = 0; i < count; i++) {
		if (is_card(api, devices[i], uuid))
			return 0;
	}
	ll_err_set(err, -ENODEV, "Vulkan: none of the %u devices is this card", count);
	ll_err_hint(err, "install the driver's Vulkan part; in a container NVIDIA_DRIVER_CAPABILITIES needs graphics");
	return -ENODEV;
}

static int find_in_library(const char *library, const uint8_t uuid[VK_UUID_SIZE], struct ll_err *err)
{
	struct ll_vk_api api = {0};
	VkInstance instance = VK_NULL_HANDLE;
	int rc = ll_vk_api_open(&api, library, err);
	if (rc)
		return rc;
	rc = open_instance(&api, &instance, err);
	if (!rc)
		rc = find_card(&api, instance, uuid, err);
	if (instance && api.vkDestroyInstance)
		api.vkDestroyInstance(instance, NULL);
	ll_vk_api_close(&api);
	return rc;
}

/* The loader, and what the driver has without one. */
static const char *const vulkan_libraries[] = {"libvulkan.so.1", "libEGL_nvidia.so.0", "libGLX_nvidia.so.0"};

/* It tries the libraries in the payload's order. Of two errors it reports the loader's, because the user can repair
 * that one. */
int ll_doctor_find_vulkan(const uint8_t uuid[16], struct ll_err *err)
{
	int rc = find_in_library(vulkan_libraries[0], uuid, err);
	for (size_t i = 1; rc && i < sizeof vulkan_libraries / sizeof *vulkan_libraries; i++) {
		if (!find_in_library(vulkan_libraries[i], uuid, NULL))
			return 0;
	}
	return rc;
}

/* ---- the libraries ---- */

static void check_cuda(struct ll_doctor *doctor, struct ll_driver *driver)
{
	const struct ll_cuda *cuda;
	struct ll_err err = {0};
	/* A hold does the same. Otherwise an MPS server would answer in place of the driver. */
	ll_payload_cuda_prepare(false);
	doctor->has_no_cuda = ll_driver_cuda(driver, &cuda, &err) != 0;
	if (doctor->has_no_cuda)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, "cuda", &err);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "cuda", NULL, "libcuda.so.1 for CUDA %d.%d",
			      cuda->version / 1000, cuda->version % 1000 / 10);
}

/* Opens the first library that a hold could use, and returns its name. err: of the loader. */
static const char *open_vulkan(struct ll_vk_api *api, struct ll_err *err)
{
	for (size_t i = 0; i < sizeof vulkan_libraries / sizeof *vulkan_libraries; i++) {
		if (ll_vk_api_open(api, vulkan_libraries[i], i ? NULL : err) == 0)
			return vulkan_libraries[i];
	}
	return NULL;
}

static void check_vulkan(struct ll_doctor *doctor)
{
	struct ll_vk_api api = {0};
	struct ll_err err = {0};
	uint32_t version = VK_API_VERSION_1_0;
	const char *library = open_vulkan(&api, &err);
	if (!library) {
		if (!err.hint[0])
			ll_err_hint(&err, "install libvulkan1: a hold takes 50 MiB of the card instead of 263");
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, "vulkan", &err);
		return;
	}
	PFN_vkEnumerateInstanceVersion enumerate =
	    (PFN_vkEnumerateInstanceVersion)(void (*)(void))api.vkGetInstanceProcAddr(NULL,
										      "vkEnumerateInstanceVersion");
	if (enumerate)
		enumerate(&version);
	if (library == vulkan_libraries[0])
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "vulkan", NULL, "loader libvulkan.so.1 for Vulkan %u.%u",
			      VK_VERSION_MAJOR(version), VK_VERSION_MINOR(version));
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "vulkan", NULL, "%s for Vulkan %u.%u, without a loader",
			      library, VK_VERSION_MAJOR(version), VK_VERSION_MINOR(version));
	ll_vk_api_close(&api);
}

void ll_doctor_check_libraries(struct ll_doctor *doctor, struct ll_driver *driver)
{
	check_cuda(doctor, driver);
	if (ll_driver_sim_folder(driver))
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "vulkan", NULL, "not used with the simulated driver");
	else
		check_vulkan(doctor);
}
