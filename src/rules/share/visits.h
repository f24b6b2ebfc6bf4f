/*
 * visits.h - when the card is given to one tenant at a time, to whom, and for how long (doc/share.md).
 *
 * Several tenants want a card. As a rule every gate is open, and the time slices of the card serve all tenants. A
 * tenant that waits for each of its launches then gets one launch for each switch of the card (0.14 ms). While there is
 * such a tenant, the card is given for visits. In a visit one tenant launches. The launches of all other tenants wait,
 * on the card or in their hosts. A tenant is charged the length of its visits, so no kernel's duration has to be
 * estimated.
 *
 * The next visit goes to the highest class that has a contender, and within it to the contender with the least virtual
 * time: GPU time divided by weight, as in Linux's CFS. A higher class takes the card at once. Nobody waits for ever: a
 * contender that has waited for LL_VISIT_PATIENCE_NS goes before others of its class. A contender beneath a higher
 * class that has waited for LL_VISIT_STARVED_NS goes before that class, for LL_VISIT_SERVICE_NS or for one kernel,
 * whichever is longer. This is the minimum service of each tenant, 1 % of the time.
 *
 * Kernels of a tenant on several cards may wait for each other across the cards. So the tenant is a gang: it is visited
 * on all its cards together. While it is visited on the first of its cards, it has the gang's turn, and goes first on
 * the others: there its virtual time counts as less by LL_VISIT_GANG_NS, which is more than visits make virtual times
 * differ. Its share stays the same, because LL_VISIT_GANG_NS is only a head start.
 *
 * Pure arithmetic. Times are ns.
 */
#ifndef LOADLINE_RULES_SHARE_VISITS_H
#define LOADLINE_RULES_SHARE_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of a visit while another of the same class has work. The switch to it takes 0.14 ms, 1.7 % of it. */
#define LL_VISIT_QUANTUM_NS UINT64_C(8000000)
/* The length while the best other contender launches ahead and its last visit ended with an empty queue. Such a program
 * needs short visits, and needs them often. */
#define LL_VISIT_SHORT_NS UINT64_C(2000000)
/*
 * A visit continues for this long with an empty queue. A program that waits for each kernel launches again within the
 * time of two switches, which is the cost of ending its visit. A program that launches ahead fills its queue while
 * others of its class are visited.
 */
#define LL_VISIT_GRACE_WAITS_NS UINT64_C(270000)
#define LL_VISIT_GRACE_AHEAD_NS UINT64_C(10000)
/* A contender that comes back after a pause may be behind the others by this GPU time of its own. The rest of its pause
 * gives no credit. */
#define LL_VISIT_LAG_NS UINT64_C(20000000)
/* The head start of a tenant that has its gang's turn, as GPU time of the contender with the least weight. */
#define LL_VISIT_GANG_NS UINT64_C(40000000)
#define LL_VISIT_PATIENCE_NS UINT64_C(1000000000)
/* The minimum service comes in slices of 1 ms, one every tenth of a second. So a request of the higher class waits for
 * at most one slice. With one slice of 10 ms every second, that slice would be the p99 of such requests. */
#define LL_VISIT_STARVED_NS UINT64_C(95000000)
#define LL_VISIT_SERVICE_NS UINT64_C(1000000)
/* The longest time in which the card finishes the launches of a visit before the next visit begins. A queue of a tenant
 * that waits in its host counts as finished when it ends within LL_VISIT_DRAINED_NS: the next tenant's launches take
 * that long to arrive. */
#define LL_VISIT_DRAIN_NS UINT64_C(20000000)
#define LL_VISIT_DRAINED_NS UINT64_C(300000)
/*
 * Without visits: a tenant may have this much work queued, or two launches, while a higher class is on the card. Queued
 * launches cannot be cancelled. So the bound holds while the higher class rests too: its next launch may come at any
 * time. A larger bound delays the higher class, a smaller one makes the card wait for the host (doc/share.md).
 */
#define LL_QUEUE_BENEATH_NS UINT64_C(300000)

/* A process that has launches to make on the card. */
struct ll_contender {
	unsigned rank;            /* of its class: smaller goes first */
	unsigned weight_permille; /* its tenant's; 1000 is weight 1 */
	uint64_t virtual_ns;      /* its tenant's GPU time by weight, up to now (ll_visits_virtual_ns) */
	uint64_t waited_ns;       /* how long it has wanted the card without a visit; 0 while it is visited */
	uint64_t first_card;      /* the number of its tenant's first card; 0: it has one card, or this is the first */
	bool has_tokens;          /* its cap lets it run now, and it is not held for a higher class */
	bool has_cap;             /* its tenant has a compute cap, in force or not */
	bool has_work;            /* it has launches queued, held or not */
	bool has_gang_turn;       /* its tenant is visited on the first of its cards, and this is another card */
	bool is_by_space;         /* a client of MPS, whose kernels run beside those of other clients */
	bool waits_for_each; /* it waits for each of its launches (enum ll_launch_mode) or across cards, or its launch
				mode is not known yet */
	bool launches_ahead; /* it is known not to wait: its queue fills while others are visited */
	bool waits_on_card;  /* launches outside its visit wait on the card, not in its host */
	bool is_paused;      /* it gave the card to a lower class for want of work, and has not launched since */
	bool overruns;       /* a launch of its visit still runs */
	bool ended_empty;    /* its last visit ended with an empty queue, and it launches ahead */
};

