/*
 * scope.h - answers look-ups by RTLD_NEXT and RTLD_DEFAULT.
 *
 * Usually libc finds our functions by them, because a preloaded library comes first. It finds the driver's, or libc's
 * dlsym, for a caller that comes after this library, for one that was opened with RTLD_DEEPBIND, and by dlvsym, whose
 * versions our functions do not have.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_SCOPE_H
#define LOADLINE_SHIM_INTERPOSE_SCOPE_H

#include "shim/interpose/libc_dlsym.h"
#include "shim/interpose/stand_in.h"

/* Returns what the program gets; NULL: libc's own answer. handle: RTLD_NEXT or RTLD_DEFAULT. */
void *ll_scope_answer(const struct ll_look_up *look_up, const struct ll_stand_in *wanted, void *handle);

#endif
