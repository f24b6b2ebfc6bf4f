/*
 * door.h - lets connections in, fairly among users.
 *
 * A listener has one queue for all who connect, and the kernel turns away who finds it full. So loadlined empties it
 * fast, and chooses afterwards: of one user, the subordinate uids (subordinate.h) included, at most 64 connections may
 * wait until they say HELLO or it is read. What is beyond is closed at once; the client tries again
 * (protocol/client.h). The queue of the system's loadlined is short, because each one waits there for all before it;
 * clients wait for a place in it (ll_place_connect_by).
 *
 * Each user has some time in each turn of the loop. When it is used up, what the user's connections say waits for the
 * next turn, and so for the connections of all others.
 *
 * Root and loadlined's own user have neither bound. Nor has anybody in a user's daemon, which has another one for
 * other users (ll_connections_have_room).
 */
#ifndef LOADLINE_DAEMON_CORE_DOOR_H
#define LOADLINE_DAEMON_CORE_DOOR_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "daemon/residency/fair_room.h"

struct ll_server;

/* A user who has connections, or had some a moment ago. */
struct ll_visitor {
	struct ll_visitor *next;
	uint32_t owner; /* subordinate.h */
	bool is_bounded;
	uint32_t connections, silent; /* silent: HELLO has not been read */
	uint64_t turn, spent_ns;      /* spent_ns: in that turn */
};

struct ll_door {
	uv_poll_t listener;
	uv_prepare_t prepare;
	int listen_fd;
	int reserve_fd; /* closed for a moment to accept and refuse a connection when no descriptor is left */
	bool is_paused; /* no descriptor was left even so: the door opens again in a second */
	uint64_t turn;  /* of the loop, from 1 */
	struct ll_visitor *visitors;
	/* what was counted last for a connection of this turn (rights.h), with those that were let in since */
	uint64_t room_turn;
	uint32_t room_owner;
	struct ll_fair_room room;
};

/* Opens the door: listen_fd listens. Returns 0 or an error of libuv. */
int ll_door_open(struct ll_server *server, int listen_fd);

/* Closes it with its descriptors. */
void ll_door_close(struct ll_server *server);

/* Once a second. Returns whether there is something to do in a second. */
bool ll_door_tick(struct ll_server *server);

/* Of a connection, which counts as silent from here on. NULL: no memory. */
struct ll_visitor *ll_door_enter(struct ll_server *server, uint32_t uid);
void ll_door_leave(struct ll_visitor *visitor, bool is_silent);

/* Whether the user's connections may be read in this turn. spend: handling one took so long. */
bool ll_door_has_time(const struct ll_server *server, const struct ll_visitor *visitor);
void ll_door_spend(const struct ll_server *server, struct ll_visitor *visitor, uint64_t spent_ns);

#endif
