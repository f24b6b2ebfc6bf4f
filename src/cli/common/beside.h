/*
 * beside.h - files that came with the program, found from where it is: in a build folder, or installed.
 */
#ifndef LOADLINE_CLI_COMMON_BESIDE_H
#define LOADLINE_CLI_COMMON_BESIDE_H

#include <limits.h>

struct ll_err;

/* The folder that this program's file is in. */
int ll_beside_folder(char ret_folder[PATH_MAX], struct ll_err *err);

/* The first of these folders (relative to the program's own; NULL-ended) that has a readable file of this name: its
 * real path. -ENOENT. */
int ll_beside_find(const char *const *folders, const char *name, char ret_path[PATH_MAX]);

#endif
