/*
 * dlsym.c - stands in front of dlsym and dlvsym, so that a program that opens the driver by itself finds the hooks.
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
#include <dlfcn.h>
#include <stdatomic.h>

#include "shim/interpose/hooks.h"

/* Two registers: where to jump, or NULL and what to return. */
struct ll_dlsym_route {
	void *jump;
	void *answer;
};

/* dlsym_entry.S calls these. */
struct ll_dlsym_route ll_dlsym_route(void *handle, const char *name);
struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version);

typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef void *(*dlvsym_fn)(void *handle, const char *name, const char *version);

/* Found once and never changed. Threads that look at the same time find the same. */
static _Atomic(void *) libc_dlsym, libc_dlvsym, next_dlsym, next_dlvsym;

/* glibc had them in libdl before 2.34; musl's libc is the loader. */
static const char *const libc_stems[][2] = {
    {"libc.so", NULL}, {"libdl.so", NULL}, {"ld-musl", NULL}, {"libc.musl", NULL}};

static void *find_in_libc(const char *name)
{
	struct ll_elf_object libc;
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof libc_stems / sizeof libc_stems[0]; i++) {
		if (ll_elf_find_started(libc_stems[i], &libc))
			found = ll_elf_function(&libc, name);
	}
	return found;
}

/* A name that this library does not hook may be a hook of the other library of ours. So that library is asked first. */
static void *find_next(const char *name)
{
	struct ll_elf_object behind;
	bool is_there = ll_elf_find_behind(ll_hook_behind, name, &behind);
	return is_there ? ll_elf_function(&behind, name) : find_in_libc(name);
}

static void *find_once(_Atomic(void *) *cell, void *(*find)(const char *name), const char *name)
{
	void *found = atomic_load_explicit(cell, memory_order_relaxed);
	if (!found) {
		found = find(name);
		atomic_store_explicit(cell, found, memory_order_relaxed);
	}
	return found;
}

static const struct ll_hook *hook_behind(void *handle, const char *name)
{
	return handle == RTLD_NEXT || handle == RTLD_DEFAULT || !name ? NULL : ll_hook_find(name);
}

/* found is libc's answer. */
static struct ll_dlsym_route route_of_answer(const struct ll_hook *hook, void *found)
{
	struct ll_elf_object driver;
	struct ll_dlsym_route route = {NULL, found};
	if (found && ll_real_object(hook->library, &driver) && ll_elf_holds(&driver, found))
		route.answer = ll_hook_address(hook);
	return route;
}

struct ll_dlsym_route ll_dlsym_route(void *handle, const char *name)
{
	const struct ll_hook *hook = hook_behind(handle, name);
	if (!hook)
		return (struct ll_dlsym_route){find_once(&next_dlsym, find_next, "dlsym"), NULL};
	void *libc = find_once(&libc_dlsym, find_in_libc, "dlsym");
	if (!libc)
		return (struct ll_dlsym_route){NULL, NULL};
	return route_of_answer(hook, ((dlsym_fn)(uintptr_t)libc)(handle, name));
}

struct ll_dlsym_route ll_dlvsym_route(void *handle, const char *name, const char *version)
{
	const struct ll_hook *hook = hook_behind(handle, name);
	if (!hook)
		return (struct ll_dlsym_route){find_once(&next_dlvsym, find_next, "dlvsym"), NULL};
	void *libc = find_once(&libc_dlvsym, find_in_libc, "dlvsym");
	if (!libc)
		return (struct ll_dlsym_route){NULL, NULL};
	return route_of_answer(hook, ((dlvsym_fn)(uintptr_t)libc)(handle, name, version));
}
