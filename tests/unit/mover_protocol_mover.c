/* The mover's side of mover_protocol.h. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/packet.h"
#include "mover/host.h"
#include "mover/neighbours.h"
#include "mover/pool.h"
#include "mover/program.h"
#include "mover_protocol.h"

static int start_no_thread(pthread_t *ret_thread)
{
	*ret_thread = pthread_self();
	return 0;
}

#undef LL_MOVER_POOL_STEP_BYTES
#define LL_MOVER_POOL_STEP_BYTES UINT64_C(4)
#define malloc(bytes) world_allocate(bytes)
#define calloc(count, bytes) world_allocate((count) * (bytes))
#define free(memory) world_free(memory)
#define close(fd) world_close(fd)
#define shutdown(fd, how) ((void)(how), world_shut(fd))
#define ll_now_ns() world_now_ns()
#define memfd_create(name, flags) POOL_FD
#define ftruncate(fd, bytes) 0
#define mmap(...) ((void *)world.pool)
#define munmap(...) ((void)0)
#define madvise(...) (errno = 0)
#define pthread_create(thread, attr, function, arg) ((void)(function), start_no_thread(thread))
#define pthread_join(thread, result) ((void)(thread))
#include "mover/batches.c" // NOLINT(bugprone-suspicious-include): with the world's memory
#include "mover/packets.c" // NOLINT(bugprone-suspicious-include): with the world's memory
#include "mover/pool.c"    // NOLINT(bugprone-suspicious-include): with the world's memory
#include "mover/program.c" // NOLINT(bugprone-suspicious-include)

uint64_t ll_host_memory_bytes(void)
{
	return 0;
}

uint64_t ll_host_group_limit_bytes(void)
{
	return 0;
}

uint64_t ll_host_available_bytes(void)
{
	return 0;
}

uint64_t ll_host_reserve_bytes(void)
{
	return 0;
}

/* ---- transfers ---- */

struct ll_transfer {
	enum ll_transfer_direction direction;
	unsigned handles[PIECES]; /* + 1 */
	unsigned handle_count;    /* 0: the block goes to the places */
	unsigned block;           /* + 1; 0: the places are the store */
	struct ll_mover_place places[PIECES * PIECE_BYTES];
	unsigned place_count;
	bool is_done, has_failed;
};

static unsigned char *in_handles(const struct ll_transfer *transfer, unsigned at)
{
	unsigned handle = 0;
	while (at >= world.handles[transfer->handles[handle] - 1].size)
		at -= world.handles[transfer->handles[handle++] - 1].size;
	return &world.handles[transfer->handles[handle] - 1].bytes[at];
}

static unsigned char *in_places(const struct ll_transfer *transfer, unsigned at)
{
	unsigned place = 0;
	while (at >= transfer->places[place].bytes)
		at -= (unsigned)transfer->places[place++].bytes;
	return &world.pool[transfer->places[place].offset + at];
}

static unsigned char *in_block(const struct ll_transfer *transfer, unsigned at)
{
	return &world.handles[transfer->block - 1].bytes[at];
}

static unsigned count_bytes(const struct ll_transfer *transfer)
{
	unsigned bytes = 0;
	for (unsigned i = 0; i < transfer->handle_count; i++)
		bytes += world.handles[transfer->handles[i] - 1].size;
	return transfer->handle_count ? bytes : world.handles[transfer->block - 1].size;
}

/* The bytes of the store, one after the other, are those of the handles. garbage: what a copy that is cut off leaves.
 */
static void copy_bytes(const struct ll_transfer *transfer, unsigned char garbage)
{
	unsigned bytes = count_bytes(transfer);
	for (unsigned at = 0; at < bytes; at++) {
		bool has_handles = transfer->handle_count > 0;
		unsigned char *store =
		    has_handles && transfer->block ? in_block(transfer, at) : in_places(transfer, at);
		unsigned char *card = has_handles ? in_handles(transfer, at) : in_block(transfer, at);
		bool is_out = transfer->direction == LL_TRANSFER_OUT;
		*(is_out ? store : card) = garbage ? garbage : is_out ? *card : *store;
	}
}

