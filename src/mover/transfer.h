/*
 * transfer.h - copies the memory of another process between the card and the pool.
 *
 * A transfer imports a batch's handles, maps them in a row in this process, and starts the copies. They run at the
 * bus's speed while others are prepared: 55 GB/s in one direction, 44 to 47 GB/s in each of both at once
 * (doc/facts.md).
 */
#ifndef LOADLINE_MOVER_TRANSFER_H
#define LOADLINE_MOVER_TRANSFER_H

#include <stdint.h>

#include "driver/cards.h"
#include "mover/pool.h"
#include "mover/protocol.h"

/* The mover's part of the driver: a context of the card, and a stream for each direction. */
struct ll_transfer_engine {
	const struct ll_cuda *cuda;
	ll_cu_device device;
	struct ll_cu_context *context;
	struct ll_cu_stream *out, *in;
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

/*
 * Begins to copy the memory behind the handles to or from the places, whose sizes have the same sum. The descriptors
 * stay the caller's, and may be closed at once. The transfer is to be freed. Errors as ll_cuda_errno; -ENOMEM.
 */
int ll_transfer_new(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction, const int *fds,
		    const uint64_t *handle_bytes, uint32_t count, const struct ll_mover_place *places,
		    uint32_t place_count, struct ll_transfer **ret_transfer, struct ll_err *err);

/* 0: the bytes are there. -EAGAIN: not yet. Else the copy failed. */
int ll_transfer_is_done(struct ll_transfer *transfer, struct ll_err *err);

/* Waits for the copies, and lets the imported memory go. NULL is fine. */
void ll_transfer_free(struct ll_transfer *transfer);

#endif
