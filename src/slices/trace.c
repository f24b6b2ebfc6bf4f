#include "slices/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "abi/rm.h"

enum { CARDS = 32, HEADER_BYTES = 4096 };
/* Attributes of the memories: cached, in the host, read-only for the program. */
enum { ATTRIBUTES = 1 << 29 | 1 << 25, ATTRIBUTES2 = 1 << 22 };
/* Names of the objects, chosen by the client. */
enum { DEVICE = 0x10ad0001, SUBDEVICE = 0x10ad0002, HEADER = 0x10ad0010, RECORDS = 0x10ad0011, BUFFER = 0x10ad0012 };

/* Programs close descriptors that are not theirs; most leave high ones alone. */
enum { HIGH_FD = 512 };

/* A memory that the driver writes. */
struct mapping {
	void *at;
	size_t bytes;
};

struct ll_trace {
	ll_ioctl_fn next;
	struct ll_driver_file file;
	uint32_t client;
	uint64_t dropped;
	struct mapping header, records;
};

static int error_of(uint32_t status)
{
	return status == LL_RM_NO_RIGHT ? -EPERM : status ? -EIO : 0;
}

static int make_object(struct ll_trace *trace, uint32_t parent, uint32_t object, uint32_t class, void *params,
		       size_t size)
{
	struct ll_rm_alloc alloc = {.root = trace->client,
				    .parent = parent,
				    .object = object,
				    .class = class,
				    .params = (uintptr_t)params,
				    .params_size = (uint32_t)size};
	if (trace->next(trace->file.fd, LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc), &alloc))
		return -errno;
	if (!alloc.status && class == LL_RM_CLASS_ROOT)
		trace->client = alloc.object;
	return error_of(alloc.status);
}

static int free_object(struct ll_trace *trace, uint32_t object)
{
	struct ll_rm_free freed = {.root = trace->client, .object = object};
	return trace->next(trace->file.fd, LL_RM_REQUEST(LL_RM_ESC_FREE, struct ll_rm_free), &freed) ? -errno : 0;
}

static int control_object(struct ll_trace *trace, uint32_t object, uint32_t command, void *params, size_t size)
{
	struct ll_rm_control control = {.client = trace->client,
					.object = object,
					.command = command,
					.params = (uintptr_t)params,
					.params_size = (uint32_t)size};
	if (trace->next(trace->file.fd, LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control), &control))
		return -errno;
	return error_of(control.status);
}

/* ---- the card ---- */

static bool is_card(struct ll_trace *trace, const char *uuid)
{
	struct ll_rm_uuid found = {0};
	int rc = control_object(trace, SUBDEVICE, LL_RM_CONTROL_GET_UUID, &found, sizeof found);
	return !rc && found.length == strlen(uuid) + 1 && found.length <= sizeof found.data &&
	       memcmp(found.data, uuid, found.length) == 0;
}

static int open_subdevice(struct ll_trace *trace, uint32_t number)
{
	struct {
		uint32_t number, share, target_client, target_device, flags;
		uint64_t size, start, limit;
		uint32_t mode;
	} device = {.number = number};
	uint32_t subdevice = 0;
	int rc = make_object(trace, trace->client, DEVICE, LL_RM_CLASS_DEVICE, &device, sizeof device);
	return rc ? rc : make_object(trace, DEVICE, SUBDEVICE, LL_RM_CLASS_SUBDEVICE, &subdevice, sizeof subdevice);
}

/* The driver has its own numbers for cards. */
static int open_card(struct ll_trace *trace, const char *uuid)
{
	for (uint32_t number = 0; number < CARDS; number++) {
		if (open_subdevice(trace, number) == 0 && is_card(trace, uuid))
			return 0;
		free_object(trace, DEVICE);
	}
	return -ENODEV;
}

/* ---- memories ---- */

/* The descriptor by which a memory is mapped is not needed any more when it is. */
static int map_by(struct ll_trace *trace, uint32_t object, int fd, struct mapping *mapping)
{
	struct ll_rm_map map = {.client = trace->client,
				.device = trace->client,
				.memory = object,
				.length = mapping->bytes,
				.flags = 1,
				.fd = fd};
	if (trace->next(trace->file.fd, LL_RM_REQUEST(LL_RM_ESC_MAP_MEMORY, struct ll_rm_map), &map))
		return -errno;
	if (map.status)
		return error_of(map.status);
	void *at = mmap(NULL, mapping->bytes, PROT_READ, MAP_SHARED, fd, 0);
	if (at == MAP_FAILED)
		return -errno;
	mapping->at = at;
	return 0;
}

