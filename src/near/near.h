/*
 * near.h - the CPUs and memory nodes near PCI devices, by hwloc.
 */
#ifndef LOADLINE_NEAR_NEAR_H
#define LOADLINE_NEAR_NEAR_H

#include <stddef.h>

struct ll_err;

enum { LL_NEAR_TEXT_SIZE = 1024 };

struct ll_near {
	char cpus[LL_NEAR_TEXT_SIZE];  /* "0-15,32-47"; empty: all allowed CPUs are near */
	char nodes[LL_NEAR_TEXT_SIZE]; /* "0": the allowed memory nodes near the devices; empty as above */
};

/*
 * Binds all threads of a process to those of the CPUs that this process may use which are near one of the devices
 * ("0000:65:00.0"), and says to which. If all are near, nothing is changed. An XML file of hwloc (HWLOC_XMLFILE, with
 * HWLOC_THISSYSTEM=1) may describe the machine. -ENODEV: a device is not in the machine's topology. -ENOENT: no allowed
 * CPU is near. Other errors: -errno.
 */
int ll_near_bind(int pid, char *const *devices, size_t count, struct ll_near *ret_near, struct ll_err *err);

#endif
