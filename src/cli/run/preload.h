/*
 * preload.h - libraries of ours that the dynamic loader puts into programs: where they are, and LD_PRELOAD.
 */
#ifndef LOADLINE_CLI_RUN_PRELOAD_H
#define LOADLINE_CLI_RUN_PRELOAD_H

#include <limits.h>
#include <stddef.h>

struct ll_err;

struct ll_preload_library {
	const char *name;
	const char *variable; /* of the environment: names another file in its place */
	const char *const
	    *places; /* from the program's folder; NULL-ended: where it is in a build folder, and installed */
};

/* Its real path. -ENOENT; -EINVAL: a path with a blank or a colon, which the loader would cut. */
int ll_preload_find(const struct ll_preload_library *library, char ret_path[PATH_MAX], struct ll_err *err);

/* The first word of the list (as LD_PRELOAD has it; NULL is fine), and its length; 0 at the list's end. */
const char *ll_preload_word(const char *list, size_t *ret_length);

/* The list with this library last, and nowhere else; for free(3). NULL: out of memory. */
char *ll_preload_append(const char *list, const char *path);

/* The same, but in front of the first library whose file name is `name`, if there is one. */
char *ll_preload_insert(const char *list, const char *path, const char *name);

#endif
