/*
 * ioctl.c - stands in for libc's ioctl, through which libcuda asks the kernel driver, and notes the process's channel
 * groups (slices/groups.h). It changes nothing, and passes everything on.
 */
#include <stdarg.h>

#include "shim/interpose/hook.h"
#include "shim/interpose/hooks.h"
#include "slices/groups.h"

/* The headers of libc are not included: glibc and musl declare the request differently. The argument of every request
 * fits into a pointer. */
int ioctl(int fd, unsigned long request, ...);

LL_HOOK_EXPORT int ioctl(int fd, unsigned long request, ...)
{
	va_list words;
	va_start(words, request);
	void *argument = va_arg(words, void *);
	va_end(words);
	return ll_groups_note((ll_ioctl_fn)(uintptr_t)ll_libc_next(LL_LIBC_IOCTL), fd, request, argument);
}
