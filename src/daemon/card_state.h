/*
 * card_state.h - what the daemon keeps of a card, beside the rule's books of it. Between cards.c, card_decide.c and
 * card_tell.c.
 */
#ifndef LOADLINE_DAEMON_CARD_STATE_H
#define LOADLINE_DAEMON_CARD_STATE_H

#include "daemon/cards.h"
#include "daemon/share/card.h"

/* What the orders of a slot say. */
struct ll_card_told {
	uint32_t post, flags, waiting, sharing, awaited_launches, gang_launches;
	uint64_t awaited_ns, gang_ns, turn_since_ns, tokens_at_ns, queue_bound_ns;
	int64_t tokens_ns, tokens_most_ns;
	uint64_t charged_ns;
};

struct ll_card_claim {
	struct ll_share_claim share; /* first: the rule's claims are these */
	struct ll_card_job *job;
	unsigned slot, number;
	char first_card[LL_PAGE_UUID_SIZE]; /* empty: none */
	struct ll_card_job *first; /* the job on that card, as it was at `first_joins`; NULL: it is not there */
	uint64_t first_joins;
	uint32_t post;      /* the newest that was read */
	bool has_sent_wake; /* since the last decision */
	bool has_looked;    /* it was looked at, and its orders are to be written */
	uint64_t want_ns,
	    told_want_ns; /* the page's want_since_ns, as it was read, and as it was at the last telling */
	/* of the slot, at the last look (card_company.c) */
	uint64_t counted_launches;
	bool was_counted;
	bool has_told; /* `told` is what the orders say */
	bool is_bound; /* it wants the card, and an order may keep it from launching */
	struct ll_card_told told;
};

/* A moment, and how much GPU time the job had then. */
struct ll_card_sample {
	uint64_t at_ns, gpu_time_ns;
};

struct ll_card_job {
	struct ll_share_job share; /* first */
	struct ll_served_card *card;
	struct ll_page *page;
	struct ll_orders *orders;
	unsigned index;
	uint32_t uid;
	struct ll_limits limits;
	/* card_company.c: the program under its limits, and whom it was beside at the last look; 0: nobody. How long it
	 * has been in all, and what it completed */
	uint64_t counted_program, others, company_ns, company_launches;
	bool is_in_company;
	/* GPU time: what of the page's count is charged, and what may be charged, by the time that has passed */
	uint64_t charged_ns, allowed_ns, allowed_at_ns;
	struct ll_card_sample samples[2]; /* the older one first */
};

struct ll_served_card {
	struct ll_cards *cards;
	struct ll_served_card *next;
	char uuid[LL_PAGE_UUID_SIZE];
	struct ll_share_card share;
	uint64_t *numbers; /* of claims: one bit each */
	size_t number_words;
	uint64_t death_ns;
	bool is_woken;      /* a claim has rung */
	bool is_changed;    /* all claims are to be looked at */
	bool is_late;       /* all claims are to be looked at, and it is too soon */
	bool has_exchange;  /* it and another card have told each other of their work */
	bool is_chosen;     /* in this decision */
	uint64_t choice_ns; /* when it is to be chosen anew how the card is shared */
	uint64_t due_ns;    /* when it is to be decided anew; UINT64_MAX: when something changes */
	uint64_t all_ns;    /* when all its claims were last looked at */
	uint64_t beat_ns;
	uint64_t company_ns; /* when it was last looked who is beside whom; 0: there is one job */
};

static inline struct ll_card_claim *ll_card_claim_of(struct ll_share_claim *share)
{
	return (struct ll_card_claim *)share;
}

static inline struct ll_card_job *ll_card_job_of(struct ll_share_job *share)
{
	return (struct ll_card_job *)share;
}

/* Notes a sample, if the newer one is old enough. What the job had since the older one is what it has "lately". */
void ll_card_job_sample(struct ll_card_job *job, uint64_t now_ns);

/* The job's program under its present limits (program.h); 0: not known. */
uint64_t ll_card_job_program(const struct ll_card_job *job);

/* Something on the card is to be decided after this round of the loop. */
void ll_card_request_decision(struct ll_served_card *card);

/* Decides for the card, and for those that share a gang with it. Sets due_ns. */
void ll_cards_decide(struct ll_cards *cards, uint64_t now_ns);

/* Tells the claim what was decided: writes its orders, shuts its gate, wakes it, as far as something changed. */
void ll_card_tell(struct ll_card_claim *claim, uint64_t now_ns);

/* Takes the orders back. */
void ll_card_untell(struct ll_card_claim *claim);

/* Says to the jobs whose claims are bound that there is a daemon. Returns whether there are any. */
bool ll_card_beat(struct ll_served_card *card, uint64_t now_ns);

#endif
