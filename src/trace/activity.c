#include "trace/trace.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "abi/cuda.h"
#include "abi/cupti.h"
#include "base/clock.h"
#include "base/scope.h"
#include "base/wait_listener.h"

/* ---- gate waits ---- */

/* Writes how long launches of a governed program waited, into a file of their own. It does so for both ways to trace
 * launches. */
/* A shorter wait is only the cost of asking for a turn. */
#define LEAST_WAIT_NS UINT64_C(20000)

enum { CARDS = 64 };

static struct {
	pthread_mutex_t lock; /* guards all fields */
	struct ll_trace_writer *writer;
	bool is_refused, has_fork_handler;
	uint64_t written_cards; /* cards that are in the file, one bit for each */
} waits = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* The open file is the parent's. The child opens one of its own at its next wait. */
static void reset_waits_in_child(void)
{
	pthread_mutex_init(&waits.lock, NULL);
	if (waits.writer)
		ll_trace_writer_forget(waits.writer);
	waits.writer = NULL;
	waits.written_cards = 0;
	waits.is_refused = false;
}

static bool open_file(void)
{
	if (!waits.has_fork_handler) {
		waits.has_fork_handler = true;
		pthread_atfork(NULL, NULL, reset_waits_in_child);
	}
	if (!waits.writer && !waits.is_refused)
		waits.is_refused = ll_trace_writer_open(LL_TRACE_SOURCE_GATE, &waits.writer) < 0;
	return waits.writer;
}

__attribute__((visibility("default"))) void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns,
								   uint64_t end_ns);

/* Writing takes 1 us, which is little compared with a wait of 20 us or more. */
void loadline_launch_waited(int device, const char *uuid, uint64_t start_ns, uint64_t end_ns)
{
	if (end_ns - start_ns < LEAST_WAIT_NS)
		return;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&waits.lock);
	if (!open_file())
		return;
	if (device >= 0 && device < CARDS && !(waits.written_cards >> device & 1)) {
		ll_trace_writer_add_card(waits.writer, (uint32_t)device, uuid);
		waits.written_cards |= UINT64_C(1) << device;
	}
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_GATE},
	    .start_ns = start_ns,
	    .end_ns = end_ns,
	    .device = (uint32_t)device,
	    .stream = (uint32_t)syscall(SYS_gettid),
	};
	ll_trace_writer_add(waits.writer, &record);
	ll_trace_writer_flush(waits.writer);
}

/* ---- activity ---- */

enum { BUFFER_BYTES = 1024 * 1024, BUFFER_ALIGNMENT = 64, DEVICES = 64, SHORT = 160 };

struct functions {
#define LL_CUPTI_FUNCTION(name, need, params) ll_cupti_result(*name) params;
#include "abi/cupti_functions.def"
};

static struct {
	struct functions cupti;
	struct ll_trace_writer *writer;
	int64_t offset_ns;        /* from CUPTI's clock to CLOCK_MONOTONIC; 0 if CUPTI uses our clock */
	_Atomic uint64_t devices; /* devices that have records, one bit for each */
	uint64_t written_devices; /* devices whose UUIDs are in the file */
} activity;

static void request_buffer(uint8_t **ret_buffer, size_t *ret_bytes, size_t *ret_most_records)
{
	void *buffer = NULL;
	if (posix_memalign(&buffer, BUFFER_ALIGNMENT, BUFFER_BYTES))
		buffer = NULL; /* without a buffer CUPTI drops records, and counts them */
	*ret_buffer = buffer;
	*ret_bytes = buffer ? BUFFER_BYTES : 0;
	*ret_most_records = 0;
}

static uint64_t to_monotonic(uint64_t ns)
{
	return ns + (uint64_t)activity.offset_ns;
}

/* Adds a record. If CUPTI does not know its time, the time is 0, and the record counts as dropped, because it has no
 * place on the time axis. */
static void add_record(struct ll_trace_record *record)
{
	if (!record->start_ns) {
		ll_trace_writer_add_dropped(activity.writer, 1);
		return;
	}
	if (record->device < DEVICES)
		atomic_fetch_or_explicit(&activity.devices, UINT64_C(1) << record->device, memory_order_relaxed);
	record->start_ns = to_monotonic(record->start_ns);
	record->end_ns = record->end_ns ? to_monotonic(record->end_ns) : 0;
	if (record->end_ns < record->start_ns) /* a forced flush gives records of work that has begun and not ended */
		record->end_ns = record->start_ns;
	ll_trace_writer_add(activity.writer, record);
}

