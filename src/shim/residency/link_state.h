/*
 * link_state.h - what a link is (link.h): link.c has its thread and its connection, link_moves.c what it does with the
 * program's memory, link_neighbours.c what concerns memory on other cards.
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
	LL_LINK_REPLY_LOST /* nobody decides now */
};

enum ll_link_state {
	LL_LINK_HERE,
	LL_LINK_PREPARING, /* the program works on, or is stopped; the host's memory is being made ready */
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
	uint64_t wait_ns; /* how long it may take to become quiet */
	bool is_by_hand;  /* a person wants it so */
	bool lacks_room;  /* it returns, and the card had no room */
	bool is_held;     /* it waits for others of its job: with its memory on the card, before it leaves or goes on */
	bool is_back;     /* it returns, is held, and all of its memory is back */
	bool is_new;      /* loadlined has not heard of what is shared */
	bool has_said_alone;
	uint64_t lost_ns;   /* since when nobody decides; 0: somebody does */
	uint64_t again_ns;  /* of the next attempt to connect */
	uint64_t looked_ns; /* at the card, while the memory is away */
	uint64_t told_bytes, told_pool_bytes;
	uint64_t evictable_bytes; /* as it is charged, when the program last ran */
	uint64_t stopped_ns;      /* up to when the time in which it is stopped is accounted; 0: it runs */
	struct ll_neighbour neighbours[LL_NEIGHBOURS];
	size_t neighbour_count;
	bool has_looked;      /* for them */
	bool is_to_neighbour; /* what leaves goes there */
	bool moves_on;        /* what is on a neighbour shall go to the host */
	bool waits_for_host;  /* the host's memory is not ready for the next batch */
	uint64_t reply_ns;    /* loadlined was asked for a destination, and may reply until then; 0: it was not */
	char neighbour[96];   /* UUID of the card that loadlined has named, and keeps room on; empty: none */
	uint64_t told_neighbour_bytes, read_ns; /* what was last said of it, and when it was last read */
	_Atomic bool is_away;
	_Atomic bool has_said_want; /* since the memory left */
	_Atomic int room;           /* enum ll_link_reply */
	_Atomic uint64_t ended_ns;  /* when a loadlined was lost; 0: none was */
	pthread_mutex_t room_lock;  /* one thread asks for room at a time */
	pthread_t thread;
};

/* ---- link_moves.c ---- */

/* Errors are the connection's, which is of no use then; what was to be done is done all the same. */

void ll_link_init_message(const struct ll_link *link, enum ll_message_kind kind, union ll_message *ret_message);
int ll_link_say_kind(struct ll_link *link, enum ll_message_kind kind);
enum ll_move_state ll_link_told_state(const struct ll_link *link);

/* Says in the process's slot where its memory is. */
void ll_link_tell_page(struct ll_link *link);

void ll_link_enter(struct ll_link *link, enum ll_link_state state);

/* Whether loadlined has not answered for so long that the program goes on by itself. */
bool ll_link_is_alone(const struct ll_link *link);

/* Whether there is something to do without waiting. And does it. */
bool ll_link_has_step(const struct ll_link *link);
int ll_link_do_step(struct ll_link *link);

/* What loadlined says. -EPROTO: it does not know the process. */
int ll_link_handle(struct ll_link *link, const union ll_message *message);
int ll_link_resume(struct ll_link *link, bool is_held);

/* Once a second, while memory is away: a card that is lost is not waited for. */
int ll_link_look_at_card(struct ll_link *link);

/* ---- link_neighbours.c ---- */

/* The program shall leave: says how its neighbours are, and asks where its memory is to go. Until then it is the host.
 */
int ll_link_request_destination(struct ll_link *link);
bool ll_link_awaits_destination(const struct ll_link *link);

/* loadlined's reply; or it says that what is on a neighbour has to go on. */
void ll_link_set_destination(struct ll_link *link, const struct ll_message_move *message);

/* Whether there is something that can go on now. And one batch of it. */
bool ll_link_may_move_on(const struct ll_link *link);
int ll_link_move_on(struct ll_link *link);

/* Says what is on the neighbour, if that has changed or the card was not read for 100 ms. */
int ll_link_report_neighbour(struct ll_link *link);

/* loadlined is another one, or is lost. */
void ll_link_report_again(struct ll_link *link);

#endif
