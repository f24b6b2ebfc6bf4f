/*
 * move.h - how the memory of this process is moved; private to this folder.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_MOVE_H
#define LOADLINE_SHIM_RESIDENCY_MOVE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "abi/cuda_memory.h"
#include "protocol/message.h"
#include "shim/device_state.h"
#include "shim/memory/memory.h"
#include "shim/residency/residency.h"

/* ---- stopping the program ---- */

/*
 * Stops the program: no thread of it is inside the driver, none can enter, and the card has no work of it.
 */

struct ll_quiet {
	struct ll_quiet_wait *wait; /* its thread still waits for the card, or its result was not read; NULL: none */
};

/*
 * Shuts the calls that use the card (shim/time/driver_calls.h), and waits until the program is quiet. Returns 0: it is,
 * and the calls are shut until ll_driver_calls_open. Else -EBUSY or the kernel's error, and why: the calls are open.
 * If a host function may need a thread that is stopped, the program goes on for a moment, and is stopped again, in all
 * for about two seconds.
 */
int ll_quiet_reach(struct ll_quiet *quiet, struct ll_device_state *dev, uint64_t deadline_ns, char *why,
		   size_t why_size);

/* ---- memory of the host ---- */

/*
 * Host memory to which the memory of this process on a card is copied when it is evicted.
 *
 * It is memory of the process itself: it counts for the process, and is freed with it. Copies are fast into pages that
 * are registered with the driver, and registering is slow (doc/facts.md). So a thread makes pages ready in advance, in
 * steps, while the host has much free memory. An eviction that needs more makes the rest, while the host has any.
 *
 * A child does not inherit this memory, and a core file does not contain it.
 */

/* The first step has 2 MiB, a huge page; each next one doubles the pool until it has 64 MiB, and from there on a step
 * has 64 MiB: many small programs take no more memory of the host than they need. Each step is registered with the
 * driver by itself, and a copy must not cross the end of a step. */
#define LL_POOL_FIRST_BYTES UINT64_C(0x200000)
#define LL_POOL_STEP_BYTES UINT64_C(0x4000000)

/* Where the step ends that contains the offset. */
uint64_t ll_host_pool_step_end(uint64_t offset);

struct ll_host_pool;

/* Makes the pool of a card. most_bytes: the memory of the card. The pool exists until the process ends. NULL: no
 * memory. */
struct ll_host_pool *ll_host_pool_new(const struct ll_device_state *dev, uint64_t most_bytes);

/* Up to so many bytes may be evicted. Makes pages for them ready in advance, while half of the host's memory stays
 * free, and frees pages that were not needed for a while. Returns at once. */
void ll_host_pool_want(struct ll_host_pool *pool, uint64_t bytes);

/*
 * An eviction needs so many bytes, until the next call. 0: they are ready. -EAGAIN: not yet, call again. -ENOSPC: the
 * host has no memory for them; why has the reason. At least a sixteenth of the host's memory stays free.
 */
int ll_host_pool_need(struct ll_host_pool *pool, uint64_t bytes, char *why, size_t why_size);

/* Returns the bytes that are ready, and the address of the first. */
uint64_t ll_host_pool_ready(struct ll_host_pool *pool);
char *ll_host_pool_base(const struct ll_host_pool *pool);

/* Returns a context of the card in which memory can be registered; NULL: the program has none. */
struct ll_cu_context *ll_host_pool_context(const struct ll_device_state *dev);

/* ---- memory of other cards ---- */

/*
 * Memory of other cards of the host, to which memory of this process is copied while nobody uses those
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

/* ---- a move ---- */

/*
 * Moves the memory of this process: shuts its calls, copies its memory off the card batch by batch, and copies
 * it back. Only the thread of the link calls it.
 *
 * The bytes of a batch are on the card, on a neighbour (places.c), or in the host (places.c). While one batch is
 * copied, the one before is freed, or the next one is allocated. When a batch is back on the card, the neighbour or the
 * host keeps its bytes until the move ends. So the batch can be freed again without a copy.
 */

struct ll_move;

/* Makes the move of a card. It exists until the process ends. NULL: no memory. */
struct ll_move *ll_move_new(struct ll_device_state *dev);

/* Tells the host pool how many bytes may be evicted. */
void ll_move_look_ahead(struct ll_move *move, uint64_t bytes);

