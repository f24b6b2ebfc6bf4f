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
#ifndef LOADLINE_CONTROL_VISITS_H
#define LOADLINE_CONTROL_VISITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of a visit while another of the same class has work. The switch to it takes 0.14 ms, 1.7 % of it. */
#define LL_VISIT_QUANTUM_NS UINT64_C(8000000)
/* The length while the best other contender launches ahead and its last visit ended with an empty queue: such a program
 * needs short visits, and needs them often. */
#define LL_VISIT_SHORT_NS UINT64_C(2000000)
/*
 * A visit goes on for this long though nothing is queued. A program that waits for each kernel launches again within
 * the time of two switches, which leaving it would cost. One that launches ahead queues more while others of its class
 * are visited.
 */
#define LL_VISIT_GRACE_WAITS_NS UINT64_C(270000)
#define LL_VISIT_GRACE_AHEAD_NS UINT64_C(10000)
/* A contender that comes back after a pause may be behind the others by this GPU time of its own. It does not make up
 * for more idleness. */
#define LL_VISIT_LAG_NS UINT64_C(20000000)
/* The head start of a tenant that has its gang's turn, as GPU time of the contender with the least weight. */
#define LL_VISIT_GANG_NS UINT64_C(40000000)
#define LL_VISIT_PATIENCE_NS UINT64_C(1000000000)
/* The minimum service comes in slices of 1 ms, one each tenth of a second. A request of the higher class waits for one
 * slice at most. One slice of 10 ms each second would be the p99 of such requests. */
#define LL_VISIT_STARVED_NS UINT64_C(95000000)
#define LL_VISIT_SERVICE_NS UINT64_C(1000000)
/* The longest time in which the card finishes the launches of a visit before the next visit begins. A queue of a tenant
 * that waits in its host counts as finished when it ends within LL_VISIT_DRAINED_NS: the next tenant's launches take
 * that long to arrive. */
#define LL_VISIT_DRAIN_NS UINT64_C(20000000)
#define LL_VISIT_DRAINED_NS UINT64_C(300000)
/*
 * Without visits: the work that a tenant may have queued beneath a higher class that is on the card, or two launches.
 * What is queued cannot be called back, so this holds while the higher class rests too: its next launch may come at any
 * time. With more the higher class waits longer, with less the card waits for the host (doc/share.md).
 */
#define LL_QUEUE_BENEATH_NS UINT64_C(300000)

/* A process that has launches to make on the card. */
struct ll_contender {
	unsigned rank;            /* of its class: smaller goes first */
	unsigned weight_permille; /* its tenant's; 1000 is weight 1 */
	uint64_t virtual_ns;      /* its tenant's GPU time by weight, up to now (ll_visits_virtual_ns) */
	uint64_t waited_ns;       /* since it wants the card without being visited; 0 while it is visited */
	uint64_t first_card;      /* the number of its tenant's first card; 0: it has one card, or this is the first */
	bool has_tokens;          /* its cap lets it run now, and it is not held for a higher class */
	bool has_cap;             /* its tenant has a compute cap, in force or not */
	bool has_work;            /* it has launches queued, held or not */
	bool has_gang_turn;       /* its tenant is visited on the first of its cards, and this is another card */
	bool is_by_space;         /* a client of MPS, whose kernels run beside those of other clients */
	bool waits_for_each; /* of its launches (enum ll_launch_mode) or across cards, or how it launches is not known
				yet */
	bool launches_ahead; /* it is known not to: its queue fills while others are visited */
	bool waits_on_card;  /* what it launches out of its visit waits on the card, not in its host */
	bool is_paused;      /* it gave the card to a lower class for want of work, and has not launched since */
	bool overruns;       /* a launch of its visit still runs */
	bool ended_empty;    /* its last visit ended for want of work, and it launches ahead */
};

/* Returns the index of the contender that the next visit belongs to; count: none may run. */
size_t ll_visits_next(const struct ll_contender *contenders, size_t count);

