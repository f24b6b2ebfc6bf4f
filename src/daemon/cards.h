/*
 * cards.h - the cards that jobs use, and who may launch on each of them.
 *
 * A card is known by its UUID while a job is on it. Its claims are the processes that use it: slots of the jobs' pages.
 * What the claims say in their slots goes into the daemon's own books of the card (share/), the rule decides there, and
 * what was decided goes into the orders, the gates and the card words of the jobs. All of that happens after the calls
 * below, once in each round of the loop, and at the times that the rule needs. A card on which every order is free
 * costs nothing.
 *
 * A page is written by programs: nothing that is read there is believed beyond what it does to its own job.
 *
 * Pages and orders belong to the caller, and stay mapped (writable) until the job has left the card. Times are
 * ll_now_ns. One thread.
 */
#ifndef LOADLINE_DAEMON_CARDS_H
#define LOADLINE_DAEMON_CARDS_H

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
	uv_poll_t timer; /* of timer_fd: finer than uv's timers */
	uv_check_t check;
	uv_idle_t idle; /* active while `check` has something to decide: the loop does not sleep before */
	int timer_fd;
	uint64_t timer_ns;    /* when the timer is due; 0: it is not set */
	bool is_unsettled;    /* `check` and `idle` are active */
	uint64_t joins;       /* counts changes of who is on which card */
	unsigned gang_claims; /* with a first card */
};

/*
 * Counts how jobs that want a card together get on, into their orders (protocol/company.h). To be called once a second
 * while it returns true: a card has several jobs.
 */
bool ll_cards_note_company(struct ll_cards *cards, uint64_t now_ns);

/* None of the handles keeps the loop alive. -errno. */
int ll_cards_init(struct ll_cards *cards, uv_loop_t *loop);

/* All jobs must have left. The loop is to be run once more, for the handles. */
void ll_cards_fini(struct ll_cards *cards);

/* ---- a job on a card ---- */

struct ll_card_join {
	const char *uuid;
	uint64_t id;        /* the job's number: the same on all its cards, and no other job's. Listings show it */
	const char *tenant; /* name of the job's tenant; stays until the job has left the card */
	struct ll_page *page;
	struct ll_orders *orders;
	unsigned index; /* of the card in the page and in the orders */
	uint32_t uid;
	struct ll_limits limits;
};

/* Writes what the job must know of the card's deaths into its orders. -ENOMEM. */
int ll_cards_join(struct ll_cards *cards, const struct ll_card_join *join, struct ll_card_job **ret_job);

/* What was decided of a card (share/decisions.h). NULL: no job is on it. */
const struct ll_decisions *ll_cards_decisions(const struct ll_cards *cards, const char *uuid);

/* Its claims must have been removed. Opens its word. NULL is fine. */
void ll_card_job_leave(struct ll_card_job *job);

/* The caller writes them into the orders, and wakes the processes. */
void ll_card_job_set_limits(struct ll_card_job *job, const struct ll_limits *limits);

/* A process that had memory on the card has ended: says so in the orders of all jobs there, and wakes their claims
 * there. */
void ll_card_job_note_death(struct ll_card_job *job, uint64_t now_ns);

/* How the job is shared, and why (share/how_shared.h). */
struct ll_share_how;
void ll_card_job_read_how(const struct ll_card_job *job, uint64_t now_ns, struct ll_share_how *ret_how);

struct ll_card_job_view {
	uint64_t gpu_time_ns, virtual_time_ns;
	int64_t tokens_ns; /* of the cap; INT64_MAX: it has none */
	bool is_holder;    /* it has the turn */
	bool is_held;      /* it wants the card, and another job has the turn */
	enum ll_sharing sharing;
	unsigned visits_permille;   /* as measured, the progress by visits of that by slices; 0: it is not known */
	unsigned held_permille;     /* of the time in which it has work lower classes are held for it */
	unsigned slowdown_permille; /* because of them, as it was seen; 0: it is not known */
	unsigned recent_permille;   /* its part of the card's time lately */
	uint64_t recent_ns;         /* how long that is; 0: it is not known yet */
	/* the program under its limits; whom it is beside now, 0: nobody, or not known; for how long it has been in
	 * all, and what it completed then */
	uint64_t program, others, company_ns, company_launches;
};
void ll_card_job_read(struct ll_card_job *job, struct ll_card_job_view *ret_view);

/* ---- a claim: a process on a card ---- */

/*
 * The slot's identity is written, or is as a former daemon left it. first_card: the UUID of the job's first card, if
 * this is another one; NULL or empty: none. -ENOMEM.
 */
int ll_card_claim_add(struct ll_card_job *job, unsigned slot, const char *first_card, struct ll_card_claim **ret_claim);

/* Passes the turn on if the claim has it. Clears its orders. The slot is not looked at from here on. NULL is fine. */
void ll_card_claim_remove(struct ll_card_claim *claim);

/* The number of the claim among those of the card, from 0: the slot's own (ll_page_slot.number) if that is free, else
 * the least that is free when the claim is added. It is in the slot from then on. */
unsigned ll_card_claim_number(const struct ll_card_claim *claim);

/* The process rang: its slot is read again, and decided about. */
void ll_card_claim_wake(struct ll_card_claim *claim);

struct ll_card_claim_view {
	bool is_wanting;      /* it has launches that wait or run */
	bool is_holder;       /* its job has the turn */
	bool is_held;         /* it wants the card, and another job has the turn */
	bool is_unresponsive; /* it wants the card, and has not posted for LL_TURN_DEAF_NS: it is stopped, or hangs */
};
void ll_card_claim_read(const struct ll_card_claim *claim, struct ll_card_claim_view *ret_view);

/* ---- for tests and benches ---- */

/* Decides at once, as the loop would after its next round. */
void ll_cards_settle(struct ll_cards *cards, uint64_t now_ns);

#endif
