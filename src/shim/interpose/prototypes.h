/*
 * prototypes.h - the driver's prototypes as symbols that this library may export.
 *
 * Only hooks may be called by these names, and nobody here calls a hook: a call of ours to the driver is
 * ll_real()->name(). A function that is no hook does not link (-z defs).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_PROTOTYPES_H
#define LOADLINE_SHIM_INTERPOSE_PROTOTYPES_H

#pragma GCC visibility push(default)
#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"
#pragma GCC visibility pop

#endif
