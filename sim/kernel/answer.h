/*
 * answer.h - the kernel driver's answers to ioctl on /dev/nvidiactl.
 *
 * A file in memory (memfd_create) with the name "nvidiactl" stands for the device: a program that opens one has opened
 * the driver. No device is ever opened.
 */
#ifndef LOADLINE_SIM_KERNEL_ANSWER_H
#define LOADLINE_SIM_KERNEL_ANSWER_H

#include <stdbool.h>

/* Answers a request of type LL_RM_IOCTL_TYPE. Returns false, with errno as it was, if the descriptor is not the
 * simulated driver's. *ret: what ioctl returns, with errno set. A control call takes the time that it takes on an
 * H200. */
bool sim_kernel_answer(int fd, unsigned long request, void *argument, int *ret);

#endif
