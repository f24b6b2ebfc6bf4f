/*
 * turns.h - decides whose turn it is on a card: fair queueing over GPU time.
 *
 * A contender is a program that has launches to make. The next turn goes to the highest class that has a contender.
 * Within that class it goes to the contender with the least virtual time. Virtual time is GPU time divided by weight,
 * as in Linux's CFS: only the ratio of weights counts. A turn is long (LL_TURN_QUANTUM_NS), because a switch of
 * contexts costs the card 0.14 ms. A lower class gives way to a higher one at once.
 *
 * Kernels of a tenant on several cards may wait for each other across the cards. So the tenant is scheduled as a gang:
 * it gets its turns on all cards together. While it has the turn on the first of its cards, it has the gang's turn, and
 * goes first on the others. On those its virtual time counts as less by LL_TURN_GANG_NS, which is more than virtual
 * times differ by turns. Its share stays the same, because that is no more than a head start.
 *
 * Nobody waits for ever. A contender that has waited for LL_TURN_PATIENCE_NS goes before others of its class. A
 * contender beneath a higher class that has waited for LL_TURN_STARVED_NS goes before that class, for
 * LL_TURN_SERVICE_NS or for one kernel, whichever is longer. This is the minimum service of each tenant, 1 % of the
 * time.
 */
#ifndef LOADLINE_CONTROL_TURNS_H
#define LOADLINE_CONTROL_TURNS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The holder may be ahead of the others by this GPU time of its own. A switch each 10 ms costs 1.4 % (doc/facts.md). */
#define LL_TURN_QUANTUM_NS UINT64_C(10000000)
/* A contender that comes back after a pause may be behind the others by this GPU time of its own. It does not make up
 * for more idleness. */
#define LL_TURN_LAG_NS (2 * LL_TURN_QUANTUM_NS)
/* The head start of a tenant that has its gang's turn, as GPU time of the contender with the least weight. A holder is
 * ahead by one quantum. */
#define LL_TURN_GANG_NS (4 * LL_TURN_QUANTUM_NS)
#define LL_TURN_PATIENCE_NS UINT64_C(1000000000)
/* The minimum service comes in pieces of 1 ms, one each tenth of a second. A request of the higher class waits for one
 * piece at most. One piece of 10 ms each second would be the p99 of such requests. */
#define LL_TURN_STARVED_NS UINT64_C(95000000)
#define LL_TURN_SERVICE_NS UINT64_C(1000000)
/* A program waits for each kernel if it makes fewer launches than this between two waits, of less work than this. The
 * card needs two switches of 0.14 ms to come back to the program (doc/facts.md): work of 1 ms loses a fifth by them. */
enum { LL_TURN_FEW_LAUNCHES = 16 };
#define LL_TURN_LITTLE_WORK_NS UINT64_C(1000000)

struct ll_turn_contender {
	unsigned rank;            /* of its class: smaller goes first */
	unsigned weight_permille; /* its tenant's, as for ll_turns_virtual_ns */
	uint64_t virtual_ns;      /* its tenant's */
	uint64_t waited_ns;       /* since it wants the card without having the turn; 0 for the holder */
	bool has_tokens;          /* its cap lets it run now */
	bool has_gang_turn;       /* its tenant has the turn on the first of its cards, and this is another card */
	uint64_t first_card;      /* the number of that first card; 0: it has one card, or this is the first */
	bool has_cap;             /* its tenant has a compute cap, in force or not */
	bool is_by_space;         /* a client of MPS, whose kernels run beside those of other clients */
	bool launches_ahead;      /* it is known not to wait for each kernel */
	bool waits_on_card;       /* what it launches out of turn waits on the card, not in its host */
	bool is_paused;           /* it gave the turn to a lower class for want of work, and has not launched since */
	bool lingers;             /* a launch that its visit let through goes on */
	bool ran_dry;             /* its last visit ended for want of work, and it launches ahead (visits.h) */
};

/* Returns the index of the contender that the next turn belongs to; count: none may run. */
size_t ll_turns_best(const struct ll_turn_contender *contenders, size_t count);

