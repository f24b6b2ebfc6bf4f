#include <stdio.h>

#include "cli/doctor/doctor.h"
#include "hold/payload.h"
#include "hold/payload_vulkan_device.h"

static void check_cuda(struct ll_doctor *doctor, struct ll_driver *driver)
{
	const struct ll_cuda *cuda;
	struct ll_err err = {0};
	/* As a hold does it: a server would otherwise answer in the driver's place. */
	ll_payload_cuda_prepare(false);
	doctor->has_no_cuda = ll_driver_cuda(driver, &cuda, &err) != 0;
	if (doctor->has_no_cuda)
		ll_doctor_say_err(doctor, LL_FINDING_WARN, NULL, "cuda", &err);
	else
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "cuda", NULL, "libcuda.so.1 for CUDA %d.%d",
			      cuda->version / 1000, cuda->version % 1000 / 10);
}

static void check_vulkan(struct ll_doctor *doctor)
{
	struct ll_vk_api api = {0};
	struct ll_err err = {0};
	uint32_t version = VK_API_VERSION_1_0;
	if (ll_vk_api_open(&api, "libvulkan.so.1", &err)) {
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
	ll_doctor_say(doctor, LL_FINDING_OK, NULL, "vulkan", NULL, "loader libvulkan.so.1 for Vulkan %u.%u",
		      VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version));
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
