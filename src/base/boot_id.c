#include "base/boot_id.h"

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"

void ll_boot_id_read(char ret_id[LL_BOOT_ID_SIZE])
{
	LL_SCOPE_CLOSE int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, ret_id, LL_BOOT_ID_SIZE - 1);
	ret_id[length > 0 ? length : 0] = '\0';
	ret_id[strcspn(ret_id, "\n")] = '\0';
}
