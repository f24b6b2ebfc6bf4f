/*
 * protocol.h - what a governed program, the mover of its card, and a command say to each other.
 *
 * The mover (mover/server.h) is a process for each card and user. It listens on a socket in a folder of the user
 * (folder.h). Evictable programs connect to it, and so do commands such as `loadline evict`. A packet is one struct
 * ll_mover_message, and may carry file descriptors.
 *
 * A program's memory on the card is a list of physical allocations (handles). For a move the program cuts the list into
 * batches. A batch is either on the card or in the pool, which is pinned memory of the host that the mover owns:
 *
 *     mover    LEAVE                  stop, and hand over your batches
 *     program  QUIET                  no work of the program is on the card, and none can come
 *     mover    SEND                   there is room in the pool
 *     program  OUT batch, handles     the batch's physical memory, as descriptors
 *     mover    TAKEN batch, places    the bytes are in the pool there: free the memory
 *     program  AWAY                   all batches are in the pool, and their memory is free
 *     ...
 *     mover    RETURN                 make memory again, and hand it over
 *     program  IN batch, handles      new memory at the old addresses
 *     mover    FILLED batch           it has its bytes again
 *     program  BACK                   all batches are on the card, and the program goes on; the places in the pool are
 *                                     free
 *
 * A program that returns may be told that its room is wanted by others. The pool has its bytes until BACK:
 *
 *     mover    STAY                   free what has come back
 *     program  AWAY                   that memory is free. RETURN follows when there is room
 *
 * A batch's bytes are at any moment on the card or its neighbour, where the program holds the handle, or in the pool,
 * whose file the program holds too. So a program whose mover is killed brings its memory back by itself. It does the
 * same if only the connection has ended: so the mover keeps its places in the pool until the program connects again, or
 * its process has ended. A mover that cannot go on with a program shuts its side of the connection down. The program
 * takes its memory back by itself and then closes its end.
 *
 * While nobody uses a neighbour card, a batch goes there instead of the pool (neighbours.h). TAKEN then carries a
 * descriptor of that memory, which the program holds. When the neighbour is wanted, the mover copies the bytes to the
 * pool:
 *
 *     mover    MOVED batch, places    the bytes are in the pool now: let the neighbour's memory go
 *
 * Memory that a program shares with others (cuIpcGetMemHandle) does not move. The mover keeps descriptors of it, and
 * gives them to programs of the same user that have its key.
 *
 * A batch that the mover cannot take stays on the card, and the move is given up: what has left returns. A batch that
 * the mover cannot fill the program fills by itself from the pool's file.
 */
#ifndef LOADLINE_MOVER_PROTOCOL_H
#define LOADLINE_MOVER_PROTOCOL_H

#include <stddef.h>
#include <stdint.h>

#include "protocol/words.h"

enum {
	LL_MOVER_VERSION = 3,
	LL_MOVER_BATCH_HANDLES = 64, /* at most in a batch; a packet can carry 253 descriptors */
	LL_MOVER_PLACES = 32,        /* at most that a batch lies in */
	LL_MOVER_BATCHES = 65536,    /* at most in a move */
	LL_MOVER_TEXT_SIZE = 160,
	LL_MOVER_AHEAD = 4, /* batches that are under way at once: while one is copied others are made ready */
};

/* A batch ends with the handle that reaches so many bytes. 512 MiB take 10 ms on the bus of an H200, and a handle's
 * calls take 0.1 ms (doc/facts.md). The first batches of a move are an eighth, a quarter, and half of it, so what waits
 * for room begins sooner. */
#define LL_MOVER_BATCH_BYTES UINT64_C(0x20000000)
#define LL_MOVER_SMALL_BATCHES 3

enum ll_mover_kind {
	LL_MOVER_NOTHING,