static struct ll_transfer *make_transfer(enum ll_transfer_direction direction, struct ll_transfer_store store)
{
	struct ll_transfer *transfer = calloc(1, sizeof *transfer);
	transfer->direction = direction;
	transfer->block = (unsigned)store.block;
	transfer->place_count = store.place_count;
	memcpy(transfer->places, store.places, store.place_count * sizeof *store.places);
	return transfer;
}

int ll_transfer_new(const struct ll_transfer_engine *engine, enum ll_transfer_direction direction, const int *fds,
		    const uint64_t *handle_bytes, uint32_t count, struct ll_transfer_store store,
		    struct ll_transfer **ret_transfer, struct ll_err *err)
{
	(void)engine;
	if (world.transfer_fails)
		return ll_err_set(err, -ENOMEM, "the driver refuses");
	for (uint32_t i = 0; i < count; i++) {
		int handle = fds[i] - HANDLE_FD;
		if (handle < 0 || handle >= HANDLES || world.handles[handle].size != handle_bytes[i])
			return ll_err_set(err, -EINVAL, "no such memory");
	}
	struct ll_transfer *transfer = make_transfer(direction, store);
	for (uint32_t i = 0; i < count; i++) {
		transfer->handles[transfer->handle_count++] = (unsigned)(fds[i] - HANDLE_FD) + 1;
		world.handles[fds[i] - HANDLE_FD].references++;
	}
	copy_bytes(transfer, 0);
	*ret_transfer = transfer;
	return 0;
}

int ll_transfer_new_to_host(const struct ll_transfer_engine *engine, struct ll_transfer_store store,
			    struct ll_transfer **ret_transfer, struct ll_err *err)
{
	(void)engine;
	if (world.transfer_fails)
		return ll_err_set(err, -ENOMEM, "the driver refuses");
	*ret_transfer = make_transfer(LL_TRANSFER_OUT, store);
	copy_bytes(*ret_transfer, 0);
	return 0;
}

int ll_transfer_is_done(struct ll_transfer *transfer, struct ll_err *err)
{
	if (transfer->has_failed)
		return ll_err_set(err, -EIO, "the copy failed");
	return transfer->is_done ? 0 : -EAGAIN;
}

static void let_transfer_go(struct ll_transfer *transfer)
{
	for (unsigned i = 0; i < transfer->handle_count; i++)
		world_drop_handle(transfer->handles[i]);
	free(transfer);
}

void ll_transfer_free(struct ll_transfer *transfer)
{
	if (!transfer)
		return;
	copy_bytes(transfer, 0);
	let_transfer_go(transfer);
}

/* ---- the neighbour ---- */

static struct ll_neighbour *current_neighbour(void)
{
	return world.has_neighbour && !world.is_wanted ? (struct ll_neighbour *)&world.has_neighbour : NULL;
}

bool ll_neighbour_is_wanted(const struct ll_neighbour *neighbour)
{
	(void)neighbour;
	return world.is_wanted;
}

const char *ll_neighbour_label(const struct ll_neighbour *neighbour)
{
	(void)neighbour;
	return "1";
}

struct ll_neighbour_block *ll_neighbour_block_new(struct ll_neighbour *neighbour, uint64_t bytes)
{
	if (world.block_fails)
		return NULL;
	unsigned handle = world_new_block((unsigned)bytes);
	struct ll_neighbour_block *block = calloc(1, sizeof *block);
	block->neighbour = neighbour;
	block->memory.address = handle;
	block->bytes = bytes;
	block->fd = HANDLE_FD + (int)handle - 1;
	world.handles[handle - 1].references++;
	return block;
}

void ll_neighbour_block_free(struct ll_neighbour_block *block)
{
	if (!block)
		return;
	if (block->fd >= 0)
		close(block->fd);
	world_drop_handle((unsigned)block->memory.address);
	free(block);
}

/* ---- life ---- */

static struct ll_transfer_engine current_engine(void)
{
	return (struct ll_transfer_engine){.pool = world.mover_pool};
}

void mover_start(unsigned budget_bytes)
{
	if (ll_mover_pool_new(NULL, NULL, budget_bytes, &world.mover_pool, NULL))
		world_blame("no pool");
}

