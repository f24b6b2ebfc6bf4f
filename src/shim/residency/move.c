#include "shim/residency/move.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/packet.h"
#include "shim/interpose/real.h"
#include "shim/memory/movable_pool.h"
#include "shim/memory/pieces.h"
#include "shim/residency/obstacles.h"
#include "shim/residency/quiet.h"
#include "shim/time/driver_calls.h"

#define ROOM_PAUSE_NS (20 * LL_NS_PER_MS)

enum where {
	ON_CARD,
	GOING,  /* its handles were sent, and its bytes are being copied out */
	STORED, /* its memory on the card is free */
	COMING, /* its new memory was sent, and is being filled */
};

struct batch {
	enum where where;
	uint32_t first, count; /* of the pieces */
	struct ll_mover_place places[LL_MOVER_PLACES];
	uint32_t place_count;
	ll_cu_mem_handle beside; /* memory on a neighbour card that has the bytes; 0: there is none */
};

/* False: the bytes have never left. Else the pool or a neighbour card has them until the program goes on. */
static bool is_stored(const struct batch *batch)
{
	return batch->place_count || batch->beside;
}

struct ll_move {
	struct ll_device_state *dev;
	bool is_stopped;
	struct ll_quiet quiet;
	struct ll_piece *pieces;
	uint32_t piece_count;
	struct batch *batches;
	uint32_t batch_count;
	uint32_t under_way; /* batches that are GOING or COMING */
	char *pool;         /* the pool's file; NULL: not mapped */
	size_t pool_bytes;
	/* Exported handles that are being sent. A forked child closes its copies, which would hold the memory. */
	int exported[LL_MOVER_BATCH_HANDLES];
	_Atomic uint32_t exported_count;
};

struct ll_move *ll_move_new(struct ll_device_state *dev)
{
	struct ll_move *move = calloc(1, sizeof *move);
	if (move)
		move->dev = dev;
	return move;
}

bool ll_move_is_stopped(const struct ll_move *move)
{
	return move->is_stopped;
}

/* ---- pieces and batches ---- */

static int list_pieces(struct ll_move *move, uint64_t *ret_bytes)
{
	uint32_t count = 0, capacity = 0;
	uint64_t bytes = 0;
	struct ll_piece piece = {0};
	struct ll_extent at = {.kind = LL_PIECES_FIRST};
	while (ll_pieces_next(move->dev, &at, &piece)) {
		if (count == capacity) {
			capacity = capacity ? 2 * capacity : 64;
			struct ll_piece *pieces = calloc(capacity, sizeof *pieces);
			if (!pieces)
				return -ENOMEM;
			if (count)
				memcpy(pieces, move->pieces, count * sizeof *pieces);
			free(move->pieces);
			move->pieces = pieces;
		}
		move->pieces[count++] = piece;
		bytes += piece.bytes;
	}
	move->piece_count = count;
	*ret_bytes = bytes;
	return 0;
}

/* The first ones are small: so what waits for the first room begins soon. */
static uint64_t bytes_of_batch(uint32_t number)
{
	int64_t smaller = (int64_t)LL_MOVER_SMALL_BATCHES - number;
	return smaller > 0 ? LL_MOVER_BATCH_BYTES >> smaller : LL_MOVER_BATCH_BYTES;
}

static int cut_batches(struct ll_move *move)
{
	move->batches = calloc(move->piece_count ? move->piece_count : 1, sizeof *move->batches);
	if (!move->batches)
		return -ENOMEM;
	for (uint32_t i = 0; i < move->piece_count;) {
		uint64_t bytes = 0, most_bytes = bytes_of_batch(move->batch_count);
		struct batch *batch = &move->batches[move->batch_count++];
		batch->first = i;
		while (i < move->piece_count && batch->count < LL_MOVER_BATCH_HANDLES && bytes < most_bytes) {
			bytes += move->pieces[i++].bytes;
			batch->count++;
		}
	}
	return 0;
}

