#include "hold/payload_vulkan_instance.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"

/* Held while an instance is made and destroyed: nobody shall make a second one meanwhile. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct ll_vk_instance *instances;

static int create(struct ll_vk_instance *instance, struct ll_err *err)
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

static void destroy(struct ll_vk_instance *instance)
{
	if (instance->handle && instance->api.vkDestroyInstance)
		instance->api.vkDestroyInstance(instance->handle, NULL);
	ll_vk_api_close(&instance->api);
	free(instance->library);
	free(instance);
}

static int make(const char *library, struct ll_vk_instance **ret_instance, struct ll_err *err)
{
	struct ll_vk_instance *instance = calloc(1, sizeof(*instance));
	int r;

	if (!instance || !(instance->library = strdup(library))) {
		free(instance);
		ll_err_set(err, -ENOMEM, "Vulkan: no host memory");
		return -ENOMEM;
	}
	r = ll_vk_api_open(&instance->api, library, err);
	if (r == 0)
		r = create(instance, err);
	if (r < 0)
		destroy(instance);
	else
		*ret_instance = instance;
	return r;
}

int ll_vk_instance_get(const char *library, struct ll_vk_instance **ret_instance, struct ll_err *err)
{
	struct ll_vk_instance *instance;
	int r;
	LL_SCOPE_LOCK(&lock);

	for (instance = instances; instance && strcmp(instance->library, library) != 0;)
		instance = instance->next;
	if (!instance) {
		r = make(library, &instance, err);
		if (r < 0)
			return r;
		instance->next = instances;
		instances = instance;
	}
	instance->users++;
	*ret_instance = instance;
	return 0;
}

void ll_vk_instance_put(struct ll_vk_instance *instance)
{
	struct ll_vk_instance **link = &instances;
	LL_SCOPE_LOCK(&lock);

	if (!instance || --instance->users > 0)
		return;
	while (*link != instance)
		link = &(*link)->next;
	*link = instance->next;
	destroy(instance);
}
