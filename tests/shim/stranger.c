/* A program that has nothing to do with CUDA, with the shim preloaded: nothing is opened, started or printed for it. */
#include "where.h"

#include <dirent.h>
#include <link.h>
#include <unistd.h>

/* Counts what is in a folder of /proc/self; a link to something of ours or of a driver's ends the test. */
static int entries(const char *path)
{
	int count = 0;
	DIR *folder = opendir(path);
	for (struct dirent *entry; folder && (entry = readdir(folder));) {
		char target[512] = "";
		count += entry->d_name[0] != '.';
		if (readlinkat(dirfd(folder), entry->d_name, target, sizeof target - 1) > 0)
			CHECK(!strstr(target, "memfd:loadline") && !strstr(target, "/dev/nvidia"));
	}
	if (folder)
		closedir(folder);
	return count;
}

static int look_for_driver(struct dl_phdr_info *info, size_t size, void *user)
{
	(void)size;
	if (strstr(info->dlpi_name, "libcuda.so") || strstr(info->dlpi_name, "libnvidia-ml.so"))
		*(bool *)user = true;
	return 0;
}

int main(void)
{
	bool has_driver = false;
	CHECK(dlsym(RTLD_DEFAULT, "strlen"));
	CHECK(!dlsym(RTLD_DEFAULT, "cuNoSuchThing"));
	CHECK(is_in_shim(dlsym(RTLD_DEFAULT, "dlsym")));
	dl_iterate_phdr(look_for_driver, &has_driver);
	CHECK(!has_driver);
	CHECK(entries("/proc/self/fd") > 0);
	CHECK_EQUAL(entries("/proc/self/task"), 1);
	return 0;
}
