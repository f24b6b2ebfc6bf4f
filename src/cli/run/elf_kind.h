/*
 * elf_kind.h - what kind of program a file is, as far as a preloaded library is concerned.
 */
#ifndef LOADLINE_CLI_RUN_ELF_KIND_H
#define LOADLINE_CLI_RUN_ELF_KIND_H

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct ll_elf_kind {
	bool is_elf; /* false: all else is zero */
	uint8_t word_bits, byte_order;
	uint16_t machine;
	bool is_damaged;            /* cut short, or no whole program: the kernel would not run it */
	bool is_readable_here;      /* of this program's own word size and byte order: the rest is known */
	bool has_loader;            /* a dynamic loader is asked for; without one nothing can be preloaded */
	char loader[PATH_MAX / 16]; /* its path, cut */
};

/* -errno when the file cannot be read. What is damaged behind the program headers is not looked for. */
int ll_elf_kind_read(const char *path, struct ll_elf_kind *ret_kind);

#endif
