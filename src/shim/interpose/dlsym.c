/*
 * dlsym.c - stands in front of dlsym and dlvsym, so that a program that opens the driver by itself finds the hooks.
 *
 * RTLD_NEXT and RTLD_DEFAULT depend on the caller, which libc finds by the return address. So the exported functions
 * (dlsym_entry.S) put the arguments aside and ask here. Then they either return our answer, or jump into libc's
 * function as if the program had called it directly.
 *
 * Two kinds of names get another answer than libc's (stand_in.h): a hooked function's, and the names of dlsym and
 * dlvsym themselves. For a handle, libc is asked. For RTLD_NEXT and RTLD_DEFAULT libc cannot be asked in the caller's
 * place, so scope.c finds out whether libc would answer with the driver's function, or with its own.
 *
 * A name that this library does not hook is left to the other library of ours behind it, if there is one (hooks.h): the
 * jump then goes to that library's dlsym in the place of libc's.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "shim/interpose/libc_dlsym.h"
#include "shim/interpose/scope.h"
#include "shim/interpose/stand_in.h"

/* Two registers: where to jump, or NULL and what to return. */
struct ll_dlsym_route {
	void *jump;
	void *answer;
};

/* dlsym_entry.S calls these. caller: the return address. */
struct ll_dlsym_route ll_dlsym_choose_route(void *handle, const char *name, const char *unused, const void *caller);
struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version, const void *caller);

/* libc is not asked by us, if that is possible: the jump leaves its answer and dlerror's text as they are. */
static struct ll_dlsym_route choose_route(const struct ll_look_up *look_up, void *handle)
{
	bool is_scope = handle == RTLD_NEXT || handle == RTLD_DEFAULT;
	void *jump = ll_libc_next(look_up->version ? LL_LIBC_DLVSYM : LL_LIBC_DLSYM);
	struct ll_stand_in wanted;
	if (!look_up->name || !ll_stand_in_find(look_up->name, &wanted))
		return (struct ll_dlsym_route){jump, NULL};
	if (is_scope) {
		void *answer = ll_scope_answer(look_up, &wanted, handle);
		return (struct ll_dlsym_route){answer ? NULL : jump, answer};
	}
	void *found = ll_libc_look_up(look_up, handle);
	return (struct ll_dlsym_route){NULL,
				       ll_stand_in_replaces(&wanted, found, look_up->caller) ? wanted.function : found};
}

struct ll_dlsym_route ll_dlsym_choose_route(void *handle, const char *name, const char *unused, const void *caller)
{
	(void)unused;
	return choose_route(&(struct ll_look_up){.name = name, .caller = caller}, handle);
}

struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version, const void *caller)
{
	if (!version)
		return (struct ll_dlsym_route){ll_libc_next(LL_LIBC_DLVSYM), NULL};
	return choose_route(&(struct ll_look_up){.name = name, .version = version, .caller = caller}, handle);
}
