/*
 * keeper_link.h - the connection of the system's loadlined to loadline-keeper (protocol/keeper.h).
 *
 * A request never blocks the loop: its reply calls a function later. The link connects when a request is made and there
 * is no connection; systemd starts the keeper then. A user's loadlined has no keeper.
 */
#ifndef LOADLINE_DAEMON_MACHINE_KEEPER_LINK_H
#define LOADLINE_DAEMON_MACHINE_KEEPER_LINK_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "protocol/keeper.h"
#include "protocol/message.h"

struct ll_server;
struct ll_keeper_wait;

struct ll_keeper_link {
	struct ll_server *server;
	struct ll_place place;
	uv_poll_t *poll; /* NULL: no connection */
	int fd;
	uint32_t serial;
	uv_timer_t timer; /* of the first deadline */
	struct ll_keeper_wait *waits;
	enum ll_keeper_state state;
	struct ll_groups groups;        /* kind LL_GROUPS_NONE: the keeper has not answered yet */
	bool has_told_no_device_memory; /* the kernel has no such limits (job_group.h), and the log has it */
	uint64_t retry_ms;              /* before this time of the loop's clock no connection is tried */
};

int ll_keeper_link_init(struct ll_server *server);
void ll_keeper_link_fini(struct ll_server *server);

/* code: of the reply, or -ETIMEDOUT: the keeper did not answer within 2 s; -ECONNRESET: it has ended. reason: of a
 * refusal. data: as passed. */
typedef void ll_keeper_on_reply(struct ll_server *server, int code, const char *reason, uint64_t data);

/* Sends a request; version and serial are filled in. pidfd: -1: none; the caller keeps it. Returns false if there is no
 * keeper, or it refuses all: on_reply is not called then, otherwise once, never before the function returns. */
bool ll_keeper_link_send(struct ll_server *server, const struct ll_keeper_request *request, int pidfd,
			 ll_keeper_on_reply *on_reply, uint64_t data);

/* Connects, to learn where jobs have their groups. Does nothing if that is known. */
void ll_keeper_link_greet(struct ll_server *server);

#endif
