/* The world of mover_protocol.h: memory, card, sockets. */
#include "test.h"

#include <errno.h>

#include "base/packet.h"
#include "mover_protocol.h"

struct world world;
const char *world_fault;

void world_blame(const char *what)
{
	world_fault = world_fault ? world_fault : what;
}

/* ---- memory of the code under test ---- */

static void *use_slot(bool *used, char *slots, size_t count, size_t bytes)
{
	for (size_t i = 0; i < count; i++) {
		if (used[i])
			continue;
		used[i] = true;
		return slots + i * bytes;
	}
	fail_msg("the world has no memory for %zu bytes", bytes);
	return NULL;
}

/* Zeroed. */
void *world_allocate(size_t bytes)
{
	if (bytes <= SMALL_SLOT)
		return use_slot(world.small_used, world.small[0], SMALL_SLOTS, SMALL_SLOT);
	if (bytes <= MIDDLE_SLOT)
		return use_slot(world.middle_used, world.middle[0], MIDDLE_SLOTS, MIDDLE_SLOT);
	if (bytes <= LARGE_SLOT)
		return use_slot(world.large_used, world.large[0], LARGE_SLOTS, LARGE_SLOT);
	return NULL; /* as the host may refuse a size that a packet names */
}

static bool free_slot(bool *used, char *slots, size_t count, size_t bytes, char *memory)
{
	if (memory < slots || memory >= slots + count * bytes)
		return false;
	bool *mine = &used[(size_t)(memory - slots) / bytes];
	if (!*mine)
		world_blame("memory is freed twice");
	*mine = false;
	memset(memory, 0, bytes);
	return true;
}

void world_free(void *memory)
{
	if (!memory)
		return;
	if (!free_slot(world.small_used, world.small[0], SMALL_SLOTS, SMALL_SLOT, memory) &&
	    !free_slot(world.middle_used, world.middle[0], MIDDLE_SLOTS, MIDDLE_SLOT, memory) &&
	    !free_slot(world.large_used, world.large[0], LARGE_SLOTS, LARGE_SLOT, memory))
		world_blame("memory is freed that was never allocated");
}

/* ---- card, time ---- */

unsigned world_free_bytes(void)
{
	unsigned used = world.hog_bytes;
	for (unsigned i = 0; i < HANDLES; i++)
		used += world.handles[i].is_beside ? 0 : world.handles[i].size;
	return world.card_bytes - used;
}

static unsigned find_free_handle(void)
{
	unsigned found = 0;
	while (found < HANDLES && world.handles[found].references)
		found++;
	assert_true(found < HANDLES);
	return found + 1;
}

/* Member by member: what is between them is part of the state too. */
static void use_handle(unsigned handle, unsigned size, bool is_beside)
{
	struct world_handle *memory = &world.handles[handle - 1];
	memory->references = 1;
	memory->size = (unsigned char)size;
	memory->is_beside = is_beside;
}

unsigned world_new_handle(unsigned size)
{
	unsigned found = find_free_handle();
	if (size > world_free_bytes())
		return 0;
	use_handle(found, size, false);
	return found;
}

unsigned world_new_block(unsigned size)
{
	unsigned found = find_free_handle();
	use_handle(found, size, true);
	return found;
}

void world_drop_handle(unsigned handle)
{
	struct world_handle *memory = &world.handles[handle - 1];
	if (!memory->references)
		world_blame("a handle is released twice");
	else if (!--memory->references)
		memset(memory, 0, sizeof *memory);
}

unsigned char world_byte(unsigned program, unsigned piece, unsigned at)
{
	return (unsigned char)(1 + at + PIECE_BYTES * (piece + PIECES * program));
}

uint64_t world_now_ns(void)
{
	return NOW_NS;
}

void world_sleep(void)
{
	program_check_sleep(world.current);
	if (world.hog_bytes)
		world.hog_bytes = 0;
	else
		world.card_bytes++;
}

/* ---- packets ---- */

void world_empty_queue(struct world_queue *queue)
{
	for (unsigned i = 0; i < queue->count; i++) {
		for (uint32_t k = 0; k < queue->packets[i].fd_count; k++)
			world_close(queue->packets[i].fds[k]);
	}
	memset(queue, 0, sizeof *queue);
}

/* What the side that closes has not read is lost. The other side reads what is there yet. */
void world_close(int fd)
{
	int kind = fd - fd % FD_STEP;
	if (kind == HANDLE_FD)
		world_drop_handle((unsigned)(fd % FD_STEP) + 1);
	if (kind != MOVER_FD && kind != PROGRAM_FD)
		return;
	bool is_program = kind == PROGRAM_FD;
	struct world_connection *connection = &world.connections[fd % FD_STEP];
	if (is_program)
		connection->program_closed = true;
	else
		connection->mover_closed = true;
	world_empty_queue(is_program ? &connection->to_program : &connection->to_mover);
}

void world_shut(int fd)
{
	world.connections[fd % FD_STEP].mover_shut = true;
}

static int put_packet(struct world_queue *queue, const struct ll_mover_message *message, const int *fds,
		      size_t fd_count)
{
	if (queue->count == QUEUE)
		return -EAGAIN;
	struct world_packet packet = {.kind = message->kind,
				      .batch = message->batch,
				      .count = message->count,
				      .number = message->number,
				      .bytes = message->bytes,
				      .value = message->value,
				      .fd_count = (uint32_t)fd_count};
	bool has_places = message->kind == LL_MOVER_TAKEN || message->kind == LL_MOVER_MOVED;
	if (message->count * (has_places ? 2 : 1) > WORDS || fd_count > PIECES) {
		world_blame("a packet is larger than the world knows");
		return -EINVAL;
	}
	if (message->count)
		memcpy(packet.words, message->handle_bytes, sizeof packet.words);
	for (size_t i = 0; i < fd_count; i++) {
		packet.fds[i] = fds[i];
		if (fds[i] - fds[i] % FD_STEP == HANDLE_FD)
			world.handles[fds[i] % FD_STEP].references++;
	}
	queue->packets[queue->count++] = packet;
	return 0;
}

int ll_packet_send(int fd, const void *bytes, size_t length, const int *fds, size_t fd_count)
{
	bool is_program = fd >= PROGRAM_FD;
	struct world_connection *connection = &world.connections[fd % FD_STEP];
	assert_int_equal(length, sizeof(struct ll_mover_message));
	if (connection->mover_closed || connection->program_closed)
		return -EPIPE;
	return put_packet(is_program ? &connection->to_mover : &connection->to_program, bytes, fds, fd_count);
}

int ll_packet_receive(int fd, bool waits, void *ret_bytes, size_t length, int *ret_fds, size_t capacity,
		      size_t *ret_fd_count)
{
	(void)fd;
	(void)waits;
	(void)ret_bytes;
	(void)length;
	(void)ret_fds;
	(void)capacity;
	(void)ret_fd_count;
	world_blame("a packet is read where none is to be read");
	return -EAGAIN;
}

int ll_packet_connect(const char *folder, const char *name, int *ret_fd)
{
	(void)folder;
	(void)name;
	(void)ret_fd;
	return -ENOENT;
}
