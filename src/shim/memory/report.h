/*
 * report.h - what a governed program is told about a card: the memory limit as the card's size, and what its tenant was
 * charged as used memory.
 *
 * The figures come from the job's page. A program without a state of the card (nvidia-smi never makes a context) asks
 * loadlined for the page; if nobody answers, the limit comes from the program's environment. Without a memory limit
 * the driver's answers stay as they are.
 *
 * cuMemGetInfo's free memory is what is left of the limit, and no more than the driver has free. For an evictable
 * program it is what is left of the limit or of the card's memory, if that is less, whatever others have of the card:
 * their memory leaves when this program needs the room (residency/link.h). So frameworks size themselves by --mem.
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

/* Give the limit and the use of a card. False: this program has no limit on that card. */
bool ll_report_device(ll_cu_device device, struct ll_report *ret_report);
bool ll_report_card(const char *uuid, struct ll_report *ret_report);

/* Returns the bytes of the limit that are not used yet. */
uint64_t ll_report_left(const struct ll_report *report);

/* Writes the tenant's living processes on the card, `capacity` at most. Returns their number, which may be larger. */
size_t ll_report_processes(const char *uuid, struct ll_port_process *processes, size_t capacity);

#endif
