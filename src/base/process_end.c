/* How a process has ended. In a file of its own: the library that programs preload has no ioctl. */
#include <errno.h>
#include <stdint.h>
#include <sys/ioctl.h>

#include "base/process.h"

/* Linux 6.15. Fields that are not used here have no name. */
struct pidfd_end {
	uint64_t mask;
	uint32_t others[13];
	int32_t exit_code;
};
#define PIDFD_END UINT64_C(8)
#define GET_PIDFD_END _IOWR(0xff, 11, struct pidfd_end)

int ll_process_read_end(int fd, uint32_t *ret_status)
{
	struct pidfd_end end = {.mask = PIDFD_END};
	_Static_assert(sizeof end == 64, "struct pidfd_info of its first version");
	if (ioctl(fd, GET_PIDFD_END, &end) || !(end.mask & PIDFD_END))
		return -ENODATA;
	*ret_status = (uint32_t)end.exit_code;
	return 0;
}
