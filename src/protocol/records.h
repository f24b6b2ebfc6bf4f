/*
 * records.h - what a governed process says when it looks at a card, and what it learns. Plain numbers: nothing here
 * points into the page. Times are CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_PROTOCOL_RECORDS_H
#define LOADLINE_PROTOCOL_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/words.h"

/* How long a word of another card counts, and how often a process posts it. A process that waits looks each 0.1 ms. The
 * first leaves room for one that is late. */
#define LL_GANG_FRESH_NS UINT64_C(300000)
#define LL_GANG_LOOK_NS UINT64_C(150000)

/* A tenant that has the turn on its first card and is idle for no longer than this on another will go on there. */
#define LL_GANG_PAUSE_NS UINT64_C(2000000)

/* Memory, as it is charged. */
struct ll_memory_view {
	uint64_t limit_bytes; /* of the tenant; 0: none */
	uint64_t used_bytes;  /* of the tenant */
	uint64_t own_bytes;   /* of this claim */
};

/* Where the memory of an evictable program is, as the program says it (memory.h). */
struct ll_memory_residency {
	enum ll_claim_residency state;
	uint64_t evictable_bytes; /* what of its memory can be moved, wherever that is now */
	uint64_t away_bytes;      /* what of that is not on the card */
};

/* What cards other than the caller's have of the tenant, as far as they said. */
struct ll_gang_work {
	uint64_t seen_ns;  /* CLOCK_MONOTONIC, when there last was any; 0: never */
	uint32_t launches; /* 0 while the tenant goes on launching there */
};

/* What a claim on another card learns of its tenant's first card, and when it posted there. All 0 if the tenant does
 * not work on its first card, or if no other tenant here has the same first card. */
struct ll_gang {
	bool
	    yields_to_gang; /* another tenant has the turn there and works on the caller's card too, so it goes first */
	bool is_ending;     /* the tenant has the turn there, and is about to give it away */
	struct ll_gang_work work; /* of the tenant on that card, or on another */
	uint64_t
	    posted_ns; /* when the claim last posted work of its card there; 0: it has withdrawn that, or never did */
};

/* Whether nothing may be launched on the caller's card but what another waits for. */
static inline bool ll_gang_closes(const struct ll_gang *gang)
{
	return gang->is_ending || gang->yields_to_gang;
}

/* What a claim says of its launches at each look, and what the decider remembers for it from one look to the next. */
struct ll_turn {
	/* The caller says: */
	uint32_t queued_launches;      /* launches of ours that the card has */
	uint64_t completed_launches;   /* and that it has finished, since any time */
	uint64_t running_ns;           /* how long the card has been at work of ours that is not charged yet */
	uint64_t queue_empty_since_ns; /* nothing of ours waits on the card since then; 0: something does */
	bool is_overrunning;           /* a launch of our visit still runs, and we no longer have the turn */
	bool yields_to_gang;           /* as in struct ll_gang: a holder gives way */
	/* The decider remembers: */
	/* when we gave the turn to a lower class for want of work; 0: we did not. Until the caller sets it to 0 with
	 * its next launch, we do not ask for the turn, for LL_TURN_PAUSE_NS at most. */
	uint64_t paused_since_ns;
	uint64_t ending_since_ns; /* the holder shall give way, and is draining; 0: it is not */
};

/* What the claim learns. */
struct ll_turn_look {
	bool may_launch;         /* no debt; if the card is given for visits: the turn is ours, and not giving way */
	bool is_alone;           /* no cap, no higher class and no visits: the gate may be open */
	bool is_sliced;          /* others work too, and nobody needs visits: the hardware's time slices serve all */
	bool is_holder;          /* the turn is ours, even when we may not launch */
	bool is_exclusive;       /* the card is given for visits, and what we launch out of ours waits on it (act.h) */
	uint64_t turn_since_ns;  /* when the turn came to who has it now */
	int64_t tokens_ns;       /* of the tenant's account; INT64_MAX without a cap */
	int64_t tokens_most_ns;  /* what that account can hold; INT64_MAX without a cap */
	uint64_t tokens_at_ns;   /* when it held that: it fills by the cap from then on; 0: there is no cap */
	unsigned waiting_claims; /* others that want the card */
	struct ll_gang_work awaited; /* what other cards have, which may need launches here to end */
	uint64_t queue_bound_ns; /* work that may be queued beneath a higher class, and two launches in any case; 0: no
				    higher class is on the card, or visits keep it apart */
	bool is_above;           /* a lower class wants the card, or did of late: it is held by what we do */
	unsigned sharing;        /* other tenants whose work is on the card now: the card runs it in slices with ours */
};

#endif
