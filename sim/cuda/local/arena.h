/*
 * arena.h - the bytes of device memory. Each process has one memfd, and each range of device memory is a part of it. So
 * a range can be mapped at several addresses, and by another process that has a ticket, which identifies the part. A
 * mapping keeps the bytes after the process that made them has ended.
 *
 * The caller holds the local lock.
 */
#ifndef LOADLINE_SIM_CUDA_ARENA_H
#define LOADLINE_SIM_CUDA_ARENA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum sim_ticket_kind { SIM_TICKET_IPC = 1, SIM_TICKET_PHYSICAL, SIM_TICKET_POOL, SIM_TICKET_POINTER, SIM_TICKET_EVENT };

/* What one process sends another about its memory, in the 64 bytes of the driver's handles. The bytes can be mapped
 * while the process that made the ticket lives. */
struct sim_ticket {
	uint32_t magic;
	uint32_t kind;
	int32_t pid;
	int32_t fd;
	uint64_t file; /* its inode, because the descriptor's number may be reused for another file */
	uint64_t offset;
	uint64_t bytes;
	uint32_t card;
	uint32_t slot; /* in a table of the world */
	uint32_t generation;
	uint32_t skip; /* bytes at the beginning that belong to other memory, because parts are mapped in whole pages */
	uint32_t share; /* of lent memory: in the world's table, with its generation */
	uint32_t share_generation;
};

_Static_assert(sizeof(struct sim_ticket) == 64, "as large as the driver's handles");

/* Returns the size in whole pages that holds these bytes. */
size_t sim_arena_round(size_t bytes);

/* Makes a part of the arena. Its bytes are zero until written. -ENOMEM. */
int sim_arena_new(size_t bytes, uint64_t *ret_offset);

/* Clears the bytes of a part: they are zero again, and take no memory of this machine. */
void sim_arena_clear(uint64_t offset, size_t bytes);

/* Maps a part at `at`, in place of the present mapping; NULL: anywhere. Returns NULL on failure. */
char *sim_arena_map(uint64_t offset, size_t bytes, void *at);

/* Reserves addresses without access, with an alignment (a power of two). wish: the wanted address; may be 0. NULL: it
 * failed. */
char *sim_addresses_new(size_t bytes, size_t alignment, uint64_t wish);

/* Replaces the mappings there by addresses without access. */
void sim_addresses_clear(char *at, size_t bytes);

/* Fills in a ticket for a part of this process's arena. */
void sim_ticket_init(struct sim_ticket *ticket, enum sim_ticket_kind kind, uint64_t offset, size_t bytes);

/* Returns whether a ticket is one of this kind. */
bool sim_ticket_is(const struct sim_ticket *ticket, enum sim_ticket_kind kind);

/* Maps the memory of a ticket. NULL: its process has ended. */
char *sim_ticket_map(const struct sim_ticket *ticket, void *at);

/* Maps the memory at `mapped` also at `at`, in place of the present mapping. Returns NULL on failure. */
char *sim_arena_map_again(char *mapped, size_t bytes, void *at);

/* Clears the bytes of a ticket's memory, as sim_arena_clear does. */
void sim_ticket_clear(const struct sim_ticket *ticket);

/* Makes a file descriptor with a ticket; the caller closes it. Negative: it failed. */
int sim_ticket_to_fd(const struct sim_ticket *ticket);

/* Reads the ticket of a descriptor. False: it has none. */
bool sim_ticket_from_fd(int fd, struct sim_ticket *ret_ticket);

#endif