static void cut_off_transfers(struct ll_mover_program *program)
{
	for (uint32_t i = 0; i < program->batch_count; i++) {
		struct ll_transfer *transfer = program->batches[i].transfer;
		if (transfer) {
			copy_bytes(transfer, 0xff);
			let_transfer_go(transfer);
		}
		ll_neighbour_block_free(program->batches[i].block);
	}
	free(program->batches);
	free(program);
}

void mover_die(void)
{
	world.is_mover_dead = true;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct world_connection *connection = &world.connections[i];
		if (connection->program)
			cut_off_transfers(connection->program);
		connection->program = NULL;
		close(MOVER_FD + i);
	}
	for (struct range *range = world.mover_pool->free, *next; range; range = next) {
		next = range->next;
		free(range);
	}
	free(world.mover_pool);
	world.mover_pool = NULL;
}

void mover_accept(int connection)
{
	world.connections[connection].program = ll_mover_program_new(MOVER_FD + connection);
}

void mover_forget(int connection)
{
	ll_mover_program_free(world.connections[connection].program, world.mover_pool);
	world.connections[connection].program = NULL;
}

void mover_drop(int connection)
{
	if (ll_mover_program_lose(world.connections[connection].program, world.mover_pool, NOW_NS))
		mover_forget(connection);
}

void mover_disown(int connection)
{
	ll_mover_program_disown(world.connections[connection].program, world.mover_pool, NOW_NS);
}

bool mover_has_disowned(int connection)
{
	return world.connections[connection].program->is_disowned;
}

/* What another connection of the program has left. */
static void forget_earlier(int connection)
{
	int other = connection ^ 1;
	if (world.connections[connection].program && world.connections[other].program)
		mover_forget(other);
}

/* Texts are no part of the state. */
static void forget_texts(int connection)
{
	struct ll_mover_program *program = world.connections[connection].program;
	if (program)
		memset(program->why, 0, sizeof program->why);
}

void mover_deliver(int connection)
{
	struct ll_transfer_engine engine = current_engine();
	struct world_queue *queue = &world.connections[connection].to_mover;
	struct world_packet packet = queue->packets[0];
	struct ll_mover_message message = {.kind = packet.kind,
					   .batch = packet.batch,
					   .count = packet.count,
					   .number = packet.number,
					   .bytes = packet.bytes,
					   .value = packet.value};
	memcpy(message.handle_bytes, packet.words, sizeof packet.words);
	memmove(queue->packets, queue->packets + 1, (QUEUE - 1) * sizeof *queue->packets);
	memset(&queue->packets[--queue->count], 0, sizeof *queue->packets);
	enum ll_mover_event event;
	struct ll_err err = {0};
	int rc = 0;
	bool is_disowned = mover_has_disowned(connection);
	if (!is_disowned)
		rc = ll_mover_program_handle(world.connections[connection].program, &engine, &message, packet.fds,
					     world.has_no_fds ? 0 : packet.fd_count, NOW_NS, &event, &err);
	for (uint32_t i = 0; i < packet.fd_count; i++)
		world_close(packet.fds[i]);
	if (rc && rc != -EPROTO)
		world_blame("the mover ends for one program");
	if (rc && !world.programs[connection / 2].is_hostile)
		world_blame("a program that keeps to the protocol is dropped");
	if (rc)
		mover_disown(connection);
	else if (packet.kind == LL_MOVER_HELLO && !is_disowned)
		forget_earlier(connection);
	forget_texts(connection);
}

bool mover_end_copy(int connection, bool fails)
{
	struct ll_mover_program *program = world.connections[connection].program;
	struct ll_err err = {0};
	bool is_running;
	uint32_t i = 0;
	while (program && i < program->batch_count && !program->batches[i].transfer)
		i++;
	if (!program || i == program->batch_count)
		return false;
	program->batches[i].transfer->is_done = true;
	program->batches[i].transfer->has_failed = fails;
	if (ll_mover_program_poll(program, &is_running, &err)) /* the card is lost to the mover: it ends */
		mover_die();
	return true;
}

