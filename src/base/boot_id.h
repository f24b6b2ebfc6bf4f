/*
 * boot_id.h - the identity of this boot of the kernel.
 */
#ifndef LOADLINE_BASE_BOOT_ID_H
#define LOADLINE_BASE_BOOT_ID_H

enum { LL_BOOT_ID_SIZE = 40 };

/* Reads /proc/sys/kernel/random/boot_id. Empty: it cannot be read. */
void ll_boot_id_read(char ret_id[LL_BOOT_ID_SIZE]);

#endif
