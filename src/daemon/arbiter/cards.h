/*
 * cards.h - the cards that jobs use, and who may launch on each of them.
 *
 * A card is known by its UUID while a job is on it. Its claims are the processes that use it: slots of the jobs' pages.
 * The daemon copies the posts of the slots into its own state of the card (card.h), where the rule decides. Then it
 * writes the decision into the orders, the gates and the card words of the jobs. It does so after the calls below, once
 * in each round of the loop, and at the times that the rule requests. A card on which every order is free costs no
 * time.
 *
 * Programs write the page. A wrong value in a page can affect only the job of that page.
 *
 * The caller owns pages and orders, and keeps them mapped (writable) until the job has left the card. Times are
 * ll_now_ns. All functions are for one thread.
 */
#ifndef LOADLINE_DAEMON_ARBITER_CARDS_H
#define LOADLINE_DAEMON_ARBITER_CARDS_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "protocol/limits.h"
#include "protocol/page.h"

struct ll_served_card;
struct ll_card_job;
struct ll_card_claim;
struct ll_decisions;

struct ll_cards {
	uv_loop_t *loop;
	struct ll_served_card *cards;
	uv_poll_t timer; /* of timer_fd: its resolution is finer than that of uv's timers */
	uv_check_t check;
	uv_idle_t idle; /* active while `check` has something to decide, so that the loop does not sleep before */
	int timer_fd;
	uint64_t timer_ns;    /* when the timer is due; 0: it is not set */
	bool is_unsettled;    /* `check` and `idle` are active */
	uint64_t joins;       /* counts jobs and claims that join or leave a card */
	unsigned gang_claims; /* with a first card */
};

/*
 * Counts, for jobs that want a card together, the time and the completed launches, and writes them into their orders
 * (protocol/company.h). Call it once a second while it returns true, which means that a card has several jobs.
 */
bool ll_cards_note_company(struct ll_cards *cards, uint64_t now_ns);

/* None of the handles keeps the loop alive. Returns -errno. */
int ll_cards_init(struct ll_cards *cards, uv_loop_t *loop);

/* All jobs must have left. The caller runs the loop once more afterwards, to close the handles. */
void ll_cards_fini(struct ll_cards *cards);

/* ---- a job on a card ---- */

struct ll_card_join {
	const char *uuid;
	uint64_t id;        /* the job's number: unique, and the same on all its cards. Listings show it */
	const char *tenant; /* name of the job's tenant; stays until the job has left the card */
	struct ll_page *page;
	struct ll_orders *orders;
	unsigned index; /* of the card in the page and in the orders */
	uint32_t uid;
	struct ll_limits limits;
};

/* Writes the time of the card's last death into the job's orders. -ENOMEM. */
int ll_cards_join(struct ll_cards *cards, const struct ll_card_join *join, struct ll_card_job **ret_job);

/* Returns the decisions about a card (decisions.h); NULL: no job is on it. */
const struct ll_decisions *ll_cards_decisions(const struct ll_cards *cards, const char *uuid);

/* The caller has removed the job's claims. Opens its word. NULL is allowed. */
void ll_card_job_leave(struct ll_card_job *job);

/* The caller writes the limits into the orders, and wakes the processes. */
void ll_card_job_set_limits(struct ll_card_job *job, const struct ll_limits *limits);

/* The weight with which the card is shared, in place of that of the limits. ll_card_job_set_limits sets that of the
 * limits again. */
void ll_card_job_set_weight(struct ll_card_job *job, uint32_t weight_permille);

/* A process that had memory on the card has ended: writes that into the orders of all jobs there, and wakes their
 * claims. */
void ll_card_job_note_death(struct ll_card_job *job, uint64_t now_ns);

/* How the job is shared, and why (how_shared.h). */
struct ll_share_how;
void ll_card_job_read_how(const struct ll_card_job *job, uint64_t now_ns, struct ll_share_how *ret_how);

struct ll_card_job_view {
	uint64_t gpu_time_ns, virtual_time_ns;
	int64_t tokens_ns; /* of the cap; INT64_MAX: it has none */
	bool is_holder;    /* it has the turn */
	bool is_held;      /* it wants the card, and another job has the turn */
	enum ll_sharing sharing;
	unsigned visits_permille; /* the measured progress by visits, relative to slices; 0: unknown */
	/* of the time in which the job has work: the part in which lower classes are held for it */
	unsigned held_permille;
	/* how many times slower it runs because of lower classes, as measured; 0: unknown */
	unsigned slowdown_permille;
	unsigned slice_us;        /* of its contexts, as ordered; 0: as the driver has it */
	unsigned recent_permille; /* its part of the card's time lately */
	uint64_t recent_ns;       /* the period of recent_permille; 0: it is unknown */
	/* the program under its limits; the programs beside it now, 0: none, or unknown; the total time beside them,
	 * and the launches completed in it */
	uint64_t program, others, company_ns, company_launches;
};
void ll_card_job_read(struct ll_card_job *job, struct ll_card_job_view *ret_view);

/* ---- a claim: a process on a card ---- */

/*
 * The slot's identity must be written, by this daemon or a former one. first_card: the UUID of the job's first card, if
 * that is another one; NULL or empty: none. -ENOMEM.
 */
int ll_card_claim_add(struct ll_card_job *job, unsigned slot, const char *first_card, struct ll_card_claim **ret_claim);

/* If the claim has the turn, passes it on. Clears its orders. The slot is not read afterwards. NULL is allowed. */
void ll_card_claim_remove(struct ll_card_claim *claim);

/* The number of the claim among those of the card, from 0. It is the slot's own number (ll_page_slot.number) if that is
 * free, else the lowest free one. The slot has the number from then on. */
unsigned ll_card_claim_number(const struct ll_card_claim *claim);

/* The process has sent WAKE: reads its slot again and decides. */
void ll_card_claim_wake(struct ll_card_claim *claim);

/* Orders the process off the card, also in the midst of a kernel, or on it again. A loadlined that takes over keeps the
 * order. -EOPNOTSUPP: the process cannot be taken off; -EAGAIN: it does not know yet. */
int ll_card_claim_suspend(struct ll_card_claim *claim, bool is_suspended);

struct ll_card_claim_view {
	bool is_wanting;      /* it has launches that wait or run */
	bool is_holder;       /* its job has the turn */
	bool is_held;         /* it wants the card, and another job has the turn */
	bool is_unresponsive; /* it wants the card, and has not posted for LL_SHARE_UNRESPONSIVE_NS: it is stopped, or
				 hangs */
	bool is_suspended;    /* by ll_card_claim_suspend */
	bool is_off;          /* its process says that it is off the card */
};
void ll_card_claim_read(const struct ll_card_claim *claim, struct ll_card_claim_view *ret_view);

/* Whether the claim wants the card, or wanted it in the last within_ns. */
bool ll_card_claim_has_wanted(const struct ll_card_claim *claim, uint64_t within_ns);

/* ---- for tests and benches ---- */

/* Decides at once, without waiting for the next round of the loop. */
void ll_cards_settle(struct ll_cards *cards, uint64_t now_ns);

#endif
