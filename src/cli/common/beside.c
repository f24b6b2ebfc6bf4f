#include "cli/common/beside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"

int ll_beside_folder(char ret_folder[PATH_MAX], struct ll_err *err)
{
	ssize_t length = readlink("/proc/self/exe", ret_folder, PATH_MAX - 1);
	if (length < 0)
		return ll_err_set(err, -errno, "/proc/self/exe: %s", strerror(errno));
	ret_folder[length] = '\0';
	*strrchr(ret_folder, '/') = '\0';
	return 0;
}

int ll_beside_find(const char *const *folders, const char *name, char ret_path[PATH_MAX])
{
	char own[PATH_MAX];
	int rc = ll_beside_folder(own, NULL);
	for (; rc == 0 && *folders; folders++) {
		char path[3 * PATH_MAX];
		snprintf(path, sizeof path, "%s/%s/%s", own, *folders, name);
		if (access(path, R_OK) == 0 && realpath(path, ret_path))
			return 0;
	}
	return -ENOENT;
}
