/*
 * dlsym.h - standing in front of dlsym and dlvsym, so that a program which opens the driver itself finds the hooks.
 *
 * What RTLD_NEXT and RTLD_DEFAULT mean depends on who calls, which libc reads off the return address. So the exported
 * functions (dlsym_entry.S) ask here with the arguments put aside, and then either return our answer or jump into
 * libc's function as if it had been called directly.
 *
 * A handle of the program's own: libc is asked, and only where it answers with the driver's own function of a name that
 * we hook the answer is our hook. An answer of NULL, with dlerror's text, and whatever another library defines under
 * such a name, stay as they are.
 *
 * A name that we do not hook is left to the library of ours behind us, if there is one (real.h): its dlsym is jumped to
 * in the place of libc's.
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
