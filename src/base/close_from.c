#include "base/close_from.h"

#include <sys/syscall.h>
#include <unistd.h>

enum { DESCRIPTORS = 65536 };

#define CLOSE_IN_EXEC (1U << 2) /* CLOSE_RANGE_CLOEXEC, from Linux 5.11 on */

void ll_close_from(unsigned first)
{
#ifdef SYS_close_range
	if (syscall(SYS_close_range, first, ~0U, CLOSE_IN_EXEC) == 0 || syscall(SYS_close_range, first, ~0U, 0) == 0)
		return;
#endif
	long most = sysconf(_SC_OPEN_MAX);
	for (int fd = (int)first; fd < (most > 0 && most < DESCRIPTORS ? (int)most : DESCRIPTORS); fd++)
		close(fd);
}
