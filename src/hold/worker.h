/*
 * worker.h - who runs the pacers' loops: a process of its own, so that a payload's end is complete.
 *
 * Why a process: cuInit leaves 3.25 MiB on the card until its process ends (doc/facts.md); after an Xid, a sticky error
 * or a reload of the driver a process often cannot use CUDA again and a fresh one can; and a driver call that hangs can
 * be ended. It is this program once more (/proc/self/exe), started as
 *
 *     argv[0] "loadline-hold: synthetic load on GPU-..."   what ps and nvidia-smi show; all its cards, in order
 *     argv[1] LL_WORKER_WORD
 *
 * with three descriptors a lane (worker_fds.h) and no others but stderr, where drivers complain: that belongs where
 * loadline's own errors go. What a terminal or a supervisor sends to everybody (SIGINT, SIGTERM...) is blocked in it:
 * the governors get the same and end it in order.
 *
 * Lanes: a worker serves one card, or several, each in a lane: a thread of the process with a page of its own. The
 * cards of a hold that run Vulkan share one, for the driver puts 16 MiB on the machine's first card for each process
 * with an instance. All lanes are added before the first is asked for, so that a process knows all pages from its
 * start: a lane that nobody has asked for waits. A lane goes FREE -> ASKED (pacer) -> SERVED (process) -> FREE; the
 * process ends when its last lane does, and a lane that was asked for in that moment gets a fresh process.
 *
 * The keeper, a thread, starts the process, waits for its end and tells the lanes. The process is killed when the
 * thread that started it ends (PR_SET_PDEATHSIG is about the thread): the keeper stays as long as the worker, while any
 * governor may end before the others.
 *
 * A process whose lanes all sleep can be stopped (SIGSTOP), for a driver's own threads do not sleep: Vulkan's wake 113
 * times a second and cost more than all else of a hold that has yielded (doc/facts.md). It has a process group of its
 * own: a group with a stopped process that loses its shell is hung up on by the kernel.
 *
 * When the process ends unasked, all its lanes are lost with it. A lane that had nothing to do with that says so in its
 * report (is_bystander): another one's governor killed the process, or this one's context was sound and there were
 * others.
 *
 * Tests run a lane's loop in the keeper instead, for a sanitizer sees one process. A thread cannot be killed.
 */
#ifndef LOADLINE_HOLD_WORKER_H
#define LOADLINE_HOLD_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "hold/pacer_loop.h"

struct ll_err;
struct ll_worker;

#define LL_WORKER_WORD "hold-worker"

struct ll_worker_lane {
	struct ll_pacer_shared *shared;
	int page_fd;                             /* of shared */
	int governor_fd;                         /* woken when the lane is freed; -1 */
	int call_fd;                             /* wakes the lane */
	const struct ll_pacer_loop_config *loop; /* for tests: run in the keeper; the only lane then; else NULL */
};

/* Starts the keeper; no process yet. */
int ll_worker_new(size_t max_lanes, struct ll_worker **ret_worker, struct ll_err *err);

/*
 * Adds a lane and returns its number, for the calls below. lane is copied; what it points to and its descriptors stay
 * the caller's, who keeps them until ll_worker_remove: from then on nobody here touches them. A process that runs keeps
 * its own copies.
 */
size_t ll_worker_add(struct ll_worker *worker, const struct ll_worker_lane *lane);
void ll_worker_remove(struct ll_worker *worker, size_t lane);

/*
 * Call when a lane's page says ASKED: a process that runs finds it there, else one is started, which this waits for
 * (some ms). Where it cannot be started the page says FREE and FAILED.
 */
void ll_worker_ask(struct ll_worker *worker, size_t lane);

/*
 * Stops the process if all its lanes are parked (parking.h); lets it go on, for a lane that was called before
 * (ll_parking_call) and is woken after.
 */
void ll_worker_rest(struct ll_worker *worker);
void ll_worker_rouse(struct ll_worker *worker);

/* SIGKILL to the process, on account of this lane. False: there is none (a thread, or none yet). */
bool ll_worker_kill(struct ll_worker *worker, size_t lane);

/* Of the process, whichever lanes it serves; 0: none runs. */
pid_t ll_worker_pid(struct ll_worker *worker);

/*
 * Kills a process that still runs and frees. All lanes are removed. False: thread or process did not end within 0.1 s;
 * they and their memory are left to the end of this process.
 */
bool ll_worker_free(struct ll_worker *worker);

/* Whether this process was started as a worker, or somebody typed the word. */
bool ll_worker_is_asked(int argc, char **argv);

/*
 * The worker's life, in the process that was started: to be called from main before anything else. payloads: what a
 * page's payload name may be, NULL-ended. Returns only with an error: -EINVAL when it was started by hand.
 */
int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err);

#endif
