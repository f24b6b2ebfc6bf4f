/*
 * card.h - the books of one card, as the rule needs them: jobs, and their claims. Private memory of one process.
 *
 * A claim is a process on the card. What it said last of its launches is its post: the caller copies it here
 * (ll_share_post), and then decides for the claims (decide.h, gang.h). What is decided is here too, for the caller to
 * tell: `look`, the turn, `is_ending` and so on. Only the word of a job is elsewhere, because streams wait for it.
 *
 * Times are of one clock. No function fails or waits, but those that say so.
 */
#ifndef LOADLINE_DAEMON_SHARE_CARD_H
#define LOADLINE_DAEMON_SHARE_CARD_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "control/share/lever.h"
#include "control/share/regime.h"
#include "control/visits.h"
#include "protocol/limits.h"
#include "protocol/records.h"
#include "protocol/words.h"

/* A claim that wants the card and has not posted for this long is unresponsive: its process is stopped, hangs, or is
 * dead. */
#define LL_SHARE_UNRESPONSIVE_NS UINT64_C(20000000)

/* One that has not posted for so long is of no class: nobody's queue is bounded for it. */
#define LL_SHARE_SUPERIOR_NS UINT64_C(3000000000)

/* Work that its process does not know of, or could not count, waits no longer than this for the end of a pause. */
#define LL_SHARE_PAUSE_NS UINT64_C(5000000)

/* Who wants the card now and then counts all the time. */
#define LL_SHARE_LATELY_NS UINT64_C(2000000000)

/* A gang's turn lasts for a few looks. */
#define LL_SHARE_GANG_TURN_NS UINT64_C(500000)

struct ll_decisions;

/* What was measured of a job (how_shared.h). All 0: nothing. */
struct ll_share_measured {
	uint64_t mix, at_ns; /* which jobs were there, and when */
	unsigned slices_permille, visits_permille;
};

/* A job on the card. */
struct ll_share_job {
	struct ll_share_card *card;
	struct ll_share_job *next;
	struct ll_share_claim *claims;
	uint64_t id;                            /* the same on all cards */
	const char *tenant;                     /* its name, for people; NULL: none */
	_Atomic uint32_t *word;                 /* on the card (act.h) */
	unsigned rank;                          /* of its class: smaller goes first */
	unsigned weight_permille, cap_permille; /* cap 0: none */
	unsigned slowdown_permille;             /* it may become so much slower than alone for lower classes */
	enum ll_limit_sharing sharing;          /* what it asks of the card */
	bool is_by_space;            /* a client of MPS: its kernels run at the same time as those of other clients */
	uint64_t virtual_ns;         /* GPU time by weight */
	int64_t tokens_ns;           /* of the cap; negative: in debt */
	uint64_t tokens_at_ns;       /* up to which tokens were earned; 0: there was no cap */
	uint64_t visited_ns;         /* how long it has had the turn */
	struct ll_lever_gauge gauge; /* how it gets on beside lower classes */
	/* with several cards (gang.h) */
	uint64_t gang_turn_until_ns;            /* it has the turn on its first card, and this is another */
	const struct ll_share_card *first_card; /* on the others; NULL: its turns here do not depend on another card */
	uint64_t led_ns;          /* on its first card: when it last worked on another one too; 0: never */
	uint64_t others_busy_ns;  /* on its first card: when another last had work of it; 0: never */
	uint64_t others_said_ns;  /* when the process said so */
	uint32_t others_launches; /* launches of that work; 0 while it goes on launching */
	uint64_t ending_ns;       /* on its first card: when it was last about to give the turn away */
	uint64_t seen;            /* of a count (contender.c) */
	uint64_t empty_ns;        /* when it last wanted to launch, and its cap kept it from that; 0: never */
	struct ll_share_measured measured;
};

/* What a process says of its launches. */
struct ll_share_said {
	uint64_t at_ns;
	uint64_t activity_ns;        /* LL_ACTIVITY_NOW, or when it last had work; 0: never */
	uint64_t queued_ns;          /* estimated work of it that the card still has */
	uint64_t running_ns;         /* how long the card has been at work of it that is not charged yet */
	uint64_t completed_launches; /* of all that it ever made */
	uint32_t queued_launches;
	enum ll_launch_mode launch_mode;
	bool is_wanting;     /* it has launches that wait or run */
	bool is_on_card;     /* its launches wait on the card, not in its host */
	bool queue_is_empty; /* it wants the card, and has nothing queued now */
	bool overruns;       /* a launch that its visit let through goes on after the visit */
	bool has_launched;   /* since it was told that it pauses */
};

