/* The table of hooks of one library. This file is compiled for each library. LL_HOOKS_LIST names the library's list,
 * and LL_HOOKS_BEHIND the other library. */
#include "shim/interpose/hooks.h"

/* One function that returns a status (real.c) replaces every missing function, independent of the arguments. All rows
 * of abi/cuda.def return one. */
#define LL_HOOK_NVML(symbol) _Static_assert(__builtin_types_compatible_p(symbol##_answer, ll_nvml_result), #symbol);
#include LL_HOOKS_LIST

const struct ll_hook ll_hooks[] = {
#define LL_HOOK(symbol) {#symbol, (void (*)(void))symbol, offsetof(struct ll_real, symbol), LL_REAL_CUDA},
#define LL_HOOK_NVML(symbol) {#symbol, (void (*)(void))symbol, offsetof(struct ll_real_nvml, symbol), LL_REAL_NVML},
#include LL_HOOKS_LIST
};

const size_t ll_hook_count = sizeof ll_hooks / sizeof ll_hooks[0];

const char *const ll_hook_behind[] = {LL_HOOKS_BEHIND, NULL};
