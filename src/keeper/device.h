/*
 * device.h - whether a process has a card open.
 */
#ifndef LOADLINE_KEEPER_DEVICE_H
#define LOADLINE_KEEPER_DEVICE_H

#include <sys/types.h>

/* Whether one of the process's descriptors is a device file of NVIDIA's driver (character device 195), by the number of
 * the device and not by its name, which a user can choose: 1, 0, or -errno. CAP_SYS_PTRACE is needed for processes of
 * others. proc: "/proc". */
int ll_device_is_open(const char *proc, pid_t pid);

#endif
