/*
 * pacer.h - keeps one card busy for the ordered share of time, in another process.
 *
 * Each context lives in a worker process (worker.h), of its own or shared with other cards, which owns the payload: it
 * opens it, launches a kernel per period, reads the records back, and closes it (pacer_loop.h). This side, in the
 * governor's process, gives orders and takes reports through a shared page (pacer_shared.h); neither waits for the
 * other. When the worker is gone so is all that it had on the card. An order expires (valid_until_ns): when the
 * governor hangs in a driver call, the load ends rather than run unseen.
 *
 * A pacer is used by one thread at a time.
 */
#ifndef LOADLINE_HOLD_PACER_H
#define LOADLINE_HOLD_PACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "control/contention.h"
#include "control/hold_policy.h"
#include "hold/payload.h"

struct ll_pacer;
struct ll_worker;

/* What the pacer does when a stranger is on the card. */
enum ll_pacer_manners {
	LL_PACER_YIELDS,     /* stops until a new order */
	LL_PACER_STEPS_BACK, /* ends the kernel, waits step_back_ns, goes on (fill) */
	LL_PACER_STAYS,      /* does not look (ignore) */
};

struct ll_pacer_config {
	const struct ll_card *card;               /* NULL: the payload needs none */
	const struct ll_payload_ops *payload_ops; /* one that the worker knows by name */
	struct ll_worker *worker;                 /* shared with other cards, and the caller's; NULL: one of its own */
	/*
	 * With a shared worker: what to open instead, and from then on in a worker of its own, where payload_ops cannot
	 * work at all (-ENODEV, -ENOSYS). NULL: nothing.
	 */
	const struct ll_payload_ops *alone_ops;
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	const char *ledger_folder; /* governed programs' activity there counts as foreign work; NULL: none */
	const char *ledger_uuid;   /* of the card, as the ledger's file is named */
	int wake_fd;               /* an eventfd, written when foreign work was seen or the context is made, refused or
				      lost; -1 for none; the caller's */
	bool runs_in_thread;       /* for tests: a thread instead of a process, which nothing can kill */
};

struct ll_pacer_order {
	bool is_running;
	uint32_t generation; /* a pacer that stopped by itself starts again only for a new generation */
	double ratio;        /* busy share of time, 0..1 */
	enum ll_kernel kernel;
	uint32_t blocks;
	uint32_t threads;        /* 32 or 1024 */
	uint64_t valid_until_ns; /* ll_now_ns clock */
};

enum ll_pacer_state {
	LL_PACER_CLOSED, /* no context on the card; a worker only for other cards */
	LL_PACER_OPENING,
	LL_PACER_OPEN,
	LL_PACER_FAILED,  /* opening failed: report.err says why; close, or open again */
	LL_PACER_LOST,    /* the context or its process is lost: report.err says why; close, or open again */
	LL_PACER_CLOSING, /* told to end; when it is CLOSED, memory and a process of its own are gone */
};

struct ll_pacer_report {
	enum ll_pacer_state state;
	struct ll_err err;
	bool is_bystander; /* FAILED or LOST with a worker that ended for another card's sake; try again at once */
	bool is_halted;    /* stopped by itself for foreign work */
	uint32_t sm_count;
	bool has_card_clock;
	uint64_t launches;
	uint64_t busy_ns;         /* on the card, since new */
	uint64_t first_start_ns;  /* host clock; 0 before the first kernel */
	uint64_t last_end_ns;     /* host clock, of the last finished kernel */
	uint64_t foreign_seen_ns; /* host clock, when foreign work was last sensed; 0 never */
	uint64_t foreign_count;
	enum ll_hold_sensor foreign_sensor; /* late, gap or ledger */
	struct ll_contention foreign;       /* what was seen then */
	uint64_t outstanding;               /* launched, not yet finished */
	uint64_t taken_ns;                  /* host clock, when this report was made */
	char payload_name[16];              /* of the back end in use; empty before the first context */
	uint32_t kills;                     /* workers that hung in this card's driver calls and were killed for it */
	pid_t pid;                          /* of the worker, which the card's process list may show; 0: none */
};

/* One finished kernel. */
struct ll_interval {
	uint64_t start_ns; /* host clock */
	uint64_t end_ns;
	uint64_t card_start_ns; /* card's clock */
	uint64_t card_end_ns;
	uint32_t flags; /* enum ll_record_flags */
};

/* Makes ready, without worker or context. config is copied; card must outlive the pacer. */
int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err);

/*
 * Asks for a context, or for its release. Returns at once; report.state tells how far it is, as far as reports are
 * taken. A worker that has not closed the context 2 s after it was told to is killed.
 */
void ll_pacer_open(struct ll_pacer *pacer);
void ll_pacer_close(struct ll_pacer *pacer);

void ll_pacer_order(struct ll_pacer *pacer, const struct ll_pacer_order *order);

/* A worker whose kernels are stopped sleeps; this makes it look whether its context is still sound. Does not wait. */
void ll_pacer_look(struct ll_pacer *pacer);

/*
 * Stops (SIGSTOP) a worker that sleeps in all its lanes and whose driver does not, until one of them is called: then no
 * thread of it costs anything. Nothing happens where that is not so; say it again.
 */
void ll_pacer_rest(struct ll_pacer *pacer);

void ll_pacer_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report);

/* Takes finished kernels' times, oldest first, at most max; returns how many. What is not taken within some seconds is
 * dropped. */
size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max);

/*
 * Ends the load, the context and the worker that is not shared, and frees. True: it ended by itself. False: it had to
 * be killed after timeout_ns, for it hung in the driver. Comes back within timeout_ns and 0.1 s in any case. (A thread
 * that hangs cannot be killed: it and its memory are left to the end of the process.)
 */
bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns);

#endif
