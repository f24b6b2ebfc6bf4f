/*
 * other_version.c - preloaded: to a governed program the pages that loadlined shares with it are of another version. So
 * its library is as one of the next version.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { HEADER_SIZE = 16, VERSION_AT = 8 };

static void *map_file(void *at, size_t size, int protection, int flags, int fd, long offset)
{
	return (void *)syscall(SYS_mmap, at, size, protection, flags, fd, offset);
}

static int is_shared_page(const void *mapped, size_t size, int protection, int fd)
{
	return mapped != MAP_FAILED && fd >= 0 && size > HEADER_SIZE && protection & PROT_READ &&
	       getenv("LOADLINE_RUN") &&
	       (!memcmp(mapped, "llpage\0\0", VERSION_AT) || !memcmp(mapped, "llorder", VERSION_AT));
}

/* As mmap64, as programs have it that are built for large files. */
__attribute__((visibility("default"))) void *mmap(void *at, size_t size, int protection, int flags, int fd,
						  off_t offset)
{
	void *mapped = map_file(at, size, protection, flags, fd, offset);
	if (!is_shared_page(mapped, size, protection, fd))
		return mapped;
	munmap(mapped, size);
	mapped = map_file(at, size, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, offset);
	if (mapped != MAP_FAILED)
		++*(uint32_t *)(void *)((char *)mapped + VERSION_AT);
	return mapped;
}
