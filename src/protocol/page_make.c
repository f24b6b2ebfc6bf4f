/* The daemon's part of page.h: it makes the files. The preloaded library does not contain it, because the library also
 * runs with older C libraries. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "protocol/page.h"

#ifndef MFD_NOEXEC_SEAL /* Linux 6.3; later kernels may require it (vm.memfd_noexec) */
#define MFD_NOEXEC_SEAL 0x0008U
#endif

/* The mode keeps other users from opening the memfd in /proc for writing. */
static int make_file(const char *name, size_t bytes, int *ret_fd)
{
	unsigned flags = MFD_CLOEXEC | MFD_ALLOW_SEALING;
	int fd = memfd_create(name, flags | MFD_NOEXEC_SEAL);
	if (fd < 0 && errno == EINVAL)
		fd = memfd_create(name, flags);
	if (fd < 0)
		return -errno;
	if (fchmod(fd, 0600) < 0 || ftruncate(fd, (off_t)bytes) < 0) {
		int code = errno;
		close(fd);
		return -code;
	}
	fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL); /* a kernel without seals does not fail */
	*ret_fd = fd;
	return 0;
}

static int write_header(int fd, const void *header, size_t size)
{
	ssize_t written = pwrite(fd, header, size, 0);
	if (written == (ssize_t)size)
		return 0;
	int code = written < 0 ? errno : EIO;
	close(fd);
	return -code;
}

int ll_page_make(int *ret_fd)
{
	struct {
		uint64_t magic;
		uint32_t version, bytes;
	} header = {LL_PAGE_MAGIC, LL_PAGE_VERSION, sizeof(struct ll_page)};
	int rc = make_file("loadline-page", sizeof(struct ll_page), ret_fd);
	return rc ? rc : write_header(*ret_fd, &header, sizeof header);
}

int ll_orders_make(const uint64_t token[2], int *ret_fd)
{
	struct {
		uint64_t magic;
		uint32_t version, bytes;
		uint64_t token[2];
	} header = {LL_ORDERS_MAGIC, LL_PAGE_VERSION, sizeof(struct ll_orders), {token[0], token[1]}};
	int rc = make_file("loadline-orders", sizeof(struct ll_orders), ret_fd);
	return rc ? rc : write_header(*ret_fd, &header, sizeof header);
}

int ll_page_reopen_read_only(int fd, int *ret_fd)
{
	char path[32];
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? -errno : 0;
}