struct ll_share_claim {
	struct ll_share_job *job;
	struct ll_share_claim *next;         /* of the job */
	struct ll_share_claim *next_wanting; /* of the card, in the order in which they came */
	struct ll_share_said said;
	uint64_t want_since_ns; /* since when it wants the card without being visited; 0: it wants nothing */
	uint64_t came_ns;       /* when it first wanted the card; 0: it has not */
	uint64_t wanted_ns, waited_for_each_ns; /* when it last wanted the card, and said that it waits for each launch
						 */
	uint64_t queue_empty_since_ns;          /* nothing of it waits on the card since then; 0: something does */
	uint64_t paused_since_ns; /* it gave the turn to a lower class for want of work; 0: it did not. Until its next
				     launch it does not ask for the turn, for LL_SHARE_PAUSE_NS at most */
	uint64_t ending_since_ns; /* the holder shall give way, and is draining; 0: it is not */
	bool was_unresponsive;    /* it was found unresponsive, and has not posted since */
	bool ended_empty;         /* its last visit ended with an empty queue, and it launches ahead */
	bool overruns;            /* a launch of it that its visit let through goes on beside the next visit */
	struct ll_gang gang;
	struct ll_turn_look look;
};

/* Ranks of classes that others can be beneath are smaller than this. */
enum { LL_SHARE_CLASSES = 3 };

struct ll_share_card {
	struct ll_share_job *jobs;
	struct ll_share_claim *wanting;
	struct ll_share_claim *holder; /* has the turn; NULL: nobody */
	bool is_service;               /* the turn is a minimum service: a higher class waits */
	uint64_t turn_since_ns;
	uint64_t visit_counted_ns;      /* up to when the holder's job was told of its visit */
	struct ll_regime regime;        /* choose.h */
	struct ll_decisions *decisions; /* what it decided (decisions.h); the caller's. NULL: nobody keeps that */
	struct ll_lever levers[LL_SHARE_CLASSES]; /* by rank: of those beneath (classes.h) */
	enum ll_limit_sharing forced;             /* by a person */
	size_t claim_count;
	/* for one pass over the claims (contender.h) */
	struct ll_contender *contenders;
	struct ll_share_claim **others;
	size_t capacity;
	uint64_t counts;
};

/* The card frees nothing but its own arrays: jobs and claims are the caller's. */
void ll_share_card_fini(struct ll_share_card *card);

/* Adds a job without claims, whose id, word, rank, weight, cap and slowdown are set, and everything else 0. */
void ll_share_add_job(struct ll_share_card *card, struct ll_share_job *job);
/* It has no claims. */
void ll_share_remove_job(struct ll_share_job *job);

/* The job comes into another class. */
void ll_share_set_rank(struct ll_share_job *job, unsigned rank, uint64_t now_ns);

/* Adds a claim, all 0. -ENOMEM. */
int ll_share_add_claim(struct ll_share_job *job, struct ll_share_claim *claim);
/* If it wants the card, it ends that, and passes the turn on (decide.h). */
void ll_share_remove_claim(struct ll_share_claim *claim, uint64_t now_ns);

/*
 * Takes what the claim says: it begins or ends to want the card, posts again after it was unresponsive, launches after
 * a pause. Returns whether others are to be looked at for it.
 */
bool ll_share_post(struct ll_share_claim *claim, const struct ll_share_said *said, uint64_t now_ns);

/* Whether the claim's process is stopped, hangs, or is dead and not yet known to be. It gets no turn until it posts. */
bool ll_share_is_unresponsive(const struct ll_share_claim *claim, uint64_t now_ns);

/* How long ago that was; 0 if it lies ahead. */
static inline uint64_t ll_share_elapsed_ns(uint64_t since_ns, uint64_t now_ns)
{
	return now_ns > since_ns ? now_ns - since_ns : 0;
}

/* Whether a person has chosen slices or visits. */
static inline bool ll_share_is_forced(const struct ll_share_card *card)
{
	return card->forced == LL_LIMIT_SHARING_SLICES || card->forced == LL_LIMIT_SHARING_VISITS;
}

/* Whether that was of late; 0: never. */
static inline bool ll_share_is_lately(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && ll_share_elapsed_ns(at_ns, now_ns) <= LL_SHARE_LATELY_NS;
}

/* Whether the turn is the claim's job's. */
static inline bool ll_share_has_turn(const struct ll_share_claim *claim)
{
	const struct ll_share_claim *holder = claim->job->card->holder;
	return holder && holder->job == claim->job;
}

/* The claims of a card, job by job; of a job; those that want the card. */
#define LL_SHARE_EACH(card, claim)                                                                                     \
	for (struct ll_share_job *claim##_job = (card)->jobs; claim##_job; claim##_job = claim##_job->next)            \
	LL_SHARE_EACH_OF(claim##_job, claim)
#define LL_SHARE_EACH_OF(job, claim)                                                                                   \
	for (struct ll_share_claim * (claim) = (job)->claims; (claim); (claim) = (claim)->next)
#define LL_SHARE_EACH_WANTING(card, claim)                                                                             \
	for (struct ll_share_claim * (claim) = (card)->wanting; (claim); (claim) = (claim)->next_wanting)

#endif