bool mover_is_pinning(void)
{
	return world.mover_pool->pinned_bytes < world.mover_pool->wanted_bytes && !world.mover_pool->is_short;
}

void mover_pin(void)
{
	world.mover_pool->pinned_bytes += LL_MOVER_POOL_STEP_BYTES;
}

void mover_be_short(void)
{
	world.mover_pool->is_short = true;
}

/* ---- steps ---- */

static size_t list_rules(struct ll_residency_program rules[CONNECTIONS], struct ll_mover_program *who[CONNECTIONS])
{
	size_t count = 0;
	for (int i = 0; i < CONNECTIONS; i++) {
		struct ll_mover_program *program = world.connections[i].program;
		if (!program || (!program->is_known && !program->is_disowned))
			continue;
		who[count] = program;
		rules[count++] = program->rule;
	}
	return count;
}

static bool look_after(struct ll_mover_program *program, uint64_t now_ns)
{
	struct ll_residency_program before = program->rule;
	uint64_t again_ns = program->again_ns;
	struct ll_residency_program rules[CONNECTIONS];
	struct ll_mover_program *who[CONNECTIONS];
	size_t count = list_rules(rules, who), at = 0;
	while (who[at] != program)
		at++;
	bool may_go_on = ll_residency_may_go_on(rules, count, at, world_free_bytes());
	enum ll_mover_event event = ll_mover_program_tick(program, world.mover_pool, may_go_on, now_ns);
	return event != LL_MOVER_EVENT_NONE || before.state != program->rule.state ||
	       before.is_silent != program->rule.is_silent || again_ns != program->again_ns;
}

/* If it may not go on yet it looks again later: that is no other state. */
static bool say_again(struct ll_mover_program *program)
{
	uint64_t again_ns = program->again_ns;
	bool can = look_after(program, again_ns);
	if (!program->again_ns)
		return can;
	program->again_ns = again_ns;
	return false;
}

/* As the decision has it: what is free and what is being copied out is enough. */
static bool has_room_to_return(const struct ll_mover_program *program)
{
	uint64_t room = world_free_bytes(), wanted = program->rule.bytes;
	for (int i = 0; i < CONNECTIONS; i++) {
		const struct ll_mover_program *other = world.connections[i].program;
		if (!other || other == program)
			continue;
		room += other->rule.state == LL_RESIDENCY_LEAVING ? other->rule.left_bytes : 0;
		wanted += other->rule.state == LL_RESIDENCY_RETURNING ? other->rule.left_bytes : 0;
	}
	return wanted <= room;
}

static bool move_on(struct ll_mover_program *program)
{
	struct ll_transfer_engine engine = current_engine();
	bool had_said_stuck = program->has_said_stuck;
	uint64_t reserved_bytes = program->reserved_bytes;
	uint32_t count = count_moving_on(program);
	ll_mover_program_move_on(program, &engine);
	return count != count_moving_on(program) || had_said_stuck != program->has_said_stuck ||
	       reserved_bytes != program->reserved_bytes;
}

bool mover_step(int connection, enum mover_step step)
{
	struct ll_mover_program *program = world.connections[connection].program;
	if (!program || !program->is_known || program->fd < 0)
		return false;
	enum ll_residency state = program->rule.state;
	bool is_here = state == LL_RESIDENCY_HERE, is_stopped = state == LL_RESIDENCY_STOPPED;
	bool can = true;
	if (step == STEP_LEAVE && (can = is_here || is_stopped))
		ll_mover_program_leave(program, world.mover_pool, current_neighbour(), NOW_NS);
	else if (step == STEP_HALT && (can = is_here))
		ll_mover_program_stop(program, NOW_NS);
	else if (step == STEP_RETURN &&
		 (can = is_stopped || (state == LL_RESIDENCY_AWAY && (!world.is_tight || has_room_to_return(program)))))
		ll_mover_program_return(program, NOW_NS);
	else if (step == STEP_STAY &&
		 (can = state == LL_RESIDENCY_RETURNING && !program->is_disowned && program->batch_count))
		ll_mover_program_stay(program);
	else if (step == STEP_RESUME)
		can = ll_mover_program_cancel(program, world.mover_pool);
	else if (step == STEP_AGAIN && (can = program->again_ns != 0))
		can = say_again(program);
	else if (step == STEP_LOOK)
		can = look_after(program, NOW_NS);
	else if (step == STEP_MOVE_ON)
		can = move_on(program);
	else if (step == STEP_SILENCE)
		can = look_after(program, NOW_NS + 1000 * LL_NS_PER_S);
	forget_texts(connection);
	return can;
}

