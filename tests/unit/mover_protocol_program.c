/* The program's side of mover_protocol.h. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "mover_protocol.h"

static int stat_pool(int fd, struct stat *ret_stat)
{
	if (fd != POOL_FD)
		world_blame("another file than the pool's");
	ret_stat->st_size = POOL_BYTES;
	return 0;
}

#undef LL_MOVER_BATCH_BYTES
#define LL_MOVER_BATCH_BYTES UINT64_C(2)
#undef LL_MOVER_SMALL_BATCHES
#define LL_MOVER_SMALL_BATCHES 0
#define LL_MOVER_AHEAD 2
#define malloc(bytes) world_allocate(bytes)
#define calloc(count, bytes) world_allocate((count) * (bytes))
#define free(memory) world_free(memory)
#define close(fd) world_close(fd)
#define ll_now_ns() world_now_ns()
#define ll_sleep_until_ns(deadline_ns) ((void)(deadline_ns), world_sleep())
#define fstat(fd, stat) stat_pool(fd, stat)
#define mmap(...) ((void *)world.pool)
#define munmap(...) ((void)0)
#define madvise(...) ((void)0)
#define pthread_create(thread, attr, function, arg) ((void)(thread), (function)(arg), 0)
#include "shim/residency/link.c"  // NOLINT(bugprone-suspicious-include): with the world's memory and no thread
#include "shim/residency/move.c"  // NOLINT(bugprone-suspicious-include)
#include "shim/residency/quiet.c" // NOLINT(bugprone-suspicious-include)

static struct ll_device_state devices[PROGRAMS];

static struct world_piece *piece_at(uint64_t address)
{
	return &world.programs[world.current].pieces[address / 256 - 1];
}

static uint64_t address_of(unsigned piece)
{
	return (piece + 1) * UINT64_C(256);
}

/* ---- the driver ---- */

