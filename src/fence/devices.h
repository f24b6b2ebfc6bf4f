/*
 * devices.h - the device numbers of NVIDIA's driver.
 */
#ifndef LOADLINE_FENCE_DEVICES_H
#define LOADLINE_FENCE_DEVICES_H

#include <stddef.h>
#include <stdint.h>

enum { LL_FENCE_MAJORS = 16, LL_FENCE_NVIDIA = 195 };

struct ll_fence_majors {
	uint32_t items[LL_FENCE_MAJORS];
	size_t count;
};

/*
 * Takes the character devices whose name begins with "nvidia" from the text of /proc/devices: nvidia, nvidia-uvm,
 * nvidia-caps, nvidia-caps-imex-channels and their like. 195 is the cards' own, and is always the first: it is theirs
 * before the driver is loaded too (Documentation/admin-guide/devices.txt of Linux).
 */
void ll_fence_majors_take(const char *devices, struct ll_fence_majors *ret_majors);

/* The same of the machine. */
void ll_fence_majors_read(struct ll_fence_majors *ret_majors);

#endif
