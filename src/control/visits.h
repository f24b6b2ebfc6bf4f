/*
 * visits.h - for how long the card serves a tenant, where launches can be held on the card (doc/sharing.md). Which one
 * it serves next is in turns.h.
 *
 * A visit lets the launches of one tenant through. The launches of all others wait on the card, and their hosts go on
 * launching. A tenant is charged the length of its visits, so no kernel's duration has to be estimated. Pure
 * arithmetic.
 */
#ifndef LOADLINE_CONTROL_VISITS_H
#define LOADLINE_CONTROL_VISITS_H

#include <stdbool.h>
#include <stdint.h>

/* The length of a visit while another of the same class has work. The switch to it takes 0.14 ms, 1.7 % of it. */
#define LL_VISIT_QUANTUM_NS UINT64_C(8000000)
/* The length while the other one launches ahead and runs dry: such a program needs short visits, and needs them often.
 */
#define LL_VISIT_SHORT_NS UINT64_C(2000000)
/*
 * A visit goes on for this long though nothing is queued. A program that waits for each kernel launches again within
 * the time of two switches, which leaving it would cost. One that launches ahead queues more while others of its class
 * are visited.
 */
#define LL_VISIT_GRACE_WAITS_NS UINT64_C(270000)
#define LL_VISIT_GRACE_AHEAD_NS UINT64_C(10000)

struct ll_visit_contender {
	unsigned rank;            /* of its class: smaller goes first */
	unsigned weight_permille; /* 1000 is weight 1; never 0 */
	uint64_t virtual_ns;      /* the time of its visits by weight, up to now (ll_turns_virtual_ns) */
	bool has_work;            /* queued, held or not */
	bool launches_ahead;      /* its queue fills while others are visited (ll_turns_waits_for_each) */
	bool runs_dry;            /* its last visit ended for want of work, and it launches ahead */
};

/*
 * The length at which the visit ends if nothing changes; UINT64_MAX: it goes on. best: the best of the others; NULL:
 * no other has work. visited_ns: how long the visit has lasted. dry_ns: how long the visited has had nothing queued.
 */
uint64_t ll_visits_end_ns(const struct ll_visit_contender *visited, const struct ll_visit_contender *best,
			  uint64_t visited_ns, uint64_t dry_ns);

#endif
