#include "shim/interpose/hooks.h"

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

const struct ll_hook *ll_hook_find(const char *symbol)
{
	/* Most names that a program looks up do not belong to the driver. */
	if (!ll_text_after(symbol, "cu") && !ll_text_after(symbol, "nvml"))
		return NULL;
	for (size_t i = 0; i < ll_hook_count; i++) {
		if (ll_text_is_same(ll_hooks[i].symbol, symbol))
			return &ll_hooks[i];
	}
	return NULL;
}

/* ---- what is behind the hooks ---- */

typedef void *(*dlsym_fn)(void *handle, const char *name);
typedef void *(*dlvsym_fn)(void *handle, const char *name, const char *version);
typedef void *(*dlopen_fn)(const char *file, int mode);
typedef int (*dlclose_fn)(void *handle);

static const char *const names[] = {[LL_LIBC_DLSYM] = "dlsym",
				    [LL_LIBC_DLVSYM] = "dlvsym",
				    [LL_LIBC_DLOPEN] = "dlopen",
				    [LL_LIBC_DLCLOSE] = "dlclose",
				    [LL_LIBC_IOCTL] = "ioctl"};

/* Found once and never changed. Threads that search at the same time find the same functions. */
static _Atomic(void *) own[LL_LIBC_IOCTL + 1], next[LL_LIBC_IOCTL + 1];

/* glibc before 2.34 had these functions in libdl. musl's libc is the loader. */
static const char *const stems[][2] = {{"libc.so", NULL}, {"libdl.so", NULL}, {"ld-musl", NULL}, {"libc.musl", NULL}};

static void *find_in_libc(const char *name)
{
	struct ll_elf_object libc;
	void *found = NULL;
	for (size_t i = 0; !found && i < sizeof stems / sizeof stems[0]; i++) {
		if (ll_elf_find_started(stems[i], &libc))
			found = ll_elf_function(&libc, name);
	}
	return found;
}

void *ll_libc_next(enum ll_libc_function function)
{
	void *found = atomic_load_explicit(&next[function], memory_order_relaxed);
	if (found)
		return found;
	/* Loadline's other library may hook a name that this library does not hook. So that library is searched first.
	 */
	struct ll_elf_object behind;
	const char *const *libraries = function == LL_LIBC_IOCTL ? NULL : ll_hook_behind;
	found = ll_elf_find_behind(libraries, names[function], &behind) ? ll_elf_function(&behind, names[function])
									: find_in_libc(names[function]);
	atomic_store_explicit(&next[function], found, memory_order_relaxed);
	return found;
}

static void *own_function(enum ll_libc_function function)
{
	void *found = atomic_load_explicit(&own[function], memory_order_relaxed);
	if (!found)
		atomic_store_explicit(&own[function], found = find_in_libc(names[function]), memory_order_relaxed);
	return found;
}

void *ll_libc_open(const char *file, int mode)
{
	void *libc = own_function(LL_LIBC_DLOPEN);
	void *volatile handle = libc ? ((dlopen_fn)(uintptr_t)libc)(file, mode) : NULL;
	return handle;
}

void ll_libc_close(void *handle)
{
	void *libc = own_function(LL_LIBC_DLCLOSE);
	if (libc)
		((dlclose_fn)(uintptr_t)libc)(handle);
}

/* The calls must not be tail calls. A tail call is a jump, and libc would then see another caller. */
void *ll_libc_look_up(const struct ll_look_up *look_up, void *handle)
{
	enum ll_libc_function function = look_up->version ? LL_LIBC_DLVSYM : LL_LIBC_DLSYM;
	void *libc = own_function(function);
	void *volatile found = NULL;
	if (libc && look_up->version)
		found = ((dlvsym_fn)(uintptr_t)libc)(handle, look_up->name, look_up->version);
	else if (libc)
		found = ((dlsym_fn)(uintptr_t)libc)(handle, look_up->name);
	return found;
}

bool ll_libc_is(const struct ll_elf_object *object)
{
	for (size_t i = 0; i < sizeof stems / sizeof stems[0]; i++) {
		if (ll_elf_is_named(object, stems[i]))
			return true;
	}
	return ll_elf_is_named(object, ll_hook_behind);
}