static ll_cu_result fake_done(void)
{
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_push(struct ll_cu_context *context)
{
	(void)context;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_pop(struct ll_cu_context **ret_context)
{
	*ret_context = NULL;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_info(size_t *ret_free, size_t *ret_total)
{
	*ret_free = world_free_bytes();
	*ret_total = world.card_bytes;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_exchange(enum ll_cu_capture_mode *mode)
{
	(void)mode;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_export(void *ret_fd, ll_cu_mem_handle handle, enum ll_cu_mem_handle_type type,
				unsigned long long flags)
{
	(void)type;
	(void)flags;
	if (world.export_fails)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	world.handles[handle - 1].references++;
	*(int *)ret_fd = HANDLE_FD + (int)handle - 1;
	return LL_CUDA_SUCCESS;
}

/* ---- memory of the neighbour ---- */

static ll_cu_result fake_import(ll_cu_mem_handle *ret_handle, void *os_handle, enum ll_cu_mem_handle_type type)
{
	(void)type;
	int number = (int)(intptr_t)os_handle - HANDLE_FD;
	if (world.export_fails)
		return LL_CUDA_ERROR_OPERATING_SYSTEM;
	if (number < 0 || number >= HANDLES || !world.handles[number].is_beside) {
		world_blame("what is imported is no memory of the neighbour");
		return LL_CUDA_ERROR_INVALID_VALUE;
	}
	world.handles[number].references++;
	*ret_handle = (ll_cu_mem_handle)number + 1;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result fake_release(ll_cu_mem_handle handle)
{
	world_drop_handle((unsigned)handle);
	return LL_CUDA_SUCCESS;
}

static const struct ll_real driver = {
    .cuCtxSynchronize = fake_done,
    .cuCtxPushCurrent_v2 = fake_push,
    .cuCtxPopCurrent_v2 = fake_pop,
    .cuMemGetInfo_v2 = fake_info,
    .cuThreadExchangeStreamCaptureMode = fake_exchange,
    .cuMemExportToShareableHandle = fake_export,
    .cuMemImportFromShareableHandle = fake_import,
    .cuMemRelease = fake_release,
};

_Atomic(const void *) ll_real_bound[2] = {&driver, &driver};
_Thread_local unsigned ll_reentry_depth;

const void *ll_real_bind(enum ll_real_library which)
{
	return atomic_load(&ll_real_bound[which]);
}

/* ---- the rest of the library ---- */

const struct ll_run_settings *ll_device_state_settings(void)
{
	static const struct ll_run_settings settings = {.tenant = "tenant"};
	return &settings;
}

unsigned ll_port_index(const struct ll_claim *claim)
{
	(void)claim;
	return world.current;
}

void ll_port_read_memory(const struct ll_claim *claim, struct ll_memory_view *ret_view)
{
	(void)claim;
	*ret_view = (struct ll_memory_view){0};
}

void ll_say(const char *format, ...)
{
	(void)format;
}

bool ll_backing_is_possible(ll_cu_device device)
{
	(void)device;
	return true;
}

void ll_port_set_residency(struct ll_claim *claim, const struct ll_memory_residency *residency)
{
	(void)claim;
	(void)residency;
}

bool ll_obstacles_find(const struct ll_device_state *dev, char *why, size_t why_size)
{
	(void)dev;
	(void)why;
	(void)why_size;
	return false;
}

bool ll_flow_is_capturing(struct ll_flow *flow)
{
	(void)flow;
	return false;
}

const char *ll_obstacles_of_work(void)
{
	return "it works";
}

uint64_t ll_pieces_bytes(const struct ll_device_state *dev)
{
	uint64_t bytes = 0;
	for (unsigned i = 0; i < PIECES; i++)
		bytes += world.programs[dev->device].pieces[i].size;
	return bytes;
}

uint64_t ll_pieces_charged_bytes(const struct ll_device_state *dev)
{
	return ll_pieces_bytes(dev);
}

ll_cu_result ll_piece_make(const struct ll_device_state *dev, struct ll_piece *piece)
{
	(void)dev;
	struct world_piece *made = piece_at(piece->address);
	unsigned handle = world_new_handle((unsigned)piece->bytes);
	if (!handle)
		return LL_CUDA_ERROR_OUT_OF_MEMORY;
	if (made->is_mapped)
		world_blame("memory is mapped over other memory");
	made->is_mapped = true;
	piece->handle = made->handle = handle;
	return LL_CUDA_SUCCESS;
}

void ll_piece_unmake(const struct ll_piece *piece)
{
	struct world_piece *made = piece_at(piece->address);
	if (!made->is_mapped || made->handle != piece->handle || made->size != piece->bytes)
		world_blame("memory is freed that is not there");
	else
		world_drop_handle((unsigned)piece->handle);
	made->is_mapped = false;
	made->handle = 0;
}

void ll_piece_note(const struct ll_piece *piece)
{
	piece_at(piece->address)->noted_handle = piece->handle;
}

#define BESIDE_ADDRESS UINT64_C(0x100000)

ll_cu_result ll_piece_map_aside(const struct ll_device_state *dev, ll_cu_mem_handle handle, uint64_t bytes,
				ll_cu_deviceptr *ret_address)
{
	(void)dev;
	if (world.handles[handle - 1].size != bytes || world.mapped_beside)
		world_blame("the neighbour's memory is mapped in another size, or twice");
	world.mapped_beside = (unsigned)handle;
	*ret_address = BESIDE_ADDRESS;
	return LL_CUDA_SUCCESS;
}

void ll_piece_unmap_aside(ll_cu_deviceptr address, uint64_t bytes)
{
	(void)address;
	(void)bytes;
	world.mapped_beside = 0;
}

ll_cu_result ll_piece_fill(const struct ll_device_state *dev, const struct ll_piece *piece, uint64_t offset,
			   ll_cu_deviceptr from, uint64_t bytes)
{
	(void)dev;
	bool is_beside = from - BESIDE_ADDRESS < BATCH_BYTES;
	if (is_beside && !world.mapped_beside)
		world_blame("a copy from memory that is not mapped");
	const void *source = is_beside ? &world.handles[world.mapped_beside - 1].bytes[from - BESIDE_ADDRESS]
				       : (const void *)(uintptr_t)from;
	const struct world_piece *filled = piece_at(piece->address);
	if (!filled->is_mapped)
		world_blame("a copy to memory that is not there");
	else
		memcpy(&world.handles[filled->handle - 1].bytes[offset], source, bytes);
	return LL_CUDA_SUCCESS;
}

/* The program has no pools. */
void ll_movable_pools_freeze(struct ll_device_state *dev)
{
	(void)dev;
}

void ll_movable_pools_thaw(struct ll_device_state *dev)
{
	(void)dev;
}

bool ll_pieces_next(const struct ll_device_state *dev, struct ll_extent *at, struct ll_piece *ret_piece)
{
	const struct world_piece *pieces = world.programs[dev->device].pieces;
	unsigned next = (unsigned)(at->address / 256);
	while (next < PIECES && !pieces[next].size)
		next++;
	if (next == PIECES)
		return false;
	at->address = address_of(next);
	/* Member by member: what is between them would be part of the world's state. */
	ret_piece->kind = LL_EXTENT_BACKING;
	ret_piece->address = at->address;
	ret_piece->bytes = pieces[next].size;
	ret_piece->handle = pieces[next].noted_handle;
	return true;
}

/* One context. */
bool ll_extents_next(struct ll_extent *extent)
{
	bool is_first = !extent->address;
	*extent = (struct ll_extent){.kind = LL_EXTENT_CONTEXT, .address = 1, .dev = &devices[world.current]};
	return is_first;
}

int ll_driver_calls_shut(void)
{
	return 0;
}

void ll_driver_calls_open(void)
{
}

unsigned ll_driver_calls_count_waiting(void)
{
	return 0;
}

void ll_driver_calls_tell_waiting(void (*tell)(void))
{
	(void)tell;
}

int ll_driver_calls_wait(uint64_t deadline_ns, struct ll_driver_calls_inside *ret_inside)
{
	(void)deadline_ns;
	*ret_inside = (struct ll_driver_calls_inside){.count = world.is_busy, .named = {{.function = "cuMemAlloc"}}};
	return 0;
}

void ll_driver_call_step_out(void)
{
}

void ll_driver_call_step_in(void)
{
}

/* ---- life ---- */

static struct link *link_at(unsigned program)
{
	world.current = program;
	return world.programs[program].link;
}

void program_start(unsigned program)
{
	devices[program] = (struct ll_device_state){.device = (int)program};
	struct link *link = calloc(1, sizeof *link);
	link->dev = &devices[program];
	link->move = ll_move_new(&devices[program]);
	link->fd = link->old_fd = link->came_fd = -1;
	world.programs[program].link = link;
	world.programs[program].connection = -1;
	world.programs[program].is_alive = true;
}

void program_die(unsigned program)
{
	struct world_program *mine = &world.programs[program];
	struct link *link = link_at(program);
	mine->is_alive = false;
	if (mine->connection >= 0)
		close(PROGRAM_FD + mine->connection);
	mine->connection = -1;
	for (unsigned i = 0; i < PIECES; i++) {
		if (mine->pieces[i].is_mapped)
			world_drop_handle(mine->pieces[i].handle);
		mine->pieces[i] = (struct world_piece){0};
	}
	if (!link)
		return;
	for (uint32_t i = 0; i < link->move->batch_count; i++)
		let_go_beside(&link->move->batches[i]);
	free(link->move->pieces);
	free(link->move->batches);
	free(link->move);
	free(link);
	mine->link = NULL;
}

bool program_connect(unsigned program)
{
	struct link *link = link_at(program);
	int number = 2 * (int)program;
	while (number < 2 * (int)program + 2 && world.connections[number].is_used)
		number++;
	if (number == 2 * (int)program + 2)
		return false;
	memset(&world.connections[number], 0, sizeof world.connections[number]);
	world.connections[number].is_used = true;
	world.programs[program].connection = number;
	mover_accept(number);
	if (!link)
		return true;
	link->fd = PROGRAM_FD + number;
	if (say_hello(link, link->fd))
		world_blame("no HELLO");
	link->told_bytes = 0;
	return true;
}

void program_lose(unsigned program)
{
	struct link *link = link_at(program);
	if (link)
		lose_mover(link);
	else
		close(PROGRAM_FD + world.programs[program].connection);
	world.programs[program].connection = -1;
}

void program_tell(unsigned program)
{
	struct link *link = link_at(program);
	if (link && link->fd >= 0 && !ll_move_is_stopped(link->move) && tell_sizes(link))
		program_lose(program);
}

void program_deliver(unsigned program)
{
	struct link *link = link_at(program);
	struct world_queue *queue = &world.connections[world.programs[program].connection].to_program;
	struct world_packet packet = queue->packets[0];
	struct ll_mover_message message = {.kind = packet.kind,
					   .batch = packet.batch,
					   .count = packet.count,
					   .number = packet.number,
					   .bytes = packet.bytes,
					   .value = packet.value};
	memcpy(message.places, packet.words, sizeof packet.words);
	memmove(queue->packets, queue->packets + 1, (QUEUE - 1) * sizeof *queue->packets);
	memset(&queue->packets[--queue->count], 0, sizeof *queue->packets);
	int rc = link ? handle_message(link, &message, packet.fd_count ? packet.fds[0] : -1) : 0;
	if (packet.fd_count)
		close(packet.fds[0]);
	if (link) /* numbers of descriptors that were sent are no part of the state */
		memset(link->move->exported, 0, sizeof link->move->exported);
	if (rc == -EPROTO)
		world_blame("the mover does not keep to the protocol");
	if (rc)
		program_lose(program);
	else
		program_tell(program);
}

bool program_want(unsigned program)
{
	struct link *link = link_at(program);
	if (!link->is_away || link->has_said_want || link->fd < 0)
		return false;
	links[0] = link;
	note_waiting();
	links[0] = NULL;
	return true;
}

bool program_is_stopped(unsigned program)
{
	struct link *link = link_at(program);
	return link && ll_move_is_stopped(link->move);
}

bool program_is_away(unsigned program)
{
	return ll_move_is_stopped(link_at(program)->move) && ll_move_is_all_out(link_at(program)->move);
}

/* ---- what must hold ---- */

static void check_on_card(unsigned program, unsigned number)
{
	const struct world_piece *piece = &world.programs[program].pieces[number];
	if (!piece->is_mapped || piece->handle != piece->noted_handle) {
		world_blame("memory that is said to be on the card is not there");
		return;
	}
	for (unsigned at = 0; at < piece->size; at++) {
		if (world.handles[piece->handle - 1].bytes[at] != world_byte(program, number, at))
			world_blame("memory on the card has wrong bytes");
	}
}

/* Byte `byte` of the batch is that byte of that piece. */
static void check_in_pool(unsigned program, const struct batch *batch, uint64_t byte, unsigned piece, unsigned at)
{
	uint32_t place = 0;
	while (place < batch->place_count && byte >= batch->places[place].bytes)
		byte -= batch->places[place++].bytes;
	if (place == batch->place_count) {
		world_blame("a batch is not whole in the pool");
		return;
	}
	uint64_t offset = batch->places[place].offset + byte;
	if (world.pool[offset] != world_byte(program, piece, at))
		world_blame("the pool has wrong bytes");
	if (!world.is_mover_dead && !mover_owns(program, offset))
		world_blame("the pool's place is no longer the program's");
}

static void check_beside(unsigned program, const struct batch *batch, uint64_t byte, unsigned piece, unsigned at)
{
	if (world.handles[batch->beside - 1].bytes[byte] != world_byte(program, piece, at))
		world_blame("the neighbour has wrong bytes");
}

static void check_batch(unsigned program, const struct ll_move *move, const struct batch *batch)
{
	uint64_t byte = 0;
	for (uint32_t i = batch->first; i < batch->first + batch->count; i++) {
		unsigned piece = (unsigned)(move->pieces[i].address / 256 - 1);
		if (batch->where == ON_CARD || batch->where == GOING)
			check_on_card(program, piece);
		if (!is_stored(batch))
			continue;
		if (batch->where == STORED && world.programs[program].pieces[piece].is_mapped)
			world_blame("memory that was moved is on the card still");
		for (unsigned at = 0; at < move->pieces[i].bytes; at++) {
			if (batch->beside)
				check_beside(program, batch, byte++, piece, at);
			else
				check_in_pool(program, batch, byte++, piece, at);
		}
	}
}

void program_check_sleep(unsigned program)
{
	const struct link *link = link_at(program);
	for (uint32_t i = 0; i < link->move->batch_count; i++) {
		const struct batch *batch = &link->move->batches[i];
		if (is_stored(batch) && batch->where != STORED)
			world_blame("a program without a mover waits for room, and holds some that others may lack");
	}
}

void program_check(unsigned program)
{
	const struct link *link = link_at(program);
	if (!link)
		return;
	const struct ll_move *move = link->move;
	for (uint32_t i = 0; i < move->batch_count; i++)
		check_batch(program, move, &move->batches[i]);
	for (unsigned i = 0; i < PIECES && !move->batch_count; i++) {
		if (world.programs[program].pieces[i].size)
			check_on_card(program, i);
	}
}
