/*
 * dlsym.c - replaces dlsym and dlvsym, so that a program that opens the driver itself gets the hooks.
 *
 * The results of RTLD_NEXT and RTLD_DEFAULT depend on the caller, which libc finds by the return address. So the
 * exported functions (dlsym_entry.S) save the arguments and call this file. Then they either return this file's answer
 * or jump into libc's function, as if the program had called it directly.
 *
 * Two kinds of names get an answer that is not libc's: the names of hooked functions, and the names dlsym
 * and dlvsym. For a handle, this file asks libc. For RTLD_NEXT and RTLD_DEFAULT it cannot ask libc as the caller. So
 * scope_answer finds out whether libc would return the driver's function or its own.
 *
 * If this library does not hook the name and Loadline's other library is behind it (hooks.h), the jump goes to that
 * library's dlsym instead of libc's.
 */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "shim/interpose/hooks.h"

/* ---- what stands in for a name ---- */

/*
 * Finds the library's function that a program gets instead of a function that it looks up by name: a hook
 * instead of the driver's function, and this library's dlsym instead of libc's.
 */

struct ll_stand_in {
	void *function;             /* the library's function */
	const struct ll_hook *hook; /* NULL: it replaces libc's dlsym or dlvsym */
};

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

/* Finds the library's function for this name. Returns false if there is none. */
static bool stand_in_find(const char *name, struct ll_stand_in *ret_stand_in)
{
	const struct ll_hook *hook = ll_hook_find(name);
	if (hook) {
		*ret_stand_in = (struct ll_stand_in){(void *)(uintptr_t)hook->function, hook};
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

/*
 * Returns whether the program gets the library's function instead of `found`, which is libc's answer and may be NULL.
 * Returns true if `found` is the driver's function or libc's dlsym. Returns false for a function of another library
 * with this name.
 *
 * caller: an address in the calling object. If the caller is the driver, it gets the real function. Otherwise a
 * libcuda.so.1 that forwards to another library would forward to the hook, and the hook calls this libcuda.so.1.
 */
static bool stand_in_replaces(const struct ll_stand_in *wanted, const void *found, const void *caller)
{
	struct ll_elf_object home;
	if (found == wanted->function || !ll_elf_find_holding(found, &home))
		return false;
	if (!wanted->hook)
		return ll_libc_is(&home);
	enum ll_real_library which = wanted->hook->library;
	return ll_real_is_driver(which, &home) && !is_for_driver(which, &home, caller);
}

/* ---- RTLD_NEXT and RTLD_DEFAULT ---- */

/*
 * Answers look-ups with RTLD_NEXT and RTLD_DEFAULT.
 *
 * For these handles libc usually finds this library's functions, because a preloaded library comes first. In three
 * cases libc finds the driver's function or its own dlsym: the caller comes after this library, the caller was opened
 * with RTLD_DEEPBIND, or the look-up is by dlvsym, because this library's functions have no versions.
 */

/* Functions of the driver that are not hooked. If an object has such a function in its scope, the driver is in its
 * scope. */
static const char *const unhooked[] = {
    [LL_REAL_CUDA] = "cuDriverGetVersion", [LL_REAL_NVML] = "nvmlSystemGetDriverVersion"};

/* The look-up and its caller. */
struct question {
	const struct ll_look_up *look_up;
	const struct ll_stand_in *wanted;
	struct ll_elf_object asker;
};

static bool replaces_symbol(const struct question *question, const void *found)
{
	return stand_in_replaces(question->wanted, found, question->look_up->caller);
}

static bool finds_replaced(const struct question *question, void *handle)
{
	return replaces_symbol(question, ll_libc_look_up(question->look_up, handle));
}

/* Returns whether the driver's function is in the scope of the handle, before or after a function with this name that
 * is not the driver's. */
static bool is_in_scope(const struct question *question, void *handle)
{
	const struct ll_hook *hook = question->wanted->hook;
	struct ll_elf_object home;
	if (!hook || question->look_up->version)
		return finds_replaced(question, handle);
	void *found = ll_libc_look_up(&(struct ll_look_up){.name = unhooked[hook->library]}, handle);
	return ll_elf_find_holding(found, &home) && replaces_symbol(question, ll_elf_function(&home, hook->symbol));
}

/* If the caller was loaded at the start, the objects after it are in its scope. If it was opened later, its scope is
 * itself and the objects that it needs (scope). */
static bool is_next(const struct question *question, void *scope)
{
	struct ll_elf_object next;
	const struct ll_look_up *look_up = question->look_up;
	if (finds_replaced(question, scope) || is_in_scope(question, scope))
		return true;
	if (!is_in_scope(question, RTLD_NEXT))
		return false;
	if (!question->wanted->hook)
		return true; /* libc is in every scope */
	return ll_elf_find_behind_address(look_up->caller, look_up->name, &next) &&
	       replaces_symbol(question, ll_elf_function(&next, look_up->name));
}

/* A caller before this library finds this library's functions, except by a look-up with a version. */
static void *answer_next(const struct question *question, void *scope)
{
	void *ours = question->wanted->function;
	if (!ll_elf_is_in_front(&question->asker))
		return is_next(question, scope) ? ours : NULL;
	return question->look_up->version && finds_replaced(question, RTLD_NEXT) ? ours : NULL;
}

/* The caller's own scope comes after the program's scope, or before it with RTLD_DEEPBIND. */
static void *answer_default(const struct question *question, void *scope)
{
	void *found = ll_libc_look_up(question->look_up, RTLD_DEFAULT);
	if (replaces_symbol(question, found))
		return question->wanted->function;
	if (!finds_replaced(question, scope))
		return NULL;
	return found ? found : question->wanted->function;
}

/* Returns the function that the program gets; NULL: the program gets libc's own answer. handle: RTLD_NEXT or
 * RTLD_DEFAULT. */
static void *scope_answer(const struct ll_look_up *look_up, const struct ll_stand_in *wanted, void *handle)
{
	struct question question = {.look_up = look_up, .wanted = wanted};
	struct ll_elf_object *asker = &question.asker;
	if (!ll_elf_find_holding(look_up->caller, asker))
		return NULL;
	void *scope = ll_libc_open(asker->path, RTLD_LAZY | RTLD_NOLOAD);
	if (!scope)
		return NULL;
	void *answer = handle == RTLD_NEXT ? answer_next(&question, scope) : answer_default(&question, scope);
	ll_libc_close(scope);
	return answer;
}

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
	if (!look_up->name || !stand_in_find(look_up->name, &wanted))
		return (struct ll_dlsym_route){jump, NULL};
	if (is_scope) {
		void *answer = scope_answer(look_up, &wanted, handle);
		return (struct ll_dlsym_route){answer ? NULL : jump, answer};
	}
	void *found = ll_libc_look_up(look_up, handle);
	return (struct ll_dlsym_route){NULL,
				       stand_in_replaces(&wanted, found, look_up->caller) ? wanted.function : found};
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