/* The card, as a contender finds it that is not visited. */
struct ll_visits_present {
	const struct ll_contender *visited; /* NULL: nobody, or one that does not want the card */
	uint64_t visited_ns;                /* for how long */
	bool is_service;                    /* the visit is a minimum service, and a higher class waits */
	bool is_unresponsive;               /* it is visited for long, and has not looked for as long */
};

/* Whether the contender begins its visit without being given it: nobody is visited, or a lower class, or one whose cap
 * is used up. others: all that want the card, without its own tenant. It leaves the card to a better one of them: that
 * one takes it, or is given it. */
bool ll_visits_takes(const struct ll_visits_present *present, const struct ll_contender *self,
		     const struct ll_contender *others, size_t count);

/* Whether one of the contenders is of a higher class, and could use the card now. Then a visit of the contender is its
 * minimum service. */
bool ll_visits_has_higher(const struct ll_contender *contenders, size_t count, const struct ll_contender *contender);

/* The same for a visit that is given away. next: the index of who gets it. giver: NULL: it has no work now. */
bool ll_visits_is_service(const struct ll_contender *giver, const struct ll_contender *contenders, size_t count,
			  size_t next);

/*
 * The length at which the visit ends if nothing changes; UINT64_MAX: it goes on. best: the best of the others; NULL:
 * no other has work. visited_ns: how long the visit has lasted. queue_empty_ns: how long the visited has had nothing
 * queued.
 */
uint64_t ll_visits_end_ns(const struct ll_contender *visited, const struct ll_contender *best, uint64_t visited_ns,
			  uint64_t queue_empty_ns);

/* A visit, as the decision about its end needs it. */
struct ll_visit {
	const struct ll_contender *self; /* who is visited */
	uint64_t visited_ns;             /* for how long */
	uint64_t queue_empty_ns;         /* queue_is_empty: how long nothing of it has been queued */
	uint64_t draining_ns;            /* how long it has been draining; 0: it does not drain yet */
	uint64_t queued_ns;              /* work that the card still has of all processes of its tenant */
	bool is_service;                 /* as in struct ll_visits_present */
	bool queue_is_empty;             /* nothing of it is queued */
	bool has_busy_sibling;           /* another process of its tenant has work queued */
	bool is_overrunning;             /* a launch of the visit still runs */
	bool yields_to_gang;             /* another tenant is visited on the first card of both, and works here */
	bool had_work_elsewhere;         /* another card of its tenant said that it had work of the tenant */
	bool has_work_elsewhere;         /* and said so of late: that work may need launches here in order to end */
};

enum ll_visit_act {
	LL_VISIT_KEEPS,
	LL_VISIT_DRAINS, /* it launches nothing more, and the card finishes what it has */
	LL_VISIT_GIVES,
};

struct ll_visit_verdict {
	enum ll_visit_act act;
	bool may_launch; /* it keeps the card, and its cap lets it run */

	/* The rest is false or 0 unless the comment's act is the verdict. */
	bool tells_cards;  /* DRAINS: the tenant's other cards shall end their work too */
	size_t next;       /* GIVES: the index of the contender that is visited next */
	bool is_service;   /* GIVES: a higher class waits meanwhile, so the next visit is a minimum service */
	bool ended_empty;  /* GIVES: for want of work, and the visited launches ahead */
	bool loses_credit; /* GIVES: the visited had nothing queued: it does not use its share */
	bool is_paused; /* GIVES to a lower class for want of work: the visited asks for the card at its next launch */
};

/* others: all contenders that are not of the visited tenant. */
struct ll_visit_verdict ll_visits_decide(const struct ll_visit *visit, const struct ll_contender *others, size_t count);

/* GPU time by weight. weight_permille 1000 is weight 1; 0 is taken as 1. */
uint64_t ll_visits_virtual_ns(uint64_t gpu_ns, unsigned weight_permille);

/* The virtual time with which a contender of that weight comes back from a pause. least_ns: the least virtual time of
 * those who want the card. */
uint64_t ll_visits_come_back_ns(uint64_t virtual_ns, uint64_t least_ns, unsigned weight_permille);

#endif
