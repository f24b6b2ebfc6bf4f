/*
 * prototypes.h - the driver's prototypes as symbols that this library may export.
 *
 * Only hooks have definitions under these names, and this library calls no hook. It calls the driver by
 * ll_real()->name(). A call of a function that is no hook does not link (-z defs).
 */
#ifndef LOADLINE_SHIM_INTERPOSE_PROTOTYPES_H
#define LOADLINE_SHIM_INTERPOSE_PROTOTYPES_H

#pragma GCC visibility push(default)
#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"
#pragma GCC visibility pop

#endif
