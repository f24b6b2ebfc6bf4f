/*
 * card.h - the state of one card for the decision who may use it: jobs, and their claims. Private memory of loadlined.
 *
 * A claim is a process on the card. Its post is its last report about its launches. The caller copies the post here
 * (ll_share_post), and then decides for the claims (decide.h, gang.h). The results are stored here too, and the caller
 * tells them to the processes: `look`, the turn, ending_since_ns and so on. The word of a job is in the shared page,
 * because streams wait for it.
 *
 * All times are of one clock. No function fails or waits, unless its comment says so.
 */
#ifndef LOADLINE_DAEMON_ARBITER_CARD_H
#define LOADLINE_DAEMON_ARBITER_CARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/limits.h"
#include "protocol/records.h"
#include "protocol/words.h"
#include "rules/share/class_slices.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"
#include "rules/share/visits.h"

/* A claim that wants the card and has not posted for this long is unresponsive: its process is stopped, hangs, or is
 * dead. */
#define LL_SHARE_UNRESPONSIVE_NS UINT64_C(20000000)

/* A claim that has not posted for this long does not count as a higher class: no queue is bounded for it. */
#define LL_SHARE_SUPERIOR_NS UINT64_C(3000000000)

/* The longest pause of a claim. Work that the process does not know of, or could not count, waits no longer than this.
 */
#define LL_SHARE_PAUSE_NS UINT64_C(5000000)

/* A claim counts as wanting the card for this long after it last wanted it. */
#define LL_SHARE_LATELY_NS UINT64_C(2000000000)

/* How long the turn of a gang lasts without another look at the first card: a few looks. */
#define LL_SHARE_GANG_TURN_NS UINT64_C(500000)

struct ll_decisions;

/* Measurements of a job (how_shared.h). All 0: none. */
struct ll_share_measured {
	uint64_t mix, at_ns; /* number of the mix of jobs, and time of the measurement */
	unsigned slices_permille, visits_permille;
};

/* A job on the card. */
struct ll_share_job {
	struct ll_share_card *card;
	struct ll_share_job *next;
	struct ll_share_claim *claims;
	uint64_t id;                            /* the same on all cards */
	const char *tenant;                     /* its name, for people; NULL: none */
	uint32_t uid;                           /* its user */
	_Atomic uint32_t *word;                 /* on the card (act.h) */
	unsigned rank;                          /* of its class: smaller goes first */
	unsigned weight_permille, cap_permille; /* cap 0: none */
	unsigned slowdown_permille;             /* how much slower than alone it may become because of lower classes */
	enum ll_limit_sharing sharing;          /* the wanted way of sharing */
	bool is_by_space;            /* a client of MPS: its kernels run at the same time as those of other clients */
	uint64_t virtual_ns;         /* GPU time by weight */
	int64_t tokens_ns;           /* on the account of the cap; negative: in debt */
	uint64_t tokens_at_ns;       /* time up to which tokens were added; 0: there was no cap */
	uint64_t visited_ns;         /* how long it has had the turn */
	struct ll_lever_gauge gauge; /* its speed beside lower classes */
	/* if the job works on several cards (gang.h) */
	uint64_t gang_turn_until_ns; /* not the first card: the job has the turn on its first card until then */
	/* not the first card: that card; NULL: its turns here depend on no other card */
	const struct ll_share_card *first_card;
	uint64_t worked_elsewhere_ns; /* first card: when the job last worked on another card too; 0: never */
	uint64_t others_busy_ns;      /* first card: when another card last had work of the job; 0: never */
	uint64_t others_said_ns;      /* when the process said so */
	uint32_t others_launches;     /* number of launches of that work; 0: the process is still launching */
	uint64_t ending_ns;           /* first card: when the job was last about to give the turn away */
	uint64_t seen;                /* number of the last count that has seen the job (contender.c) */
	uint64_t empty_ns;            /* when it last wanted to launch, and its cap kept it from that; 0: never */
	/* windows.h */
	struct ll_card_time time;                  /* ordered for its processes */
	bool is_windowed;                          /* it has a window of its own */
	uint64_t used_ns;                          /* GPU time charged since the job came */
	uint64_t window_looked_ns, window_used_ns; /* the last look, and the GPU time by then, of what still runs too */
	/* GPU time at the last check of slices (slices.h), and in the time before it */
	uint64_t slices_used_ns, slices_had_ns;
	struct ll_share_measured measured;
};

/* A post: the report of a process about its launches. */
struct ll_share_said {
	uint64_t at_ns;
	uint64_t activity_ns;        /* LL_ACTIVITY_NOW, or when the process last had work; 0: never */
	uint64_t queued_ns;          /* estimated work of the process in the queues of the card */
	uint64_t running_ns;         /* how long the card has run work of the process that is not charged yet */
	uint64_t completed_launches; /* since the process started */
	uint32_t queued_launches;
	enum ll_launch_mode launch_mode;
	enum ll_time_lever lever; /* whether it can be taken off the card */
	bool is_wanting;          /* the process has launches that wait or run */
	bool is_on_card;          /* its launches wait on the card, not in the host */
	bool queue_is_empty;      /* the process wants the card, and its queue is empty */
	bool overruns;            /* a launch of the visit still runs after the visit */
	bool has_launched;        /* since it was told LL_ORDER_PAUSED */
	bool is_off;              /* it is off the card, as its own thread has ordered the driver */
};