static int map_pool(struct ll_move *move, int pool_fd)
{
	struct stat st;
	if (fstat(pool_fd, &st) < 0)
		return -errno;
	void *pool = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED | MAP_NORESERVE, pool_fd, 0);
	if (pool == MAP_FAILED)
		return -errno;
	madvise(pool, (size_t)st.st_size, MADV_DONTDUMP); /* a core file needs none of it */
	madvise(pool, (size_t)st.st_size, MADV_DONTFORK); /* a child that lives long would keep it */
	move->pool = pool;
	move->pool_bytes = (size_t)st.st_size;
	return 0;
}

static void let_go_beside(struct batch *batch)
{
	if (batch->beside)
		ll_real()->cuMemRelease(batch->beside);
	batch->beside = 0;
}

static void forget_move(struct ll_move *move)
{
	if (move->pool)
		munmap(move->pool, move->pool_bytes);
	for (uint32_t i = 0; i < move->batch_count; i++)
		let_go_beside(&move->batches[i]);
	free(move->pieces);
	free(move->batches);
	*move = (struct ll_move){.dev = move->dev, .quiet = move->quiet};
}

static int prepare_batches(struct ll_move *move, int pool_fd, uint64_t *ret_bytes, char why[LL_MOVER_TEXT_SIZE])
{
	ll_movable_pools_freeze(move->dev); /* what is freed need not move */
	int rc = list_pieces(move, ret_bytes);
	if (!rc)
		rc = cut_batches(move);
	if (!rc && move->batch_count)
		rc = map_pool(move, pool_fd);
	if (rc)
		snprintf(why, LL_MOVER_TEXT_SIZE, "the program has no memory for the move: %s", strerror(-rc));
	return rc;
}

int ll_move_stop(struct ll_move *move, uint64_t wait_ns, int pool_fd, uint64_t *ret_bytes, uint32_t *ret_batches,
		 char why[LL_MOVER_TEXT_SIZE])
{
	uint64_t deadline_ns = ll_now_ns() + wait_ns;
	int rc = 0;
	*ret_bytes = *ret_batches = 0;
	if (pool_fd >= 0 && ll_obstacles_find(move->dev, why, LL_MOVER_TEXT_SIZE))
		return -EBUSY;
	if (!move->is_stopped) {
		rc = ll_quiet_reach(&move->quiet, move->dev, deadline_ns, why);
		move->is_stopped = rc == 0;
	}
	if (!rc && pool_fd >= 0)
		rc = prepare_batches(move, pool_fd, ret_bytes, why);
	*ret_batches = move->batch_count;
	if (!rc)
		return 0;
	ll_move_go_on(move);
	return -EBUSY;
}

void ll_move_go_on(struct ll_move *move)
{
	bool was_stopped = move->is_stopped;
	ll_movable_pools_thaw(move->dev);
	forget_move(move);
	if (was_stopped)
		ll_driver_calls_open();
}

/* ---- out and in ---- */

void ll_move_close_in_child(struct ll_move *move)
{
	for (uint32_t i = 0; i < atomic_load(&move->exported_count); i++)
		close(move->exported[i]);
	atomic_store(&move->exported_count, 0);
}

/* Not while another thread forks: the child would close numbers that are somebody else's by then. */
static void close_exported(struct ll_move *move)
{
	ll_fork_block();
	ll_move_close_in_child(move);
	ll_fork_unblock();
}