bool mover_make_way(void)
{
	struct ll_residency_program rules[CONNECTIONS];
	struct ll_mover_program *who[CONNECTIONS];
	size_t count = list_rules(rules, who);
	struct ll_residency_decision decision = ll_residency_decide(rules, count, world_free_bytes(), NOW_NS);
	if (decision.step != LL_RESIDENCY_STAY)
		return false;
	ll_mover_program_stay(who[decision.who]);
	return true;
}

/* ---- what must hold ---- */

static unsigned owners[POOL_BYTES]; /* the program's number + 1; 0: nobody; PROGRAMS + 1: it is free */

static void own_places(const struct ll_mover_program *program, unsigned number)
{
	for (uint32_t i = 0; i < program->batch_count; i++) {
		const struct ll_mover_batch *batch = &program->batches[i];
		for (uint32_t k = 0; k < batch->place_count; k++) {
			for (uint64_t at = 0; at < batch->places[k].bytes; at++) {
				if (owners[batch->places[k].offset + at])
					world_blame("a place was given out twice");
				owners[batch->places[k].offset + at] = number + 1;
			}
		}
	}
}

static void check_blocks(const struct ll_mover_program *program)
{
	uint64_t bytes = 0;
	for (uint32_t i = 0; i < program->batch_count; i++) {
		const struct ll_mover_batch *batch = &program->batches[i];
		bytes += batch->block ? batch->block->bytes : 0;
		if (batch->block && batch->place_count && !batch->is_moving_on)
			world_blame("a batch is in the pool and on the neighbour");
	}
	if (bytes != program->beside_bytes)
		world_blame("the account of the neighbour is wrong");
}

void mover_check(void)
{
	uint64_t promised_bytes = 0, taken_bytes = 0;
	memset(owners, 0, sizeof owners);
	for (int i = 0; i < CONNECTIONS && world.mover_pool; i++) {
		const struct ll_mover_program *program = world.connections[i].program;
		if (!program)
			continue;
		own_places(program, (unsigned)i / 2);
		promised_bytes += program->reserved_bytes;
		check_blocks(program);
		if (program->is_deaf)
			world_blame("a program reads, and its socket is full");
	}
	for (unsigned i = 0; i < POOL_BYTES; i++)
		taken_bytes += owners[i] != 0;
	if (!world.mover_pool)
		return;
	for (const struct range *range = world.mover_pool->free; range; range = range->next) {
		for (uint64_t at = 0; at < range->bytes; at++) {
			if (owners[range->offset + at])
				world_blame("a place is taken and free");
			owners[range->offset + at] = PROGRAMS + 1;
		}
	}
	if (world.mover_pool->reserved_bytes != promised_bytes + taken_bytes)
		world_blame("the pool's account is wrong");
	if (world.mover_pool->reserved_bytes > world.mover_pool->budget_bytes)
		world_blame("the pool's budget was passed");
}

bool mover_owns(unsigned program, uint64_t offset)
{
	return owners[offset] == program + 1;
}

bool mover_is_at_rest(int connection)
{
	const struct ll_mover_program *program = world.connections[connection].program;
	return program && program->is_known && program->fd >= 0 && program->rule.state == LL_RESIDENCY_HERE &&
	       !program->batches && !program->reserved_bytes;
}

bool mover_is_away(int connection)
{
	const struct ll_mover_program *program = world.connections[connection].program;
	return program && program->is_known && program->fd >= 0 &&
	       (program->rule.state == LL_RESIDENCY_AWAY || program->rule.lacks_room);
}

bool mover_pool_is_empty(void)
{
	return world.mover_pool->reserved_bytes == 0;
}
