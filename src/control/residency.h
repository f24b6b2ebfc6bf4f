/*
 * residency.h - which programs' memory is on which card, and which is to leave or to return next.
 *
 * Pure. loadlined (daemon/residency.h) describes all evictable programs of the cards, asks, does one step, and asks
 * again. A program is all of a job's processes on a card that go together (residency_units.h). Those of a job on
 * several cards are one unit. They leave together. They return when each of the cards has room: nobody leaves one card
 * for a unit before it can be served on all. So no two units hold one card each and wait for the other's.
 *
 * A person decides first: a program that was evicted or stopped by hand stays so until it is resumed. Else memory is
 * moved only when somebody lacks room: a program that is away and wants to launch, or whose allocation failed. Then
 *
 *   1. programs are served by class, in a class those within their tenants' requests first (see below), then those
 *      that return already and lack room, and else by how long they have waited;
 *   2. if the card has room for one, it gets it, and nothing else moves;
 *   3. else others leave until there is room. A program of a higher class never leaves for one of a lower class. A
 *      program that has been idle on the card for LL_RESIDENCY_IDLE_NS leaves at once, the longest idle first. So does
 *      one that was stopped by hand. A program that works leaves when it has been on the card for a turn, the longest
 *      there first;
 *   4. a program returns as soon as the others' copies on their way out will make up its room, and takes the room
 *      batch by batch as it comes free. If it finds none, because others have taken it, it waits in the same order.
 *      An allocation that takes its room piece by piece begins then too. If it finds none for a while, it gives up the
 *      pieces that it has, and asks again;
 *   5. one that is served later gets no room by which an earlier one would have to wait longer. An earlier one that can
 *      get no room, whoever leaves, delays nobody;
 *   6. a program that returns and lacks room frees what has come back, and stays away, for one that is served before
 * it. Of two that return, lack room, and have a part of it each, the later one does so: else they would wait for each
 *      other. A program that could not leave after all returns before all others.
 *
 * A tenant's request (`run --mem-request`) is memory of the card that it is promised. While all that it is charged,
 * together with an allocation that waits, is no more than its request, its programs are within it: none of them leaves
 * for another program, of whatever class. If one of them needs room, programs that are not within their requests leave
 * at once, and not at the end of their turns; an allocation of it waits, and is never refused. Classes go before
 * requests: a program of a higher class does not leave for one of a lower class that is within its request. A program
 * moves as a whole, so a tenant beyond its request is promised nothing.
 *
 * A turn is LL_RESIDENCY_TURN_MOVES times as long as the moves that it costs, so that moving takes under a tenth of the
 * time; but at least LL_RESIDENCY_TURN_NS and at most LL_RESIDENCY_TURN_MAX_NS. How long a move takes is known from the
 * program's last one; before the first it is estimated from its bytes.
 */
#ifndef LOADLINE_CONTROL_RESIDENCY_H
#define LOADLINE_CONTROL_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_RESIDENCY_IDLE_NS UINT64_C(500000000)
#define LL_RESIDENCY_TURN_NS UINT64_C(1000000000)
#define LL_RESIDENCY_TURN_MAX_NS UINT64_C(60000000000)
#define LL_RESIDENCY_TURN_MOVES 10

/* Programs on cards beyond so many are not decided about. */
enum { LL_RESIDENCY_CARDS = 64 };

/* Left free on the card when a program returns, unless nobody can make so much room: contexts and modules of programs
 * grow a little. */
#define LL_RESIDENCY_MARGIN_BYTES UINT64_C(0x10000000)

/* What one byte takes on the bus, of an H200: 55 GB/s (doc/facts.md). Divided by 1000: ns for 1000 bytes. */
#define LL_RESIDENCY_NS_PER_KB UINT64_C(18)

enum ll_residency {
	LL_RESIDENCY_HERE,      /* the memory is on the card, and the program runs */
	LL_RESIDENCY_PREPARING, /* the same; room in the pool is being made for it */
	LL_RESIDENCY_STOPPING,  /* the program is becoming quiet, to leave */
	LL_RESIDENCY_HALTING,   /* the same, but its memory stays on the card */
	LL_RESIDENCY_STOPPED,   /* quiet; its memory is on the card */
	LL_RESIDENCY_LEAVING,   /* its memory is being copied to the pool */
	LL_RESIDENCY_AWAY,
	LL_RESIDENCY_RETURNING,
	LL_RESIDENCY_STAYING, /* it was returning, and frees what had come: the pool has it still */
};

