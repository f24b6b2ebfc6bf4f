/*
 * versions.h - since which CUDA version the driver has a function, and which symbol a plain name means.
 *
 * The table is a constant; no lock is needed.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_VERSIONS_H
#define LOADLINE_SIM_CUDA_LOCAL_VERSIONS_H

#include "cuda/local/state.h"

/* Returns the symbol that a plain name means to a program of this CUDA version (12040 is 12.4). A name that is not in
 * the table is its own symbol. NULL: the function came later; ret_status says so. */
const char *sim_version_symbol(const char *name, int version, enum ll_cu_proc_address_result *ret_status);

/* Returns whether a symbol came with a later CUDA than the world's driver has. A per-thread variant came with its
 * function. */
bool sim_version_is_newer(const struct sim_world *w, const char *symbol);

#endif
