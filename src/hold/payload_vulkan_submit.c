#include <stddef.h>

#include "base/clock.h"
#include "base/err.h"
#include "hold/payload_vulkan_kernels.h"

#define RESET_TIMEOUT_NS (5 * LL_NS_PER_S)

static VkResult begin_commands(struct ll_vk_kernels *kernels, VkCommandBuffer *ret_commands)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkCommandBufferAllocateInfo allocation = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
	    .commandPool = kernels->command_pool,
	    .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
	    .commandBufferCount = 1,
	};
	/* A slot is free as soon as its record is written, which is a moment before its commands have ended. */
	const VkCommandBufferBeginInfo begin = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
	    .flags = VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT,
	};
	VkResult result = vk->vkAllocateCommandBuffers(kernels->device->device, &allocation, ret_commands);

	return result == VK_SUCCESS ? vk->vkBeginCommandBuffer(*ret_commands, &begin) : result;
}

static VkResult end_commands(struct ll_vk_kernels *kernels, VkCommandBuffer commands)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkPipelineStageFlags writers = VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT | VK_PIPELINE_STAGE_TRANSFER_BIT;
	const VkPipelineStageFlags readers = writers | VK_PIPELINE_STAGE_HOST_BIT;
	const VkMemoryBarrier barrier = {
	    .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
	    .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
	    .dstAccessMask = VK_ACCESS_SHADER_READ_BIT | VK_ACCESS_SHADER_WRITE_BIT | VK_ACCESS_TRANSFER_WRITE_BIT |
			     VK_ACCESS_HOST_READ_BIT,
	};

	vk->vkCmdPipelineBarrier(commands, writers, readers, 0, 1, &barrier, 0, NULL, 0, NULL);
	return vk->vkEndCommandBuffer(commands);
}

static VkResult record_launch(struct ll_vk_kernels *kernels, enum ll_vk_variant variant, uint32_t slot)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkDeviceSize arguments = offsetof(struct ll_vk_shared, slots) + slot * sizeof(struct ll_vk_slot) +
				       offsetof(struct ll_vk_slot, blocks);
	VkCommandBuffer commands = VK_NULL_HANDLE;
	VkResult result = begin_commands(kernels, &commands);

	if (result != VK_SUCCESS)
		return result;
	vk->vkCmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels->pipelines[variant]);
	vk->vkCmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, kernels->layout, 0, 1, &kernels->set, 0,
				    NULL);
	vk->vkCmdPushConstants(commands, kernels->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(slot), &slot);
	vk->vkCmdDispatchIndirect(commands, kernels->memory.host_buffer, arguments);
	result = end_commands(kernels, commands);
	if (result == VK_SUCCESS)
		kernels->commands[variant][slot] = commands;
	return result;
}

static VkResult submit(struct ll_vk_kernels *kernels, VkCommandBuffer commands, VkFence fence)
{
	const VkSubmitInfo info = {
	    .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
	    .commandBufferCount = 1,
	    .pCommandBuffers = &commands,
	};

	return kernels->device->api.vkQueueSubmit(kernels->device->queue, 1, &info, fence);
}

int ll_vk_kernels_submit(struct ll_vk_kernels *kernels, enum ll_vk_variant variant, uint32_t slot, VkFence fence,
			 struct ll_err *err)
{
	VkResult result = VK_SUCCESS;

	if (!kernels->commands[variant][slot])
		result = record_launch(kernels, variant, slot);
	if (result == VK_SUCCESS)
		result = submit(kernels, kernels->commands[variant][slot], fence);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "launch");
}

int ll_vk_kernels_wait(struct ll_vk_kernels *kernels, uint64_t timeout_ns, struct ll_err *err)
{
	const struct ll_vk_device *device = kernels->device;
	VkResult result = device->api.vkResetFences(device->device, 1, &kernels->fence);

	if (result == VK_SUCCESS)
		result = device->api.vkQueueSubmit(device->queue, 0, NULL, kernels->fence);
	if (result == VK_SUCCESS)
		result = device->api.vkWaitForFences(device->device, 1, &kernels->fence, VK_TRUE, timeout_ns);
	return result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "wait for the kernels");
}

int ll_vk_kernels_reset(struct ll_vk_kernels *kernels, struct ll_err *err)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	VkCommandBuffer commands = VK_NULL_HANDLE;
	VkResult result = begin_commands(kernels, &commands);

	if (result == VK_SUCCESS) {
		vk->vkCmdFillBuffer(commands, kernels->memory.card_buffer, 0, VK_WHOLE_SIZE, 0);
		result = end_commands(kernels, commands);
	}
	if (result == VK_SUCCESS)
		result = submit(kernels, commands, VK_NULL_HANDLE);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "clear the card's buffer");
	return ll_vk_kernels_wait(kernels, RESET_TIMEOUT_NS, err);
}
