/*
 * pacer.h - keeps one card busy for the ordered share of time, from another process.
 *
 * The context lives in a worker process (worker.h): the card's own, or one that several cards share. The worker opens
 * the payload, launches a kernel per period, reads the records, and closes the payload (pacer_loop.h). The pacer is the
 * governor's side: it gives orders and takes reports through a shared page (pacer_shared.h). Neither side waits for the
 * other. When the worker ends, the driver frees everything that it had on the card. An order expires at valid_until_ns:
 * if the governor hangs in a driver call, the load stops, because nobody would watch it.
 *
 * A pacer is used by one thread at a time. Host clock: ll_now_ns().
 */
#ifndef LOADLINE_HOLD_PACER_H
#define LOADLINE_HOLD_PACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "hold/payload.h"
#include "rules/hold/contention.h"
#include "rules/hold/hold_policy.h"

struct ll_pacer;
struct ll_places;
struct ll_worker;

/* ---- when a delay is foreign work: thresholds from an H200, alone and beside foreign work (doc/facts.md, "Sensing
 * foreign work") ---- */

/* A preempted kernel loses the card for a time slice of 2 ms (a Vulkan one is not preempted). The largest gap of a load
 * that was alone was 12 us. */
#define LL_LIMIT_GAP_NS 100000

/*
 * After any foreign kernel ours starts 130 us late (a context switch), even if the card is idle by then. The largest
 * lateness of a load that was alone was 9 us, without the time of the launch call.
 */
#define LL_LIMIT_LATE_NS 60000

/* For the limit that the kernel itself applies. It includes the launch call, which took 0.3 ms at worst. */
#define LL_LIMIT_LATE_ON_CARD_NS 100000

/* For the first kernel after a pause: it may pay the switch from the program that used the card last. */
#define LL_LIMIT_FIRST_LATE_NS 300000

/* fill: how long to stay off the card after foreign work was met, about a time slice (2.1 ms). */
#define LL_STEP_BACK_NS 2200000

/* ---- the pacer ---- */

/* What the pacer does when it sees foreign work on the card. */
enum ll_pacer_manners {
	LL_PACER_YIELDS,     /* stops until an order of a new generation */
	LL_PACER_STEPS_BACK, /* launches nothing for step_back_ns, then goes on (fill) */
	LL_PACER_STAYS,      /* does not look for foreign work (ignore) */
};

struct ll_pacer_config {
	const struct ll_card *card;               /* NULL: the payload needs none */
	const struct ll_payload_ops *payload_ops; /* one of ll_payloads: the worker finds it by name */
	struct ll_worker *worker;                 /* the caller's, shared with other cards; NULL: the pacer makes one */
	/*
	 * With a shared worker: the payload to open instead if payload_ops cannot work on the card (-ENODEV, -ENOSYS).
	 * The pacer then makes a worker for this card alone. NULL: none.
	 */
	const struct ll_payload_ops *alone_ops;
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	/* where loadlined may be; the work of governed programs on the card is foreign work. NULL: it is not looked at
	 */
	const struct ll_places *jobs_places;
	const char *jobs_uuid; /* the card's, as loadlined knows it */
	int wake_fd;           /* the caller's eventfd, or -1: written when foreign work was seen, and when the
				  context is made, refused or lost */
	bool runs_in_thread;   /* for tests: a thread instead of a process. It cannot be killed. */
};

struct ll_pacer_order {
	bool is_running;
	uint32_t generation; /* a load that stopped for foreign work starts again only with a new generation */
	double ratio;        /* busy share of time, 0..1 */
	enum ll_kernel kernel;
	uint32_t blocks;
	uint32_t threads;        /* 32 or 1024 */
	uint64_t valid_until_ns; /* host clock */
};

enum ll_pacer_state {
	LL_PACER_CLOSED, /* no context, and no worker but one that other cards use */
	LL_PACER_OPENING,
	LL_PACER_OPEN,
	LL_PACER_FAILED,  /* the context could not be made: report.err says why; close, or open again */
	LL_PACER_LOST,    /* the context or its process is lost: report.err says why; close, or open again */
	LL_PACER_CLOSING, /* told to close. At CLOSED the memory and the card's own worker are gone. */
};

struct ll_pacer_report {
	enum ll_pacer_state state;
	struct ll_err err;
	bool is_bystander; /* FAILED or LOST because of another card of the same worker; try again at once */
	bool is_halted;    /* the load has stopped itself for foreign work */
	uint32_t sm_count;
	bool has_card_clock;
	uint64_t launches;
	uint64_t busy_ns;                   /* on the card, since new */
	uint64_t first_start_ns;            /* host clock; 0 before the first kernel */
	uint64_t last_end_ns;               /* host clock, of the last finished kernel */
	uint64_t foreign_seen_ns;           /* host clock, when foreign work was last seen; 0: never */
	uint64_t foreign_count;             /* how often it was seen */
	enum ll_hold_sensor foreign_sensor; /* by what it was last seen: late, gap or governed */
	struct ll_contention foreign;       /* what was last seen */
	uint64_t outstanding;               /* kernels launched and not yet read back */
	uint64_t taken_ns;                  /* host clock, when this report was made */
	char payload_name[16];              /* the back end in use; empty before the first context */
	/* of setting its contexts' time slices (slices/own.h); -ECANCELED: they stay as the driver makes them */
	int slices_rc;
	uint32_t kills; /* workers that were killed because this card's driver call hung */
	pid_t pid;      /* the worker, which the card's process list may show; 0: none */
};

/* One finished kernel. */
struct ll_interval {
	uint64_t start_ns; /* host clock */
	uint64_t end_ns;
	uint64_t card_start_ns; /* card's clock */
	uint64_t card_end_ns;
	uint32_t flags; /* enum ll_record_flags */
};

/* Makes a pacer, without worker and context. config is copied; card, worker and wake_fd must outlive the pacer. */
int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err);

/*
 * Ask for a context, and for its release. Both return at once. report.state tells how far it is; it moves on only while
 * the caller takes reports. A worker that has not closed the context LL_PACER_CLOSE_WITHIN_NS after close is killed.
 */
void ll_pacer_open(struct ll_pacer *pacer);
void ll_pacer_close(struct ll_pacer *pacer);

/* Replaces the last order. It is copied. */
void ll_pacer_send_order(struct ll_pacer *pacer, const struct ll_pacer_order *order);

/* Wakes a worker that sleeps because its kernels are stopped, so that it checks its context. Does not wait for that. */
void ll_pacer_look(struct ll_pacer *pacer);

/*
 * Stops (SIGSTOP) the worker if all its lanes sleep and its driver's threads do not, so that no thread of it costs
 * anything. It goes on when one of its lanes is called. Does nothing otherwise; call it again later.
 */
void ll_pacer_rest(struct ll_pacer *pacer);

/* Takes the state of now, and moves on an open or close that is under way. */
void ll_pacer_read_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report);

/* Takes the times of at most max finished kernels, oldest first, and returns their number. Those that are not taken
 * within 8 s are dropped. */
size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max);

/* Closing a context takes 0.1 s, and on a host with 25 busy programs for each processor over 2 s. After this time the
 * driver is taken to hang. */
#define LL_PACER_CLOSE_WITHIN_NS (6 * LL_NS_PER_S)

/*
 * Ends the load, the context and the card's own worker, and frees. True: they ended by themselves. False: the worker
 * hung in the driver and was killed after timeout_ns. Returns within timeout_ns + 0.1 s. A thread that hangs
 * (runs_in_thread) cannot be killed: it and its memory stay until the process ends.
 */
bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns);

#endif
