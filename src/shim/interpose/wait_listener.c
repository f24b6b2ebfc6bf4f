#include "shim/interpose/wait_listener.h"

#include <stdatomic.h>
#include <string.h>

#include "shim/interpose/elf_lookup.h"

static ll_wait_listener *search_listener(void)
{
	static const char *const ours[] = {"libloadline", NULL}; /* prefix of the names of Loadline's libraries */
	struct ll_elf_object library;
	ll_wait_listener *listener = NULL;
	void *address = NULL;
	if (ll_elf_find_exporting(ours, LL_WAIT_LISTENER, &library))
		address = ll_elf_function(&library, LL_WAIT_LISTENER);
	memcpy(&listener, &address, sizeof address);
	return listener;
}

/* Threads that search at the same time find the same function. */
ll_wait_listener *ll_wait_listener_find(void)
{
	static _Atomic bool is_searched;
	static _Atomic(ll_wait_listener *) found;
	if (!atomic_load_explicit(&is_searched, memory_order_acquire)) {
		atomic_store(&found, search_listener());
		atomic_store_explicit(&is_searched, true, memory_order_release);
	}
	return atomic_load_explicit(&found, memory_order_relaxed);
}
