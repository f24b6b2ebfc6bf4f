/*
 * words.h - the values that words of a claim and of a job can have.
 */
#ifndef LOADLINE_PROTOCOL_WORDS_H
#define LOADLINE_PROTOCOL_WORDS_H

#include <stdint.h>

#include "base/runtime_folder.h"
#include "protocol/limits.h"

/* The class of a claim or a tenant. A smaller number goes first. */
enum ll_priority { LL_PRIORITY_NONE, LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW, LL_PRIORITY_HOLD };

/* The weight of a claim or a tenant whose wish says none. */
enum { LL_DEFAULT_WEIGHT_PERMILLE = 1000, LL_DEFAULT_SLOWDOWN_PERMILLE = 1300 };

enum ll_claim_state {
	LL_CLAIM_STARTING, /* no context on the card yet */
	LL_CLAIM_RUNNING,  /* a program: governed; a hold: holding */
	LL_CLAIM_YIELDED,  /* a hold: silent for real work, its context kept */
	LL_CLAIM_RELEASED, /* a hold: silent, its memory given back */
	LL_CLAIM_WAITING,  /* for memory, a turn, or a card that is cooling */
	LL_CLAIM_ENDING,
};

/* Where the memory of a claim is, if its program is evictable. */
enum ll_claim_residency {
	LL_CLAIM_FIXED,   /* on the card, and it cannot be moved: the state of a fresh claim */
	LL_CLAIM_ON_CARD, /* on the card; the program runs */
	LL_CLAIM_STOPPED, /* the program is stopped, and not all of its memory has left */
	LL_CLAIM_EVICTED, /* the program is stopped, and all that can be moved has left */
};

/* What a command has done to the process of a claim by the driver's checkpoint. The process knows nothing of it. */
enum ll_claim_checkpoint {
	LL_CHECKPOINT_NONE,
	LL_CHECKPOINT_SUSPENDED, /* its calls wait */
	LL_CHECKPOINT_EVICTED,   /* the same, and all of its memory is off its cards */
};

/* Instead of the time at which there last was work: there is some now. */
#define LL_ACTIVITY_NOW UINT64_MAX

/* The word that a program reads before each launch (turn.h). */
enum ll_gate {
	LL_GATE_SHUT, /* ask before each launch: the state of a fresh claim */
	LL_GATE_OPEN,
	LL_GATE_TIMED, /* open, but the next launch shall say that it happened */
};

/* How a program launches. */
enum ll_launch_mode {
	LL_LAUNCH_MODE_UNKNOWN, /* the state of a fresh claim: it brings visits, in which its launches are timed alone
				 */
	LL_LAUNCH_MODE_ASYNC,   /* its queue fills while others have the card */
	LL_LAUNCH_MODE_SYNC,    /* for each launch, or for its kernels on other cards: the card must be kept for it */
	LL_LAUNCH_MODE_SHORT,   /* it waits after many launches, which together are less work than a time slice: visits
			    may serve   it better */
	LL_LAUNCH_MODE_LAST = LL_LAUNCH_MODE_SHORT,
};

/* How a card is shared, and why. */
enum ll_sharing {
	LL_SHARING_UNKNOWN,
	LL_SHARING_SLICES,      /* by the card's time slices: there is no reason for visits */
	LL_SHARING_SLICES_YET,  /* there is one, and it is not measured yet whether visits are better */
	LL_SHARING_MEASURED,    /* in both ways in turn */
	LL_SHARING_VISITS_PAY,  /* by visits: they were measured to be better */
	LL_SHARING_SLICES_PAY,  /* by time slices: so were these */
	LL_SHARING_TOO_DEEP,    /* by time slices: what is queued was too long for a measurement */
	LL_SHARING_VISITS_RULE, /* by visits, which are not measured: on several cards together, or very many jobs */
	LL_SHARING_CLASSES,     /* by time slices, and lower classes are held for a part of the time */
};

/* How a job gets its part of a card now. */
enum ll_shared {
	LL_SHARED_UNKNOWN,
	LL_SHARED_ALONE,  /* nobody else wants the card */
	LL_SHARED_SLICES, /* by the card's time slices */
	LL_SHARED_VISITS, /* one job is visited after the other */
	LL_SHARED_SPACE,  /* its kernels run at the same time as those of other clients of MPS */
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
	LL_WAIT_CAP,    /* launches: the account of the job's cap was empty */
	LL_WAIT_MEMORY, /* an allocation: loadlined's answer */
	LL_WAIT_MOVE,   /* the process was stopped, or its memory was off the card or on its way */
	LL_WAITS,
};

/* What a process, or a job, has had of a card beside time (accounts.h). */
struct ll_accounts {
	uint64_t held_unit_ms; /* memory over time, in LL_MEMORY_UNIT times milliseconds */
	uint64_t waited_ns[LL_WAITS];
};

/* The lowest bit of a tenant's word on the card (act.h): the tenant may use the card. */
#define LL_VISIT_WORD_OPEN UINT32_C(1)

/* What is said of a claim's visits; doc/internals.md lists by whom. */
enum ll_visit_flag {
	LL_VISIT_ON_CARD = 1,     /* the claim's launches wait on the card, not in its host */
	LL_VISIT_QUEUE_EMPTY = 8, /* it wants the card, and has nothing queued now */
	LL_VISIT_OVERRUNS = 4,    /* a launch of its visit still runs beside the next visit */
	LL_VISIT_PAUSES = 16,     /* it gave the card to a lower class for want of work, and has not launched since */
	LL_VISIT_ENDED_EMPTY = 2, /* the last visit ended with an empty queue, and it launches ahead */
};

/* Return "hold", "high", … and "starting", "running", …. The state of a running hold is "holding". */
const char *ll_priority_name(enum ll_priority priority);
const char *ll_claim_state_name(enum ll_priority priority, enum ll_claim_state state);

/* Returns "slices" or "space"; NULL: none. */
const char *ll_way_name(enum ll_way way);

/* Returns "slices", "visits", "both" (in turn) or "classes"; NULL: it is not known. */
const char *ll_sharing_name(enum ll_sharing sharing);

/* The same class in limits and in settings. */
enum ll_priority ll_priority_of_class(uint32_t limit_class);
enum ll_limit_class ll_class_of_priority(enum ll_priority priority);

#endif
