/*
 * message_move.h - the messages about moves of memory off a card and back, and about movable memory that programs share
 * (message.h).
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_MOVE_H
#define LOADLINE_PROTOCOL_MESSAGE_MOVE_H

#include "protocol/message_header.h"

/* What a process does with its memory. */
enum ll_move_state {
	LL_MOVE_HERE,     /* on the card; the process runs */
	LL_MOVE_STOPPED,  /* on the card; the process is stopped */
	LL_MOVE_EVICTING, /* its memory is being copied to the host */
	LL_MOVE_AWAY,     /* its memory is in the host */
	LL_MOVE_RESUMING, /* its memory is being copied back */
};

enum ll_move_flag {
	LL_MOVE_BY_HAND = 1,            /* a person requested it: only a person ends it */
	LL_MOVE_BY_CHUNKS = 2,          /* the allocation can wait for each chunk of its memory */
	LL_MOVE_ALREADY = 4,            /* it was in that state before */
	LL_MOVE_WANTS = 8,              /* its memory is off the card, and one of its threads waits to use the card */
	LL_MOVE_IS_READ = 16,           /* the process has just read the card */
	LL_MOVE_WANTS_DESTINATION = 32, /* the process requests the destination of its memory */
	LL_MOVE_HAS_ROOM = 128,         /* in PROGRESS: the memory is on its way back to the card */
	LL_MOVE_HOLD = 64, /* the process waits for other processes of its job that do the same. In EVICTABLE: it was
			      told to wait */
};

enum ll_move_room {
	LL_MOVE_ROOM_NONE,   /* there will be no room */
	LL_MOVE_ROOM_THERE,  /* try the allocation again */
	LL_MOVE_ROOM_COMING, /* try again, and wait for each chunk: memory of other programs is being evicted */
};

struct ll_message_move {
	struct ll_message_header header;
	uint64_t job;
	uint64_t slot_token;
	uint64_t bytes, away_bytes, free_bytes, pool_bytes;
	uint64_t value;
	uint32_t slot, index;
	uint32_t flags, unused; /* enum ll_move_flag */
	char uuid[LL_CARD_UUID_SIZE];
	char reason[LL_MOVE_REASON_SIZE];
};

struct ll_message_share {
	struct ll_message_header header;
	uint64_t key[2];
	uint64_t bytes; /* of all its handles */
	uint32_t first, count;
	uint64_t handle_bytes[LL_MESSAGE_FDS];
};

#endif
