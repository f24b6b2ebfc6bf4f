/*
 * link.h - an evictable program's connection to the mover of a card (mover/protocol.h), and the thread that serves it.
 *
 * The program's memory on that card leaves and returns as the mover says (move.h). A process has one link for each card
 * on which it is evictable. While there is no mover the program's memory stays on the card, or returns there by itself.
 * One line on the standard error stream says so, and the thread connects as soon as there is a mover: `loadline evict`,
 * `suspend` and `resume` start one, and so does the next `loadline run --evictable`.
 *
 * A forked child begins without a link: its copies of the descriptors are closed. It gets one of its own with its first
 * context.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINK_H
#define LOADLINE_SHIM_RESIDENCY_LINK_H

#include "mover/protocol.h"
#include "shim/device_state.h"

/* The program has a context on this card: connects to its mover, if the program is evictable. */
void ll_residency_join(ll_cu_device device);

/*
 * Whether plain allocations on this card shall be made so that they can be moved (memory/backing.h). The first call for
 * a card connects to its mover. If the driver or the card cannot share memory between processes, one line on the
 * standard error stream says so, and the program's memory stays on the card. dev may be NULL. Later calls are two
 * loads.
 */
bool ll_residency_backs(struct ll_device_state *dev);

/* Whether a mover serves the card, as far as is known. */
bool ll_residency_has_mover(struct ll_device_state *dev);

/*
 * An allocation of so many bytes failed for want of memory on the card. Asks the mover for room and waits for the
 * answer, which comes when others have had their turns: so LL_RESIDENCY_ROOM_NS is long. If the mover ends meanwhile
 * the next one is asked, for which it waits LL_RESIDENCY_MOVER_NS. takes_pieces: the allocation can wait for each
 * piece of its memory. One allocation gets room LL_RESIDENCY_GRANTS times at most: the driver may refuse it for another
 * reason. grants: 0 for its first call.
 */
#define LL_RESIDENCY_ROOM_NS UINT64_C(3600000000000)
#define LL_RESIDENCY_MOVER_NS UINT64_C(10000000000)
#define LL_RESIDENCY_GRANTS 100
enum ll_mover_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool takes_pieces,
					  unsigned *grants);

#endif
