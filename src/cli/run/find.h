/*
 * find.h - the file of the command of `loadline run`, and whether it can be governed.
 */
#ifndef LOADLINE_CLI_RUN_FIND_H
#define LOADLINE_CLI_RUN_FIND_H

#include <limits.h>

struct ll_err;

enum { LL_RUN_NOT_EXECUTABLE = 126, LL_RUN_NOT_FOUND = 127 };

/*
 * As execvp looks it up: a word with a slash is a path, else the folders of PATH are searched. -ENOENT, -EACCES; err's
 * status is one of the two above.
 */
int ll_run_find(const char *command, char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Whether a library can be preloaded into the program, and for a script into its interpreter: shim is that library's
 * path. -EPERM, saying why not: static, with more rights than its user, of another machine or word size, not to be
 * read. -ELIBBAD: it has another C library. The loader of musl ends such a program when a preloaded library needs
 * glibc, so the library must not be in its LD_PRELOAD. The caller says what that means to him. An error with one of the
 * statuses above is of a program that would not run at all, as a script without its interpreter, or half an ELF file.
 */
int ll_run_check_program(const char *path, const char *shim, struct ll_err *err);

#endif
