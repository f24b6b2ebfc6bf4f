#include "shim/interpose/real.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "shim/interpose/hooks.h"

/* The position of a function in its table. */
struct slot {
	const char *symbol;
	size_t offset;
	bool is_hook; /* it is a hook of one of Loadline's libraries */
};

static const struct slot cuda_slots[] = {
#define LL_HOOK(symbol) {#symbol, offsetof(struct ll_real, symbol), true},
#define LL_CALL(symbol) {#symbol, offsetof(struct ll_real, symbol), false},
#include "shim/interpose/hooks.def"
};

static const struct slot nvml_slots[] = {
#define LL_HOOK_NVML(symbol) {#symbol, offsetof(struct ll_real_nvml, symbol), true},
#define LL_CALL_NVML(symbol) {#symbol, offsetof(struct ll_real_nvml, symbol), false},
#include "shim/interpose/hooks.def"
};

/* One function replaces all missing functions. This works because every caller removes its own arguments from the
 * stack, and every hooked function returns a status (hook_table.c asserts this). */
static ll_cu_result no_cuda(void)
{
	return LL_CUDA_ERROR_NOT_SUPPORTED;
}

static ll_nvml_result no_nvml(void)
{
	return LL_NVML_ERROR_FUNCTION_NOT_FOUND;
}

static const struct ll_real cuda_nothing = {
#define LL_HOOK(symbol) .symbol = (__typeof__(&symbol))(void (*)(void))no_cuda,
#define LL_CALL(symbol) .symbol = (__typeof__(&symbol))(void (*)(void))no_cuda,
#include "shim/interpose/hooks.def"
};

static const struct ll_real_nvml nvml_nothing = {
#define LL_HOOK_NVML(symbol) .symbol = (__typeof__(&symbol))(void (*)(void))no_nvml,
#define LL_CALL_NVML(symbol) .symbol = (__typeof__(&symbol))(void (*)(void))no_nvml,
#include "shim/interpose/hooks.def"
};

static const struct library {
	const char *file;
	const char *const *stems;
	const char *const *signs; /* functions that every driver exports, and that Loadline's libraries do not export */
	const struct slot *slots;
	size_t slot_count;
	const void *nothing;
	size_t table_bytes;
} libraries[] = {
    [LL_REAL_CUDA] = {"libcuda.so.1", (const char *const[]){"libcuda.so", NULL},
		      (const char *const[]){"cuInit", "cuDriverGetVersion", "cuDeviceGetCount", NULL}, cuda_slots,
		      sizeof cuda_slots / sizeof cuda_slots[0], &cuda_nothing, sizeof cuda_nothing},
    [LL_REAL_NVML] = {"libnvidia-ml.so.1", (const char *const[]){"libnvidia-ml.so", NULL},
		      (const char *const[]){"nvmlInit_v2", "nvmlSystemGetDriverVersion", "nvmlDeviceGetCount_v2", NULL},
		      nvml_slots, sizeof nvml_slots / sizeof nvml_slots[0], &nvml_nothing, sizeof nvml_nothing},
};

/* A table and its source. ll_real_bound points to the table. */
struct bound {
	struct ll_elf_object object;
	max_align_t table[];
};

_Atomic(const void *) ll_real_bound[2];

bool ll_real_is_missing(void (*function)(void))
{
	return function == (void (*)(void))no_cuda || function == (void (*)(void))no_nvml;
}

static const struct bound *bound_of(const void *table)
{
	return (const struct bound *)((const char *)table - offsetof(struct bound, table));
}

static bool find_loaded(const struct library *library, struct ll_elf_object *ret_object)
{
	return ll_elf_find(library->stems, ret_object) || ll_elf_find_exporting_all(library->signs, ret_object);
}

bool ll_real_object(enum ll_real_library which, struct ll_elf_object *ret_object)
{
	const void *table = atomic_load_explicit(&ll_real_bound[which], memory_order_acquire);
	if (!table)
		return find_loaded(&libraries[which], ret_object);
	*ret_object = bound_of(table)->object;
	return true;
}

bool ll_real_is_named(enum ll_real_library which, const struct ll_elf_object *object)
{
	return ll_elf_is_named(object, libraries[which].stems);
}

bool ll_real_is_driver(enum ll_real_library which, const struct ll_elf_object *object)
{
	const void *table = atomic_load_explicit(&ll_real_bound[which], memory_order_acquire);
	return ll_real_is_named(which, object) || (table && ll_elf_is_same(&bound_of(table)->object, object)) ||
	       ll_elf_exports_all(object, libraries[which].signs);
}

/* Finds the driver's library and keeps it loaded. Loads it if the program has not loaded it. Searches twice, because
 * before dlopen keeps the library loaded, another thread may unload it and load another one. */
static void *keep_loaded(const struct library *library, struct ll_elf_object *ret_object)
{
	void *handle = NULL;
	if (find_loaded(library, ret_object)) {
		handle = ll_libc_open(ret_object->path, RTLD_LAZY | RTLD_NOLOAD);
		if (!handle)
			handle = ll_libc_open(library->file, RTLD_LAZY | RTLD_NOLOAD);
	}
	if (!handle)
		handle = ll_libc_open(library->file, RTLD_LAZY | RTLD_LOCAL);
	if (!handle)
		return NULL;
	if (find_loaded(library, ret_object))
		return handle;
	ll_libc_close(handle);
	return NULL;
}

static void *function_of(const struct slot *slot, const struct ll_elf_object *object)
{
	struct ll_elf_object behind;
	void *address = ll_elf_function(object, slot->symbol);
	bool may_be_hook = address && slot->is_hook && ll_elf_find_behind(ll_hook_behind, "dlsym", &behind);
	void *hook = may_be_hook ? ll_elf_function(&behind, slot->symbol) : NULL;
	return hook ? hook : address;
}

/* Threads that read a member meanwhile get the old value or the new value. */
void ll_real_complete(enum ll_real_library which, const struct ll_elf_object *object)
{
	const struct library *library = &libraries[which];
	const void *table = atomic_load_explicit(&ll_real_bound[which], memory_order_acquire);
	if (!table || ll_elf_is_same(&bound_of(table)->object, object) || !ll_real_is_driver(which, object))
		return;
	for (size_t i = 0; i < library->slot_count; i++) {
		const struct slot *slot = &library->slots[i];
		void (**member)(void) = (void (**)(void))(uintptr_t)((const char *)table + slot->offset);
		void *address = ll_real_is_missing(*member) ? function_of(slot, object) : NULL;
		if (address)
			__atomic_store_n(member, (void (*)(void))(uintptr_t)address, __ATOMIC_RELAXED);
	}
}

/* If there is no library or no memory, the result is not stored, and the next call searches again. */
const void *ll_real_bind(enum ll_real_library which)
{
	const struct library *library = &libraries[which];
	const void *current = NULL;
	struct ll_elf_object object;
	void *handle = keep_loaded(library, &object);
	struct bound *bound = handle ? malloc(sizeof *bound + library->table_bytes) : NULL;
	if (bound) {
		bound->object = object;
		memcpy(bound->table, library->nothing, library->table_bytes);
		for (size_t i = 0; i < library->slot_count; i++) {
			void *address = function_of(&library->slots[i], &object);
			if (address)
				memcpy((char *)bound->table + library->slots[i].offset, &address, sizeof address);
		}
		if (atomic_compare_exchange_strong_explicit(&ll_real_bound[which], &current, bound->table,
							    memory_order_acq_rel, memory_order_acquire))
			return bound->table;
	}
	free(bound);
	if (handle)
		ll_libc_close(handle);
	return current ? current : library->nothing;
}