	/* from a program */
	LL_MOVER_HELLO, /* first: number is the claim's index, value the LL_MOVER_VERSION, text the tenant's name */
	LL_MOVER_SIZES, /* bytes: evictable memory that the program has; value: memory that cannot be moved */
	LL_MOVER_QUIET, /* bytes in so many batches (value) are to go */
	LL_MOVER_BUSY,  /* the program cannot leave now: text says why. It goes on; or, after SEND, waits for RETURN */
	LL_MOVER_OUT,   /* batch, with a descriptor for each of its handles */
	LL_MOVER_AWAY,  /* all batches are in the pool, and the card's memory is free. After STAY: all that had left */
	LL_MOVER_IN,    /* batch, with descriptors */
	LL_MOVER_NO_ROOM, /* the card has no memory for the batch */
	LL_MOVER_BACK,    /* all batches are on the card, and the program goes on. value: the driver's error, if the
			     card is lost to the program: then it goes on without its memory */
	LL_MOVER_WANT,    /* a thread of the program waits to use the card */
	LL_MOVER_SHORT, /* an allocation of so many bytes failed for want of memory on the card, and waits. value 1: it
			   takes room piece by piece, as it comes free */
	LL_MOVER_SHARE, /* an allocation that other programs may open: number and value are its key, bytes its size,
			   with a descriptor for each handle. A large one takes several packets, in order */
	LL_MOVER_UNSHARE, /* number, value: the allocation was freed */

	/* from the mover to a program */
	LL_MOVER_LEAVE,     /* value: ns that the program may take to become quiet; one descriptor: the pool's file */
	LL_MOVER_STOP,      /* the same, but memory stays on the card */
	LL_MOVER_SEND,      /* answers QUIET: hand over the batches */
	LL_MOVER_TAKEN,     /* batch; places. value 1: it is on a neighbour card, with a descriptor. With neither: it
			       is not taken, and stays on the card */
	LL_MOVER_MOVED,     /* batch; places: it was on a neighbour card */
	LL_MOVER_RETURN,    /* bring back what is away, and go on */
	LL_MOVER_STAY,      /* after RETURN: free the batches that have come back, and say AWAY */
	LL_MOVER_FILLED,    /* batch. value 1: it is not filled, and the program does it */
	LL_MOVER_ROOM_MADE, /* answers SHORT. value: enum ll_mover_room */

	/* from a command, which names a program by its claim's index (number), and the mover's one answer. value of
	 * EVICT and SUSPEND: ns that the program may take to become quiet; 0: 10 s */
	LL_MOVER_EVICT,
	LL_MOVER_RESUME,
	LL_MOVER_SUSPEND,
	LL_MOVER_ASK, /* about the mover. In the answer bytes is the pool's budget, number what of it is pinned, text
			 what is on neighbour cards */
	/* From a program that opens an allocation of another: number and value are its key, batch is the first handle
	 * that is wanted. In the answer: count handles and their sizes, with descriptors; bytes: of all handles */
	LL_MOVER_OPEN,
	LL_MOVER_ANSWER, /* value: 0 or an errno; bytes moved; number: ns that it took; text: what is wrong. For value
			    0: LL_MOVER_ALREADY if the program was so before the command */
};

#define LL_MOVER_ALREADY "already"

enum ll_mover_room {
	LL_MOVER_ROOM_NONE,   /* there will be none */
	LL_MOVER_ROOM_THERE,  /* try the allocation again */
	LL_MOVER_ROOM_COMING, /* the same, and wait for each piece: others' memory is leaving */
};

/* A part of the pool's file. */
struct ll_mover_place {
	uint64_t offset;
	uint64_t bytes;
};

struct ll_mover_message {
	uint32_t kind;  /* enum ll_mover_kind */
	uint32_t batch; /* the batch's number in this move, from 0 */
	uint32_t count; /* of handles or places below */
	uint32_t reserved;
	uint64_t number;
	uint64_t bytes;
	uint64_t value;
	union {
		uint64_t handle_bytes[LL_MOVER_BATCH_HANDLES];
		struct ll_mover_place places[LL_MOVER_PLACES];
		char text[LL_MOVER_TEXT_SIZE];
	};
};

/* The socket's name in that folder is the card's UUID with this. */
#define LL_MOVER_SOCKET_SUFFIX ".mover"

#endif
