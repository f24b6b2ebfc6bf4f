/*
 * elf_lookup.h - finding loaded libraries, and symbols in them, without the loader's own dlsym.
 *
 * We stand in front of dlsym, so its real address has to come from elsewhere; and a look-up here leaves dlerror alone
 * and takes no lock but, for a moment, the loader's over its list. Only the caller's namespace is seen (dlmopen has
 * others). Works with the GNU and the older hash tables, with glibc, which relocates the addresses in a dynamic
 * section, and with musl, which does not.
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

/*
 * The same, among what the program was started with, to which libc belongs: it calls nothing and takes no lock, for it
 * may be needed before the program's libraries are ready (text.h). The object's start and end are not known.
 */
bool ll_elf_find_started(const char *const stems[], struct ll_elf_object *ret_object);

/*
 * The same, among what the program was started with behind the library that this is linked into: the first object with
 * one of the stems that exports the function. False: there is none. The object's start and end are not known.
 */
bool ll_elf_find_behind(const char *const stems[], const char *function, struct ll_elf_object *ret_object);

bool ll_elf_holds(const struct ll_elf_object *object, const void *address);

/* The address of a function that it exports under this name, of the default version where there are several; else
 * NULL. */
void *ll_elf_function(const struct ll_elf_object *object, const char *name);

/* Whether a symbol that it exports has this address. Looks at all of them. */
bool ll_elf_exports(const struct ll_elf_object *object, const void *address);

#endif
