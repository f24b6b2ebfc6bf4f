/*
 * words.h - the values of the enumerated fields of a claim and of a job.
 */
#ifndef LOADLINE_PROTOCOL_WORDS_H
#define LOADLINE_PROTOCOL_WORDS_H

#include <stdint.h>

#include "base/runtime_folder.h"
#include "protocol/limits.h"

/* The class of a claim or a tenant. A smaller number goes first. */
enum ll_priority { LL_PRIORITY_NONE, LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW, LL_PRIORITY_HOLD };

/* Defaults of a claim or a tenant. */
enum { LL_DEFAULT_WEIGHT_PERMILLE = 1000, LL_DEFAULT_SLOWDOWN_PERMILLE = 1300 };

enum ll_claim_state {
	LL_CLAIM_STARTING, /* it has no context on the card yet */
	LL_CLAIM_RUNNING,  /* a program: governed; a hold: holding */
	LL_CLAIM_YIELDED,  /* a hold: it runs no kernels while a program works; it keeps its context */
	LL_CLAIM_RELEASED, /* a hold: it runs no kernels, and has freed its memory */
	LL_CLAIM_WAITING,  /* it waits for memory, for the turn, or for a hot card to cool */
	LL_CLAIM_ENDING,
};

/* Where the memory of a claim is, if its program is evictable. */
enum ll_claim_residency {
	LL_CLAIM_FIXED,   /* on the card, and it cannot be moved; initial state of a claim */
	LL_CLAIM_ON_CARD, /* on the card; the program runs */
	LL_CLAIM_STOPPED, /* the program is stopped, and some of its memory is on the card */
	LL_CLAIM_EVICTED, /* the program is stopped, and all movable memory is off the card */
};

/* What a command did to the process of a claim by the driver's checkpoint. The process does not notice it. */
enum ll_claim_checkpoint {
	LL_CHECKPOINT_NONE,
	LL_CHECKPOINT_SUSPENDED, /* its driver calls wait */
	LL_CHECKPOINT_EVICTED,   /* its driver calls wait, and all of its memory is off its cards */
};

/* In place of the time of the last work: there is work now. */
#define LL_ACTIVITY_NOW UINT64_MAX

/* The word that a program reads before each launch (ll_page_slot.gate). */
enum ll_gate {
	LL_GATE_SHUT, /* ask before each launch; initial state of a claim */
	LL_GATE_OPEN,
	LL_GATE_TIMED, /* open, but the next launch shall report itself */
};

/* How a program launches. */
enum ll_launch_mode {
	LL_LAUNCH_MODE_UNKNOWN, /* initial state of a claim: the card is given for visits, in which its launches are
				   timed alone */
	LL_LAUNCH_MODE_ASYNC,   /* its queue fills while others have the card */
	LL_LAUNCH_MODE_SYNC,  /* the program waits for each launch, or for its kernels on other cards: the card must be
				 kept for it */
	LL_LAUNCH_MODE_SHORT, /* the program waits after several launches, which together are shorter than a time slice:
				 visits may serve it better */
	LL_LAUNCH_MODE_LAST = LL_LAUNCH_MODE_SHORT,
};

/* Whether a process can set the time of its contexts on the card (src/slices). */
enum ll_time_lever {
	LL_TIME_LEVER_UNKNOWN, /* the library has seen no context of the process */
	LL_TIME_LEVER_WORKS,   /* every call so far was done */
	LL_TIME_LEVER_FAILS,   /* the driver has refused a call */
};

/* How a card is shared, and why. */
enum ll_sharing {
	LL_SHARING_UNKNOWN,
	LL_SHARING_SLICES,      /* by the card's time slices; nothing speaks for visits */
	LL_SHARING_SLICES_YET,  /* by time slices; visits may be better, and that is not measured yet */
	LL_SHARING_MEASURED,    /* being measured, by visits and by time slices in turn */
	LL_SHARING_VISITS_PAY,  /* by visits, because a measurement favoured them */
	LL_SHARING_SLICES_PAY,  /* by time slices, because a measurement favoured them */
	LL_SHARING_TOO_DEEP,    /* by time slices: the queued work was too long for a measurement */
	LL_SHARING_VISITS_RULE, /* by visits without a measurement: programs on several cards, or very many jobs */
	LL_SHARING_CLASSES,     /* by time slices, and lower classes are held for a part of the time */
	LL_SHARING_WINDOWS,     /* jobs are on the card for a part of each period, by caps */
};

/* How a job gets its part of a card now. */
enum ll_shared {
	LL_SHARED_UNKNOWN,
	LL_SHARED_ALONE,   /* nobody else wants the card */
	LL_SHARED_SLICES,  /* by the card's time slices */
	LL_SHARED_VISITS,  /* jobs have the card one after the other */
	LL_SHARED_SPACE,   /* its kernels run at the same time as those of other clients of MPS */
	LL_SHARED_WINDOWS, /* it is on the card for a part of each period */
	LL_SHARED_LAST = LL_SHARED_WINDOWS,
};

/* How a job shares a card with others (--by). */
enum ll_way {
	LL_WAY_NONE,
	LL_WAY_SLICES, /* the card's time */
	LL_WAY_SPACE,  /* its SMs at the same time, as a client of MPS */
};

/* What a program waited for. */
enum ll_wait {
	LL_WAIT_TURN,   /* launches: another job had the card */
	LL_WAIT_CAP,    /* launches: the account of the job's cap had no tokens */
	LL_WAIT_MEMORY, /* an allocation: the reply of loadlined */
	LL_WAIT_MOVE,   /* the process was stopped, or its memory was off the card or being moved */
	LL_WAITS,
};

/* What a process or a job has used of a card, besides GPU time (accounts.h). */
struct ll_accounts {
	uint64_t held_unit_ms; /* memory over time, in LL_MEMORY_UNIT times milliseconds */
	uint64_t waited_ns[LL_WAITS];
};

/* The lowest bit of a tenant's word on the card (act.h): the tenant may use the card. */
#define LL_VISIT_WORD_OPEN UINT32_C(1)

/* The state of a claim's visits. */
enum ll_visit_flag {
	LL_VISIT_ON_CARD = 1,     /* the claim's launches wait on the card, not in its host */
	LL_VISIT_QUEUE_EMPTY = 8, /* the claim wants the card, and has nothing queued now */
	LL_VISIT_OVERRUNS = 4,    /* a launch of its visit still runs beside the next visit */
	/* the claim gave the card to a lower class for want of work, and has not launched since */
	LL_VISIT_PAUSES = 16,
	LL_VISIT_ENDED_EMPTY = 2, /* the last visit ended with an empty queue, and it launches ahead */
};

/* Return "hold", "high", … and "starting", "running", …. The state of a running hold is "holding". */
const char *ll_priority_name(enum ll_priority priority);
const char *ll_claim_state_name(enum ll_priority priority, enum ll_claim_state state);

/* Returns "slices" or "space"; NULL: none. */
const char *ll_way_name(enum ll_way way);

/* Returns "slices", "visits", "both" (in turn), "classes" or "windows"; NULL: it is not known. */
const char *ll_sharing_name(enum ll_sharing sharing);

/* The same class in limits and in settings. */
enum ll_priority ll_priority_of_class(uint32_t limit_class);
enum ll_limit_class ll_class_of_priority(enum ll_priority priority);

#endif
