/*
 * peers.h - keeps which cards may use the backed allocations (backing.h) of which other cards.
 *
 * A context of one card can enable access to the memory of a context of another card (cuCtxEnablePeerAccess). The
 * driver grants this right to a pair of contexts. Mapped memory has rights for cards. So the library counts the pairs
 * of contexts for each pair of cards, and withdraws the right when the last pair has disabled it. The library does not
 * notice if a pair ends with one of its contexts. Then the right stays. A right that is not needed does no harm, but a
 * missing right ends the program. A pool whose memory another card may use (cuMemPoolSetAccess) counts as a pair too.
 */
#ifndef LOADLINE_SHIM_MEMORY_PEERS_H
#define LOADLINE_SHIM_MEMORY_PEERS_H

#include "abi/cuda_memory.h"
#include "shim/device_state.h"

/* Call these when the driver has enabled or disabled access of the current context to the memory of context `peer`.
 * ll_peers_enabled returns the driver's error if the driver refuses the right to a backed allocation. Then the function
 * disables the pair again. */
ll_cu_result ll_peers_enabled(struct ll_cu_context *peer);
void ll_peers_disabled(struct ll_cu_context *peer);

/* Call it when a pool of card `of` allows card `user` to use its memory, or no longer allows it. Returns the driver's
 * error if the driver refuses the right to a backed allocation. */
ll_cu_result ll_peers_of_pool(struct ll_device_state *of, ll_cu_device user, bool is_allowed);

#endif
