/*
 * peers.h - which cards may use the backed allocations (backing.h) of which other cards.
 *
 * A context of one card enables access to the memory of a context of another card (cuCtxEnablePeerAccess). The driver
 * knows pairs of contexts. Mapped memory has rights by card. So the library counts the pairs of two cards, and takes
 * the right away when the last pair has disabled it. A pair that ends with one of its contexts is not noticed: then the
 * right stays, because a right too many does no harm, and a missing one ends the program. A pool whose memory another
 * card may use (cuMemPoolSetAccess) counts as a pair too.
 */
#ifndef LOADLINE_SHIM_MEMORY_PEERS_H
#define LOADLINE_SHIM_MEMORY_PEERS_H

#include "abi/cuda_memory.h"
#include "shim/device_state.h"

/* The driver has let the current context use the memory of context `peer`, or does not let it any more. The first
 * returns the driver's error if it refuses the right to a backed allocation; the pair is then disabled again. */
ll_cu_result ll_peers_enabled(struct ll_cu_context *peer);
void ll_peers_disabled(struct ll_cu_context *peer);

/* A pool of card `of` lets the card `user` use its memory, or no more. Returns the driver's error if it refuses the
 * right to a backed allocation. */
ll_cu_result ll_peers_of_pool(struct ll_device_state *of, ll_cu_device user, bool is_allowed);

#endif
