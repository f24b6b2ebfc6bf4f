/*
 * pacer.h - how kernels are paced: by a loop in a worker process, over a page that governor and loop share.
 */
#ifndef LOADLINE_HOLD_PACER_H
#define LOADLINE_HOLD_PACER_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "hold/payload.h"
#include "protocol/place.h"
#include "rules/hold/foreign.h"
#include "rules/hold/hold_policy.h"
#include "rules/share/clock_fit.h"

struct ll_card;
struct ll_err;
struct ll_pacer;
struct ll_pacer_shared;
struct ll_payload_ops;
struct ll_places;
struct ll_worker;

/* ---- parking ---- */

/*
 * When a worker's process may be stopped (SIGSTOP): what a lane's page says of its thread.
 *
 * A thread is parked while it only sleeps until it is called. The other side can keep a parked thread: if the thread
 * then wakes, it waits. So the process can be stopped while none of its threads is in the middle of something or holds
 * a page's lock. A call is counted before the thread is woken. A thread that has not heard the last call cannot be
 * kept, so no call is lost.
 *
 * The words are in shared memory and atomic. Either side may be killed at any instruction.
 */

struct ll_parking {
	_Atomic uint32_t calls; /* number of calls so far */
	_Atomic uint32_t heard; /* the number of calls that the thread knew when it parked */
	_Atomic uint32_t state;
};

/* ---- the thread's side ---- */

/* Returns the number of calls, for ll_parking_park. The thread calls it before it checks for work. */
uint32_t ll_parking_listen(const struct ll_parking *parking);

/* Parks the thread, which has nothing to do. heard: the result of ll_parking_listen. Until ll_parking_leave the thread
 * may only sleep. */
void ll_parking_park(struct ll_parking *parking, uint32_t heard);

/* Ends the parking: at once, or when the thread is no longer kept. Allowed without park. */
void ll_parking_leave(struct ll_parking *parking);

/* ---- the other side ---- */

/* Counts a call. The caller calls it before it wakes the thread. */
void ll_parking_call(struct ll_parking *parking);

/* Keeps the thread parked until let_go. False: it is not parked, or has not heard the last call. */
bool ll_parking_keep(struct ll_parking *parking);
void ll_parking_let_go(struct ll_parking *parking); /* Allowed without keep. */

/* Resets the state after the process has ended and before the next one starts. */
void ll_parking_forget(struct ll_parking *parking);

/* ---- pacer ---- */

/*
 * Keeps one card busy for the ordered share of time, from another process.
 *
 * The context lives in a worker process (pacer.h): the card's own, or one that several cards share. The worker opens
 * the payload, launches a kernel per period, reads the records, and closes the payload (pacer.h). The pacer is the
 * governor's side: it gives orders and takes reports through a shared page (pacer.h). Neither side waits for the
 * other. When the worker ends, the driver frees everything that it had on the card. An order expires at valid_until_ns:
 * if the governor hangs in a driver call, the load stops, because nobody would watch it.
 *
 * A pacer is used by one thread at a time. Host clock: ll_now_ns().
 */

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

/* ---- pacer shared ---- */

/*
 * The page of a lane, shared by governor and worker: orders one way, reports and finished kernels
 * back.
 *
 * The page is a memfd that both map. It is kept from one worker process to the next, so counters go on. Either side may
 * be killed at any instruction: the lock is robust, and half-written data under it does no harm. eventfds wake, not
 * condition variables, because a process that is killed in one leaves the others hanging. The page has no pointers.
 */

enum { LL_PACER_INTERVALS = 8192 }; /* 8 s at the shortest period; the oldest are dropped */

/* Who uses a lane (pacer.h). */
enum ll_lane_state {
	LL_LANE_FREE,   /* nothing of the lane is on the card */
	LL_LANE_ASKED,  /* the pacer asks for a context, and no worker has started on it */
	LL_LANE_SERVED, /* a worker makes, runs or closes the context, until it frees the lane or ends */
};

/* What to run. It changes only while the lane is free. */
struct ll_pacer_work {
	char card_uuid[LL_UUID_SIZE]; /* empty: the payload needs no card */
	char payload_name[16];
	struct ll_payload_config payload;
	struct ll_contention_limits limits;
	enum ll_pacer_manners manners;
	uint64_t step_back_ns;
	bool may_go_alone; /* if this payload cannot work on the card, the pacer has another one, in another worker */
	struct ll_places jobs_places; /* of loadlined; an empty name: none */
	char jobs_uuid[LL_UUID_SIZE];
};

