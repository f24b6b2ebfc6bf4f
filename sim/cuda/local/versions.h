/*
 * versions.h - the CUDA version that introduced each function, and the symbol of a plain name.
 *
 * The table is constant; no lock is needed.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_VERSIONS_H
#define LOADLINE_SIM_CUDA_LOCAL_VERSIONS_H

#include "cuda/local/state.h"

/* Returns the symbol of a plain name for a program of this CUDA version (12040 is 12.4). A name that is not in the
 * table is its own symbol. NULL: the function is newer; ret_status says so. */
const char *sim_version_symbol(const char *name, int version, enum ll_cu_proc_address_result *ret_status);

/* Returns whether a symbol is newer than the CUDA of the world's driver. A per-thread variant is as old as its
 * function. */
bool sim_version_is_newer(const struct sim_world *w, const char *symbol);

#endif
