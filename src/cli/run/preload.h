/*
 * preload.h - finds loadline's preloaded libraries, and edits the list LD_PRELOAD.
 */
#ifndef LOADLINE_CLI_RUN_PRELOAD_H
#define LOADLINE_CLI_RUN_PRELOAD_H

#include <limits.h>
#include <stddef.h>

struct ll_err;

struct ll_preload_library {
	const char *name;
	const char *variable; /* name of the variable that may name another file */
	const char *const
	    *places; /* folders to search, relative to the program's: in a build folder, and installed; NULL-ended */
};

/* Finds the library, and writes its real path. -ENOENT: not found. -EINVAL: the path has a blank or a colon, at which
 * the loader would cut it. */
int ll_preload_find(const struct ll_preload_library *library, char ret_path[PATH_MAX], struct ll_err *err);

/* Returns the first word of a list in the format of LD_PRELOAD, and its length, 0 at the list's end. list may be NULL.
 */
const char *ll_preload_word(const char *list, size_t *ret_length);

/* Returns the list with this library at the end, and at no other place; for free(3). Only the simulated kernel driver's
 * comes after it (env_sim.h). NULL: out of memory. */
char *ll_preload_append(const char *list, const char *path);

/* The same, but the library comes before the first library whose file name is `name`, if the list has one. */
char *ll_preload_insert(const char *list, const char *path, const char *name);

#endif
