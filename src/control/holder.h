/*
 * holder.h - decides what the holder of the turn does next: it keeps the turn, drains, or gives the turn to another
 * contender (turns.h).
 *
 * A holder whose launches wait in its host drains before it gives the turn away: it launches nothing more, and the card
 * finishes what it has queued. The turn of a holder whose launches wait on the card is a visit (visits.h). What a visit
 * has let through is little, so the holder drains only if one launch of it is long. Nobody drains for longer than
 * LL_TURN_DRAIN_NS. After that the next holder is let in, and the card runs both in time slices.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_CONTROL_HOLDER_H
#define LOADLINE_CONTROL_HOLDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/turns.h"

/* The longest time in which a holder drains. */
#define LL_TURN_DRAIN_NS UINT64_C(20000000)
/* A queue that ends within this time is taken for drained: the next holder's launches take that long to arrive. */
#define LL_TURN_DRAINED_NS UINT64_C(300000)

/* The holder, as the decision needs it. */
struct ll_holder {
	const struct ll_turn_contender *self; /* the contender that has the turn */
	uint64_t held_ns;                     /* how long it has had the turn */
	uint64_t dry_ns;                      /* is_dry: how long nothing of it has been queued */
	uint64_t draining_ns;                 /* how long it has been draining; 0: it does not drain yet */
	uint64_t queued_ns;                   /* work that the card still has of all processes of its tenant */
	bool is_promoted;                     /* as for ll_turns_gives_way */
	bool is_dry;                          /* nothing of it is queued */
	bool has_busy_sibling;                /* another process of its tenant has work queued */
	bool is_lingering;                    /* a launch that its visit let through goes on */
	bool yields_to_gang;     /* another tenant has the turn on the first card of both, and works here */
	bool had_work_elsewhere; /* another card of its tenant said that it had work of the tenant */
	bool has_work_elsewhere; /* and said so of late: that work may need launches here in order to end */
};

enum ll_holder_act {
	LL_HOLDER_KEEPS,
	LL_HOLDER_DRAINS,
	LL_HOLDER_GIVES,
};

struct ll_holder_verdict {
	enum ll_holder_act act;
	bool may_launch; /* it keeps the turn, and its cap lets it run */

	/* The rest is false or 0 unless the comment's act is the verdict. */
	bool tells_cards; /* DRAINS: the tenant's other cards shall end their work too */
	size_t next;      /* GIVES: the index of the contender that gets the turn */
	bool is_service;  /* GIVES: a higher class waits meanwhile, so the next holder gets its minimum service alone */
	bool is_visit;    /* GIVES: a visit ends. Only then the three flags below mean something. */
	bool ran_dry;     /* the visit ended for want of work, and the holder launches ahead */
	bool loses_credit; /* the holder had nothing queued: it does not use its share */
	bool is_paused; /* a lower class gets the turn for want of work: the holder asks for the turn at its next launch
			 */
};

/* others: all contenders that are not of the holder's tenant. */
struct ll_holder_verdict ll_holder_decide(const struct ll_holder *holder, const struct ll_turn_contender *others,
					  size_t count);

#endif