/* Returns the index of the contender that gets the next visit; count: none may run. */
size_t ll_visits_next(const struct ll_contender *contenders, size_t count);

/* The state of the card for a contender that is not visited. */
struct ll_visits_present {
	/* NULL: no contender is visited, or the visited one does not want the card */
	const struct ll_contender *visited;
	uint64_t visited_ns;  /* the length of the visit so far */
	bool is_service;      /* the visit is a minimum service, and a higher class waits */
	bool is_unresponsive; /* its visit is long, and it has not looked for as long */
};

/* Whether the contender begins its visit by itself. It does so if nobody is visited, or if the visited contender is
 * unresponsive, of a lower class, or without tokens. others: all contenders that want the card, without those of its
 * own tenant. If one of them goes before the contender, the contender leaves the card to that one. */
bool ll_visits_takes(const struct ll_visits_present *present, const struct ll_contender *self,
		     const struct ll_contender *others, size_t count);

/* Whether one of the contenders is of a higher class and could use the card now. A visit of `contender` is then its
 * minimum service. */
bool ll_visits_has_higher(const struct ll_contender *contenders, size_t count, const struct ll_contender *contender);

/* The same for a visit that is given away. next: the index of the contender that gets it. giver: NULL: it has no work
 * now. */
bool ll_visits_is_service(const struct ll_contender *giver, const struct ll_contender *contenders, size_t count,
			  size_t next);

/*
 * Returns the length at which the visit ends if nothing changes; UINT64_MAX: it continues. best: the best other
 * contender; NULL: no other contender has work. visited_ns: the length of the visit so far. queue_empty_ns: how long
 * the queue of the visited contender has been empty.
 */
uint64_t ll_visits_end_ns(const struct ll_contender *visited, const struct ll_contender *best, uint64_t visited_ns,
			  uint64_t queue_empty_ns);

/* A visit: the input of the decision about its end. */
struct ll_visit {
	const struct ll_contender *self; /* the visited contender */
	uint64_t visited_ns;             /* the length of the visit so far */
	uint64_t queue_empty_ns;         /* queue_is_empty: how long its queue has been empty */
	uint64_t draining_ns;            /* how long it has been draining; 0: it is not draining */
	uint64_t queued_ns;              /* work of all processes of its tenant that the card has not completed */
	bool is_service;                 /* as in struct ll_visits_present */
	bool queue_is_empty;             /* its queue is empty */
	bool has_busy_sibling;           /* another process of its tenant has work queued */
	bool is_overrunning;             /* a launch of the visit still runs */
	bool yields_to_gang;             /* another tenant is visited on the first card of both, and works here */
	bool had_work_elsewhere;         /* another card of its tenant has reported work of the tenant */
	bool has_work_elsewhere;         /* that report is recent: the work may need launches here to complete */
};

enum ll_visit_act {
	LL_VISIT_KEEPS,
	LL_VISIT_DRAINS, /* it launches nothing more, and the card completes its queue */
	LL_VISIT_GIVES,
};

struct ll_visit_verdict {
	enum ll_visit_act act;
	bool may_launch; /* it keeps the card, and its cap lets it run */

	/* Each of these is false or 0 unless the verdict is the act that its comment names. */
	bool tells_cards;  /* DRAINS: the tenant's other cards shall complete their work too */
	size_t next;       /* GIVES: the index of the contender that is visited next */
	bool is_service;   /* GIVES: a higher class waits, so the next visit is a minimum service */
	bool ended_empty;  /* GIVES: its queue is empty, and it launches ahead */
	bool loses_credit; /* GIVES: its queue was empty, so it does not use its share */
	bool is_paused;    /* GIVES to a lower class for want of work: it requests the card at its next launch */
};

/* others: all contenders of other tenants. */
struct ll_visit_verdict ll_visits_decide(const struct ll_visit *visit, const struct ll_contender *others, size_t count);

/* GPU time by weight. weight_permille 1000 is weight 1; 0 is taken as 1. */
uint64_t ll_visits_virtual_ns(uint64_t gpu_ns, unsigned weight_permille);

/* Returns the virtual time of a contender of that weight that comes back from a pause. least_ns: the least virtual time
 * of the contenders. */
uint64_t ll_visits_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille);

#endif