/* Exports the batch's handles and sends them. -EMFILE: they cannot be exported or sent; the socket works. */
static int send_batch(struct ll_move *move, uint32_t number, enum ll_mover_kind kind, int fd)
{
	struct batch *batch = &move->batches[number];
	struct ll_mover_message message = {.kind = kind, .batch = number, .count = batch->count};
	ll_cu_result status = LL_CUDA_SUCCESS;
	for (uint32_t i = 0; i < batch->count && status == LL_CUDA_SUCCESS; i++) {
		const struct ll_piece *piece = &move->pieces[batch->first + i];
		status = ll_real()->cuMemExportToShareableHandle(&move->exported[i], piece->handle,
								 LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
		if (status == LL_CUDA_SUCCESS)
			atomic_store(&move->exported_count, i + 1);
		message.handle_bytes[i] = piece->bytes;
	}
	int rc = status == LL_CUDA_SUCCESS ? ll_packet_send(fd, &message, sizeof message, move->exported, batch->count)
					   : -EMFILE;
	close_exported(move);
	return rc == -ETOOMANYREFS ? -EMFILE : rc;
}

int ll_move_send_out(struct ll_move *move, int fd)
{
	for (uint32_t i = 0; i < move->batch_count && move->under_way < LL_MOVER_AHEAD; i++) {
		if (move->batches[i].where != ON_CARD)
			continue;
		int rc = send_batch(move, i, LL_MOVER_OUT, fd);
		if (rc)
			return rc;
		move->batches[i].where = GOING;
		move->under_way++;
	}
	return 0;
}

static void free_batch(struct ll_move *move, struct batch *batch, uint32_t count)
{
	for (uint32_t i = 0; i < count; i++) {
		struct ll_piece *piece = &move->pieces[batch->first + i];
		ll_piece_unmake(piece);
		piece->handle = 0;
	}
}

static void note_places(struct batch *batch, const struct ll_mover_message *message)
{
	memcpy(batch->places, message->places, message->count * sizeof *batch->places);
	batch->place_count = message->count;
}

int ll_move_note_taken(struct ll_move *move, const struct ll_mover_message *message, int fd)
{
	if (message->batch >= move->batch_count || message->count > LL_MOVER_PLACES ||
	    move->batches[message->batch].where != GOING || (message->value && fd < 0))
		return -EPROTO;
	struct batch *batch = &move->batches[message->batch];
	if (message->value &&
	    ll_real()->cuMemImportFromShareableHandle(&batch->beside, (void *)(intptr_t)fd,
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != LL_CUDA_SUCCESS)
		return -EIO;
	move->under_way--;
	if (!message->value && !message->count) {
		batch->where = ON_CARD;
		return 0;
	}
	note_places(batch, message);
	free_batch(move, batch, batch->count);
	batch->where = STORED;
	return 0;
}

/* The program may have begun to bring the batch back; or it has all its memory, because it has filled the batch by
 * itself. */
int ll_move_note_moved(struct ll_move *move, const struct ll_mover_message *message)
{
	if (!message->count || message->count > LL_MOVER_PLACES)
		return -EPROTO;
	if (message->batch >= move->batch_count || !move->batches[message->batch].beside)
		return 0;
	note_places(&move->batches[message->batch], message);
	let_go_beside(&move->batches[message->batch]);
	return 0;
}

static struct ll_cu_context *any_context(const struct ll_device_state *dev)
{
	struct ll_extent context = {.kind = LL_EXTENT_CONTEXT};
	while (ll_extents_next(&context) && context.kind == LL_EXTENT_CONTEXT) {
		if (context.dev == dev)
			return (struct ll_cu_context *)(uintptr_t)context.address;
	}
	return NULL;
}

/* The card has no work of the program, so this waits for nothing. */
static bool is_card_lost(const struct ll_move *move)
{
	struct ll_cu_context *popped;
	if (ll_real()->cuCtxPushCurrent_v2(any_context(move->dev)) != LL_CUDA_SUCCESS)
		return false;
	ll_cu_result status = ll_real()->cuCtxSynchronize();
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status != LL_CUDA_SUCCESS;
}

/* New memory at the old addresses. Nothing is made if it fails. -ENOMEM: the card has none; -EIO: the program's
 * contexts are lost. */
static int make_batch(struct ll_move *move, struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++) {
		struct ll_piece *piece = &move->pieces[batch->first + i];
		ll_cu_result status = ll_piece_make(move->dev, piece);
		if (status != LL_CUDA_SUCCESS) {
			free_batch(move, batch, i);
			return status != LL_CUDA_ERROR_OUT_OF_MEMORY && is_card_lost(move) ? -EIO : -ENOMEM;
		}
	}
	return 0;
}

static void note_on_card(struct ll_move *move, struct batch *batch)
{
	for (uint32_t i = 0; i < batch->count; i++)
		ll_piece_note(&move->pieces[batch->first + i]);
	batch->where = ON_CARD;
}

/* The places, one after the other, fill the pieces, one after the other. */
static ll_cu_result fill_from_places(const struct ll_move *move, const struct batch *batch)
{
	ll_cu_result status = LL_CUDA_SUCCESS;
	uint32_t place = 0;
	uint64_t used = 0; /* of the place */
	for (uint32_t i = 0; i < batch->count && status == LL_CUDA_SUCCESS; i++) {
		const struct ll_piece *piece = &move->pieces[batch->first + i];
		for (uint64_t done = 0; done < piece->bytes && place < batch->place_count && !status;) {
			uint64_t left = batch->places[place].bytes - used, wanted = piece->bytes - done;
			uint64_t part = left < wanted ? left : wanted;
			const char *from = move->pool + batch->places[place].offset + used;
			status = ll_piece_fill(move->dev, piece, done, (uintptr_t)from, part);
			done += part;
			used += part;
			if (used == batch->places[place].bytes) {
				place++;
				used = 0;
			}
		}
	}
	return status;
}

/* The neighbour's memory has the bytes of the pieces, one after the other. */
static ll_cu_result fill_from_beside(const struct ll_move *move, const struct batch *batch)
{
	const struct ll_piece *pieces = &move->pieces[batch->first];
	uint64_t bytes = 0, done = 0;
	ll_cu_deviceptr address;
	for (uint32_t i = 0; i < batch->count; i++)
		bytes += pieces[i].bytes;
	ll_cu_result status = ll_piece_map_aside(move->dev, batch->beside, bytes, &address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	for (uint32_t i = 0; i < batch->count && status == LL_CUDA_SUCCESS; i++) {
		status = ll_piece_fill(move->dev, &pieces[i], 0, address + done, pieces[i].bytes);
		done += pieces[i].bytes;
	}
	ll_piece_unmap_aside(address, bytes);
	return status;
}

/* -EIO: the driver cannot copy. */
static int fill_batch(const struct ll_move *move, const struct batch *batch)
{
	struct ll_cu_context *popped;
	ll_cu_result status = ll_real()->cuCtxPushCurrent_v2(any_context(move->dev));
	if (status != LL_CUDA_SUCCESS)
		return -EIO;
	status = batch->beside ? fill_from_beside(move, batch) : fill_from_places(move, batch);
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return status == LL_CUDA_SUCCESS ? 0 : -EIO;
}

static int fill_by_hand(struct ll_move *move, struct batch *batch)
{
	int rc = fill_batch(move, batch);
	note_on_card(move, batch);
	return rc;
}

/* One batch is made again and sent. */
static int send_one_in(struct ll_move *move, uint32_t number, int fd)
{
	struct batch *batch = &move->batches[number];
	int rc = make_batch(move, batch);
	if (rc)
		return rc;
	rc = send_batch(move, number, LL_MOVER_IN, fd);
	if (rc == -EMFILE)
		return fill_by_hand(move, batch);
	if (rc) {
		free_batch(move, batch, batch->count);
		return rc;
	}
	batch->where = COMING;
	move->under_way++;
	return 0;
}

int ll_move_send_in(struct ll_move *move, int fd)
{
	for (uint32_t i = 0; i < move->batch_count && move->under_way < LL_MOVER_AHEAD; i++) {
		int rc = move->batches[i].where == STORED ? send_one_in(move, i, fd) : 0;
		if (rc)
			return rc;
	}
	return 0;
}

int ll_move_note_filled(struct ll_move *move, uint32_t number, bool is_filled)
{
	if (number >= move->batch_count || move->batches[number].where != COMING)
		return -EPROTO;
	move->under_way--;
	if (!is_filled)
		return fill_by_hand(move, &move->batches[number]);
	note_on_card(move, &move->batches[number]);
	return 0;
}

/* ---- staying away ---- */

static void put_back(struct ll_move *move, struct batch *batch)
{
	free_batch(move, batch, batch->count);
	batch->where = STORED;
}

void ll_move_stay(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct batch *batch = &move->batches[i];
		if (batch->where == ON_CARD && is_stored(batch))
			put_back(move, batch);
	}
}

bool ll_move_is_at_rest(const struct ll_move *move)
{
	return move->under_way == 0;
}

int ll_move_drop(struct ll_move *move, uint32_t number)
{
	if (number >= move->batch_count || move->batches[number].where != COMING)
		return -EPROTO;
	move->under_way--;
	put_back(move, &move->batches[number]);
	return 0;
}

static bool are_all(const struct ll_move *move, enum where where)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		if (move->batches[i].where != where)
			return false;
	}
	return true;
}

