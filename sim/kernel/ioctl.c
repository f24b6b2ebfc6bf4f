/*
 * libloadline-sim-kernel.so, which is preloaded: its functions are found before libc's. ioctl answers what programs ask
 * of the simulated driver, and open of /dev/nvidiactl opens it. Everything else goes on to the next function, at the
 * price of a comparison.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/types.h>

#include "abi/rm.h"
#include "kernel/answer.h"

#define SIM_EXPORT __attribute__((visibility("default")))

typedef int (*ioctl_fn)(int fd, unsigned long request, ...);
typedef int (*open_fn)(const char *path, int flags, ...);

static ioctl_fn next_ioctl;
static open_fn next_open;

__attribute__((constructor)) static void find_next(void)
{
	void *found = dlsym(RTLD_NEXT, "ioctl");
	memcpy(&next_ioctl, &found, sizeof found);
	found = dlsym(RTLD_NEXT, "open64");
	memcpy(&next_open, &found, sizeof found);
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

/* A file in memory stands for the driver (answer.h). */
static int open_driver(int flags)
{
	return memfd_create("nvidiactl", flags & O_CLOEXEC ? MFD_CLOEXEC : 0);
}

static int open_file(const char *path, int flags, mode_t mode)
{
	if (path && strcmp(path, "/dev/nvidiactl") == 0)
		return open_driver(flags);
	if (!next_open)
		find_next();
	return next_open(path, flags, mode);
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
