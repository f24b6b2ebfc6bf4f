/*
 * link.h - an evictable program's connection to loadlined (protocol/message.h, EVICTABLE), and the thread that serves
 * it and moves the program's memory.
 *
 * loadlined decides when the memory of the program on that card is evicted and resumed (move.h). A process has one link
 * for each card on which it is evictable. If loadlined ends, a running move goes on, and the link reports its state to
 * the next loadlined. If none answers for 5 s, memory that is away is resumed as soon as the card has room for all of
 * it, and one line on the standard error stream says so.
 *
 * A forked child begins without a link: its copies of the descriptors are closed. The child gets a link of its own with
 * its first context.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINK_H
#define LOADLINE_SHIM_RESIDENCY_LINK_H

#include "protocol/message.h"
#include "shim/device_state.h"

/* The program has a context on this card: connects to loadlined, if the program is evictable. */
void ll_residency_link_join(ll_cu_device device);

/*
 * Whether plain allocations on this card shall be made so that they can be moved (memory/backing.h). The first call for
 * a card connects to loadlined. If the driver or the card cannot map memory, one line on the standard error stream says
 * so, and the program's memory stays on the card. dev may be NULL. Later calls cost two loads.
 */
bool ll_residency_backs(struct ll_device_state *dev);

/* Whether loadlined decides for the card, as far as is known. */
bool ll_residency_is_served(struct ll_device_state *dev);

/*
 * An allocation of so many bytes failed because the card has no memory for it. Requests room from loadlined and waits
 * for the reply. The reply may come only after the turns of other programs, so LL_RESIDENCY_ROOM_NS is long. If
 * loadlined ends meanwhile, the request goes to the next loadlined, which must appear within LL_RESIDENCY_DAEMON_NS.
 * waits_by_chunk: the allocation can wait for each chunk of its memory. One allocation gets room at most
 * LL_RESIDENCY_GRANTS times, because the driver may refuse it for another reason. grants: 0 at its first call.
 */
#define LL_RESIDENCY_ROOM_NS UINT64_C(3600000000000)
#define LL_RESIDENCY_DAEMON_NS UINT64_C(10000000000)
#define LL_RESIDENCY_GRANTS 100
enum ll_move_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool waits_by_chunk,
					 unsigned *grants);

#endif