bool ll_move_is_all_out(const struct ll_move *move)
{
	return are_all(move, STORED);
}

bool ll_move_is_all_in(const struct ll_move *move)
{
	return are_all(move, ON_CARD);
}

uint64_t ll_move_away_bytes(const struct ll_move *move)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < move->piece_count; i++)
		bytes += move->pieces[i].handle ? 0 : move->pieces[i].bytes;
	return bytes;
}

void ll_move_give_up(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct batch *batch = &move->batches[i];
		for (uint32_t j = batch->first; batch->where == STORED && j < batch->first + batch->count; j++)
			ll_piece_note(&move->pieces[j]); /* it has no handle now */
	}
}

/* ---- without a mover ---- */

static void pause_for_room(void)
{
	/* Not the same for all programs, so that two of them do not try again and again at the same moments. */
	uint64_t pause_ns = ROOM_PAUSE_NS + (uint64_t)getpid() % 16 * LL_NS_PER_MS;
	ll_sleep_until_ns(ll_now_ns() + pause_ns);
}

static bool may_have_room(const struct ll_move *move)
{
	struct ll_cu_context *popped;
	size_t free_bytes = SIZE_MAX, total_bytes;
	if (ll_real()->cuCtxPushCurrent_v2(any_context(move->dev)) != LL_CUDA_SUCCESS)
		return true;
	if (ll_real()->cuMemGetInfo_v2(&free_bytes, &total_bytes) != LL_CUDA_SUCCESS)
		free_bytes = SIZE_MAX;
	ll_real()->cuCtxPopCurrent_v2(&popped);
	return free_bytes >= ll_move_away_bytes(move);
}

