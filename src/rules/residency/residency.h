/*
 * residency.h - which programs have their memory on which card, and which is to be evicted or resumed next.
 *
 * Pure. loadlined (daemon/residency/residency.h) describes all evictable programs of the cards, gets one step, does it,
 * and asks for the next one. A program is all processes of a job on one card that move together (residency_units.h).
 * The programs of a job on several cards are one unit. The programs of a unit are evicted together. They are resumed
 * when each of their cards has room. No program is evicted for a unit before the unit can be served on all of its
 * cards. So two units never hold one card each and wait for the card of the other.
 *
 * A command of a person goes first: a program that was evicted or suspended by hand stays so until it is resumed. Other
 * moves are made only if a program lacks room: a program that is away and wants to launch, or a program whose
 * allocation failed. Then these rules hold:
 *
 *   1. Order of service: by class. In a class: first programs within the requests of their tenants (see below), then
 *      programs that are resuming and lack room, then by how long they have waited.
 *   2. If the card has room for a waiting program, the program gets it, and no other program moves.
 *   3. Else programs are evicted until there is room. A program of a higher class is never evicted for one of a lower
 *      class. A program that has been idle on the card for LL_RESIDENCY_IDLE_NS is evicted at once, the longest idle
 *      first. A program that was suspended by hand is evicted at once too. A program that works is evicted when it has
 *      been on the card for a turn, the one with the longest time on the card first.
 *   4. A program is resumed as soon as the running evictions will free enough memory. It takes this memory batch by
 *      batch. If other programs have taken the memory, it waits in the order of service. An allocation that is made
 *      chunk by chunk begins at the same moment. If it finds no memory for a while, it frees its chunks and asks again.
 *   5. A program gets no room if a program before it would wait longer for that. A program that can get no room,
 *      whichever programs are evicted, delays no other program.
 *   6. A resuming program that lacks room frees its memory on the card and stays away, if a program before it needs
 *      that room. If two resuming programs lack room, and each has some of its memory on the card, the later one does
 *      so: else they would wait for each other. A program whose eviction failed is resumed before all others.
 *
 * A tenant's request (`run --mem-request`) is memory of the card that is promised to the tenant. The programs of the
 * tenant are within the request while all their charged memory, and an allocation that waits, are no more than the
 * request. A program within its request is not evicted for another program, of whatever class. If it needs room,
 * programs that are not within their requests are evicted at once, and not at the end of their turns. Its allocation
 * waits, and is never refused. Classes go before requests: a program of a higher class is not evicted for one of a
 * lower class that is within its request. A program moves as a whole, so a tenant beyond its request is promised
 * nothing.
 *
 * A turn is LL_RESIDENCY_TURN_MOVES times as long as the moves that it costs, so that moving takes under a tenth of the
 * time; but at least LL_RESIDENCY_TURN_NS and at most LL_RESIDENCY_TURN_MAX_NS. How long a move takes is known from the
 * program's last one; before the first it is estimated from its bytes.
 */
#ifndef LOADLINE_RULES_RESIDENCY_RESIDENCY_H
#define LOADLINE_RULES_RESIDENCY_RESIDENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_RESIDENCY_IDLE_NS UINT64_C(500000000)
#define LL_RESIDENCY_TURN_NS UINT64_C(1000000000)
#define LL_RESIDENCY_TURN_MAX_NS UINT64_C(60000000000)
#define LL_RESIDENCY_TURN_MOVES 10

/* At most so many cards: programs on further cards get no decision. */
enum { LL_RESIDENCY_CARDS = 64 };

/* Left free on the card when a program is resumed, because contexts and modules of programs grow a little. If evictions
 * cannot make so much room, less is left free. */
#define LL_RESIDENCY_MARGIN_BYTES UINT64_C(0x10000000)

/* Time to copy 1000 bytes over the bus of an H200, in ns: 55 GB/s (doc/facts.md). */
#define LL_RESIDENCY_NS_PER_KB UINT64_C(18)

enum ll_residency {
	LL_RESIDENCY_HERE,       /* the memory is on the card, and the program runs */
	LL_RESIDENCY_PREPARING,  /* the same; host memory is being made ready for it */
	LL_RESIDENCY_STOPPING,   /* the program is stopping, in order to be evicted */
	LL_RESIDENCY_SUSPENDING, /* the program is stopping, and its memory stays on the card */
	LL_RESIDENCY_SUSPENDED,  /* the program is stopped; its memory is on the card */
	LL_RESIDENCY_EVICTING,   /* its memory is being copied to the host */
	LL_RESIDENCY_AWAY,
	LL_RESIDENCY_RESUMING,
	LL_RESIDENCY_STAYING, /* it was resuming, and frees its memory on the card again; the host still has the copy */
};

