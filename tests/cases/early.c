/* A library whose constructor, before the program begins, finds the driver and takes all the memory that it gets. */
#include "by_name.h"

__attribute__((constructor)) static void take_early(void)
{
	size_t took = take_by_name("libcuda.so.1");
	printf("full %zu\n", took);
	fflush(stdout);
	stay();
}
