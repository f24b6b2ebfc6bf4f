/*
 * report.h - what a governed program is told of a card: its memory limit as the card's size, what its tenant is charged
 * as what is used.
 *
 * The figures are the ledger's. A program that has no device state on the card (nvidia-smi never makes a context) reads
 * them there too, and the limit from its environment where the ledger has no such tenant. Without a memory limit
 * nothing is changed.
 */
#ifndef LOADLINE_SHIM_MEMORY_REPORT_H
#define LOADLINE_SHIM_MEMORY_REPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda.h"
#include "ledger/port.h"

struct ll_report {
	uint64_t limit_bytes;
	uint64_t used_bytes; /* charged to the tenant */
};

/* False: this program has no limit on that card. */
bool ll_report_device(ll_cu_device device, struct ll_report *ret_report);
bool ll_report_card(const char *uuid, struct ll_report *ret_report);

/* What there is left of the limit. */
uint64_t ll_report_left(const struct ll_report *report);

/* The tenant's living programs on that card, at most capacity; returns how many there are. */
size_t ll_report_processes(const char *uuid, struct ll_port_process *processes, size_t capacity);

#endif
