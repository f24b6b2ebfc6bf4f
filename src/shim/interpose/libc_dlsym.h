/* libc_dlsym.h - libc's own dlsym and dlvsym, which the functions of dlsym.c replace, and the ioctl behind this
 * library's (shim/slices). */
#ifndef LOADLINE_SHIM_INTERPOSE_LIBC_DLSYM_H
#define LOADLINE_SHIM_INTERPOSE_LIBC_DLSYM_H

#include <stdbool.h>

#include "shim/interpose/elf_lookup.h"

/* A look-up of the program. */
struct ll_look_up {
	const char *name;
	const char *version; /* NULL: the look-up is by dlsym */
	const void *caller;  /* the return address in the program */
};

enum ll_libc_function { LL_LIBC_DLSYM, LL_LIBC_DLVSYM, LL_LIBC_IOCTL };

/* Returns the next function of that name: dlsym and dlvsym are those of Loadline's other library behind this one, or
 * libc's; ioctl is that of any preloaded library behind this one, or libc's. NULL: there is none. Calls no function of
 * libc and takes no lock. */
void *ll_libc_next(enum ll_libc_function function);

/* Returns libc's answer to the same look-up with this handle. libc sees this library as the caller. */
void *ll_libc_look_up(const struct ll_look_up *look_up, void *handle);

/* Returns whether the object is libc or a part of it, or Loadline's other library behind this one. */
bool ll_libc_is(const struct ll_elf_object *object);

#endif
