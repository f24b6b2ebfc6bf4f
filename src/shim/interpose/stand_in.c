#include "shim/interpose/stand_in.h"

#include "shim/interpose/libc_dlsym.h"
#include "shim/interpose/text.h"

/* dlsym_entry.S */
void *ll_dlsym_entry(void *handle, const char *name);
#ifdef LL_HAS_DLVSYM
void *ll_dlvsym_entry(void *handle, const char *name, const char *version);
#endif

/* glibc before 2.34 exports further names of these functions. Programs have looked them up to avoid a library like this
 * one. _dl_sym and _dl_vsym have one more argument, an address in the caller, which is not needed here. This library
 * does not export these names, because libdl calls _dl_sym for dlsym itself, and libpthread calls __libc_dlsym. */
static const struct {
	const char *name;
	void (*entry)(void);
} entries[] = {
    {"dlsym", (void (*)(void))ll_dlsym_entry},          {"_dl_sym", (void (*)(void))ll_dlsym_entry},
    {"__libc_dlsym", (void (*)(void))ll_dlsym_entry},
#ifdef LL_HAS_DLVSYM
    {"dlvsym", (void (*)(void))ll_dlvsym_entry},        {"_dl_vsym", (void (*)(void))ll_dlvsym_entry},
    {"__libc_dlvsym", (void (*)(void))ll_dlvsym_entry},
#endif
};

bool ll_stand_in_find(const char *name, struct ll_stand_in *ret_stand_in)
{
	const struct ll_hook *hook = ll_hook_find(name);
	if (hook) {
		*ret_stand_in = (struct ll_stand_in){ll_hook_address(hook), hook};
		return true;
	}
	for (size_t i = 0; i < sizeof entries / sizeof entries[0]; i++) {
		if (!ll_text_is_same(entries[i].name, name))
			continue;
		*ret_stand_in = (struct ll_stand_in){(void *)(uintptr_t)entries[i].entry, NULL};
		return true;
	}
	return false;
}

/* Returns whether the caller is the driver, which must get the real function. A tracing library that exports all of the
 * driver's functions also looks them up. It gets the hooks, because the hooks do not call it. */
static bool is_for_driver(enum ll_real_library which, const struct ll_elf_object *home, const void *caller)
{
	struct ll_elf_object asker, real;
	if (!ll_elf_find_holding(caller, &asker) || !ll_real_is_driver(which, &asker))
		return false;
	bool is_known = ll_real_object(which, &real);
	return ll_real_is_named(which, &asker) || !is_known || ll_elf_is_same(&asker, &real) ||
	       !ll_elf_is_same(home, &real);
}

bool ll_stand_in_replaces(const struct ll_stand_in *wanted, const void *found, const void *caller)
{
	struct ll_elf_object home;
	if (found == wanted->function || !ll_elf_find_holding(found, &home))
		return false;
	if (!wanted->hook)
		return ll_libc_is(&home);
	enum ll_real_library which = wanted->hook->library;
	return ll_real_is_driver(which, &home) && !is_for_driver(which, &home, caller);
}
