#include "hold/payload.h"
#include "base/translate.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "driver/cards.h"
#include "driver/library.h"
#include "driver/readings.h"

extern const unsigned char ll_spin_ptx[];
extern const unsigned char ll_spin_wide_ptx[];
extern const unsigned char ll_fma_wide_ptx[];
extern const unsigned char ll_tensor_wide_ptx[];
extern const unsigned char ll_dram_wide_ptx[];

/* The buffer of LL_KERNEL_DRAM is this many times as large as the cache and is read in a circle. So almost nothing is
 * still in the cache when it is read again. */
enum { BUFFER_CACHES = 4, BUFFER_FREE_PART = 8 /* at most an eighth of what is free */ };
#define BUFFER_UNKNOWN_BYTES (UINT64_C(256) << 20) /* if the driver does not report the cache's size */

enum { KERNEL_WIDE = LL_KERNEL_DRAM + 1, KERNELS }; /* spin in more than one block has a function of its own */

struct cuda_payload {
	struct ll_payload base;
	const struct ll_cuda *cuda;
	struct ll_cu_context *context;
	struct ll_cu_function *functions[KERNELS]; /* those that were asked for */
	struct ll_cu_stream *stream;
	struct ll_record *records; /* host memory that the card writes */
	ll_cu_deviceptr records_on_card;
	ll_cu_deviceptr buffer; /* of LL_KERNEL_DRAM; freed with the context */
	uint64_t buffer_bytes;
};

void ll_payload_cuda_prepare(bool as_mps_client)
{
	/* One hardware queue is enough: half the time to make a context, and 46 MiB less of host memory mapped. */
	setenv("CUDA_DEVICE_MAX_CONNECTIONS", "1", 1);
	if (as_mps_client)
		setenv("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", "1", 1);
	else
		setenv("CUDA_MPS_PIPE_DIRECTORY", "/nonexistent/loadline-keeps-out-of-mps", 1);
}

/* The stack limit is nearly all of a context's memory: 1 KiB for every thread the card can have (doc/facts.md). */
static void shrink_context(const struct ll_cuda *cuda)
{
	/* If the driver refuses, the context is larger, and `hold` shows its size. */
	cuda->cuCtxSetLimit(LL_CU_LIMIT_STACK_SIZE, 0);
	cuda->cuCtxSetLimit(LL_CU_LIMIT_PRINTF_FIFO_SIZE, 0);
	cuda->cuCtxSetLimit(LL_CU_LIMIT_MALLOC_HEAP_SIZE, 0);
}

/* The records have a page of their own, which is registered. The kernel finds the stop word by rounding the address of
 * a record down to the page. */
static int make_records(struct cuda_payload *payload, struct ll_err *err)
{
	const struct ll_cuda *cuda = payload->cuda;
	_Static_assert(LL_RECORD_SLOTS * sizeof(struct ll_record) <= LL_STOP_WORD_OFFSET, "one page holds both");
	size_t page_bytes = 4096; /* the kernel rounds down to this size, whatever the host's page size */
	payload->records = aligned_alloc(page_bytes, page_bytes);
	if (!payload->records)
		return ll_err_set(err, -ENOMEM, "map host memory: out of host memory");
	ll_cu_result status = cuda->cuMemHostRegister(payload->records, page_bytes, LL_CU_MEMHOSTREGISTER_DEVICEMAP);
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemHostGetDevicePointer(&payload->records_on_card, payload->records, 0);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "map host memory");
	memset(payload->records, 0, page_bytes);
	payload->base.records = payload->records;
	return 0;
}

static uint64_t used_bytes(const struct ll_card *card)
{
	struct ll_memory memory;
	return ll_read_memory(card, &memory, NULL) == 0 ? memory.used_bytes : 0;
}

/* Memory use is highest just after creation, before the stack limit is lowered, or when the buffer exists. */
static int check_memory(const struct ll_card *card, uint64_t before_bytes, const struct ll_payload_config *config,
			const char *what, struct ll_err *err)
{
	uint64_t now_bytes = used_bytes(card), max_bytes = config->max_memory_bytes;
	if (max_bytes == 0 || now_bytes <= before_bytes || now_bytes - before_bytes <= max_bytes)
		return 0;
	ll_err_set(err, -EDQUOT, "card %s: %s %llu MiB, over --max-memory %llu MiB", card->label, _(what),
		   (unsigned long long)((now_bytes - before_bytes) >> 20), (unsigned long long)(max_bytes >> 20));
	return ll_err_hint(err, config->needs_tensor || config->needs_dram
				    ? N_("raise --max-memory")
				    : N_("raise --max-memory, or use --payload vulkan, which takes far less"));
}

