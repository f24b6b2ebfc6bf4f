/*
 * elf_lookup.h - finds loaded libraries and their symbols without the loader's dlsym.
 *
 * The library replaces dlsym, so it must find the real dlsym in another way. A look-up here does not change dlerror.
 * The only lock that it takes is the loader's lock of its list, for a short time. It sees only the caller's namespace
 * (dlmopen makes others). It works with GNU hash tables and with the older hash tables. It works with glibc, which
 * relocates the addresses in a dynamic section, and with musl, which does not.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_ELF_LOOKUP_H
#define LOADLINE_SHIM_INTERPOSE_ELF_LOOKUP_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- texts ---- */

/*
 * Compares strings without libc.
 *
 * While a sanitizer's runtime starts, it looks up libc's functions by dlsym. The sanitizer's own versions of these
 * functions replace libc's for the program and this library, and they do not work before the start is complete. So no
 * function that dlsym uses may call libc.
 */

/* Returns the rest of the text after the prefix; NULL: text does not begin with the prefix. */
static inline const char *ll_text_after(const char *text, const char *prefix)
{
	while (*prefix) {
		if (*text++ != *prefix++)
			return NULL;
	}
	return text;
}

static inline bool ll_text_is_same(const char *a, const char *b)
{
	const char *rest = ll_text_after(a, b);
	return rest && !*rest;
}

/* ---- libraries ---- */

/* A loaded library. Valid while the library stays loaded. */
struct ll_elf_object {
	const char *path; /* the loader's path, which may be relative */
	uintptr_t base;
	uintptr_t start, end; /* the address range of its segments */
	const char *soname;   /* may be NULL */
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions; /* may be NULL */
	const uint32_t *gnu_hash;    /* each of the two tables may be NULL */
	const uint32_t *sysv_hash;
};

/*
 * Finds the first loaded object, in the loader's order, whose soname or file name is one of the stems, or begins with a
 * stem and then '.' or '-'. For example "libcuda.so" finds libcuda.so.1 and libcuda.so.580.95. The list of stems ends
 * with NULL.
 */
bool ll_elf_find(const char *const stems[], struct ll_elf_object *ret_object);

/* The same, but only among objects that export the function. */
bool ll_elf_find_exporting(const char *const stems[], const char *function, struct ll_elf_object *ret_object);

/* Finds the first loaded object with any name that exports all of the functions. The list ends with NULL. */
bool ll_elf_find_exporting_all(const char *const functions[], struct ll_elf_object *ret_object);

/* Finds the loaded object whose segments contain the address. Returns false if this namespace has none. */
bool ll_elf_find_holding(const void *address, struct ll_elf_object *ret_object);

/* Finds the first object that exports the function, among the objects after the one that contains the address (in the
 * loader's order). */
bool ll_elf_find_behind_address(const void *address, const char *function, struct ll_elf_object *ret_object);

/* Returns whether the object comes before the library that contains this code, in the loader's order. */
bool ll_elf_is_in_front(const struct ll_elf_object *object);

/* Returns whether the object's soname or file name is one of the stems, as in ll_elf_find. */
bool ll_elf_is_named(const struct ll_elf_object *object, const char *const stems[]);

/*
 * Does the same as ll_elf_find, but only among the objects with which the program was started, such as libc. Calls no
 * function of libc and takes no lock, because it may run before the program's libraries are initialized. Does
 * not fill start and end.
 */
bool ll_elf_find_started(const char *const stems[], struct ll_elf_object *ret_object);

/*
 * The same among the objects between the library that contains this code and libc. Finds the first object with one of
 * the stems, or with any name if stems is NULL, that exports the function. Returns false if there is none. Does not
 * fill start and end.
 */
bool ll_elf_find_behind(const char *const stems[], const char *function, struct ll_elf_object *ret_object);

static inline bool ll_elf_is_same(const struct ll_elf_object *a, const struct ll_elf_object *b)
{
	return a->base == b->base && a->symbols == b->symbols;
}

bool ll_elf_holds(const struct ll_elf_object *object, const void *address);

bool ll_elf_exports_all(const struct ll_elf_object *object, const char *const functions[]);

/* Returns the address of the function that the object exports under this name; NULL: none. If there are several
 * versions, returns the default one. */
void *ll_elf_function(const struct ll_elf_object *object, const char *name);

/* Returns whether a symbol that the object exports has this address. Visits all symbols. */
bool ll_elf_exports(const struct ll_elf_object *object, const void *address);

#endif
