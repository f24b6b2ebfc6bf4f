#include "hold/payload_vulkan_kernels.h"

#include <stddef.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

/* ---- buffers ---- */

struct buffer_purpose {
	const char *what;
	VkDeviceSize size;
	VkBufferUsageFlags usage;
	VkMemoryPropertyFlags need, like, avoid;
};

static const struct buffer_purpose for_host = {
    .what = "host buffer",
    .size = sizeof(struct ll_vk_shared),
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_INDIRECT_BUFFER_BIT,
    .need = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
    .like = VK_MEMORY_PROPERTY_HOST_CACHED_BIT,
    .avoid = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
};

static const struct buffer_purpose for_card = {
    .what = "card buffer",
    .size = LL_VK_CARD_BYTES,
    .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    .like = VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT,
    .avoid = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT,
};

static int make_buffer(const struct ll_vk_device *device, const struct buffer_purpose *purpose, VkBuffer *ret_buffer,
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

static int init_memory(struct ll_vk_memory *memory, const struct ll_vk_device *device, struct ll_err *err)
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

/* A zeroed or half-made one is fine. */
static void fini_memory(struct ll_vk_memory *memory, const struct ll_vk_device *device)
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

/* ---- pipelines ---- */

static const uint32_t code_spin[] = {
#include "hold/spin.spv.inc"
};
static const uint32_t code_fma[] = {
#include "hold/spin_fma.spv.inc"
};
static const uint32_t code_spin_no_clock[] = {
#include "hold/spin_no_clock.spv.inc"
};
static const uint32_t code_fma_no_clock[] = {
#include "hold/spin_fma_no_clock.spv.inc"
};

struct code {
	const uint32_t *words;
	size_t bytes;
};

/* [is FMA][has clock] */
static const struct code codes[2][2] = {
    {{code_spin_no_clock, sizeof(code_spin_no_clock)}, {code_spin, sizeof(code_spin)}},
    {{code_fma_no_clock, sizeof(code_fma_no_clock)}, {code_fma, sizeof(code_fma)}},
};

int ll_vk_choose_variant(enum ll_kernel kernel, uint32_t threads)
{
	if (threads != 32 && threads != 1024)
		return -1;
	if (kernel == LL_KERNEL_SPIN)
		return threads == 32 ? LL_VK_SPIN_32 : LL_VK_SPIN_1024;
	if (kernel == LL_KERNEL_FMA)
		return threads == 32 ? LL_VK_FMA_32 : LL_VK_FMA_1024;
	return -1;
}

static VkResult create_set_layout(struct ll_vk_kernels *kernels)
{
	VkDescriptorSetLayoutBinding bindings[2] = {0};
	const VkDescriptorSetLayoutCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
	    .bindingCount = 2,
	    .pBindings = bindings,
	};

	for (uint32_t i = 0; i < 2; i++) {
		bindings[i].binding = i;
		bindings[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
		bindings[i].descriptorCount = 1;
		bindings[i].stageFlags = VK_SHADER_STAGE_COMPUTE_BIT;
	}
	return kernels->device->api.vkCreateDescriptorSetLayout(kernels->device->device, &info, NULL,
								&kernels->set_layout);
}

static VkResult create_set(struct ll_vk_kernels *kernels)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkDescriptorPoolSize size = {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 2};
	const VkDescriptorPoolCreateInfo pool = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
	    .maxSets = 1,
	    .poolSizeCount = 1,
	    .pPoolSizes = &size,
	};
	VkDescriptorSetAllocateInfo allocation = {
	    .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
	    .descriptorSetCount = 1,
	    .pSetLayouts = &kernels->set_layout,
	};
	VkResult result = vk->vkCreateDescriptorPool(kernels->device->device, &pool, NULL, &kernels->set_pool);

	if (result != VK_SUCCESS)
		return result;
	allocation.descriptorPool = kernels->set_pool;
	return vk->vkAllocateDescriptorSets(kernels->device->device, &allocation, &kernels->set);
}

static void fill_set(struct ll_vk_kernels *kernels)
{
	const VkDescriptorBufferInfo buffers[2] = {
	    {kernels->memory.host_buffer, 0, VK_WHOLE_SIZE},
	    {kernels->memory.card_buffer, 0, VK_WHOLE_SIZE},
	};
	VkWriteDescriptorSet writes[2] = {0};

	for (uint32_t i = 0; i < 2; i++) {
		writes[i].sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET;
		writes[i].dstSet = kernels->set;
		writes[i].dstBinding = i;
		writes[i].descriptorCount = 1;
		writes[i].descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER;
		writes[i].pBufferInfo = &buffers[i];
	}
	kernels->device->api.vkUpdateDescriptorSets(kernels->device->device, 2, writes, 0, NULL);
}

static VkResult create_layout(struct ll_vk_kernels *kernels)
{
	const VkPushConstantRange slot = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(uint32_t)};
	const VkPipelineLayoutCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
	    .setLayoutCount = 1,
	    .pSetLayouts = &kernels->set_layout,
	    .pushConstantRangeCount = 1,
	    .pPushConstantRanges = &slot,
	};

	return kernels->device->api.vkCreatePipelineLayout(kernels->device->device, &info, NULL, &kernels->layout);
}

