/*
 * scope.h - answers look-ups with RTLD_NEXT and RTLD_DEFAULT.
 *
 * For these handles libc usually finds this library's functions, because a preloaded library comes first. In three
 * cases libc finds the driver's function or its own dlsym: the caller comes after this library, the caller was opened
 * with RTLD_DEEPBIND, or the look-up is by dlvsym, because this library's functions have no versions.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_SCOPE_H
#define LOADLINE_SHIM_INTERPOSE_SCOPE_H

#include "shim/interpose/libc_dlsym.h"
#include "shim/interpose/stand_in.h"

/* Returns the function that the program gets; NULL: the program gets libc's own answer. handle: RTLD_NEXT or
 * RTLD_DEFAULT. */
void *ll_scope_answer(const struct ll_look_up *look_up, const struct ll_stand_in *wanted, void *handle);

#endif
