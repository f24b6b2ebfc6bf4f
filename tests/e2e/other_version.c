/*
 * other_version.c - preloaded: to a governed program every ledger is of one version less than it is, and those that it
 * makes are of one more. So its library is as one of the next version.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { VERSION_AT = 8, HEADER_SIZE = 120 };

static void add_to_version(char *header, size_t size, uint32_t count)
{
	uint32_t version;
	if (size != HEADER_SIZE || memcmp(header, "loadline", VERSION_AT) != 0 || !getenv("LOADLINE_RUN"))
		return;
	memcpy(&version, header + VERSION_AT, sizeof version);
	version += count;
	memcpy(header + VERSION_AT, &version, sizeof version);
}

__attribute__((visibility("default"))) ssize_t pread(int fd, void *data, size_t size, off_t offset)
{
	ssize_t n = syscall(SYS_pread64, fd, data, size, offset);
	if (n > 0)
		add_to_version(data, (size_t)n, (uint32_t)-1);
	return n;
}

__attribute__((visibility("default"))) ssize_t pwrite(int fd, const void *data, size_t size, off_t offset)
{
	char header[HEADER_SIZE];
	if (size == sizeof header) {
		memcpy(header, data, size);
		add_to_version(header, size, 1);
		data = header;
	}
	return syscall(SYS_pwrite64, fd, data, size, offset);
}