static VkResult create_pipeline(struct ll_vk_kernels *kernels, VkShaderModule module, uint32_t threads,
				VkPipeline *ret_pipeline)
{
	const uint32_t constants[2] = {threads, kernels->device->is_cpu};
	const VkSpecializationMapEntry entries[2] = {{0, 0, sizeof(uint32_t)}, {1, sizeof(uint32_t), sizeof(uint32_t)}};
	const VkSpecializationInfo specialization = {
	    .mapEntryCount = 2,
	    .pMapEntries = entries,
	    .dataSize = sizeof(constants),
	    .pData = constants,
	};
	const VkComputePipelineCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
	    .stage =
		{
		    .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
		    .stage = VK_SHADER_STAGE_COMPUTE_BIT,
		    .module = module,
		    .pName = "main",
		    .pSpecializationInfo = &specialization,
		},
	    .layout = kernels->layout,
	};

	return kernels->device->api.vkCreateComputePipelines(kernels->device->device, VK_NULL_HANDLE, 1, &info, NULL,
							     ret_pipeline);
}

/* The two block sizes of one kernel. */
static VkResult create_pipelines(struct ll_vk_kernels *kernels, enum ll_kernel kernel)
{
	const struct ll_vk_device *device = kernels->device;
	const struct code *code = &codes[kernel == LL_KERNEL_FMA][device->has_clock];
	const VkShaderModuleCreateInfo info = {
	    .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
	    .codeSize = code->bytes,
	    .pCode = code->words,
	};
	VkShaderModule module = VK_NULL_HANDLE;
	VkResult result = device->api.vkCreateShaderModule(device->device, &info, NULL, &module);

	for (uint32_t threads = 32; result == VK_SUCCESS && threads <= 1024; threads += 1024 - 32)
		result = create_pipeline(kernels, module, threads,
					 &kernels->pipelines[ll_vk_choose_variant(kernel, threads)]);
	device->api.vkDestroyShaderModule(device->device, module, NULL);
	return result;
}

static VkResult create_queue_helpers(struct ll_vk_kernels *kernels)
{
	const struct ll_vk_api *vk = &kernels->device->api;
	const VkCommandPoolCreateInfo pool = {
	    .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
	    .queueFamilyIndex = kernels->device->family,
	};
	const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
	VkResult result = vk->vkCreateCommandPool(kernels->device->device, &pool, NULL, &kernels->command_pool);

	if (result != VK_SUCCESS)
		return result;
	return vk->vkCreateFence(kernels->device->device, &fence, NULL, &kernels->fence);
}

static VkResult create_all(struct ll_vk_kernels *kernels, bool needs_fma)
{
	VkResult result = create_set_layout(kernels);

	if (result == VK_SUCCESS)
		result = create_set(kernels);
	if (result != VK_SUCCESS)
		return result;
	fill_set(kernels);
	result = create_layout(kernels);
	if (result == VK_SUCCESS)
		result = create_pipelines(kernels, LL_KERNEL_SPIN);
	if (result == VK_SUCCESS && needs_fma)
		result = create_pipelines(kernels, LL_KERNEL_FMA);
	if (result == VK_SUCCESS)
		result = create_queue_helpers(kernels);
	return result;
}

int ll_vk_kernels_init(struct ll_vk_kernels *kernels, const struct ll_vk_device *device, bool needs_fma,
		       struct ll_err *err)
{
	VkResult result;
	int r;

	*kernels = (struct ll_vk_kernels){.device = device};
	r = init_memory(&kernels->memory, device, err);
	if (r == 0) {
		result = create_all(kernels, needs_fma);
		r = result == VK_SUCCESS ? 0 : ll_vk_fail(result, err, "make the kernels");
	}
	if (r == 0)
		r = ll_vk_kernels_reset(kernels, err);
	if (r < 0)
		ll_vk_kernels_fini(kernels);
	return r;
}

void ll_vk_kernels_fini(struct ll_vk_kernels *kernels)
{
	const struct ll_vk_device *device = kernels->device;

	if (!device)
		return;
	device->api.vkDestroyFence(device->device, kernels->fence, NULL);
	device->api.vkDestroyCommandPool(device->device, kernels->command_pool, NULL);
	for (unsigned i = 0; i < LL_VK_VARIANTS; i++)
		device->api.vkDestroyPipeline(device->device, kernels->pipelines[i], NULL);
	device->api.vkDestroyPipelineLayout(device->device, kernels->layout, NULL);
	device->api.vkDestroyDescriptorPool(device->device, kernels->set_pool, NULL);
	device->api.vkDestroyDescriptorSetLayout(device->device, kernels->set_layout, NULL);
	fini_memory(&kernels->memory, device);
	*kernels = (struct ll_vk_kernels){0};
}

/* ---- command buffers and the queue ---- */

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

static VkResult submit_commands(struct ll_vk_kernels *kernels, VkCommandBuffer commands, VkFence fence)
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
		result = submit_commands(kernels, kernels->commands[variant][slot], fence);
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
		result = submit_commands(kernels, commands, VK_NULL_HANDLE);
	if (result != VK_SUCCESS)
		return ll_vk_fail(result, err, "clear the card's buffer");
	return ll_vk_kernels_wait(kernels, RESET_TIMEOUT_NS, err);
}