static int map_memory(struct ll_trace *trace, uint32_t object, size_t bytes, struct mapping *mapping)
{
	struct ll_rm_memory_params params = {.attributes = ATTRIBUTES, .attributes2 = ATTRIBUTES2, .size = bytes};
	int rc = make_object(trace, trace->client, object, LL_RM_CLASS_READ_ONLY_MEMORY, &params, sizeof params);
	if (rc)
		return rc;
	int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	mapping->bytes = bytes;
	rc = map_by(trace, object, fd, mapping);
	close(fd);
	return rc;
}

static int enable_trace(struct ll_trace *trace)
{
	struct ll_rm_event_buffer_params buffer = {.record_size = sizeof(struct ll_rm_switch_record),
						   .record_count = LL_TRACE_RECORDS,
						   .subdevice = SUBDEVICE,
						   .header = HEADER,
						   .records = RECORDS};
	struct ll_rm_bind_switches bind = {
	    .buffer = BUFFER, .record_size = buffer.record_size, .detail = LL_RM_SWITCHES_SIMPLE};
	struct ll_rm_enable_events enable = {.is_on = 1, .flags = LL_RM_EVENTS_KEEP_OLDEST};
	int rc = make_object(trace, trace->client, BUFFER, LL_RM_CLASS_EVENT_BUFFER, &buffer, sizeof buffer);
	if (!rc)
		rc = control_object(trace, SUBDEVICE, LL_RM_CONTROL_BIND_SWITCHES, &bind, sizeof bind);
	return rc ? rc : control_object(trace, BUFFER, LL_RM_CONTROL_ENABLE_EVENTS, &enable, sizeof enable);
}

static int open_driver(struct ll_trace *trace)
{
	int fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	trace->file.fd = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (trace->file.fd < 0)
		trace->file.fd = fd;
	else
		close(fd);
	return ll_driver_file_note(trace->file.fd, &trace->file) ? 0 : -errno;
}

static int open_all(struct ll_trace *trace, const char *uuid)
{
	int rc = open_driver(trace);
	rc = rc ? rc : make_object(trace, 0, 0, LL_RM_CLASS_ROOT, NULL, 0);
	rc = rc ? rc : open_card(trace, uuid);
	rc = rc ? rc : map_memory(trace, HEADER, HEADER_BYTES, &trace->header);
	rc = rc ? rc
		: map_memory(trace, RECORDS, LL_TRACE_RECORDS * sizeof(struct ll_rm_switch_record), &trace->records);
	return rc ? rc : enable_trace(trace);
}

int ll_trace_open(ll_ioctl_fn next, const char *uuid, struct ll_trace **ret_trace)
{
	struct ll_trace *trace = calloc(1, sizeof *trace);
	if (!trace)
		return -ENOMEM;
	trace->next = next;
	trace->file.fd = -1;
	int rc = open_all(trace, uuid);
	if (rc)
		ll_trace_close(trace);
	else
		*ret_trace = trace;
	return rc;
}

void ll_trace_close(struct ll_trace *trace)
{
	if (!trace)
		return;
	if (trace->records.at)
		munmap(trace->records.at, trace->records.bytes);
	if (trace->header.at)
		munmap(trace->header.at, trace->header.bytes);
	if (ll_driver_file_is_open(&trace->file))
		close(trace->file.fd); /* its objects end with it */
	free(trace);
}

int ll_trace_read(struct ll_trace *trace, struct ll_rm_switch_record *ret_records, size_t most, bool *ret_lost)
{
	const volatile struct ll_rm_event_header *header = trace->header.at;
	const struct ll_rm_switch_record *records = trace->records.at;
	size_t count = 0;
	int rc =
	    ll_driver_file_is_open(&trace->file) ? control_object(trace, BUFFER, LL_RM_CONTROL_FLUSH, NULL, 0) : -EBADF;
	if (rc)
		return rc;
	uint32_t put = header->put, get = header->get;
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	for (; get != put && count < most && get < LL_TRACE_RECORDS; get = (get + 1) % LL_TRACE_RECORDS)
		ret_records[count++] = records[get];
	uint64_t dropped = header->dropped;
	*ret_lost = dropped != trace->dropped;
	trace->dropped = dropped;
	struct ll_rm_update_get update = {.get = get};
	rc = count ? control_object(trace, BUFFER, LL_RM_CONTROL_UPDATE_GET, &update, sizeof update) : 0;
	return rc ? rc : (int)count;
}
