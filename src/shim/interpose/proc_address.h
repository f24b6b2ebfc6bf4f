/*
 * proc_address.h - stands in front of cuGetProcAddress. The driver is asked first. If its answer is a function that the
 * library hooks, the program gets the hook. The driver's status, and whether it finds a function, are never changed.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_PROC_ADDRESS_H
#define LOADLINE_SHIM_INTERPOSE_PROC_ADDRESS_H

#include <stdbool.h>

/*
 * Returns what to hand out instead of `found`, the driver's answer to that name, version and kind of default stream: a
 * hook, or `found` itself. The address says best which function it is (driver 580 answers with exported addresses only,
 * hooks_versions.def):
 *
 * 1. it is the exported address of a hooked variant of that name: its hook;
 * 2. it is another hooked function's, which that name has come to mean, and the driver does not export the name itself
 *    at that address (functions that do the same may be folded into one): that one's hook;
 * 3. it is nothing that the driver exports: by name, version and stream, as hooks_versions.def has them.
 *
 * Driver 580 gives the first kind of answer alone.
 */
void *ll_proc_address_replace(const char *name, void *found, int version, bool is_per_thread);

#endif