struct ll_share_claim {
	struct ll_share_job *job;
	struct ll_share_claim *next;         /* of the job */
	struct ll_share_claim *next_wanting; /* of the card, in the order in which the claims began to want it */
	struct ll_share_said said;
	uint64_t want_since_ns; /* since when the claim wants the card without a visit; 0: it wants nothing */
	uint64_t came_ns;       /* when it first wanted the card; 0: it has not */
	uint64_t wanted_ns, waited_for_each_ns; /* when it last wanted the card, and said that it waits for each launch
						 */
	uint64_t queue_empty_since_ns;          /* since when its queue on the card is empty; 0: it is not */
	uint64_t paused_since_ns; /* when it gave the turn to a lower class because it had no work; 0: it did not. It
				     pauses until its next launch, for LL_SHARE_PAUSE_NS at most */
	uint64_t ending_since_ns; /* since when the holder is draining, in order to give the turn away; 0: it is not */
	bool was_unresponsive;    /* it was found unresponsive, and has not posted since */
	bool ended_empty;         /* its last visit ended with an empty queue, and it launches ahead */
	bool overruns;            /* a launch of its last visit still runs beside the next visit */
	struct ll_gang gang;
	struct ll_turn_look look;
};

/* Ranks of classes that have a lower class are smaller than this. */
enum { LL_SHARE_CLASSES = 3 };

struct ll_share_card {
	struct ll_share_job *jobs;
	struct ll_share_claim *wanting;
	struct ll_share_claim *holder; /* the claim that has the turn; NULL: none */
	bool is_service;               /* the turn is a minimum service: a higher class waits */
	uint64_t turn_since_ns;
	uint64_t visit_counted_ns; /* up to when the visit is counted in visited_ns of the holder's job */
	struct ll_regime regime;   /* choose.h */
	bool has_windows;          /* jobs have the card in windows (windows.h), and no other way is in force */
	/* slices.h */
	bool has_slices;      /* all jobs that work can have time slices */
	bool keeps_slices;    /* the card has its own ones, whatever is ordered */
	bool has_long_slices; /* of equal jobs that always have work; not again before long_again_ns */
	uint64_t long_again_ns;
	uint64_t slices_at_ns,
	    slices_checked_ns;          /* when they were last ordered, and checked; 0: not since others came */
	struct ll_decisions *decisions; /* log of decisions (decisions.h), owned by the caller. NULL: no log */
	struct ll_lever levers[LL_SHARE_CLASSES]; /* by rank of the higher class (classes.h) */
	bool has_class_slices; /* lower classes have short slices, and are taken off the card while they are held */
	struct ll_class_slices class_slices[LL_SHARE_CLASSES]; /* by rank of the higher class */
	uint64_t class_mix;                                    /* the jobs that these were measured with */
	enum ll_limit_sharing forced;                          /* by a command */
	size_t claim_count;
	/* arrays for one pass over the claims (contender.h) */
	struct ll_contender *contenders;
	struct ll_share_claim **others;
	size_t capacity;
	uint64_t counts;
};

/* Frees the arrays of the card. Jobs and claims are owned by the caller. */
void ll_share_card_fini(struct ll_share_card *card);

/* Adds a job without claims. Its id, word, rank, weight, cap and slowdown are set, and all other fields are 0. */
void ll_share_add_job(struct ll_share_card *card, struct ll_share_job *job);
/* Removes a job without claims. */
void ll_share_remove_job(struct ll_share_job *job);

/* Moves the job into the class with that rank. */
void ll_share_set_rank(struct ll_share_job *job, unsigned rank, uint64_t now_ns);

/* Adds a claim whose fields are all 0. -ENOMEM. */
int ll_share_add_claim(struct ll_share_job *job, struct ll_share_claim *claim);
/* Removes a claim. If the claim wants the card, it stops wanting it, and its turn is passed on (decide.h). */
void ll_share_remove_claim(struct ll_share_claim *claim, uint64_t now_ns);

/*
 * Stores a post of the claim: the claim begins or stops to want the card, posts again after it was unresponsive, or
 * launches after a pause. Returns whether other claims must be looked at because of that.
 */
bool ll_share_post(struct ll_share_claim *claim, const struct ll_share_said *said, uint64_t now_ns);

/* Whether the process of the claim is stopped, hangs, or has died without notice. It gets no turn until it posts. */
bool ll_share_is_unresponsive(const struct ll_share_claim *claim, uint64_t now_ns);

/* Time since since_ns; 0 if since_ns is later than now_ns. */
static inline uint64_t ll_share_elapsed_ns(uint64_t since_ns, uint64_t now_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* Whether a command has chosen slices or visits. */
static inline bool ll_share_is_forced(const struct ll_share_card *card)
{
	return card->forced == LL_LIMIT_SHARING_SLICES || card->forced == LL_LIMIT_SHARING_VISITS;
}

/* Whether at_ns is at most LL_SHARE_LATELY_NS ago; at_ns 0: never. */
static inline bool ll_share_is_lately(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && ll_share_elapsed_ns(at_ns, now_ns) <= LL_SHARE_LATELY_NS;
}

/* Whether the job of the claim has the turn. */
static inline bool ll_share_has_turn(const struct ll_share_claim *claim)
{
	const struct ll_share_claim *holder = claim->job->card->holder;
	return holder && holder->job == claim->job;
}

/* Loops over the claims of a card, job by job; over the claims of a job; over the claims that want the card. */
#define LL_SHARE_EACH(card, claim)                                                                                     \
	for (struct ll_share_job *claim##_job = (card)->jobs; claim##_job; claim##_job = claim##_job->next)            \
	LL_SHARE_EACH_OF(claim##_job, claim)
#define LL_SHARE_EACH_OF(job, claim)                                                                                   \
	for (struct ll_share_claim * (claim) = (job)->claims; (claim); (claim) = (claim)->next)
#define LL_SHARE_EACH_WANTING(card, claim)                                                                             \
	for (struct ll_share_claim * (claim) = (card)->wanting; (claim); (claim) = (claim)->next_wanting)

#endif