/* What a person has asked for. */
enum ll_residency_wish {
	LL_RESIDENCY_WISH_NONE,    /* nothing: by the rules above */
	LL_RESIDENCY_WISH_SUSPEND, /* stopped, its memory on the card */
	LL_RESIDENCY_WISH_EVICT,   /* away */
};

/* A process on a card, or all processes of a job on that card that move together (residency_units.h). */
struct ll_residency_program {
	enum ll_residency state;
	enum ll_residency_wish wish;
	unsigned priority;      /* enum ll_priority: a smaller number goes first */
	uint64_t bytes;         /* memory that can be moved */
	uint64_t left_bytes;    /* EVICTING, STAYING: still on the card; RESUMING: not on the card yet */
	uint64_t came_bytes;    /* RESUMING: back on the card. The host still has a copy, so it can be freed at once */
	bool is_torn;           /* RESUMING: its eviction failed, so the rest of its memory never left the card */
	bool lacks_room;        /* RESUMING: the card had no room. The program goes on as soon as there is room */
	uint64_t granted_bytes; /* room that was granted to an allocation, and is not used yet */
	bool waits_by_chunk;    /* the waiting allocation is made chunk by chunk, as memory becomes free */
	bool is_silent;         /* it does not do what was requested: nobody waits for it, and no room is kept for it */
	bool is_within;         /* its tenant has a request, and is charged no more than that */
	bool wants;             /* it is away, and a thread of it waits to use the card */
	/* an allocation of this size waits for room; 0: none. The program may be evicted meanwhile */
	uint64_t short_bytes;
	uint64_t want_since_ns; /* since when wants or short_bytes is set */
	uint64_t here_since_ns; /* when its memory last came to the card */
	uint64_t idle_since_ns; /* 0: it works */
	uint64_t moved_ns;      /* how long its last eviction or resume took; 0: none yet */
	uint64_t retry_ns;      /* its eviction failed: do not request another before this time */
	bool is_unsure;         /* its job may be too large for the card, so its allocation is not refused yet */
	bool is_gathering;      /* it is being stopped together with others (daemon/residency/gather.c): nothing else is
				   requested */
	unsigned card;          /* its card: an index of free_bytes */
	unsigned unit; /* programs of the same unit are on different cards, and move together; 0: it is alone */
	unsigned job;  /* programs of the same job are not evicted for each other; 0: it has none */
};

enum ll_residency_step {
	LL_RESIDENCY_WAIT,         /* nothing to do before again_ns */
	LL_RESIDENCY_EVICT,        /* evict program `who` */
	LL_RESIDENCY_SUSPEND,      /* stop program `who`; its memory stays on the card */
	LL_RESIDENCY_RESUME,       /* resume program `who` */
	LL_RESIDENCY_STAY,         /* stop resuming program `who`: it stays away */
	LL_RESIDENCY_GRANT,        /* program `who` shall try its allocation again */
	LL_RESIDENCY_REFUSE,       /* the allocation of program `who` fails: it cannot get room */
	LL_RESIDENCY_RESUME_FULLY, /* program `who` is back, and need not wait for others of its job any more
			       (residency_units.h) */
};

struct ll_residency_decision {
	enum ll_residency_step step;
	size_t who;
	uint64_t again_ns; /* UINT64_MAX: only when something changes */
};

/*
 * Returns the next step. programs: in the order of their cards. free_bytes: free memory of each card. now_ns: the clock
 * of all times. EVICT, RESUME and STAY hold for all programs of the unit.
 */
struct ll_residency_decision ll_residency_decide(const struct ll_residency_program *programs, size_t count,
						 const uint64_t *free_bytes, uint64_t now_ns);

/* The same, but only for commands of a person. They do not depend on the free memory of the cards. */
struct ll_residency_decision ll_residency_decide_by_hand(const struct ll_residency_program *programs, size_t count,
							 uint64_t now_ns);

/*
 * Whether a resuming program that lacks room may use the free memory of its card. The first in the order of service
 * may. Another one may if the free memory is more than those before it need.
 */
bool ll_residency_may_go_on(const struct ll_residency_program *programs, size_t count, size_t who, uint64_t free_bytes);

/* How long copying so many bytes takes on an H200, out or in. */
uint64_t ll_residency_move_ns(uint64_t bytes);

/* The length of a turn: how long a working program stays before it is evicted for a waiting one. evict_ns: how long its
 * eviction takes. resume_ns: how long the resume of the other takes. */
uint64_t ll_residency_turn_ns(uint64_t evict_ns, uint64_t resume_ns);

#endif
