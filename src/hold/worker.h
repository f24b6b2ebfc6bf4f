/*
 * worker.h - the process in which the pacers' loops run, and the thread that keeps it.
 *
 * Why a process: cuInit leaves 3.25 MiB on the card until its process ends (doc/facts.md). After an Xid, a sticky error
 * or a reload of the driver, a process often cannot use CUDA again, and a fresh one can. And a process whose driver
 * call hangs can be killed. It is this program once more (/proc/self/exe), started as
 *
 *     argv[0] "loadline-hold: synthetic load on GPU-..."   what ps and nvidia-smi show; all its cards, in order
 *     argv[1] LL_WORKER_WORD
 *
 * with the lanes' descriptors (worker_spawn.h). Drivers write their complaints to stderr, a pipe (base/relay.h).
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
#ifndef LOADLINE_HOLD_WORKER_H
#define LOADLINE_HOLD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "hold/pacer_loop.h"

struct ll_err;
struct ll_worker;

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
 * rest stops the process if all its lanes are parked (parking.h). rouse lets it go on: call ll_parking_call for the
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

#endif