/*
 * Whether the holder gives way to the best of the others. held_ns: how long the holder has had the turn. is_promoted: a
 * higher class waits, and the holder has the turn for its minimum service.
 */
bool ll_turns_gives_way(const struct ll_turn_contender *holder, const struct ll_turn_contender *best, uint64_t held_ns,
			bool is_promoted);

/* Whether a contender may take the turn without being given it: only from a lower class, or from a holder whose cap is
 * used up. */
bool ll_turns_preempts(const struct ll_turn_contender *contender, const struct ll_turn_contender *holder,
		       uint64_t held_ns, bool is_promoted);

/* The turn, as a contender finds it that has not got it. */
struct ll_turns_taking {
	const struct ll_turn_contender *holder; /* NULL: nobody has it, or who has it does not want the card */
	uint64_t held_ns;                       /* how long the holder has had it */
	bool is_promoted;                       /* as for ll_turns_gives_way */
	bool is_deaf;                           /* the holder has had it for long, and has not looked for as long */
};

/* Whether the contender takes the turn without being given it. others: all that want the card, without its own tenant.
 * It leaves the turn to a better one of them: that one takes it, or the holder gives it. */
bool ll_turns_takes(const struct ll_turns_taking *taking, const struct ll_turn_contender *self,
		    const struct ll_turn_contender *others, size_t count);

/* Whether one of the contenders is of a higher class, and could use the card now. Then the contender has the turn for
 * its minimum service. */
bool ll_turns_has_higher(const struct ll_turn_contender *contenders, size_t count,
			 const struct ll_turn_contender *contender);

/*
 * Whether the next holder gets the turn for its minimum service. It does if a higher class waits meanwhile: another of
 * the contenders, or the giver itself. next: the index of the next holder. giver: who gives the turn away; NULL: it has
 * no work now.
 */
bool ll_turns_is_service(const struct ll_turn_contender *giver, const struct ll_turn_contender *contenders,
			 size_t count, size_t next);

/* Whether the contender has waited so long that it goes before the other. */
bool ll_turns_is_impatient(const struct ll_turn_contender *contender, const struct ll_turn_contender *other);

/*
 * Whether the card's own time slices serve two contenders well, so that neither needs a turn. They do if both are
 * entitled to equal parts, and both are clients of MPS or both launch ahead. The queue of a program that launches ahead
 * fills while the other one has the card. Measured on an H200 (doc/sharing.md): by time slices such programs reach 0.97
 * of what the card gives them at best, and by turns a quarter of it.
 */
bool ll_turns_may_slice(const struct ll_turn_contender *one, const struct ll_turn_contender *other);

/* The same for a contender and those that were joined before. all: the first of them, changed by each call that joins
 * another. False: somebody needs a turn, and nothing is joined. */
bool ll_turns_join_slices(struct ll_turn_contender *all, const struct ll_turn_contender *contender);

/* Whether the tenants that want the card do so with equal numbers of processes: the card gives a slice to each process.
 * processes: the number of each tenant's processes that want the card; 0: the tenant does not want it. */
bool ll_turns_are_as_many(const uint8_t *processes, size_t count);

/* What a program did in a stretch of time. */
struct ll_turns_pace {
	uint64_t launches, waits;   /* waits: until all launches before were done */
	uint64_t launch_ns;         /* GPU time of a launch; 0: not known */
	uint64_t shortest_round_ns; /* from one wait to the next; UINT64_MAX: there was no round */
};

/*
 * Whether the program waits for each kernel, or for a few short ones. The queue of such a program runs dry whenever
 * another program has the card, and each visit of the card serves it for a few microseconds. The work between two waits
 * is short if launches are known to be short, or if one round was short.
 */
bool ll_turns_waits_for_each(const struct ll_turns_pace *pace);

/* GPU time by weight. weight_permille 1000 is weight 1; 0 is taken as 1. */
uint64_t ll_turns_virtual_ns(uint64_t gpu_ns, unsigned weight_permille);

/* The virtual time with which a contender of that weight comes back from a pause. least_ns: the least virtual time of
 * those who want the card. */
uint64_t ll_turns_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille);

#endif
