#include "shim/interpose/scope.h"

#include <dlfcn.h>

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
	return ll_stand_in_replaces(question->wanted, found, question->look_up->caller);
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

void *ll_scope_answer(const struct ll_look_up *look_up, const struct ll_stand_in *wanted, void *handle)
{
	struct question question = {.look_up = look_up, .wanted = wanted};
	struct ll_elf_object *asker = &question.asker;
	if (!ll_elf_find_holding(look_up->caller, asker))
		return NULL;
	void *scope = dlopen(asker->path, RTLD_LAZY | RTLD_NOLOAD);
	if (!scope)
		return NULL;
	void *answer = handle == RTLD_NEXT ? answer_next(&question, scope) : answer_default(&question, scope);
	dlclose(scope);
	return answer;
}