static int make_buffer(struct cuda_payload *payload, const struct ll_card *card, ll_cu_device device,
		       struct ll_err *err)
{
	const struct ll_cuda *cuda = payload->cuda;
	int cache_bytes = 0;
	size_t free_bytes, total_bytes;
	ll_cu_result status = cuda->cuDeviceGetAttribute(&cache_bytes, LL_CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, device);
	bool is_told = status == LL_CUDA_SUCCESS && cache_bytes > 0;
	uint64_t bytes = is_told ? (uint64_t)cache_bytes * BUFFER_CACHES : BUFFER_UNKNOWN_BYTES;
	status = cuda->cuMemGetInfo(&free_bytes, &total_bytes);
	if (status == LL_CUDA_SUCCESS && bytes > free_bytes / BUFFER_FREE_PART) {
		ll_err_set(err, -ENOMEM,
			   "card %s: metric dram reads a buffer of %llu MiB and takes at most an eighth of the "
			   "free memory; %zu MiB are free",
			   card->label, (unsigned long long)(bytes >> 20), free_bytes >> 20);
		return ll_err_hint(err, "wait for memory with --timeout, or hold another metric");
	}
	if (status == LL_CUDA_SUCCESS)
		status = cuda->cuMemAlloc(&payload->buffer, bytes);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "card %s: take %llu MiB to read from", card->label,
				    (unsigned long long)(bytes >> 20));
	payload->buffer_bytes = bytes;
	return 0;
}

/* The modules end with the context. */
static int load_kernels(struct cuda_payload *payload, const struct ll_payload_config *config, struct ll_err *err)
{
	const struct ll_cuda *cuda = payload->cuda;
	const struct {
		const unsigned char *ptx;
		const char *name;
		bool is_needed;
	} kernels[] = {
	    [LL_KERNEL_SPIN] = {ll_spin_ptx, "spin_ns", true},
	    [KERNEL_WIDE] = {ll_spin_wide_ptx, "spin_ns_wide", config->needs_wide},
	    [LL_KERNEL_FMA] = {ll_fma_wide_ptx, "spin_ns_fma", config->needs_fma},
	    [LL_KERNEL_TENSOR] = {ll_tensor_wide_ptx, "spin_ns_tensor", config->needs_tensor},
	    [LL_KERNEL_DRAM] = {ll_dram_wide_ptx, "spin_ns_dram", config->needs_dram},
	};
	for (size_t i = 0; i < KERNELS; i++) {
		struct ll_cu_module *module;
		if (!kernels[i].is_needed)
			continue;
		ll_cu_result status = cuda->cuModuleLoadData(&module, kernels[i].ptx);
		if (status == LL_CUDA_SUCCESS)
			status = cuda->cuModuleGetFunction(&payload->functions[i], module, kernels[i].name);
		if (status != LL_CUDA_SUCCESS)
			return ll_cuda_fail(cuda, status, err, "load kernel %s", kernels[i].name);
	}
	return 0;
}

static int build_payload(struct cuda_payload *payload, const struct ll_card *card,
			 const struct ll_payload_config *config, struct ll_err *err)
{
	ll_cu_device device;
	int rc = ll_card_cuda_device(card, &payload->cuda, &device, err);
	if (rc < 0)
		return rc;
	const struct ll_cuda *cuda = payload->cuda;
	uint64_t before_bytes = used_bytes(card);
	ll_cu_result status =
	    cuda->cuCtxCreate(&payload->context, LL_CU_CTX_SCHED_BLOCKING_SYNC | LL_CU_CTX_MAP_HOST, device);
	if (status != LL_CUDA_SUCCESS)
		return ll_cuda_fail(cuda, status, err, "card %s: make a CUDA context", card->label);
	rc = check_memory(card, before_bytes, config, N_("a CUDA context takes, while it is made,"), err);
	if (rc < 0)
		return rc;
	shrink_context(cuda);
	int sm_count = 0;
	if (cuda->cuDeviceGetAttribute(&sm_count, LL_CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device) ==
	    LL_CUDA_SUCCESS)
		payload->base.sm_count = (uint32_t)sm_count;
	rc = make_records(payload, err);
	if (rc == 0)
		rc = load_kernels(payload, config, err);
	if (rc == 0 && config->needs_dram)
		rc = make_buffer(payload, card, device, err);
	if (rc == 0 && config->needs_dram)
		rc = check_memory(card, before_bytes, config, N_("a CUDA context and metric dram's buffer take"), err);
	if (rc < 0)
		return rc;
	status = cuda->cuStreamCreate(&payload->stream, LL_CU_STREAM_NON_BLOCKING);
	return status == LL_CUDA_SUCCESS ? 0 : ll_cuda_fail(cuda, status, err, "card %s: make a stream", card->label);
}

