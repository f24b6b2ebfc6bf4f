/*
 * records.h - what a governed process reports when it looks at a card, and what it learns. The structures are plain
 * numbers, without pointers into the page. Times are CLOCK_MONOTONIC.
 */
#ifndef LOADLINE_PROTOCOL_RECORDS_H
#define LOADLINE_PROTOCOL_RECORDS_H

#include <stdbool.h>
#include <stdint.h>

#include "protocol/words.h"

/* How long a report of another card is valid, and how often a process posts one. A process that waits looks every 0.1
 * ms. The first value leaves room for a late post. */
#define LL_GANG_FRESH_NS UINT64_C(300000)
#define LL_GANG_LOOK_NS UINT64_C(150000)

/* If a tenant has the turn on its first card and is idle on another card for at most this long, it is expected to
 * continue there. */
#define LL_GANG_PAUSE_NS UINT64_C(2000000)

/* Memory, as charged. */
struct ll_memory_view {
	uint64_t limit_bytes; /* of the tenant; 0: none */
	uint64_t used_bytes;  /* of the tenant */
	uint64_t own_bytes;   /* of this claim */
};

/* Where the memory of an evictable program is, as the program reports it (memory.h). */
struct ll_memory_residency {
	enum ll_claim_residency state;
	uint64_t evictable_bytes; /* its memory that can be moved, wherever it is now */
	uint64_t away_bytes;      /* of evictable_bytes: what is not on the card */
};

/* How the contexts of a process may use the time of a card. All 0: as the driver gives it. */
struct ll_card_time {
	/* They are on the card for window_ns of each period_ns, the first time at from_ns, and off it for the rest.
	 * period_ns 0: they are always on it. window_ns 0: they are off until the order changes. */
	uint64_t window_ns, period_ns, from_ns;
	uint32_t slice_us; /* how long a context stays if others have work; 0: as the driver library has set it */
};

static inline bool ll_card_time_is_same(const struct ll_card_time *a, const struct ll_card_time *b)
{
	return a->window_ns == b->window_ns && a->period_ns == b->period_ns && a->from_ns == b->from_ns &&
	       a->slice_us == b->slice_us;
}

static inline bool ll_card_time_is_ordered(const struct ll_card_time *time)
{
	return time->period_ns || time->slice_us;
}

/* The tenant's work on cards other than the caller's, as reported. */
struct ll_gang_work {
	uint64_t seen_ns;  /* CLOCK_MONOTONIC, when there last was work; 0: never */
	uint32_t launches; /* 0 while the tenant goes on launching there */
};

/* What a claim on another card learns about its tenant's first card, and when it posted there. All 0 if the tenant does
 * not work on its first card, or if no other tenant here has the same first card. */
struct ll_gang {
	/* another tenant has the turn there and works on the caller's card too, so it goes first */
	bool yields_to_gang;
	bool is_ending;           /* the tenant has the turn there, and is about to give it away */
	struct ll_gang_work work; /* of the tenant on that card, or on another */
	/* when the claim last posted work of its card there; 0: it withdrew the post, or never posted */
	uint64_t posted_ns;
};

/* Whether the claim may launch on the caller's card only what another card waits for. */
static inline bool ll_gang_closes(const struct ll_gang *gang)
{
	return gang->is_ending || gang->yields_to_gang;
}

/* What a claim reports about its launches at each look, and what the decider stores for it between two looks. */
struct ll_turn {
	/* The caller writes: */
	uint32_t queued_launches;    /* launches of the claim on the card that are not completed */
	uint64_t completed_launches; /* launches of the claim that the card has completed, from any start */
	uint64_t running_ns;         /* how long the card has worked on the claim's launches that are not charged yet */
	/* since when the claim has nothing queued on the card; 0: it has something queued */
	uint64_t queue_empty_since_ns;
	bool is_overrunning; /* a launch of the claim's visit still runs, and the claim no longer has the turn */
	bool yields_to_gang; /* as in struct ll_gang: a holder gives the turn away */
	/* The decider stores: */
	/* When the claim gave the turn to a lower class for want of work; 0: it did not. Until the caller sets it to 0
	 * with its next launch, the claim does not request the turn, for at most LL_SHARE_PAUSE_NS. */
	uint64_t paused_since_ns;
	uint64_t ending_since_ns; /* since when the holder shall give the turn away, and drains; 0: it is not ending */
};

/* What the claim learns. */
struct ll_turn_look {
	bool may_launch;   /* no debt; if the card is given for visits, the claim has the turn and keeps it */
	bool is_alone;     /* no cap, no higher class and no visits: the gate may be open */
	bool is_sliced;    /* others work too, and no claim needs visits: the hardware's time slices serve all */
	bool is_holder;    /* the claim has the turn, even if it may not launch */
	bool is_exclusive; /* the card is given for visits; a launch outside the claim's visit waits on the card (act.h)
			    */
	uint64_t turn_since_ns; /* when the present holder got the turn */
	int64_t tokens_ns;      /* of the tenant's account; INT64_MAX without a cap */
	int64_t tokens_most_ns; /* the largest balance of that account; INT64_MAX without a cap */
	uint64_t tokens_at_ns; /* when the account had tokens_ns; from then on the cap's rate refills it; 0: there is no
				  cap */
	unsigned waiting_claims;     /* other claims that want the card */
	struct ll_gang_work awaited; /* work on other cards that may need launches here to complete */
	uint64_t queue_bound_ns; /* work that may be queued while a higher class is on the card; two launches are always
				    allowed. 0: no higher class is on the card, or visits separate them */
	bool is_above; /* a lower class wants the card, or wanted it lately: the claim's work delays that class */
	/* other tenants whose work is on the card now: the card runs it in time slices with the claim's */
	unsigned sharing;
};

#endif
