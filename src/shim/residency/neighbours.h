/*
 * neighbours.h - memory of other cards of the host, to which memory of this process is copied while nobody uses those
 * cards.
 *
 * Over NVLink a copy is six times as fast as to the host (doc/facts.md). The process needs no context on a neighbour:
 * it makes memory there, and lets its own card use it. Such memory belongs to the process, and is freed with it.
 * NVML lists no process for it, and it is charged to no limit. loadlined chooses the card (protocol/message.h,
 * NEIGHBOUR) from the readings that the process reports.
 *
 * The driver gives a card that CUDA_VISIBLE_DEVICES hides no number, so such a card is no neighbour.
 *
 * Only the thread of the link calls it.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_NEIGHBOURS_H
#define LOADLINE_SHIM_RESIDENCY_NEIGHBOURS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "shim/device_state.h"

struct ll_neighbour {
	ll_cu_device device;
	char uuid[96];
};

enum { LL_NEIGHBOURS = 15 }; /* at most */

/* Finds the cards that NVLink joins to this one, of those that the program sees. Returns their number. */
size_t ll_neighbours_find(const struct ll_device_state *dev, struct ll_neighbour ret_neighbours[LL_NEIGHBOURS]);

/*
 * Reads the memory of a neighbour: free bytes, and used bytes without those of synthetic loads (`loadline hold`), which
 * give way.
 * Takes some 0.1 ms; the first call loads NVML, and takes some 50 ms. False: NVML does not tell, or is not there.
 */
bool ll_neighbour_read(const char *uuid, uint64_t *ret_free_bytes, uint64_t *ret_used_bytes);

/* Memory on a neighbour, mapped where the card of dev reads and writes it. */
struct ll_neighbour_block {
	ll_cu_mem_handle handle;
	ll_cu_deviceptr address; /* 0: there is none */
	uint64_t bytes;
};

/* Fails if the card has no room, or the driver refuses. Then nothing is allocated. */
ll_cu_result ll_neighbour_block_make(const struct ll_device_state *dev, ll_cu_device neighbour, uint64_t bytes,
				     struct ll_neighbour_block *ret_block);
void ll_neighbour_block_free(struct ll_neighbour_block *block); /* address 0 is fine */

#endif
