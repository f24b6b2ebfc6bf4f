/*
 * mover_protocol.h - a small world in which the mover's and the program's own code meet, for mover_protocol.c.
 *
 * All that changes is in one structure at one address, `world`: also what the code under test allocates. So a state of
 * the world is saved and put back by a copy. One byte stands for some GiB. Time stands still.
 *
 * mover_protocol_mover.c has the mover's side: src/mover/program.c, packets.c and pool.c, over transfers that end when
 * they are told to. mover_protocol_program.c has the program's side: src/shim/residency/link.c and move.c, without
 * their thread, over a driver that knows handles and their bytes. Packets wait in queues of the world.
 */
#ifndef LOADLINE_TESTS_UNIT_MOVER_PROTOCOL_H
#define LOADLINE_TESTS_UNIT_MOVER_PROTOCOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "mover/protocol.h"

enum {
	PROGRAMS = 2,
	CONNECTIONS = 2 * PROGRAMS, /* a program's are 2 * number and the next one: it may connect anew */
	PIECES = 4,                 /* allocations of a program */
	PIECE_BYTES = 2,            /* at most */
	BATCH_BYTES = 4,            /* at most */
	HANDLES = 16,
	POOL_BYTES = 16,
	STEP_BYTES = 4, /* of the pool */
	QUEUE = 8,
	WORDS = 6, /* of a packet's list */

	/* Descriptors: of handles, of the two ends of connections, and of the pool's file. fd % FD_STEP says which. */
	FD_STEP = 100000,
	HANDLE_FD = FD_STEP,
	MOVER_FD = 2 * FD_STEP,
	PROGRAM_FD = 3 * FD_STEP,
	POOL_FD = 4 * FD_STEP,
};

#define NOW_NS UINT64_C(1000000000000)

/* Physical memory of the card, or of its neighbour. */
struct world_handle {
	unsigned references; /* of mappings, imports and descriptors; 0: there is none */
	unsigned char size;
	bool is_beside;
	unsigned char bytes[BATCH_BYTES];
};

struct world_packet {
	uint32_t kind, batch, count, fd_count;
	uint64_t number, bytes, value, words[WORDS];
	int fds[PIECES];
};

struct world_queue {
	unsigned count;
	struct world_packet packets[QUEUE];
};

struct ll_mover_program;

struct world_connection {
	bool is_used, mover_closed, program_closed;
	bool mover_shut;                  /* the mover says no more, and reads what comes without heed */
	struct ll_mover_program *program; /* the mover's */
	struct world_queue to_mover, to_program;
};

struct world_piece {
	unsigned char size; /* 0: there is none */
	bool is_mapped;
	unsigned handle;       /* that is mapped, + 1 */
	uint64_t noted_handle; /* as the map of extents knows it */
};

struct world_program {
	bool is_alive, is_hostile;
	int connection; /* -1: none */
	struct link *link;
	struct world_piece pieces[PIECES];
};

/* How often what happens seldom may happen yet. */
struct world_budget {
	unsigned char kill_mover, kill_program, cut, busy, export_fails, transfer_fails, copy_fails, host_short, hog,
	    grow, want, resume, silence, halt, leave, stay, hostile, wanted, block_fails;
};

enum { SMALL_SLOT = 64, MIDDLE_SLOT = 704, LARGE_SLOT = 2304, SMALL_SLOTS = 24, MIDDLE_SLOTS = 16, LARGE_SLOTS = 6 };

struct world {
	struct world_handle handles[HANDLES];
	unsigned card_bytes, hog_bytes;
	unsigned char pool[POOL_BYTES];
	struct world_connection connections[CONNECTIONS];
	struct world_program programs[PROGRAMS];
	struct world_budget budget;
	struct ll_mover_pool *mover_pool;
	unsigned current; /* the program that acts */
	bool is_mover_dead, is_busy, export_fails, transfer_fails, has_no_fds, block_fails;
	bool has_neighbour, is_wanted; /* a neighbour card takes memory, until it is wanted */
	unsigned mapped_beside;        /* the handle of the neighbour's that a program has mapped, + 1 */
	bool has_few_moves;            /* budget.leave counts */
	bool is_tight;                 /* the card has room for one program: at rest the others are away */
	bool small_used[SMALL_SLOTS], middle_used[MIDDLE_SLOTS], large_used[LARGE_SLOTS];
	_Alignas(64) char small[SMALL_SLOTS][SMALL_SLOT];
	_Alignas(64) char middle[MIDDLE_SLOTS][MIDDLE_SLOT];
	_Alignas(64) char large[LARGE_SLOTS][LARGE_SLOT];
};

extern struct world world;

/* The first thing that is wrong, or NULL. */
extern const char *world_fault;
void world_blame(const char *what);

/* ---- what the code under test calls ---- */

void *world_allocate(size_t bytes);
void world_free(void *memory);
void world_close(int fd);
void world_shut(int fd);
uint64_t world_now_ns(void);
void world_sleep(void); /* what the sleeper waits for comes about: the card has room */