static void add_kernel(const struct ll_cupti_kernel *kernel)
{
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_KERNEL, .name = ll_trace_writer_name(activity.writer, kernel->name)},
	    .start_ns = kernel->start_ns,
	    .end_ns = kernel->end_ns,
	    .device = kernel->device,
	    .context = kernel->context,
	    .stream = kernel->stream,
	    .correlation = kernel->correlation,
	    .grid = {(uint32_t)kernel->grid_x, (uint32_t)kernel->grid_y, (uint32_t)kernel->grid_z},
	    .block = {(uint32_t)kernel->block_x, (uint32_t)kernel->block_y, (uint32_t)kernel->block_z},
	    .registers = kernel->registers,
	    .static_shared_bytes = (uint32_t)kernel->static_shared_bytes,
	    .dynamic_shared_bytes = (uint32_t)kernel->dynamic_shared_bytes,
	};
	add_record(&record);
}

static void add_copy(const struct ll_cupti_memcpy *copy, uint32_t correlation)
{
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_COPY},
	    .start_ns = copy->start_ns,
	    .end_ns = copy->end_ns,
	    .device = copy->device,
	    .context = copy->context,
	    .stream = copy->stream,
	    .correlation = correlation,
	    .bytes = copy->bytes,
	    .from = copy->from_kind,
	    .to = copy->to_kind,
	};
	add_record(&record);
}

static void add_memset(const struct ll_cupti_memset *set)
{
	struct ll_trace_record record = {
	    .head = {.kind = LL_TRACE_MEMSET},
	    .start_ns = set->start_ns,
	    .end_ns = set->end_ns,
	    .device = set->device,
	    .context = set->context,
	    .stream = set->stream,
	    .correlation = set->correlation,
	    .bytes = set->bytes,
	    .to = (uint8_t)set->memory_kind,
	};
	add_record(&record);
}

static void add_memory(const struct ll_cupti_memory *memory)
{
	bool is_release = memory->operation == LL_CUPTI_MEMORY_RELEASE;
	if (!is_release && memory->operation != LL_CUPTI_MEMORY_ALLOCATION)
		return;
	struct ll_trace_record record = {
	    .head = {.kind = is_release ? LL_TRACE_FREE : LL_TRACE_ALLOCATE},
	    .start_ns = memory->at_ns,
	    .end_ns = memory->at_ns,
	    .device = memory->device,
	    .context = memory->context,
	    .stream = memory->stream,
	    .correlation = memory->correlation,
	    .bytes = memory->bytes,
	    .address = memory->address,
	    .to = (uint8_t)memory->memory_kind,
	};
	add_record(&record);
}

static void read_record(const struct ll_cupti_activity *record)
{
	switch (record->kind) {
	case LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL:
	case LL_CUPTI_ACTIVITY_KERNEL:
		add_kernel((const void *)record);
		break;
	case LL_CUPTI_ACTIVITY_MEMCPY:
		add_copy((const void *)record, ((const struct ll_cupti_memcpy *)(const void *)record)->correlation);
		break;
	case LL_CUPTI_ACTIVITY_MEMCPY2:
		add_copy((const void *)record,
			 ((const struct ll_cupti_memcpy_peer *)(const void *)record)->correlation);
		break;
	case LL_CUPTI_ACTIVITY_MEMSET:
		add_memset((const void *)record);
		break;
	case LL_CUPTI_ACTIVITY_MEMORY2:
		add_memory((const void *)record);
		break;
	default:
		break;
	}
}

/* Adds the records that CUPTI has dropped since the last question. */
static void count_dropped(struct ll_cu_context *context, uint32_t stream)
{
	size_t dropped = 0;
	if (activity.cupti.cuptiActivityGetNumDroppedRecords &&
	    activity.cupti.cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == LL_CUPTI_SUCCESS && dropped)
		ll_trace_writer_add_dropped(activity.writer, dropped);
}

static void complete_buffer(struct ll_cu_context *context, uint32_t stream, uint8_t *buffer, size_t bytes,
			    size_t valid_bytes)
{
	struct ll_cupti_activity *record = NULL;
	(void)bytes;
	while (valid_bytes &&
	       activity.cupti.cuptiActivityGetNextRecord(buffer, valid_bytes, &record) == LL_CUPTI_SUCCESS)
		read_record(record);
	free(buffer);
	count_dropped(context, stream);
}

/* Writes the UUIDs of new devices, which it asks of the driver. It is not called in CUPTI's callback, because a
 * callback must not call CUDA. */
