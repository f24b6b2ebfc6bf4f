/*
 * program.h - finds the program file of the command of `loadline run`, and checks whether it can be governed.
 */
#ifndef LOADLINE_CLI_RUN_PROGRAM_H
#define LOADLINE_CLI_RUN_PROGRAM_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct ll_err;

enum { LL_RUN_NOT_EXECUTABLE = 126, LL_RUN_NOT_FOUND = 127 };

/*
 * Finds the file as execvp does: a word with a slash is a path, any other word is searched for in the folders of PATH.
 * -ENOENT, -EACCES: err's exit status is one of the two above.
 */
int ll_run_find(const char *command, char ret_path[PATH_MAX], struct ll_err *err);

/*
 * Whether a library can be preloaded into the program, or for a script into its interpreter. shim: the path of that
 * library. -EPERM, and err says why not: the program is static, has more rights than its user, is for another machine
 * or word size, or cannot be read. -ELIBBAD: it has another C library. The loader of musl ends such a program if a
 * preloaded library needs glibc, so the library must not be in its LD_PRELOAD. Or it is built
 * with AddressSanitizer, which ends it if another library is loaded before its own. The caller tells the user what that
 * means. If err has one of the statuses above, the program would not run at all, like a script without its interpreter,
 * or half an ELF file.
 */
int ll_run_check_program(const char *path, const char *shim, struct ll_err *err);

/* What decides whether a library can be preloaded into an ELF file. */
struct ll_elf_kind {
	bool is_elf; /* false: all other fields are zero */
	uint8_t word_bits, byte_order;
	uint16_t machine;
	bool is_damaged;       /* the file is cut short or not a whole program; the kernel would not run it */
	bool is_readable_here; /* the file has this program's word size and byte order, so the fields below are known */
	bool has_loader;       /* the file names a dynamic loader; without one nothing can be preloaded */
	char loader[PATH_MAX / 16]; /* the loader's path, perhaps cut */
	char sanitizer[64];         /* the library of AddressSanitizer that the file needs; empty: none */
};

/* Reads the kind of a file. It does not look for damage behind the program headers. -errno: the file cannot be read. */
int ll_elf_kind_read(const char *path, struct ll_elf_kind *ret_kind);

#endif