struct ll_pacer_shared {
	uint64_t magic;
	pid_t governor_pid;
	struct ll_pacer_work work;
	struct ll_parking parking; /* of the lane's thread in the worker */

	pthread_mutex_t lock; /* guards everything below; never held over a system or driver call */
	enum ll_lane_state lane;
	bool is_ending; /* the worker is to close the lane's context */
	struct ll_pacer_order order;
	struct ll_pacer_report report;
	uint32_t halted_generation; /* the generation of orders in which the load stopped itself; 0: none */
	struct ll_interval intervals[LL_PACER_INTERVALS];
	uint64_t intervals_head, intervals_tail;
};

/* Makes a page. The caller unmaps it, and closes *ret_fd, its memfd. */
int ll_pacer_shared_new(struct ll_pacer_shared **ret_shared, int *ret_fd, struct ll_err *err);

/* Maps the page behind fd, which stays open. -EINVAL: fd is not such a page. */
int ll_pacer_shared_map(int fd, struct ll_pacer_shared **ret_shared, struct ll_err *err);

void ll_pacer_shared_unmap(struct ll_pacer_shared *shared); /* NULL is fine */

/* Sets the state, and the error if why is not NULL. Takes the lock. */
void ll_pacer_shared_state(struct ll_pacer_shared *shared, enum ll_pacer_state state, const struct ll_err *why);

/* Makes an ASKED lane SERVED. False: the lane was not ASKED. Takes the lock. */
bool ll_pacer_shared_take_lane(struct ll_pacer_shared *shared);

/* Makes the lane FREE, whose context and kernels are gone; its state CLOSED if it was to end. Call with the lock held.
 */
void ll_pacer_shared_free_lane(struct ll_pacer_shared *shared);

/*
 * Whether the lane failed because its payload cannot work on the card, and the pacer has another payload. As soon as
 * the lane is free, its thread ends and the pacer takes the page to another worker. Call with the lock held.
 */
bool ll_pacer_shared_goes_alone(const struct ll_pacer_shared *shared);

/* Sleeps until ll_pacer_wake was called for this eventfd since the last sleep, at most timeout_ms; -1: without a limit.
 */
void ll_pacer_sleep(int fd, int timeout_ms);

/* Wakes the thread that sleeps on this eventfd or polls it. -1 is fine. */
void ll_pacer_wake(int fd);

/* Waits until the thread has ended, and joins it. False: it had not at deadline_ns. */
bool ll_join_until(pthread_t thread, uint64_t deadline_ns);

static inline pthread_mutex_t *ll_pacer_shared_lock(struct ll_pacer_shared *shared)
{
	if (pthread_mutex_lock(&shared->lock) == EOWNERDEAD)
		pthread_mutex_consistent(&shared->lock);
	return &shared->lock;
}

/* Locks the page until the end of the scope. */
#define LL_SCOPE_SHARED_LOCK(shared)                                                                                   \
	pthread_mutex_t *scope_lock_ __attribute__((cleanup(ll_scope_unlock), unused)) = ll_pacer_shared_lock(shared)

/* ---- pacer loop ---- */

/*
 * The loop that launches: one payload context from open to close.
 *
 * Only this loop sees foreign work within milliseconds. So in yield mode it stops by itself first, and then tells the
 * governor. It runs in a worker process (pacer.h), in a thread for each card; in tests in a thread of the governor's
 * process.
 */

/* A kernel this late has not started: other work has the card. */
#define LL_PACER_STALL_NS (250 * LL_NS_PER_MS)

struct ll_pacer_loop_config {
	struct ll_pacer_shared *shared;
	const struct ll_card *card;
	const struct ll_payload_ops *payload_ops;
	int governor_fd; /* an eventfd, written when the state changes or foreign work is seen; -1: none */
	int call_fd;     /* a non-blocking eventfd, written when the page has something new */
};

/*
 * Makes the context, runs it as the page orders, and closes it when the page says so or when it is lost; then returns.
 * The page's state is OPEN in between. On an error the state is FAILED or LOST, and report.err has the error.
 */
void ll_pacer_loop(const struct ll_pacer_loop_config *config);

/* ---- worker ---- */

