/*
 * turns.h - whose turn it is on a card: fair queueing over GPU time.
 *
 * A party is a program that has launches to make. The next turn goes to the highest class present and, within it, to
 * the party with the least virtual time: GPU time divided by weight, as in Linux's CFS. A turn is long
 * (LL_TURN_QUANTUM_NS) because a switch of contexts costs the card 0.14 ms; a lower class gives way at once. Only the
 * ratio of weights counts: 3 and 7 give the same turns as 30 and 70.
 *
 * A tenant on several cards, whose kernels may wait for each other across them, should have its turns together. So it
 * is called to the others while it has the turn on the first of its cards: there its virtual time counts as less by
 * LL_TURN_CALL_NS, more than what turns make it swing. Its share stays the same, for that is no more than a head start.
 *
 * Nobody waits for ever. Among its own class, who has waited for LL_TURN_PATIENCE_NS goes first. Beneath a higher
 * class, who has waited for LL_TURN_STARVED_NS goes first for LL_TURN_SERVICE_NS, or for one kernel where that is
 * longer: this is the minimum service of each tenant, 1 % of the time.
 */
#ifndef LOADLINE_CONTROL_TURNS_H
#define LOADLINE_CONTROL_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * GPU time of its own by which the holder may run ahead of the others. A switch each 10 ms costs 1.4 % (doc/facts.md).
 */
#define LL_TURN_QUANTUM_NS UINT64_C(10000000)
/* GPU time of its own by which a party that comes back after a pause may be behind: more idleness is not made up for.
 */
#define LL_TURN_LAG_NS (2 * LL_TURN_QUANTUM_NS)
/* The head start, as GPU time of the lightest party there is: whoever runs ahead does so by a quantum. */
#define LL_TURN_CALL_NS (4 * LL_TURN_QUANTUM_NS)
#define LL_TURN_PATIENCE_NS UINT64_C(1000000000)
/* One piece of 1 ms a tenth of a second: a request of the higher class finds at most that before it. In one piece of 10
 * ms a second it would be that request's p99. */
#define LL_TURN_STARVED_NS UINT64_C(95000000)
#define LL_TURN_SERVICE_NS UINT64_C(1000000)
/* A program waits for each kernel if it launches fewer than this between two waits, and less work than that. The card
 * takes two switches of 0.14 ms to come back to it (doc/facts.md): work of 1 ms loses a fifth by them. */
enum { LL_TURN_FEW_LAUNCHES = 16 };
#define LL_TURN_LITTLE_WORK_NS UINT64_C(1000000)

struct ll_turn_party {
	unsigned rank;            /* of its class: smaller goes first */
	unsigned weight_permille; /* its tenant's, as for ll_turns_virtual_ns */
	uint64_t virtual_ns;      /* its tenant's */
	uint64_t waited_ns;       /* since it wants the card without having the turn; 0 for the holder */
	bool has_tokens;          /* its cap lets it run now */
	bool is_called;           /* it has the turn on the first of its cards, and this is another */
	uint64_t first_card;      /* which that is; 0: it has one card, or this is it */
	bool has_cap;             /* its tenant has a compute cap, in force or not */
	bool is_by_space;         /* a client of MPS, whose kernels run beside those of other clients */
	bool launches_ahead;      /* it is known not to wait for each kernel */
	bool waits_on_card;       /* what it launches out of turn waits on the card, not in its host */
	bool is_paused;           /* a lower class has the turn for want of work of ours, which has not come since */
	bool lingers;             /* a launch that its visit let through goes on */
	bool ran_dry;             /* its last visit ended for want of work, and it launches ahead (visits.h) */
};

/* The party that the next turn belongs to; count when none may run. */
size_t ll_turns_best(const struct ll_turn_party *parties, size_t count);

/*
 * Whether the holder gives way to the best of the others. held_ns: how long it has had the turn. is_promoted: a
 * higher class waits, and it has the turn for its minimum service.
 */
bool ll_turns_gives_way(const struct ll_turn_party *holder, const struct ll_turn_party *best, uint64_t held_ns,
			bool is_promoted);

/* Whether a party that comes may take the turn away without being given it: by class alone. */
bool ll_turns_preempts(const struct ll_turn_party *comer, const struct ll_turn_party *holder, uint64_t held_ns,
		       bool is_promoted);

/* Whether the party has waited so long that it goes before the other. */
bool ll_turns_is_impatient(const struct ll_turn_party *party, const struct ll_turn_party *other);

/*
 * Whether the card itself serves two parties well, so that neither needs a turn: they are entitled to equal parts, and
 * either both are clients of MPS, or both launch ahead, so that the queue of each fills while the other has the card.
 * Measured on an H200 (doc/sharing.md): in the card's time slices such programs reach 0.97 of what the card gives them
 * at best, and a quarter of it in turns.
 */
bool ll_turns_may_slice(const struct ll_turn_party *one, const struct ll_turn_party *other);

/* What a program did in a stretch of time. */
struct ll_turns_pace {
	uint64_t launches, waits;   /* waits until all that it had launched was done */
	uint64_t launch_ns;         /* GPU time of a launch; 0: not known */
	uint64_t shortest_round_ns; /* from one wait to the next; UINT64_MAX: there was no round */
};

/*
 * Whether it waits for each kernel, or for a few short ones. Its queue then runs dry whenever another program has the
 * card, and each visit of the card serves it a few microseconds. A round is not longer than its work where either the
 * launches are known to be short, or one round was.
 */
bool ll_turns_waits_for_each(const struct ll_turns_pace *pace);

/* GPU time by weight. weight_permille 1000 is weight 1; 0 is taken as 1. */
uint64_t ll_turns_virtual_ns(uint64_t gpu_ns, unsigned weight_permille);

/* The virtual time with which a party of that weight comes back from a pause; least_ns: the least of those who want the
 * card. */
uint64_t ll_turns_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille);

#endif