/* What has left is put back where it is stored, but for the bytes on the card that never left. */
static void put_all_back(struct ll_move *move)
{
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct batch *batch = &move->batches[i];
		if (is_stored(batch) && batch->where != STORED)
			put_back(move, batch);
	}
}

/* Memory for all that is away, or none: -ENOMEM, -EIO. */
static int make_all(struct ll_move *move)
{
	int rc = may_have_room(move) ? 0 : -ENOMEM;
	for (uint32_t i = 0; i < move->batch_count && !rc; i++) {
		struct batch *batch = &move->batches[i];
		rc = batch->where == STORED ? make_batch(move, batch) : 0;
		if (!rc && batch->where == STORED)
			batch->where = COMING;
	}
	if (rc)
		put_all_back(move);
	return rc;
}

/* The program takes no room unless there is room for all: else two programs that hold a part each would wait for each
 * other for ever. */
void ll_move_bring_back_alone(struct ll_move *move)
{
	int rc;
	for (uint32_t i = 0; i < move->batch_count; i++) {
		struct batch *batch = &move->batches[i];
		if (batch->where == GOING) /* its bytes are on the card still */
			batch->where = ON_CARD;
		else if (batch->where == COMING) /* the mover may still copy into this memory */
			put_back(move, batch);
	}
	move->under_way = 0;
	while ((rc = make_all(move)) == -ENOMEM)
		pause_for_room();
	for (uint32_t i = 0; i < move->batch_count && !rc; i++) {
		if (move->batches[i].where == COMING)
			rc = fill_by_hand(move, &move->batches[i]);
	}
	if (!rc)
		return;
	put_all_back(move);
	ll_move_give_up(move);
}
