/*
 * context.h - makes and destroys contexts, and keeps the cards' primary contexts.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_CONTEXT_H
#define LOADLINE_SIM_CUDA_LOCAL_CONTEXT_H

#include "cuda/local/state.h"

/* Makes a context, and returns after the time that the real driver takes. It releases the local lock meanwhile.
 * DEVICE_UNAVAILABLE: the card is gone, or its compute mode refuses. OUT_OF_MEMORY. A client whose MPS server has
 * failed gets that error. */
ll_cu_result sim_context_make(ll_cu_device device, unsigned flags, struct ll_cu_context **ret_context);

/* Destroys a context after waiting for its work. It releases the local lock meanwhile. */
void sim_context_destroy(struct ll_cu_context *context);

/* Sets the stack limit of a context's threads, in bytes. INVALID_VALUE: over 512 KiB. OUT_OF_MEMORY. */
ll_cu_result sim_context_set_stack(const struct ll_cu_context *context, size_t bytes);

/* Adds a use of a card's primary context, and makes the context if it is the first. It takes the local lock itself. */
ll_cu_result sim_primary_retain(struct ll_cu_context **ret_context, ll_cu_device device);

/* Releases a use of a card's primary context; the last one destroys it. at_once: destroys it despite other uses. It
 * takes the local lock itself. INVALID_CONTEXT: there is none. */
ll_cu_result sim_primary_drop(ll_cu_device device, bool at_once);

#endif
