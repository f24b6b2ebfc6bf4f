/*
 * report.h - the answers of a governed program's memory queries: the memory limit as the card's size, and the tenant's
 * charge as used memory.
 *
 * The figures come from the job's page. A program without a device state of the card asks loadlined for the page. An
 * example is nvidia-smi, which never makes a context. If loadlined does not reply, the limit comes from the program's
 * environment. Without a memory limit the library does not change the driver's answers.
 *
 * cuMemGetInfo reports as free memory the rest of the limit, but not more than the driver has free. For an evictable
 * program it reports the rest of the limit or of the card's memory, whichever is less. The memory of other programs
 * does not count, because it is evicted when this program needs the room (residency/link.h). So frameworks choose their
 * sizes by --mem.
 */
#ifndef LOADLINE_SHIM_MEMORY_REPORT_H
#define LOADLINE_SHIM_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "shim/link/port.h"

struct ll_report {
	uint64_t limit_bytes;
	uint64_t used_bytes; /* charged to the tenant */
};

/* Give the limit and the use of a card. Return false if this program has no limit on the card. */
bool ll_report_device(ll_cu_device device, struct ll_report *ret_report);
bool ll_report_card(const char *uuid, struct ll_report *ret_report);

/* Returns the bytes of the limit that are not used yet. */
uint64_t ll_report_left(const struct ll_report *report);

/* Writes the tenant's live processes on the card, at most `capacity`. Returns their number, which may be larger. */
size_t ll_report_processes(const char *uuid, struct ll_port_process *processes, size_t capacity);

#endif
