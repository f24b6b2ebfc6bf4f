/*
 * transfer.h - copies the memory of another process between the card and a store: the pool, or a neighbour card's
 * memory.
 *
 * A transfer imports a batch's handles, maps them in a row in this process, and starts the copies. They run at the
 * bus's speed while others are prepared. To the host: 55 GB/s in one direction, 44 to 47 GB/s in each of both at once.
 * To a neighbour: 360 GB/s (doc/facts.md).
 */
#ifndef LOADLINE_MOVER_TRANSFER_H
#define LOADLINE_MOVER_TRANSFER_H

#include <stdint.h>

#include "driver/cards.h"
#include "mover/mapping.h"
#include "mover/pool.h"
#include "mover/protocol.h"

/* The mover's part of the driver: a context of the card, and a stream for each direction. */
struct ll_transfer_engine {
	const struct ll_cuda *cuda;
	ll_cu_device device;
	struct ll_cu_context *context;
	struct ll_cu_stream *out, *in;
	struct ll_releaser *releaser;
	struct ll_mover_pool *pool; /* the caller's */
};

/* Makes a small context on the card, and makes it current in the calling thread, which makes all transfers. */
int ll_transfer_engine_init(struct ll_transfer_engine *engine, const struct ll_card *card, struct ll_err *err);
void ll_transfer_engine_fini(struct ll_transfer_engine *engine);

/* 0: the context works. Else what is wrong with it: it does not come back. */
int ll_transfer_engine_check(const struct ll_transfer_engine *engine, struct ll_err *err);

/* Memory of the card that nobody has, in bytes; 0: it cannot be told. */
uint64_t ll_transfer_free_bytes(const struct ll_transfer_engine *engine);

enum ll_transfer_direction { LL_TRANSFER_OUT, LL_TRANSFER_IN };
struct ll_transfer;

/* Where a batch's bytes are while they are not on the card. */
struct ll_transfer_store {
	ll_cu_deviceptr block; /* on a neighbour, mapped here; 0: in the pool */
	const struct ll_mover_place *places;
	uint32_t place_count;
};

/*
 * Begins to copy the memory behind the handles to or from the store, which has the same size. The descriptors stay the
 * caller's, and may be closed at once. The transfer is to be freed. Errors as ll_cuda_errno; -ENOMEM.
 */
int ll_transfer_new(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction, const int *fds,
		    const uint64_t *handle_bytes, uint32_t count, struct ll_transfer_store store,
		    struct ll_transfer **ret_transfer, struct ll_err *err);

/* Begins to copy what is in the block, which stays the caller's, to the places in the pool. */
int ll_transfer_new_to_host(const struct ll_transfer_engine *engine, struct ll_transfer_store store,
			    struct ll_transfer **ret_transfer, struct ll_err *err);

/* 0: the bytes are there. -EAGAIN: not yet. Else the copy failed. */
int ll_transfer_is_done(struct ll_transfer *transfer, struct ll_err *err);

/* Waits for the copies, and lets the imported memory go soon (mapping.h). NULL is fine. */
void ll_transfer_free(struct ll_transfer *transfer);

#endif
