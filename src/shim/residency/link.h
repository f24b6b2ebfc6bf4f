/*
 * link.h - an evictable program's connection to loadlined (protocol/message.h, EVICTABLE), and the thread that serves
 * it and moves the program's memory.
 *
 * The program's memory on that card leaves and returns as loadlined says (move.h). A process has one link for each card
 * on which it is evictable. If loadlined ends, what goes on goes on, and the next loadlined is told how things are. If
 * none answers for 5 s, memory that is away returns by itself, as soon as the card has room for all of it, and one line
 * on the standard error stream says so.
 *
 * A forked child begins without a link: its copies of the descriptors are closed. It gets one of its own with its first
 * context.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINK_H
#define LOADLINE_SHIM_RESIDENCY_LINK_H

#include "protocol/message.h"
#include "shim/device_state.h"

/* The program has a context on this card: connects to loadlined, if the program is evictable. */
void ll_residency_join(ll_cu_device device);

/*
 * Whether plain allocations on this card shall be made so that they can be moved (memory/backing.h). The first call for
 * a card connects to loadlined. If the driver or the card cannot map memory, one line on the standard error stream says
 * so, and the program's memory stays on the card. dev may be NULL. Later calls are two
 * loads.
 */
bool ll_residency_backs(struct ll_device_state *dev);

/* Whether loadlined decides for the card, as far as is known. */
bool ll_residency_is_served(struct ll_device_state *dev);

/*
 * An allocation of so many bytes failed for want of memory on the card. Asks loadlined for room and waits for the
 * reply, which comes when others have had their turns: so LL_RESIDENCY_ROOM_NS is long. If loadlined ends meanwhile
 * the next one is asked, for which it waits LL_RESIDENCY_DAEMON_NS. waits_by_chunk: the allocation can wait for each
 * chunk of its memory. One allocation gets room LL_RESIDENCY_GRANTS times at most: the driver may refuse it for another
 * reason. grants: 0 for its first call.
 */
#define LL_RESIDENCY_ROOM_NS UINT64_C(3600000000000)
#define LL_RESIDENCY_DAEMON_NS UINT64_C(10000000000)
#define LL_RESIDENCY_GRANTS 100
enum ll_move_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool waits_by_chunk,
					 unsigned *grants);

#endif
