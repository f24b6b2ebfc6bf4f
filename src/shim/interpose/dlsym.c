/*
 * dlsym.c - replaces dlsym and dlvsym, so that a program that opens the driver itself gets the hooks.
 *
 * The results of RTLD_NEXT and RTLD_DEFAULT depend on the caller, which libc finds by the return address. So the
 * exported functions (dlsym_entry.S) save the arguments and call this file. Then they either return this file's answer
 * or jump into libc's function, as if the program had called it directly.
 *
 * Two kinds of names get an answer that is not libc's (stand_in.h): the names of hooked functions, and the names dlsym
 * and dlvsym. For a handle, this file asks libc. For RTLD_NEXT and RTLD_DEFAULT it cannot ask libc as the caller. So
 * scope.c finds out whether libc would return the driver's function or its own.
 *
 * If this library does not hook the name and Loadline's other library is behind it (hooks.h), the jump goes to that
 * library's dlsym instead of libc's.
 */
#include <dlfcn.h>
#include <stdatomic.h>

#include "shim/interpose/libc_dlsym.h"
#include "shim/interpose/scope.h"
#include "shim/interpose/stand_in.h"

/* Two registers: the address of the jump, or NULL and the value to return. */
struct ll_dlsym_route {
	void *jump;
	void *answer;
};

/* dlsym_entry.S calls these functions. caller: the return address. */
struct ll_dlsym_route ll_dlsym_choose_route(void *handle, const char *name, const char *unused, const void *caller);
struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version, const void *caller);

/* If possible, the function does not call libc itself, because a jump keeps libc's answer and dlerror's text unchanged.
 */
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