static void cuda_close(struct ll_payload *base)
{
	struct cuda_payload *payload = (struct cuda_payload *)base;
	if (!payload)
		return;
	/* Destroying the context waits for the queued kernels, which end by time, and frees all that belongs to the
	 * context. */
	if (payload->context)
		payload->cuda->cuCtxDestroy(payload->context);
	free(payload->records);
	free(payload);
}

static int cuda_open(const struct ll_card *card, const struct ll_payload_config *config,
		     struct ll_payload **ret_payload, struct ll_err *err)
{
	struct cuda_payload *payload = calloc(1, sizeof *payload);
	if (!payload)
		return ll_err_set(err, -ENOMEM, "open payload cuda: out of host memory");
	payload->base.ops = &ll_payload_cuda;
	payload->base.has_card_clock = true;
	int rc = build_payload(payload, card, config, err);
	if (rc < 0) {
		cuda_close(&payload->base);
		return rc;
	}
	*ret_payload = &payload->base;
	return 0;
}

static int cuda_launch(struct ll_payload *base, const struct ll_payload_launch *launch, struct ll_err *err)
{
	struct cuda_payload *payload = (struct cuda_payload *)base;
	ll_cu_deviceptr record =
	    payload->records_on_card + launch->sequence % LL_RECORD_SLOTS * sizeof(struct ll_record);
	uint64_t length_ns = launch->length_ns, late_after_ns = launch->late_after_ns,
		 gap_limit_ns = launch->gap_limit_ns;
	uint64_t epoch_and_sequence = (uint64_t)launch->epoch << 32 | launch->sequence;
	void *params[] = {&length_ns,          &record,          &late_after_ns,        &gap_limit_ns,
			  &epoch_and_sequence, &payload->buffer, &payload->buffer_bytes}; /* only the dram kernel reads
											     the last two */
	bool is_wide = launch->kernel == LL_KERNEL_SPIN && launch->blocks > 1;
	struct ll_cu_function *kernel = payload->functions[is_wide ? (int)KERNEL_WIDE : (int)launch->kernel];
	ll_cu_result status = payload->cuda->cuLaunchKernel(kernel, launch->blocks, 1, 1, launch->threads, 1, 1, 0,
							    payload->stream, params, NULL);
	if (status == LL_CUDA_SUCCESS)
		return 0;
	ll_cuda_fail(payload->cuda, status, err, "launch a kernel");
	return -EIO;
}

static int cuda_check(struct ll_payload *base, struct ll_err *err)
{
	struct cuda_payload *payload = (struct cuda_payload *)base;
	ll_cu_result status = payload->cuda->cuStreamQuery(payload->stream);
	if (status == LL_CUDA_SUCCESS || status == LL_CUDA_ERROR_NOT_READY)
		return 0;
	ll_cuda_fail(payload->cuda, status, err, "ask the stream");
	return -EIO;
}

const struct ll_payload_ops ll_payload_cuda = {
    .name = "cuda",
    .open = cuda_open,
    .launch = cuda_launch,
    .check = cuda_check,
    .close = cuda_close,
};

/* ---- the choice of a back end ---- */

bool ll_payload_may_be_vulkan(enum ll_payload_choice choice, bool as_mps_client, const struct ll_card *card)
{
	if (choice != LL_PAYLOAD_AUTO)
		return choice == LL_PAYLOAD_VULKAN;
	return !as_mps_client && !card->is_mig && !ll_driver_sim_folder(card->driver);
}

static int auto_open(const struct ll_card *card, const struct ll_payload_config *config,
		     struct ll_payload **ret_payload, struct ll_err *err)
{
	struct ll_err vulkan_err = {0};
	bool may_vulkan = ll_payload_may_be_vulkan(LL_PAYLOAD_AUTO, config->as_mps_client, card);
	int rc = may_vulkan ? ll_payload_vulkan.open(card, config, ret_payload, &vulkan_err) : -ENODEV;
	if (rc == 0)
		return 0;
	if (rc != -ENODEV && rc != -ENOSYS) {
		if (err)
			*err = vulkan_err;
		return rc;
	}
	return ll_payload_cuda.open(card, config, ret_payload, err);
}

/* Has only open: the payload that it returns has the ops of its own back end. */
static const struct ll_payload_ops payload_auto = {.name = "auto", .open = auto_open};

const struct ll_payload_ops *const ll_payloads[] = {
    [LL_PAYLOAD_AUTO] = &payload_auto,
    [LL_PAYLOAD_VULKAN] = &ll_payload_vulkan,
    [LL_PAYLOAD_CUDA] = &ll_payload_cuda,
    NULL,
};

const struct ll_payload_ops *ll_payload_choose(enum ll_payload_choice choice)
{
	return ll_payloads[choice];
}
