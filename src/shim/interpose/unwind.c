/*
 * unwind.c - two functions that compiled code calls when an exception or a cancellation unwinds a scope of this
 * library. One finds the cleanups of the scope, the other continues the unwinding.
 *
 * libgcc_s has both, together with the unwinder. This library does not link libgcc_s, because a library that needs only
 * libc works in every container. A process that unwinds has libgcc_s loaded: programs in C++ and Rust need it, and the
 * C library loads it to cancel a thread.
 */
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>

#include "shim/interpose/elf_lookup.h"

enum { CONTINUE_UNWIND = 8 }; /* value of the unwinder's ABI: this frame has no cleanup */

int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context);
_Noreturn void _Unwind_Resume(void *exception);

static void *find_in_unwinder(const char *symbol)
{
	static const char *const stems[] = {"libgcc_s.so", NULL};
	struct ll_elf_object unwinder;
	/* The program may contain its own unwinder. Then libgcc_s is loaded now, continues with the same frames, and
	 * stays loaded. */
	bool is_loaded = ll_elf_find(stems, &unwinder);
	void *kept = is_loaded ? NULL : dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_LOCAL);
	if (!is_loaded && (!kept || !ll_elf_find(stems, &unwinder)))
		return NULL;
	return ll_elf_function(&unwinder, symbol);
}

int __gcc_personality_v0(int version, int actions, uint64_t class, void *exception, void *context)
{
	int (*personality)(int, int, uint64_t, void *, void *) = NULL;
	void *address = find_in_unwinder("__gcc_personality_v0");
	memcpy(&personality, &address, sizeof address);
	return personality ? personality(version, actions, class, exception, context) : CONTINUE_UNWIND;
}

/* Called only in frames for which the personality function has found a cleanup. */
_Noreturn void _Unwind_Resume(void *exception)
{
	void (*resume)(void *) = NULL;
	void *address = find_in_unwinder("_Unwind_Resume");
	memcpy(&resume, &address, sizeof address);
	if (resume)
		resume(exception);
	__builtin_trap();
}
