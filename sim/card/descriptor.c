#include "card/descriptor.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scope.h"
#include "card/attach.h"
#include "card/world.h"

static int open_file(void)
{
	char path[PATH_MAX];
	const char *folder = sim_world_folder();
	int n = folder ? snprintf(path, sizeof path, "%s/descriptors", folder) : -1;
	return n > 0 && (size_t)n < sizeof path ? sim_world_open_file(path, O_RDWR | O_CREAT) : -1;
}

/* Unlike the index, this number identifies one share for ever. */
static off_t number_of(uint32_t index, uint32_t generation)
{
	return (off_t)generation * SIM_SHARES + index;
}

static off_t place_of(off_t number)
{
	return number % SIM_SHARES * SIM_DESCRIPTOR_BYTES;
}

int sim_descriptor_new(uint32_t index, uint32_t generation, const void *ticket)
{
	off_t number = number_of(index, generation);
	struct flock lock = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = number, .l_len = 1};
	int fd = open_file();
	if (fd < 0)
		return -1;
	if (pwrite(fd, ticket, SIM_DESCRIPTOR_BYTES, place_of(number)) == SIM_DESCRIPTOR_BYTES &&
	    fcntl(fd, F_OFD_SETLK, &lock) == 0 && lseek(fd, number, SEEK_SET) == number)
		return fd;
	close(fd);
	return -1;
}

bool sim_descriptor_read(int fd, void *ret_ticket)
{
	struct stat own, file;
	LL_SCOPE_CLOSE int known = open_file();
	off_t number = lseek(fd, 0, SEEK_CUR);
	return number > 0 && fstat(fd, &own) == 0 && fstat(known, &file) == 0 && own.st_ino == file.st_ino &&
	       own.st_dev == file.st_dev &&
	       pread(fd, ret_ticket, SIM_DESCRIPTOR_BYTES, place_of(number)) == SIM_DESCRIPTOR_BYTES;
}

bool sim_descriptors_are_open(uint32_t index, uint32_t generation)
{
	LL_SCOPE_CLOSE int fd = open_file();
	struct flock lock = {
	    .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = number_of(index, generation), .l_len = 1};
	return fd < 0 || fcntl(fd, F_OFD_GETLK, &lock) != 0 || lock.l_type != F_UNLCK;
}
