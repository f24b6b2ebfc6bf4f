/*
 * commands.h - what `loadline evict` and others ask of the mover, and its answers. Private to src/mover.
 */
#ifndef LOADLINE_MOVER_COMMANDS_H
#define LOADLINE_MOVER_COMMANDS_H

#include <stdbool.h>

#include "base/clock.h"
#include "mover/books.h"
#include "mover/listener.h"
#include "mover/protocol.h"
#include "mover/server.h"
#include "mover/shares.h"
#include "mover/transfer.h"

/* Programs whose mover was killed connect to the next one within 0.5 s. Commands about others wait so long, and no
 * allocation is refused before. */
#define LL_MOVER_CONNECT_NS (2 * LL_NS_PER_S)

/* A command that waits for its answer. */
struct ll_mover_asker {
	int fd;
	struct ll_mover_program *program; /* whose move it waits for; NULL: it has not asked yet */
	bool is_early; /* its message is about a program that may still connect, or about what it may still share */
	uint64_t asked_ns;
	struct ll_mover_message message;
	struct ll_mover_asker *next;
};

struct ll_mover_server {
	const struct ll_mover_config *config;
	struct ll_transfer_engine engine;
	struct ll_mover_pool *pool;
	struct ll_mover_shares shares;
	struct ll_mover_books books;
	struct ll_mover_listener listener;
	struct ll_mover_program *programs;
	struct ll_mover_asker *askers;
	struct ll_neighbours *neighbours; /* NULL: memory goes to none */
	uint64_t looked_ns;               /* when neighbours were last looked at */
	uint64_t total_bytes;             /* of the card */
	uint64_t begun_ns;                /* when it began to serve */
	uint64_t empty_ns;                /* since when there is no program */
	uint64_t listed_ns;               /* when the books were last read */
	uint64_t ending_ns;               /* since when it is to end; 0: it is not */
	uint64_t again_ns;                /* the next decision is due */
	bool is_copying;
};

/* The one answer to a command. code: 0 or an errno. program: whose move it is about, or NULL. */
void ll_mover_answer(struct ll_mover_asker *asker, int code, const struct ll_mover_program *program, const char *text);

/* To all that wait for the program's move. */
void ll_mover_answer_askers(struct ll_mover_server *server, struct ll_mover_program *program, int code,
			    const char *text);

/* Whether what a person asked for holds already. */
bool ll_mover_is_as_wished(const struct ll_mover_program *program);

/* Answers the command, or lets it wait for its program's move. */
void ll_mover_handle_command(struct ll_mover_server *server, struct ll_mover_asker *asker,
			     const struct ll_mover_message *message);

/* Ends its connection. */
void ll_mover_drop_asker(struct ll_mover_server *server, struct ll_mover_asker *asker);

#endif
