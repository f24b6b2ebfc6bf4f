/*
 * pacer.h - the thread that keeps one card busy for the ordered share of time.
 *
 * It owns the payload: opens it, launches a kernel per period, reads the records back, and closes it. It is the only
 * place where foreign work is seen within milliseconds, so in yield mode it stops by itself and tells the governor
 * afterwards.
 *
 * The governor gives orders and takes reports; neither side waits for the other. An order expires
 * (valid_until_ns): when the governor hangs in a driver call, the load ends rather than run unseen.
 */
#ifndef LOADLINE_HOLD_PACER_H
#define LOADLINE_HOLD_PACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "control/contention.h"
#include "control/hold_policy.h"
#include "hold/payload.h"

struct ll_ledger;
struct ll_pacer;

/* What the pacer does when a stranger is on the card. */
enum ll_pacer_manners {
	LL_PACER_YIELDS,     /* stops until a new order */
	LL_PACER_STEPS_BACK, /* ends the kernel, waits step_back_ns, goes on (fill) */
	LL_PACER_STAYS,      /* does not look (ignore) */
};

struct ll_pacer_config {
	const struct ll_card *card;
	const struct ll_payload_ops *payload_ops;
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	const struct ll_ledger
	    *ledger; /* governed programs' activity counts as foreign work; NULL: none. The caller's. */
	int wake_fd; /* an eventfd, written when foreign work was seen or the context is lost; -1 for none; the caller's
		      */
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
	LL_PACER_CLOSED, /* no context on the card */
	LL_PACER_OPENING,
	LL_PACER_OPEN,
	LL_PACER_FAILED, /* opening failed: report.err says why; close, or open again */
	LL_PACER_LOST,   /* the context is lost: report.err says why; close, then open again */
};

struct ll_pacer_report {
	enum ll_pacer_state state;
	struct ll_err err;
	bool is_halted; /* stopped by itself for foreign work */
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
	const char *payload_name;           /* of the back end in use; NULL before the first context */
};

/* One finished kernel. */
struct ll_interval {
	uint64_t start_ns; /* host clock */
	uint64_t end_ns;
	uint64_t card_start_ns; /* card's clock */
	uint64_t card_end_ns;
	uint32_t flags; /* enum ll_record_flags */
};

/* Starts the thread, without a context. config is copied; card must outlive the pacer. */
int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err);

/* Asks for a context, or for its release. Returns at once; report.state tells how far it is. */
void ll_pacer_open(struct ll_pacer *pacer);
void ll_pacer_close(struct ll_pacer *pacer);

void ll_pacer_order(struct ll_pacer *pacer, const struct ll_pacer_order *order);
void ll_pacer_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report);

/* Takes finished kernels' times, oldest first, at most max; returns how many. What is not taken within some seconds is
 * dropped. */
size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max);

/*
 * Ends the load, closes the context, joins the thread. False when the thread did not come back within timeout_ns (it
 * hangs in the driver): then it and its memory are left to the end of the process.
 */
bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns);

#endif
