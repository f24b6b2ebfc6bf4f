/*
 * libloadline-sim-kernel.so, which is preloaded: its ioctl is found before libc's, and answers what programs ask of the
 * simulated driver. Everything else goes on to the next ioctl, at the price of a comparison.
 */
#include <dlfcn.h>
#include <stdarg.h>
#include <string.h>

#include "abi/rm.h"
#include "kernel/answer.h"

#define SIM_EXPORT __attribute__((visibility("default")))

typedef int (*ioctl_fn)(int fd, unsigned long request, ...);

static ioctl_fn next_ioctl;

__attribute__((constructor)) static void find_next(void)
{
	void *found = dlsym(RTLD_NEXT, "ioctl");
	memcpy(&next_ioctl, &found, sizeof found);
}

SIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int rc;
	if ((request >> 8 & 0xff) == LL_RM_IOCTL_TYPE && sim_kernel_answer(fd, request, argument, &rc))
		return rc;
	if (!next_ioctl)
		find_next(); /* a constructor of another library has called */
	return next_ioctl(fd, request, argument);
}