/* What a person has asked for. */
enum ll_residency_wish {
	LL_RESIDENCY_FREE,  /* nothing: by the rules above */
	LL_RESIDENCY_STOP,  /* stopped, its memory on the card */
	LL_RESIDENCY_EVICT, /* away */
};

/* A process on a card, or all of a job's on that card which move together (residency_units.h). */
struct ll_residency_program {
	enum ll_residency state;
	enum ll_residency_wish wish;
	unsigned priority;      /* enum ll_priority: a smaller number goes first */
	uint64_t bytes;         /* that can be moved */
	uint64_t left_bytes;    /* LEAVING, STAYING: what is still to go; RETURNING: what is not there yet */
	uint64_t came_bytes;    /* RETURNING: what has come back. The pool has it still, so it can be freed at once */
	bool is_torn;           /* RETURNING: the rest of its memory never left the card */
	bool lacks_room;        /* it is returning, and the card had no room for it. It goes on as soon as there is */
	uint64_t granted_bytes; /* room for an allocation that it was granted, and has not taken yet */
	bool takes_pieces;      /* the allocation that waits takes its room piece by piece, as it comes free */
	bool is_silent;       /* it does not do what it was asked to: nobody waits for it, and no room is kept for it */
	bool is_within;       /* its tenant has a request, and is charged no more */
	bool wants;           /* it is away, and a thread waits to use the card */
	uint64_t short_bytes; /* an allocation of so much waits for room; 0: none does. It may have left since */
	uint64_t want_since_ns; /* of either */
	uint64_t here_since_ns; /* when its memory last came to the card */
	uint64_t idle_since_ns; /* 0: it works */
	uint64_t moved_ns;      /* how long its last move took, out or in; 0: none yet */
	uint64_t retry_ns;      /* it could not leave: not to be asked again before */
	bool is_unsure;         /* its job may be too large for the card: its allocation is not refused yet */
	bool is_gathering;      /* it is being stopped together with others (daemon/gather.h): nothing else is asked */
	unsigned card;          /* where it is: an index of free_bytes */
	unsigned unit; /* programs of the same unit are on different cards, and move together; 0: it is alone */
	unsigned job;  /* programs of the same job do not leave for each other; 0: it has none */
};

enum ll_residency_step {
	LL_RESIDENCY_WAIT,   /* nothing to do before again_ns */
	LL_RESIDENCY_LEAVE,  /* program `who` shall leave */
	LL_RESIDENCY_HALT,   /* program `who` shall stop, and stay on the card */
	LL_RESIDENCY_RETURN, /* program `who` shall come back, or go on where it was stopped */
	LL_RESIDENCY_STAY,   /* program `who` shall not come back after all */
	LL_RESIDENCY_GRANT,  /* the allocation of program `who` shall be tried again */
	LL_RESIDENCY_REFUSE, /* the allocation of program `who` cannot get room */
	LL_RESIDENCY_GO_ON,  /* program `who` is back, and waits for others of its job no longer (residency_units.h) */
};

struct ll_residency_decision {
	enum ll_residency_step step;
	size_t who;
	uint64_t again_ns; /* UINT64_MAX: only when something changes */
};

/*
 * programs: in the order of their cards. free_bytes: of each card, memory that nobody has. now_ns: the clock of all
 * times. LEAVE, RETURN and STAY hold for all programs of the unit.
 */
struct ll_residency_decision ll_residency_decide(const struct ll_residency_program *programs, size_t count,
						 const uint64_t *free_bytes, uint64_t now_ns);

/* What a person has asked for alone: it needs no knowledge of the card's room. */
struct ll_residency_decision ll_residency_decide_by_hand(const struct ll_residency_program *programs, size_t count,
							 uint64_t now_ns);

/*
 * Whether a program that returns and lacks room may take what is free on its card: the first may, and others what those
 * in front of it leave over.
 */
bool ll_residency_may_go_on(const struct ll_residency_program *programs, size_t count, size_t who, uint64_t free_bytes);

/* How long so many bytes take, out or in, on an H200. */
uint64_t ll_residency_move_ns(uint64_t bytes);

/* How long a working program stays before it leaves for one that waits: see above. From how long the one takes to leave
 * and the other to return. */
uint64_t ll_residency_turn_ns(uint64_t leave_ns, uint64_t return_ns);

#endif