unsigned world_new_handle(unsigned size); /* + 1; 0: the card has no room */
void world_drop_handle(unsigned handle);
unsigned char world_byte(unsigned program, unsigned piece, unsigned at); /* what it shall be */

void world_empty_queue(struct world_queue *queue);
unsigned world_free_bytes(void);         /* of the card */
unsigned world_new_block(unsigned size); /* memory of the neighbour, + 1 */

/* ---- what happens ---- */

enum { HOSTILE = 24 }; /* packets that a program says which does not keep to the protocol */

enum world_event_kind {
	WORLD_TO_MOVER, /* a packet arrives */
	WORLD_TO_MOVER_NO_TRANSFER,
	WORLD_TO_MOVER_NO_FDS,
	WORLD_TO_MOVER_NO_BLOCK, /* the neighbour has no room */
	WORLD_TO_PROGRAM,
	WORLD_TO_PROGRAM_BUSY, /* a thread is in the driver */
	WORLD_TO_PROGRAM_NO_EXPORT,
	WORLD_MOVER_SEES_END, /* packets that are there yet may be lost */
	WORLD_PROGRAM_SEES_END,
	WORLD_COPY_ENDS,
	WORLD_COPY_FAILS,
	WORLD_PIN,
	WORLD_HOST_SHORT,
	WORLD_LEAVE, /* the mover's decisions: any that the state allows */
	WORLD_HALT,
	WORLD_RETURN,
	WORLD_STAY,
	WORLD_RESUME,
	WORLD_AGAIN,
	WORLD_LOOK,
	WORLD_MOVE_ON,
	WORLD_SILENCE,
	WORLD_WANTED,    /* the neighbour */
	WORLD_MAKE_WAY,  /* one that returns shall stay away, as the decision says */
	WORLD_HOG_COMES, /* somebody takes all that is free on the card */
	WORLD_HOG_GOES,
	WORLD_GROW,
	WORLD_WANT,
	WORLD_KILL_MOVER,
	WORLD_KILL_PROGRAM,
	WORLD_MOVER_CUTS,
	WORLD_PROGRAM_CUTS,
	WORLD_CONNECT,
	WORLD_CLAIM_GONE, /* of a program that is dead */
	WORLD_SAY_HOSTILE,
	WORLD_EVENTS = WORLD_SAY_HOSTILE + HOSTILE,
};

struct world_event {
	unsigned char kind, who; /* the number of a connection or of a program */
};

const char *world_event_name(enum world_event_kind kind);
bool world_happen(struct world_event event);    /* False: it cannot happen now; nothing changed but the budget */
bool world_is_sure(enum world_event_kind kind); /* it happens by itself, sooner or later */
bool world_add_piece(unsigned program, unsigned number, unsigned size); /* False: the card has no room */
void world_check(void);
/* All living programs are on the card, and nothing is on its way. In a tight world: one at least, and the others are
 * away or wait for room. */
bool world_is_at_rest(void);

/* ---- the mover's side ---- */

void mover_start(unsigned budget_bytes);
void mover_die(void);
void mover_accept(int connection);
void mover_deliver(int connection);
void mover_drop(int connection); /* the connection has ended */
void mover_disown(int connection);
bool mover_has_disowned(int connection);
void mover_forget(int connection);
bool mover_end_copy(int connection, bool fails); /* of the transfer that began first. False: there is none */
void mover_pin(void);
bool mover_is_pinning(void);
void mover_be_short(void);

enum mover_step {
	STEP_LEAVE,
	STEP_HALT,
	STEP_RETURN,
	STEP_STAY,
	STEP_RESUME,
	STEP_AGAIN,
	STEP_LOOK,
	STEP_MOVE_ON,
	STEP_SILENCE
};
bool mover_step(int connection, enum mover_step step); /* False: not now */
bool mover_make_way(void); /* If the decision says that a program shall stay away, it is told so */

/* Accounts of the pool, and whose each place is. */
void mover_check(void);
bool mover_owns(unsigned program, uint64_t offset);
bool mover_is_at_rest(int connection); /* the program is on the card, and has nothing in the pool */
bool mover_is_away(int connection);    /* or it is to return, and waits for room */
bool mover_pool_is_empty(void);

/* ---- the program's side ---- */

void program_start(unsigned program);
void program_die(unsigned program);
bool program_connect(unsigned program);
void program_deliver(unsigned program);
void program_lose(unsigned program); /* its connection has ended */
void program_tell(unsigned program); /* its sizes, if they have changed */
bool program_want(unsigned program); /* a thread waits. False: it has said so */
bool program_is_stopped(unsigned program);
bool program_is_away(unsigned program);
void program_check_sleep(unsigned program); /* it waits for room without a mover */

/* Its bytes are on the card or in the pool. */
void program_check(unsigned program);

#endif
