/*
 * dlsym.h - stands in front of dlsym and dlvsym, so that a program that opens the driver by itself finds the hooks.
 *
 * RTLD_NEXT and RTLD_DEFAULT depend on the caller, which libc finds by the return address. So the exported functions
 * (dlsym_entry.S) put the arguments aside and ask here. Then they either return our answer, or jump into libc's
 * function as if the program had called it directly.
 *
 * For a handle, libc is asked. If libc answers with the driver's own function of a hooked name, the program gets the
 * hook. Other answers stay as they are: NULL with dlerror's text, and functions of other libraries with such a name.
 *
 * A name that this library does not hook is left to the other library of ours behind it, if there is one (hooks.h): the
 * jump then goes to that library's dlsym in the place of libc's.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_DLSYM_H
#define LOADLINE_SHIM_INTERPOSE_DLSYM_H

/* Two registers: where to jump, or NULL and what to return. */
struct ll_dlsym_route {
	void *jump;
	void *answer;
};

/* Called by dlsym_entry.S. */
struct ll_dlsym_route ll_dlsym_route(void *handle, const char *name);
struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version);

#endif
