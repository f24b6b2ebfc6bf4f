#include "hold/payload_vulkan_kernels.h"

#include "base/err.h"

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

int ll_vk_variant(enum ll_kernel kernel, uint32_t threads)
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
		result = create_pipeline(kernels, module, threads, &kernels->pipelines[ll_vk_variant(kernel, threads)]);
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
	r = ll_vk_memory_init(&kernels->memory, device, err);
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
	ll_vk_memory_fini(&kernels->memory, device);
	*kernels = (struct ll_vk_kernels){0};
}
