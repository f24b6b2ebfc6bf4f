/*
 * beside.h - finds files that were built or installed together with this program, by the path of the program's own
 * file.
 */
#ifndef LOADLINE_CLI_COMMON_BESIDE_H
#define LOADLINE_CLI_COMMON_BESIDE_H

#include <limits.h>

struct ll_err;

/* Writes the folder of this program's file. -errno if /proc does not tell it. */
int ll_beside_folder(char ret_folder[PATH_MAX], struct ll_err *err);

/* Searches the folders in their order for a readable file of this name, and writes its real path. folders is
 * NULL-ended, and relative to the program's own folder. -ENOENT: no folder has the file. */
int ll_beside_find(const char *const *folders, const char *name, char ret_path[PATH_MAX]);

#endif
