/*
 * hooks.h - the table of hooks, for dlsym.c and proc_address.c, which return functions to the program.
 *
 * Loadline has two libraries that replace functions of the driver: libloadline-cuda.so governs, and
 * libloadline-events.so traces. Both link this folder, and each has its own table of hooks (hook_table.c).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_HOOKS_H
#define LOADLINE_SHIM_INTERPOSE_HOOKS_H

#include <stdbool.h>
#include <stddef.h>

#include "shim/interpose/real.h"

struct ll_hook {
	const char *symbol;
	void (*function)(void); /* the hook itself */
	size_t slot;            /* offset of the driver's function in struct ll_real or struct ll_real_nvml */
	enum ll_real_library library;
};

/* The table of the library that contains this code. */
extern const struct ll_hook ll_hooks[];
extern const size_t ll_hook_count;

/* The name stem of the other of the two libraries, which may be loaded behind this one. A second copy of this library
 * is not used. Otherwise both copies would charge or time the same call. */
extern const char *const ll_hook_behind[];

/* Returns the hook with exactly this symbol, or NULL. */
const struct ll_hook *ll_hook_find(const char *symbol);

/* ---- what is behind the hooks ---- */

/* libc's own dlsym and dlvsym, which the functions of dlsym.c replace, its dlopen and dlclose, and the ioctl behind
 * this library's (shim/slices).
 */

/* A look-up of the program. */
struct ll_look_up {
	const char *name;
	const char *version; /* NULL: the look-up is by dlsym */
	const void *caller;  /* the return address in the program */
};

enum ll_libc_function { LL_LIBC_DLSYM, LL_LIBC_DLVSYM, LL_LIBC_DLOPEN, LL_LIBC_DLCLOSE, LL_LIBC_IOCTL };

/* Returns the next function of that name: dlsym and dlvsym are those of Loadline's other library behind this one, or
 * libc's; ioctl is that of any preloaded library behind this one, or libc's. NULL: there is none. Calls no function of
 * libc and takes no lock. */
void *ll_libc_next(enum ll_libc_function function);

/* Returns libc's answer to the same look-up with this handle. libc sees this library as the caller. */
void *ll_libc_look_up(const struct ll_look_up *look_up, void *handle);

/* dlopen and dlclose of libc. A debugger's preloaded library may replace these two, and may look functions up inside:
 * with a lock of its own, so a call of its dlopen from this library's dlsym would wait forever (compute-sanitizer does
 * so). */
void *ll_libc_open(const char *file, int mode);
void ll_libc_close(void *handle);

/* Returns whether the object is libc or a part of it, or Loadline's other library behind this one. */
bool ll_libc_is(const struct ll_elf_object *object);

#endif
