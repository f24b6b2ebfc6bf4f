/*
 * elf_lookup.h - finds loaded libraries, and symbols in them, without the loader's dlsym.
 *
 * Our library stands in front of dlsym, so it has to find the real dlsym in another way. A look-up here does not change
 * dlerror, and takes no lock but the loader's lock over its list, for a moment. It sees only the caller's namespace
 * (dlmopen makes others). It works with GNU hash tables and the older ones, with glibc, which relocates the addresses
 * in a dynamic section, and with musl, which does not.
 */
#ifndef LOADLINE_SHIM_INTERPOSE_ELF_LOOKUP_H
#define LOADLINE_SHIM_INTERPOSE_ELF_LOOKUP_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

/* Valid for as long as the library stays loaded. */
struct ll_elf_object {
	const char *path; /* as the loader has it: may be relative */
	uintptr_t base;
	uintptr_t start, end; /* its segments lie within */
	const char *soname;   /* may be NULL */
	const ElfW(Sym) * symbols;
	const char *strings;
	const ElfW(Half) * versions; /* may be NULL */
	const uint32_t *gnu_hash;    /* may be NULL, and so may the other one */
	const uint32_t *sysv_hash;
};

/*
 * The first loaded object, in the loader's order, whose soname or file name is one of the stems, alone or followed by
 * '.' or '-' and anything: "libcuda.so" finds libcuda.so.1 and libcuda.so.580.95. The stems end with NULL.
 */
bool ll_elf_find(const char *const stems[], struct ll_elf_object *ret_object);

/* The same, of those that export the function. */
bool ll_elf_find_exporting(const char *const stems[], const char *function, struct ll_elf_object *ret_object);

/* The first loaded object, whatever its name, that exports all of the functions. The list ends with NULL. */
bool ll_elf_find_exporting_all(const char *const functions[], struct ll_elf_object *ret_object);

/* The loaded object in whose segments the address lies. False: there is none in this namespace. */
bool ll_elf_find_holding(const void *address, struct ll_elf_object *ret_object);

/* The first object behind the one that holds the address, in the loader's order, that exports the function. */
bool ll_elf_find_behind_address(const void *address, const char *function, struct ll_elf_object *ret_object);

/* Whether the object was loaded before the library that this is linked into. */
bool ll_elf_is_in_front(const struct ll_elf_object *object);

/* Whether the object's soname or file name is one of the stems, as in ll_elf_find. */
bool ll_elf_is_named(const struct ll_elf_object *object, const char *const stems[]);

/*
 * The same, among the objects that the program was started with, such as libc. Calls no function and takes no lock,
 * because it may be needed before the program's libraries are ready (text.h). Does not fill start and end.
 */
bool ll_elf_find_started(const char *const stems[], struct ll_elf_object *ret_object);

/*
 * The same, among the objects behind the library that this is linked into: the first one with one of the stems that
 * exports the function. False: there is none. Does not fill start and end.
 */
bool ll_elf_find_behind(const char *const stems[], const char *function, struct ll_elf_object *ret_object);

static inline bool ll_elf_is_same(const struct ll_elf_object *a, const struct ll_elf_object *b)
{
	return a->base == b->base && a->symbols == b->symbols;
}

bool ll_elf_holds(const struct ll_elf_object *object, const void *address);

bool ll_elf_exports_all(const struct ll_elf_object *object, const char *const functions[]);

/* The address of the function that the object exports under this name; NULL: none. Of several versions, the default
 * one. */
void *ll_elf_function(const struct ll_elf_object *object, const char *name);

/* Whether a symbol that the object exports has this address. Looks at all symbols. */
bool ll_elf_exports(const struct ll_elf_object *object, const void *address);

#endif
