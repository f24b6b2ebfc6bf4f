#include "hold/payload_vulkan_memory.h"

#include <string.h>

#include "base/err.h"

struct purpose {
	const char *what;
	VkDeviceSize size;
	VkBufferUsageFlags usage;
	VkMemoryPropertyFlags need, like, avoid;
};

static const struct purpose for_host = {
    .what = "host buffer",
    .size = sizeof(struct ll_vk_shared),
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
    .need = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    .like = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    .avoid = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
};

static const struct purpose for_card = {
    .what = "card buffer",
    .size = LL_VK_CARD_BYTES,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    .like = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    .avoid = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
};

static int make_buffer(const struct ll_vk_device *device, const struct purpose *purpose, VkBuffer *ret_buffer,
		       VkDeviceMemory *ret_memory, struct ll_err *err)
{
	const struct ll_vk_api *vk = &device->api;
	const VkBufferCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
	    .size = purpose->size,
	    .usage = purpose->usage,
	};
	VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO};
	VkMemoryRequirements requirements;
	VkResult result = vk->vkCreateBuffer(device->device, &info, NULL, ret_buffer);

	if (result != VK_SUCCESS) {
		*ret_buffer = VK_NULL_HANDLE;
		return ll_vk_fail(result, err, purpose->what);
	}
	vk->vkGetBufferMemoryRequirements(device->device, *ret_buffer, &requirements);
	allocation.allocationSize = requirements.size;
	allocation.memoryTypeIndex =
	    ll_vk_memory_type(device, requirements.memoryTypeBits, purpose->need, purpose->like, purpose->avoid);
	if (allocation.memoryTypeIndex == UINT32_MAX)
		return ll_vk_fail(VK_ERROR_FEATURE_NOT_PRESENT, err, purpose->what);
	result = vk->vkAllocateMemory(device->device, &allocation, NULL, ret_memory);
	if (result != VK_SUCCESS) {
		*ret_memory = VK_NULL_HANDLE;
		return ll_vk_fail(result, err, purpose->what);
	}
	result = vk->vkBindBufferMemory(device->device, *ret_buffer, *ret_memory, 0);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, purpose->what);
}

int ll_vk_memory_init(struct ll_vk_memory *memory, const struct ll_vk_device *device, struct ll_err *err)
{
	void *mapped = NULL;
	VkResult result;
	int r;

	*memory = (struct ll_vk_memory){0};
	r = make_buffer(device, &for_host, &memory->host_buffer, &memory->host_memory, err);
	if (r == 0)
		r = make_buffer(device, &for_card, &memory->card_buffer, &memory->card_memory, err);
	if (r < 0)
		return r;
	result = device->api.vkMapMemory(device->device, memory->host_memory, 0, VK_WHOLE_SIZE, 0, &mapped);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "map the host buffer");
	memset(mapped, 0, sizeof(struct ll_vk_shared));
	memory->shared = mapped;
	return 0;
}

void ll_vk_memory_fini(struct ll_vk_memory *memory, const struct ll_vk_device *device)
{
	const struct ll_vk_api *vk = &device->api;

	if (!device->device)
		return;
	vk->vkDestroyBuffer(device->device, memory->host_buffer, NULL);
	vk->vkDestroyBuffer(device->device, memory->card_buffer, NULL);
	vk->vkFreeMemory(device->device, memory->host_memory, NULL); /* unmaps */
	vk->vkFreeMemory(device->device, memory->card_memory, NULL);
	*memory = (struct ll_vk_memory){0};
}
