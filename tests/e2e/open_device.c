/* open_device PATH: opens a device file for reading and writing, and prints how that went: "open", "EPERM", "ENXIO". */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
	int fd = argc == 2 ? open(argv[1], O_RDWR) : -1;
	printf("%s\n", fd >= 0 ? "open" : errno == EPERM ? "EPERM" : errno == ENXIO ? "ENXIO" : strerror(errno));
	return 0;
}