static void write_devices(void)
{
	static ll_cu_result (*get_uuid)(struct ll_cu_uuid * uuid, ll_cu_device device);
	uint64_t fresh = atomic_load_explicit(&activity.devices, memory_order_relaxed) & ~activity.written_devices;
	if (!fresh)
		return;
	void *cuda = get_uuid ? NULL : dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	if (cuda) {
		void *address = dlsym(cuda, "cuDeviceGetUuid_v2");
		if (!address)
			address = dlsym(cuda, "cuDeviceGetUuid");
		memcpy(&get_uuid, &address, sizeof address);
	}
	for (uint32_t device = 0; get_uuid && device < DEVICES; device++) {
		struct ll_cu_uuid uuid;
		char text[64];
		if (!(fresh >> device & 1) || get_uuid(&uuid, (ll_cu_device)device) != LL_CUDA_SUCCESS)
			continue;
		const unsigned char *b = (const unsigned char *)uuid.bytes;
		snprintf(text, sizeof text, "GPU-%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			 b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11], b[12], b[13], b[14],
			 b[15]);
		ll_trace_writer_add_card(activity.writer, device, text);
		activity.written_devices |= UINT64_C(1) << device;
	}
}

static const char *text_of(ll_cupti_result status, char text[SHORT])
{
	const char *name = NULL;
	if (activity.cupti.cuptiGetResultString)
		activity.cupti.cuptiGetResultString(status, &name);
	snprintf(text, SHORT, "%s (%d)", name ? name : "CUPTI error", status);
	return text;
}

static bool load_cupti(const char *path, char *reason, size_t size)
{
	void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library) {
		const char *why = dlerror();
		snprintf(reason, size, "%s", why ? why : "libcupti cannot be opened");
		return false;
	}
#define LL_CUPTI_FUNCTION(name, need, params)                                                                          \
	{                                                                                                              \
		void *address = dlsym(library, #name);                                                                 \
		if (!address && (need)) {                                                                              \
			snprintf(reason, size, "libcupti has no %s", #name);                                           \
			return false;                                                                                  \
		}                                                                                                      \
		memcpy(&activity.cupti.name, &address, sizeof address);                                                \
	}
#include "abi/cupti_functions.def"
	return true;
}

/* Gives CUPTI the clock CLOCK_MONOTONIC, before any kind of record is enabled. If this CUPTI takes no clock, it finds
 * the offset from CUPTI's clock, which cuptiGetTimestamp tells, or otherwise from CLOCK_REALTIME. */
static void set_clock(void)
{
	uint64_t theirs_ns = 0;
	if (activity.cupti.cuptiActivityRegisterTimestampCallback &&
	    activity.cupti.cuptiActivityRegisterTimestampCallback(ll_now_ns) == LL_CUPTI_SUCCESS)
		return;
	uint64_t before_ns = ll_now_ns();
	if (!activity.cupti.cuptiGetTimestamp || activity.cupti.cuptiGetTimestamp(&theirs_ns) != LL_CUPTI_SUCCESS)
		theirs_ns = ll_wall_ns();
	activity.offset_ns = (int64_t)(before_ns / 2 + ll_now_ns() / 2 - theirs_ns);
}

static ll_cupti_result enable_kinds(uint32_t version)
{
	static const uint32_t kinds[] = {LL_CUPTI_ACTIVITY_CONCURRENT_KERNEL, LL_CUPTI_ACTIVITY_MEMCPY,
					 LL_CUPTI_ACTIVITY_MEMSET};
	ll_cupti_result status = activity.cupti.cuptiActivityRegisterCallbacks(request_buffer, complete_buffer);
	for (size_t i = 0; !status && i < sizeof kinds / sizeof *kinds; i++)
		status = activity.cupti.cuptiActivityEnable(kinds[i]);
	if (status)
		return status;
	/* The kinds below are optional. */
	activity.cupti.cuptiActivityEnable(LL_CUPTI_ACTIVITY_MEMCPY2);
	if (version >= LL_CUPTI_API_MEMORY2)
		activity.cupti.cuptiActivityEnable(LL_CUPTI_ACTIVITY_MEMORY2);
	return LL_CUPTI_SUCCESS;
}

bool ll_activity_begin(const char *path, struct ll_trace_writer *writer, uint32_t *ret_version, char *reason,
		       size_t size)
{
	char text[SHORT];
	uint32_t version = 0;
	*ret_version = 0;
	if (!load_cupti(path, reason, size))
		return false;
	ll_cupti_result status = activity.cupti.cuptiGetVersion(&version);
	if (status) {
		snprintf(reason, size, "cuptiGetVersion: %s", text_of(status, text));
		return false;
	}
	*ret_version = version;
	if (!ll_cupti_is_known(version)) {
		snprintf(reason, size, "CUPTI's API version %u is not known to loadline", version);
		return false;
	}
	activity.writer = writer;
	set_clock();
	status = enable_kinds(version);
	if (status)
		snprintf(reason, size, "CUPTI refuses: %s", text_of(status, text));
	return !status;
}

void ll_activity_flush(bool is_last)
{
	activity.cupti.cuptiActivityFlushAll(is_last ? LL_CUPTI_FLUSH_FORCED : 0);
	count_dropped(NULL,
		      0); /* if there was no buffer, CUPTI's callback, which counts dropped records, does not come */
	write_devices();
	ll_trace_writer_flush(activity.writer);
}
