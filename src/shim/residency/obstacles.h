/*
 * obstacles.h - reasons why memory of a program must stay on the card.
 *
 * Some memory never moves. It is pinned, and `loadline status` counts it: contexts, some pools (ordered.h), arrays,
 * managed memory, memory of graphs, allocations with a pitch, what another API made, and memory by cuMemCreate that
 * others can see (memory/physical.h). The rest of the program moves all the same. Here are the cases in which nothing
 * of the program may move, because another device or process would go on using the memory by the card's own addresses:
 *
 *     DMA buffers       the program has exported a plain allocation by cuMemGetHandleForAddressRange, and not freed it
 *     legacy IPC        the same by cuIpcGetMemHandle (shares.h)
 *     devices for RDMA  the program has a device open by which it may have registered memory of the card
 *
 * A program also cannot be evicted while its work on the card does not end. A frequent cause is a stream that waits for
 * a value which the program itself must write. So the library notes that the program has such waits.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_OBSTACLES_H
#define LOADLINE_SHIM_RESIDENCY_OBSTACLES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "shim/device_state.h"

/* Whether nothing of the program on this card may move now. True: why says the reason, as a part of a sentence about
 * the program. Reads /proc/self/fd. */
bool ll_obstacles_find(const struct ll_device_state *dev, char *why, size_t why_size);

/* Whether one of the descriptors in the folder, which is like /proc/self/fd, is of a device by which others use the
 * card's memory. True: ret_path is its name, cut to the size. False also if the descriptors cannot be listed. */
bool ll_obstacles_find_device(const char *folder_path, char *ret_path, size_t path_size);

/* Why the program's work on the card has not ended in time, as far as is known. Never NULL. */
const char *ll_obstacles_of_work(void);

/* The program has a stream wait for a value, or may have (a batch of memory operations). */
extern _Atomic bool ll_obstacles_has_waits;
static inline void ll_obstacles_note_wait(void)
{
	if (!atomic_load_explicit(&ll_obstacles_has_waits, memory_order_relaxed))
		atomic_store_explicit(&ll_obstacles_has_waits, true, memory_order_relaxed);
}

#endif