/* Makes host memory ready for an eviction. 0: it is ready. -EAGAIN: not yet, call again. -ENOSPC: there is none, see
 * why. -EBUSY: the process cannot be evicted, see why. */
int ll_move_prepare(struct ll_move *move, char *why, size_t why_size);

/* Returns the host memory that is ready, in bytes. */
uint64_t ll_move_pool_bytes(const struct ll_move *move);

/*
 * Stops the program, also one that is stopped at once: no thread is inside the driver, none can enter, and the card has
 * no work of the program. Returns
 * 0, or -EBUSY and why it cannot stop within wait_ns. Then the program goes on.
 */
int ll_move_suspend(struct ll_move *move, uint64_t wait_ns, char *why, size_t why_size);

/*
 * Stops the program in the midst of its work: none of its threads can enter the driver, and its contexts are off the
 * card (slices/card_time.h). What runs goes on later where it was. -ENOTSUP: the card cannot do that. Before the
 * library calls the driver for an eviction it calls ll_move_go_on_card: the driver may wait for the contexts. Then the
 * program's work goes on, with the calls shut, and ll_move_suspend waits for its end.
 */
int ll_move_stop_at_once(struct ll_move *move);
void ll_move_go_on_card(struct ll_move *move);

/* Sets the destination of batches from now on. If the neighbour has no room for a batch, this batch and all later ones
 * go to the host. */
#define LL_MOVE_TO_HOST ((ll_cu_device)-1)
void ll_move_set_destination(struct ll_move *move, ll_cu_device neighbour);

/* Cuts the memory of a stopped program into batches. If it is cut already, nothing changes. -EAGAIN: the program has
 * more memory than was prepared; the next ll_move_prepare is for as much as it has now. (With a neighbour as
 * destination it may have more.) -EBUSY and why: that happened too often, or the process has no memory for the list. */
int ll_move_cut(struct ll_move *move, char *why, size_t why_size);

/* The program goes on. All batches must be on the card. */
void ll_move_resume(struct ll_move *move);

/* Releases what the move has used, memory on a neighbour too. This takes some ms, in which the program runs. The
 * destination of the next move is the host, unless another one is set. */
void ll_move_end(struct ll_move *move);

/* Whether the calls of the program are shut. */
bool ll_move_is_stopped(const struct ll_move *move);

/*
 * Copies one batch. 1: there are more batches.
 *   out: off the card. 0: all batches are off the card. -EIO: the driver cannot copy, and the batch is still on the
 * card. in: back to the card. 0: all batches are on the card. -ENOMEM: the card has no room for the next one. -EIO: the
 * card is lost to the process. on: from the neighbour to the host, while the process is away. 0: no batch is left on
 * the neighbour. -EIO: the driver cannot copy, and the batch is still there. out and on: -EAGAIN: the host memory is
 * not ready yet. -ENOSPC: the host has none.
 */
int ll_move_evict_batch(struct ll_move *move);
int ll_move_resume_batch(struct ll_move *move);
int ll_move_on(struct ll_move *move);

/* Waits for the copy in flight. Call it before the direction changes, or before the move pauses. -EIO as above. */
int ll_move_settle(struct ll_move *move);

/* Stops a resume: frees the batches that are back on the card. */
void ll_move_stay(struct ll_move *move);

/* Whether the card may have room for all memory that is away. */
bool ll_move_may_have_room(const struct ll_move *move);

/* bytes: the memory of the program that is moved. away_bytes: how much of it is not on the card. */
uint64_t ll_move_bytes(const struct ll_move *move);
uint64_t ll_move_away_bytes(const struct ll_move *move);

/* Memory on a neighbour, in bytes. Until the move ends it includes batches that are back on the card. */
uint64_t ll_move_neighbour_bytes(const struct ll_move *move);

/* Free memory of the card, in bytes; 0: the driver does not tell. */
uint64_t ll_move_free_bytes(const struct ll_device_state *dev);

/* Whether the card is lost to a program that is stopped. */
bool ll_move_is_card_lost(const struct ll_move *move);

/* The card is lost: memory in the host is not copied back. The driver reports the loss to the program. */
void ll_move_give_up(struct ll_move *move);

/* ---- the inside of a link ---- */

/*
 * The inside of a link (link.c). link.c has its thread and its connection, link_moves.c moves the memory
 * of the program, link_moves.c handles memory on other cards.
 *
 * Private to this folder.
 */

