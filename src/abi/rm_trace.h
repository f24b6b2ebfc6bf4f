/*
 * rm_trace.h - the trace of context switches of NVIDIA's kernel driver: the requests of abi/rm.h that open it, and what
 * it has.
 *
 * A program makes two memories that it may only read, for the header and for the records, an event buffer in them, and
 * binds the buffer to a card's switches. It maps each memory by a descriptor of /dev/nvidiactl that it has opened for
 * that: the request names it, then mmap of it at 0. It reads the records from `get` to `put`, and says how far it has
 * come by LL_RM_CONTROL_UPDATE_GET.
 *
 * The names, numbers and layouts are those of the open kernel module 580 (nvos.h, nv-ioctl.h, cl90cd.h, ctrl90cd.h,
 * ctrl2080gr.h). doc/facts.md says what the trace has on a card.
 */
#ifndef LOADLINE_ABI_RM_TRACE_H
#define LOADLINE_ABI_RM_TRACE_H

#include <stdint.h>

/* Of memory of the class LL_RM_CLASS_READ_ONLY_MEMORY. */
struct ll_rm_memory_params {
	uint32_t owner, type, flags, width, height;
	int32_t pitch;
	uint32_t attributes, attributes2, format, compression, zcull;
	uint64_t range_low, range_high, size, alignment, offset, limit, address;
	uint32_t compression_tag, address_space, internal, tag;
	int32_t numa_node;
};

struct ll_rm_map {
	uint32_t client, device, memory; /* device: here the client */
	uint64_t offset, length, address;
	uint32_t status, flags;
	int32_t fd; /* by which it is mapped */
};

/* Of an event buffer. */
struct ll_rm_event_buffer_params {
	uint64_t header_address, records_address;
	uint32_t record_size, record_count;
	uint64_t variable_address;
	uint32_t variable_size, records_threshold;
	uint64_t notification;
	uint32_t variable_threshold, subdevice, flags;
	uint32_t header, records, variable; /* memories */
};

/* LL_RM_CONTROL_BIND_SWITCHES, of the subdevice. */
struct ll_rm_bind_switches {
	uint32_t buffer, record_size, detail, filter;
	uint8_t all_users;
	uint32_t reason; /* why it was refused */
};

enum { LL_RM_SWITCHES_SIMPLE = 1 }; /* detail: starts and ends of stays on the card */

/* LL_RM_CONTROL_ENABLE_EVENTS, of the buffer. */
struct ll_rm_enable_events {
	uint8_t is_on;
	uint32_t flags;
};

enum { LL_RM_EVENTS_KEEP_OLDEST = 1 };

/* LL_RM_CONTROL_UPDATE_GET, of the buffer. */
struct ll_rm_update_get {
	uint32_t get, variable_get;
};

/* The memory of the header. The buffer is empty if get is put, and full if get is one more. */
struct ll_rm_event_header {
	uint32_t get, put;
	uint64_t count, dropped, variable_dropped;
};

enum ll_rm_switch_tag { LL_RM_SWITCH_START = 6, LL_RM_SWITCH_END = 7 };

struct ll_rm_switch_record {
	uint16_t type, subtype;
	uint32_t variable;
	uint8_t tag; /* enum ll_rm_switch_tag */
	uint8_t vm;
	uint16_t sequence;
	uint32_t context; /* the number that the driver gave one of its channels; 0: another user's */
	uint32_t pid;     /* 0: another user's */
	uint16_t reserved;
	uint8_t gpu_instance, compute_instance;
	uint64_t ns; /* of the card's clock */
};

_Static_assert(sizeof(struct ll_rm_memory_params) == 128, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_map) == 56, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_event_buffer_params) == 72, "as the driver has it");
_Static_assert(sizeof(struct ll_rm_switch_record) == 32, "as the driver has it");

#endif
