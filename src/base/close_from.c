#include "base/close_from.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536 };

#define CLOSE_IN_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC, from Linux 5.11 on */

static long close_range_from(unsigned first, unsigned flags)
{
#ifdef SYS_close_range
	return syscall(SYS_close_range, first, ~0U, flags);
#else
	(void)first;
	(void)flags;
	return -1;
#endif
}

void ll_close_from_now(unsigned first)
{
	if (close_range_from(first, 0) == 0)
		return;
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = (int)first; fd < (most > 0 && most < DESCRIPTORS ? (int)most : DESCRIPTORS); fd++)
		close(fd);
}

void ll_close_from(unsigned first)
{
	if (close_range_from(first, CLOSE_IN_EXEC) != 0)
		ll_close_from_now(first);
}
