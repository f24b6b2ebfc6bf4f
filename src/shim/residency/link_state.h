/*
 * link_state.h - what a link is (link.h): link.c has its thread and its connection, link_moves.c what it does with the
 * program's memory.
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

enum ll_link_answer {
	LL_LINK_ANSWER_NONE,
	LL_LINK_ANSWER_THERE,
	LL_LINK_ANSWER_COMING,
	LL_LINK_ANSWER_NO_ROOM,
	LL_LINK_ANSWER_LOST /* nobody decides now */
};

enum ll_link_state {
	LL_LINK_HERE,
	LL_LINK_PREPARING, /* the program works on, or is stopped; the host's memory is being made ready */
	LL_LINK_STOPPED,
	LL_LINK_LEAVING,
	LL_LINK_AWAY,
	LL_LINK_RETURNING,
};

struct ll_link {
	struct ll_device_state *dev;
	struct ll_move *move;
	struct ll_line line;
	enum ll_link_state state;
	uint64_t wait_ns; /* how long it may take to become quiet */
	bool is_by_hand;  /* a person wants it so */
	bool lacks_room;  /* it returns, and the card had no room */
	bool is_new;      /* loadlined has not heard of what is shared */
	bool has_said_alone;
	uint64_t lost_ns;   /* since when nobody decides; 0: somebody does */
	uint64_t again_ns;  /* of the next attempt to connect */
	uint64_t looked_ns; /* at the card, while the memory is away */
	uint64_t told_bytes, told_pool_bytes;
	uint64_t evictable_bytes; /* as it is charged, when the program last ran */
	uint64_t stopped_ns;      /* up to when the time in which it is stopped is accounted; 0: it runs */
	_Atomic bool is_away;
	_Atomic bool has_said_want; /* since the memory left */
	_Atomic int room;           /* enum ll_link_answer */
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
int ll_link_resume(struct ll_link *link);

/* Once a second, while memory is away: a card that is lost is not waited for. */
int ll_link_look_at_card(struct ll_link *link);

#endif
