/* libc_dlsym.h - libc's own dlsym and dlvsym, which our exported functions (dlsym.c) stand in front of. */
#ifndef LOADLINE_SHIM_INTERPOSE_LIBC_DLSYM_H
#define LOADLINE_SHIM_INTERPOSE_LIBC_DLSYM_H

#include <stdbool.h>

#include "shim/interpose/elf_lookup.h"

/* What a program asks for. */
struct ll_look_up {
	const char *name;
	const char *version; /* NULL: by dlsym */
	const void *caller;  /* the program's return address */
};

enum ll_libc_function { LL_LIBC_DLSYM, LL_LIBC_DLVSYM };

/* Returns the function that comes after ours: that of the other library of ours behind this one, or libc's. NULL: there
 * is none. */
void *ll_libc_next(enum ll_libc_function function);

/* Returns libc's answer to the same look-up with this handle. The caller that libc sees is this library. */
void *ll_libc_look_up(const struct ll_look_up *look_up, void *handle);

/* Whether the object is libc or a part of it, or the other library of ours behind this one. */
bool ll_libc_is(const struct ll_elf_object *object);

#endif
