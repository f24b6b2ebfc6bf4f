/*
 * card_state.h - the daemon's state of a card, besides the state of the rule (card.h). Shared by cards.c, card_decide.c
 * and card_tell.c.
 */
#ifndef LOADLINE_DAEMON_ARBITER_CARD_STATE_H
#define LOADLINE_DAEMON_ARBITER_CARD_STATE_H

#include "daemon/arbiter/card.h"
#include "daemon/arbiter/cards.h"

/* The contents of a slot's orders. */
struct ll_card_told {
	uint32_t post, flags, waiting, sharing, awaited_launches, gang_launches;
	uint64_t awaited_ns, gang_ns, turn_since_ns, tokens_at_ns, queue_bound_ns;
	int64_t tokens_ns, tokens_most_ns;
	uint64_t charged_ns;
	struct ll_card_time time;
};

/* The period of the order by which a process is off the card until it is resumed; its window is 0. */
#define LL_CARD_SUSPENDED_NS LL_NS_PER_S

struct ll_card_claim {
	struct ll_share_claim share; /* first, so that a pointer to it is a pointer to this structure */
	struct ll_card_job *job;
	unsigned slot, number;
	char first_card[LL_PAGE_UUID_SIZE]; /* empty: none */
	struct ll_card_job *first;          /* the job on that card, at `first_joins`; NULL: the job is not there */
	uint64_t first_joins;
	uint32_t post;      /* the newest post that was read */
	bool has_sent_wake; /* since the last decision */
	bool is_suspended;  /* by a user: its process is off the card until it is resumed */
	bool has_looked;    /* it was looked at, and its orders must be written */
	uint64_t want_ns,
	    told_want_ns;    /* the page's want_since_ns when it was last read, and when the orders were last written */
	uint64_t company_ns; /* when it was last told of other work on the card */
	/* of the slot, at the last look (card_company.c) */
	uint64_t counted_launches;
	bool was_counted;
	bool has_told; /* `told` equals the orders */
	bool is_bound; /* it wants the card, and an order may keep it from launching */
	struct ll_card_told told;
};

/* A time, and the GPU time of the job at that time. */
struct ll_card_sample {
	uint64_t at_ns, gpu_time_ns;
};

struct ll_card_job {
	struct ll_share_job share; /* first, as above */
	struct ll_served_card *card;
	struct ll_page *page;
	struct ll_orders *orders;
	unsigned index;
	uint32_t uid;
	struct ll_limits limits;
	/* card_company.c: the program under its limits, and the programs beside it at the last look (0: none); the
	 * total time beside them, and the launches completed in that time */
	uint64_t counted_program, others, company_ns, company_launches;
	bool is_in_company;
	/* GPU time: the part of the page's count that is charged, and the most that may be charged by the elapsed
	 * time */
	uint64_t charged_ns, allowed_ns, allowed_at_ns;
	struct ll_card_sample samples[2]; /* the older one first */
};

struct ll_served_card {
	struct ll_cards *cards;
	struct ll_served_card *next;
	char uuid[LL_PAGE_UUID_SIZE];
	struct ll_share_card share;
	uint64_t *numbers; /* one bit for each number of a claim */
	size_t number_words;
	uint64_t death_ns;
	bool is_woken;      /* a claim has sent WAKE */
	bool is_changed;    /* all claims must be looked at */
	bool is_late;       /* all claims must be looked at, but the last look at all is too recent */
	bool has_exchange;  /* the card and another card have reported their work to each other */
	bool is_chosen;     /* part of the present decision */
	uint64_t choice_ns; /* when to choose again how the card is shared */
	uint64_t due_ns;    /* when to decide again; UINT64_MAX: only when something changes */
	uint64_t all_ns;    /* when all its claims were last looked at */
	uint64_t beat_ns;
	uint64_t company_ns; /* when the company of its jobs was last counted; 0: there is one job */
};

static inline struct ll_card_claim *ll_card_claim_of(struct ll_share_claim *share)
{
	return (struct ll_card_claim *)share;
}

static inline struct ll_card_job *ll_card_job_of(struct ll_share_job *share)
{
	return (struct ll_card_job *)share;
}

/* Stores a sample if the newer one is old enough. "Lately" means since the older one. */
void ll_card_job_sample(struct ll_card_job *job, uint64_t now_ns);

/* Returns the job's program under its present limits (program.h); 0: unknown. */
uint64_t ll_card_job_program(const struct ll_card_job *job);

/* Requests a decision about the card after this round of the loop. */
void ll_card_request_decision(struct ll_served_card *card);

/* Decides for the cards that need it, and for the cards that share a gang with them. Sets due_ns. */
void ll_cards_decide(struct ll_cards *cards, uint64_t now_ns);

/* Carries out the decision for the claim: writes its orders, shuts its gate and wakes it, as far as something has
 * changed. */
void ll_card_tell(struct ll_card_claim *claim, uint64_t now_ns);

/* Clears the claim's orders. */
void ll_card_untell(struct ll_card_claim *claim);

/* Raises the beat of the jobs whose claims are bound. Returns whether there are any. */
bool ll_card_beat(struct ll_served_card *card, uint64_t now_ns);

#endif