/*
 * The process in which the pacers' loops run, and the thread that keeps it.
 *
 * Why a process: cuInit leaves 3.25 MiB on the card until its process ends (doc/facts.md). After an Xid, a sticky error
 * or a reload of the driver, a process often cannot use CUDA again, and a fresh one can. And a process whose driver
 * call hangs can be killed. It is this program once more (/proc/self/exe), started as
 *
 *     argv[0] "loadline-hold: synthetic load on GPU-..."   what ps and nvidia-smi show; all its cards, in order
 *     argv[1] LL_WORKER_WORD
 *
 * with the lanes' descriptors (pacer.h). Drivers write their complaints to stderr, a pipe (base/child.h).
 * Signals that a terminal or a supervisor sends to all processes (SIGINT, SIGTERM...) are blocked in it, because the
 * governors get the same signal and end the process in order.
 *
 * Lanes: a worker serves one card or several. Each card has a lane: a thread of the process, and a page. The cards of a
 * hold that run Vulkan share one worker, because the driver puts 16 MiB on the machine's first card for each process
 * with an instance. All lanes are added before the first is asked for, so that a process knows all pages from its
 * start. A lane goes FREE -> ASKED (by the pacer) -> SERVED (by the process) -> FREE. The process ends with its last
 * served lane; a lane that is asked for in that moment gets a fresh process.
 *
 * The keeper is a thread that starts the process, waits for its end and writes that end into the lanes' pages. The
 * kernel kills the process when the thread that started it ends (PR_SET_PDEATHSIG). The keeper lives as long as the
 * worker; a governor may end earlier.
 *
 * A process whose lanes all sleep can be stopped (SIGSTOP). The driver's own threads do not sleep: Vulkan's wake 113
 * times a second, which costs more than everything else of a hold that has yielded (doc/facts.md). The process has a
 * process group of its own, because the kernel sends SIGHUP to a group that has a stopped process and loses its shell.
 *
 * If the process ends without being told to, all its lanes are lost. A lane's report says is_bystander if another
 * card's governor killed the process, or if this lane's context was sound and the process had other lanes.
 *
 * Tests run a lane's loop in the keeper, because a sanitizer sees only one process. A thread cannot be killed.
 */

struct ll_worker_lane {
	struct ll_pacer_shared *shared;
	int page_fd;                             /* the memfd of shared */
	int governor_fd;                         /* an eventfd, written when the lane is freed; -1: none */
	int call_fd;                             /* an eventfd that wakes the lane */
	const struct ll_pacer_loop_config *loop; /* for tests: runs in the keeper, as the only lane; else NULL */
};

/* Starts the keeper, and no process yet. At most max_lanes lanes can be added. */
int ll_worker_new(size_t max_lanes, struct ll_worker **ret_worker, struct ll_err *err);

/*
 * Adds a lane and returns its number for the calls below. lane is copied. What it points to and its descriptors are the
 * caller's, who keeps them until ll_worker_remove. A running process has its own copies.
 */
size_t ll_worker_add(struct ll_worker *worker, const struct ll_worker_lane *lane);
void ll_worker_remove(struct ll_worker *worker, size_t lane);

/*
 * Call when a lane's page says ASKED. A running process finds the lane there. Otherwise this starts a process, and
 * waits some ms until it runs. If it cannot be started, the page says FREE and FAILED.
 */
void ll_worker_ask(struct ll_worker *worker, size_t lane);

/*
 * rest stops the process if all its lanes are parked (pacer.h). rouse lets it go on: call ll_parking_call for the
 * lane before, and wake the lane after.
 */
void ll_worker_rest(struct ll_worker *worker);
void ll_worker_rouse(struct ll_worker *worker);

/* Kills the process because of this lane. False: there is no process (a thread, or none yet). */
bool ll_worker_kill(struct ll_worker *worker, size_t lane);

/* Returns the process, whichever lanes it serves; 0: none runs. */
pid_t ll_worker_pid(struct ll_worker *worker);

/*
 * Kills a process that still runs, and frees. All lanes must be removed before. NULL is fine. False: thread or process
 * did not end within 0.1 s; they and their memory stay until this process ends.
 */
bool ll_worker_free(struct ll_worker *worker);

/* Whether argv asks for a worker: this process was started as one, or the user typed the word. */
bool ll_worker_is_asked(int argc, char **argv);

/*
 * Runs the worker in the started process. main calls it before anything else. payloads: the payloads that a page may
 * name, NULL-ended. Returns only with an error; -EINVAL: the user typed the word.
 */
int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err);

/* argv[1] of the process. */
#define LL_WORKER_WORD "hold-worker"

#endif
