#include "shim/residency/residency.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 128 };

_Atomic bool ll_obstacles_has_waits;

/* Devices whose drivers keep memory of the card pinned for other devices: adapters for RDMA, GDRCopy, GPUDirect
 * Storage. */
static const char *const pinning[] = {"/dev/infiniband/", "/dev/gdrdrv", "/dev/nvidia-fs"};

bool ll_obstacles_find_device(const char *folder_path, char *ret_path, size_t path_size)
{
	DIR *folder = opendir(folder_path);
	bool is_found = false;
	const struct dirent *entry;
	while (folder && !is_found && (entry = readdir(folder))) {
		ssize_t length = readlinkat(dirfd(folder), entry->d_name, ret_path, path_size - 1);
		if (length <= 0)
			continue;
		ret_path[length] = '\0';
		for (size_t i = 0; i < sizeof pinning / sizeof *pinning; i++)
			is_found |= strncmp(ret_path, pinning[i], strlen(pinning[i])) == 0;
	}
	if (folder)
		closedir(folder);
	return is_found;
}

bool ll_obstacles_find(const struct ll_device_state *dev, char *why, size_t why_size)
{
	char path[PATH_SIZE];
	if (atomic_load(&dev->exported_count)) {
		snprintf(why, why_size, "it shares memory of the card, by cuIpcGetMemHandle or as a DMA buffer");
		return true;
	}
	if (ll_obstacles_find_device("/proc/self/fd", path, sizeof path)) {
		snprintf(why, why_size, "it has %.100s open, by which other devices may use its memory", path);
		return true;
	}
	return false;
}

const char *ll_obstacles_of_work(void)
{
	return atomic_load(&ll_obstacles_has_waits)
		   ? "its work on the card does not end: a stream may wait for a value that the program has to write"
		   : "its work on the card does not end: it cannot leave until that ends";
}
