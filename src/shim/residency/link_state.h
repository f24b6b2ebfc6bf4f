/*
 * link_state.h - the inside of a link (link.h). link.c has its thread and its connection, link_moves.c moves the memory
 * of the program, link_neighbours.c handles memory on other cards.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_RESIDENCY_LINK_STATE_H
#define LOADLINE_SHIM_RESIDENCY_LINK_STATE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "protocol/message.h"
#include "shim/device_state.h"
#include "shim/residency/line.h"
#include "shim/residency/move.h"
#include "shim/residency/neighbours.h"

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

/* ---- link_neighbours.c ---- */

/* Before an eviction: reports the neighbours, and requests a destination for the memory. Without a reply it is the
 * host. */
int ll_link_request_destination(struct ll_link *link);
bool ll_link_awaits_destination(const struct ll_link *link);

/* Handles the reply with the destination, or the command to copy memory on a neighbour on to the host. */
void ll_link_set_destination(struct ll_link *link, const struct ll_message_move *message);

/* may_move_on: whether memory on a neighbour can be copied on to the host now. move_on: copies one batch. */
bool ll_link_may_move_on(const struct ll_link *link);
int ll_link_move_on(struct ll_link *link);

/* Reports the memory on the neighbour, if it has changed or the card was not read for 100 ms. */
int ll_link_report_neighbour(struct ll_link *link);

/* Another loadlined serves, or none: all reports are sent again. */
void ll_link_report_again(struct ll_link *link);

#endif
