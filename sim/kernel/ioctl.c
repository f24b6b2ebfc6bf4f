/*
 * libloadline-sim-kernel.so, which is preloaded, behind all others: its functions are found before libc's. ioctl
 * answers what programs ask of the simulated driver, and open of /dev/nvidiactl opens it. Everything else goes on to
 * libc and the kernel, at the price of a comparison. The next functions are not looked up by dlsym: a library in front
 * may have that too, and find these ones again.
 */
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

#include "abi/rm.h"
#include "kernel/answer.h"

#define SIM_EXPORT __attribute__((visibility("default")))

/* libc's open by its other name, at which a thread can be cancelled. */
int __open64(const char *path, int flags, ...);

SIM_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int rc;
	if ((request >> 8 & 0xff) == LL_RM_IOCTL_TYPE && sim_kernel_answer(fd, request, argument, &rc))
		return rc;
	return (int)syscall(SYS_ioctl, fd, request, argument);
}

/* A file in memory stands for the driver (answer.h). */
static int open_driver(int flags)
{
	return memfd_create("nvidiactl", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
}

static int open_file(const char *path, int flags, mode_t mode)
{
	if (path && strcmp(path, "/dev/nvidiactl") == 0)
		return open_driver(flags);
	return __open64(path, flags, mode);
}

static bool has_mode(int flags)
{
	return flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE;
}

/* Both names are of one function, as in libc, where files may be large. */
SIM_EXPORT int sim_open(const char *path, int flags, ...) __asm__("open");
SIM_EXPORT int sim_open(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return open_file(path, flags, mode);
}

SIM_EXPORT int sim_open64(const char *path, int flags, ...) __asm__("open64");
SIM_EXPORT int sim_open64(const char *path, int flags, ...)
{
	va_list arguments;
	va_start(arguments, flags);
	mode_t mode = has_mode(flags) ? va_arg(arguments, mode_t) : 0;
	va_end(arguments);
	return open_file(path, flags, mode);
}
