/*
 * worker.h - who runs the pacer's loop: a process of its own, so that a payload's end is complete.
 *
 * Why a process: cuInit leaves 3.25 MiB on the card until its process ends (doc/facts.md); after an Xid, a sticky error
 * or a reload of the driver a process often cannot use CUDA again and a fresh one can; and a driver call that hangs can
 * be ended. It is this program once more (/proc/self/exe), started as
 *
 *     argv[0] "loadline-hold: synthetic load on GPU-..."   what ps and nvidia-smi show
 *     argv[1] LL_WORKER_WORD
 *
 * with the pacer's page and two eventfds as descriptors 3 to 5 and no others but stderr, where drivers complain: that
 * belongs where loadline's own errors go. It ends when the page says so, and by SIGKILL when the thread that started it
 * ends, however that ends (PR_SET_PDEATHSIG is about the thread). What a terminal or a supervisor sends to
 * everybody (SIGINT, SIGTERM...) is blocked in it: the governor gets the same and ends it in order.
 *
 * Tests run the loop in a thread instead, for a sanitizer sees one process. A thread cannot be killed.
 */
#ifndef LOADLINE_HOLD_WORKER_H
#define LOADLINE_HOLD_WORKER_H

#include <pthread.h>
#include <stdbool.h>
#include <sys/types.h>

#include "hold/pacer_loop.h"

struct ll_err;

#define LL_WORKER_WORD "hold-worker"

struct ll_worker {
	bool is_running; /* started and not yet seen to have ended */
	bool is_thread;
	pid_t pid;
	pthread_t thread;
	char end_text[48]; /* how it ended: "exit status 1", "signal 9 (Killed)" */
};

/* Both leave the worker running on success. worker must not move; page_fd, governor_fd (or -1) and call_fd stay the
 * caller's. loop must outlive the thread. */
int ll_worker_start_process(struct ll_worker *worker, const char *title, int page_fd, int governor_fd, int call_fd,
			    struct ll_err *err);
int ll_worker_start_thread(struct ll_worker *worker, const struct ll_pacer_loop_config *loop, struct ll_err *err);

/* Whether it runs; reaps it when it has ended. No waiting. */
bool ll_worker_is_running(struct ll_worker *worker);

/* SIGKILL; it is gone when is_running says so. For a thread nothing. */
void ll_worker_kill(const struct ll_worker *worker);

/* Whether this process was started as a worker, or somebody typed the word. */
bool ll_worker_is_asked(int argc, char **argv);

/*
 * The worker's life, in the process that was started: to be called from main before anything else. payloads: what the
 * page's payload name may be, NULL-ended. Returns only with an error: -EINVAL when it was started by hand.
 */
int ll_worker_main(const struct ll_payload_ops *const *payloads, struct ll_err *err);

#endif