enum ll_link_reply {
	LL_LINK_REPLY_NONE,
	LL_LINK_REPLY_THERE,
	LL_LINK_REPLY_COMING,
	LL_LINK_REPLY_NO_ROOM,
	LL_LINK_REPLY_LOST /* the connection to loadlined is lost */
};

enum ll_link_state {
	LL_LINK_HERE,
	LL_LINK_PREPARING, /* the host memory is being made ready; the program runs, or is stopped */
	LL_LINK_SUSPENDED,
	LL_LINK_EVICTING,
	LL_LINK_AWAY,
	LL_LINK_RESUMING,
};

struct ll_link {
	struct ll_device_state *dev;
	struct ll_move *move;
	struct ll_line line;
	enum ll_link_state state;
	uint64_t wait_ns; /* how long stopping the program may take */
	bool is_by_hand;  /* a command has requested the move */
	bool lacks_room;  /* RESUMING: the card had no room */
	bool is_held;     /* it waits for other processes of its job, with its memory on the card: before the copy, or
			     before it runs */
	bool is_back;     /* RESUMING and is_held: all of its memory is back */
	bool is_new;      /* the shared allocations are not reported to this loadlined yet */
	bool has_said_alone;
	uint64_t lost_ns;   /* since when no loadlined is connected; 0: one is */
	uint64_t again_ns;  /* time of the next attempt to connect */
	uint64_t looked_ns; /* last check of the card while the memory is away */
	uint64_t told_bytes, told_pool_bytes;
	uint64_t evictable_bytes; /* charged for memory that can be moved, when the program last ran */
	uint64_t stopped_ns;      /* up to when the stopped time is accounted; 0: the program runs */
	struct ll_neighbour neighbours[LL_NEIGHBOURS];
	size_t neighbour_count;
	bool has_looked;      /* the neighbours are known */
	bool is_to_neighbour; /* batches are evicted to the neighbour */
	bool moves_on;        /* memory on the neighbour shall be copied on to the host */
	bool waits_for_host;  /* the host's memory is not ready for the next batch */
	uint64_t reply_ns;    /* deadline for the reply to a request for a destination; 0: no request */
	char neighbour[96];   /* UUID of the card that loadlined has chosen, and on which it keeps room; empty: none */
	uint64_t told_neighbour_bytes, read_ns; /* the last report about it, and the last reading */
	_Atomic bool is_away;
	_Atomic bool has_said_want; /* since the eviction */
	_Atomic int room;           /* enum ll_link_reply */
	_Atomic uint64_t ended_ns;  /* when the connection to loadlined was lost; 0: never */
	pthread_mutex_t room_lock;  /* one thread requests room at a time */
};

/* ---- link_moves.c ---- */

/* Errors are errors of the connection, which is then lost. The function does its work all the same. */

void ll_link_init_message(const struct ll_link *link, enum ll_message_kind kind, union ll_message *ret_message);
int ll_link_say_kind(struct ll_link *link, enum ll_message_kind kind);

/* Says, once for each eviction, that a thread waits for the card. While the program's memory is on the card it says
 * nothing. If it is not sent, the next call says it. Any thread may call it. */
int ll_link_say_want(struct ll_link *link);
enum ll_move_state ll_link_told_state(const struct ll_link *link);

/* Writes into the slot of the process where its memory is. */
void ll_link_tell_page(struct ll_link *link);

void ll_link_enter(struct ll_link *link, enum ll_link_state state);

/* Whether loadlined has not answered for so long that the program goes on by itself. */
bool ll_link_is_alone(const struct ll_link *link);

/* has_step: whether the move can go on without waiting. do_step: does the next step. */
bool ll_link_has_step(const struct ll_link *link);
int ll_link_do_step(struct ll_link *link);

/* Handles a message of loadlined. -EPROTO: loadlined does not know the process. */
int ll_link_handle(struct ll_link *link, const union ll_message *message);
int ll_link_resume(struct ll_link *link, bool is_held);

/* Call it once a second while memory is away. If the card is lost, the program does not wait for it any more. */
int ll_link_look_at_card(struct ll_link *link);

/* ---- link_moves.c ---- */

/* Reports the memory on the neighbour, if it has changed or the card was not read for 100 ms. */
int ll_link_report_neighbour(struct ll_link *link);

/* Another loadlined serves, or none: all reports are sent again. */
void ll_link_report_again(struct ll_link *link);

#endif
