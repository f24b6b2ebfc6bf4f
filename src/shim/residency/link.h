/*
 * link.h - an evictable program's connection to the mover of a card (mover/protocol.h), and the thread that serves it.
 *
 * The program's memory on that card leaves and returns as the mover says (move.h). A process has one link for each card
 * on which it is evictable. While the mover is away the program's memory stays on the card, or returns there by itself;
 * the thread connects again as soon as there is a mover.
 *
 * A forked child has no link: its copies of the descriptors are closed.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINK_H
#define LOADLINE_SHIM_RESIDENCY_LINK_H

#include "shim/device_state.h"

/*
 * Whether plain allocations on this card shall be made so that they can be moved (memory/backing.h). The first call for
 * a card connects to its mover; if that is impossible, one line on the standard error stream says why, and the
 * program's memory stays on the card. dev may be NULL. Later calls are two loads.
 */
bool ll_residency_backs(struct ll_device_state *dev);

/*
 * An allocation of so many bytes failed for want of memory on the card. Asks the mover for room and waits for the
 * answer, which comes when others have had their turns: so LL_RESIDENCY_ROOM_NS is long. True: try again.
 */
#define LL_RESIDENCY_ROOM_NS UINT64_C(3600000000000)
bool ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes);

#endif
