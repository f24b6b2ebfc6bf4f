#include "hold/pacer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold/pacer_shared.h"
#include "hold/worker.h"
#include "ledger/ledger.h"

#define CLOSE_WITHIN_NS (2 * LL_NS_PER_S)   /* closing a context takes 0.1 s; longer, and the driver hangs */
#define REAP_WITHIN_NS (100 * LL_NS_PER_MS) /* from SIGKILL to the end of a process that a kernel lets end */
#define LOOK_EVERY_NS LL_NS_PER_MS

struct ll_pacer {
	struct ll_pacer_shared *shared;
	int page_fd;
	int call_fd;
	int governor_fd;
	bool wants_context;
	struct ll_worker worker;
	uint64_t kill_at_ns; /* told to end, and killed then; 0: not told */
	bool has_killed;
	char title[64 + LL_UUID_SIZE];

	bool runs_in_thread;
	struct ll_ledger *ledger; /* the thread's */
	struct ll_pacer_loop_config loop;
};

static void set_state(struct ll_pacer *pacer, enum ll_pacer_state state, const struct ll_err *why)
{
	ll_pacer_shared_state(pacer->shared, state, why);
}

static enum ll_pacer_state get_state(struct ll_pacer *pacer)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	return pacer->shared->report.state;
}

/* ---- one worker's life ---- */

static void start(struct ll_pacer *pacer)
{
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		pacer->shared->is_ending = false;
		pacer->shared->governor_pid = getpid();
		pacer->shared->report.state = LL_PACER_OPENING;
	}
	pacer->kill_at_ns = 0;
	pacer->has_killed = false;
	struct ll_err err = {0};
	int rc = pacer->runs_in_thread ? ll_worker_start_thread(&pacer->worker, &pacer->loop, &err)
				       : ll_worker_start_process(&pacer->worker, pacer->title, pacer->page_fd,
								 pacer->governor_fd, pacer->call_fd, &err);
	if (rc < 0)
		set_state(pacer, LL_PACER_FAILED, &err);
}

/* Ends the worker by this time at the latest. Without one there is no context, whatever the last one ended with. */
static void retire(struct ll_pacer *pacer, uint64_t kill_at_ns)
{
	if (!pacer->worker.is_running) {
		set_state(pacer, LL_PACER_CLOSED, NULL);
		return;
	}
	if (pacer->kill_at_ns == 0 || kill_at_ns < pacer->kill_at_ns)
		pacer->kill_at_ns = kill_at_ns;
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		pacer->shared->is_ending = true;
	}
	ll_pacer_wake(pacer->call_fd);
}

/* The worker is gone, and so is everything that it had on the card. */
static void note_end(struct ll_pacer *pacer)
{
	struct ll_err err = {0};
	ll_err_set(&err, -EIO, "the payload process ended: %s", pacer->worker.end_text);
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	struct ll_pacer_report *report = &pacer->shared->report;
	report->outstanding = 0;
	report->kills += pacer->has_killed;
	if (pacer->kill_at_ns) {
		report->state = LL_PACER_CLOSED;
	} else if (report->state == LL_PACER_OPENING || report->state == LL_PACER_OPEN) {
		report->state = report->state == LL_PACER_OPEN ? LL_PACER_LOST : LL_PACER_FAILED;
		report->err = err;
	}
}

/* Moves on as far as it goes without waiting. */
static void advance(struct ll_pacer *pacer)
{
	if (pacer->worker.is_running && !ll_worker_is_running(&pacer->worker))
		note_end(pacer);
	if (pacer->worker.is_running && pacer->kill_at_ns && !pacer->has_killed && ll_now_ns() >= pacer->kill_at_ns) {
		ll_worker_kill(&pacer->worker);
		pacer->has_killed = true;
	}
	if (!pacer->worker.is_running && pacer->wants_context && get_state(pacer) == LL_PACER_CLOSED)
		start(pacer);
}

/* ---- for the governor ---- */

static void copy_work(struct ll_pacer_work *work, const struct ll_pacer_config *config)
{
	*work = (struct ll_pacer_work){
	    .payload = config->payload,
	    .limits = config->limits,
	    .manners = config->manners,
	    .step_back_ns = config->step_back_ns,
	};
	snprintf(work->payload_name, sizeof work->payload_name, "%s", config->payload_ops->name);
	if (config->card)
		snprintf(work->card_uuid, sizeof work->card_uuid, "%s", config->card->uuid);
	if (!config->ledger_folder)
		return;
	snprintf(work->ledger_folder, sizeof work->ledger_folder, "%s", config->ledger_folder);
	snprintf(work->ledger_uuid, sizeof work->ledger_uuid, "%s", config->ledger_uuid);
}

static int init_thread(struct ll_pacer *pacer, const struct ll_pacer_config *config, struct ll_err *err)
{
	pacer->runs_in_thread = true;
	int rc = 0;
	if (config->ledger_folder)
		rc = ll_ledger_open(config->ledger_folder, config->ledger_uuid, false, &pacer->ledger, err);
	pacer->loop = (struct ll_pacer_loop_config){
	    .shared = pacer->shared,
	    .card = config->card,
	    .payload_ops = config->payload_ops,
	    .ledger = pacer->ledger,
	    .governor_fd = config->wake_fd,
	    .call_fd = pacer->call_fd,
	};
	return rc;
}

static int init(struct ll_pacer *pacer, const struct ll_pacer_config *config, struct ll_err *err)
{
	pacer->call_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (pacer->call_fd < 0)
		return ll_err_set(err, -errno, "start the pacer: %s", strerror(errno));
	int rc = ll_pacer_shared_new(&pacer->shared, &pacer->page_fd, err);
	if (rc < 0)
		return rc;
	copy_work(&pacer->shared->work, config);
	snprintf(pacer->title, sizeof pacer->title, "loadline-hold: synthetic load on %s",
		 config->card ? config->card->uuid : "no card");
	return config->runs_in_thread ? init_thread(pacer, config, err) : 0;
}

static void destroy(struct ll_pacer *pacer)
{
	ll_ledger_close(pacer->ledger);
	ll_pacer_shared_unmap(pacer->shared);
	if (pacer->page_fd >= 0)
		close(pacer->page_fd);
	if (pacer->call_fd >= 0)
		close(pacer->call_fd);
	free(pacer);
}

int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err)
{
	struct ll_pacer *pacer = calloc(1, sizeof *pacer);
	if (!pacer)
		return ll_err_set(err, -ENOMEM, "start the pacer: out of memory");
	pacer->page_fd = -1;
	pacer->governor_fd = config->wake_fd;
	int rc = init(pacer, config, err);
	if (rc < 0) {
		destroy(pacer);
		return rc;
	}
	*ret_pacer = pacer;
	return 0;
}

void ll_pacer_open(struct ll_pacer *pacer)
{
	enum ll_pacer_state state = get_state(pacer);
	pacer->wants_context = true;
	if (state == LL_PACER_FAILED || state == LL_PACER_LOST)
		retire(pacer, ll_now_ns() + CLOSE_WITHIN_NS);
	advance(pacer);
}

void ll_pacer_close(struct ll_pacer *pacer)
{
	pacer->wants_context = false;
	retire(pacer, ll_now_ns() + CLOSE_WITHIN_NS);
	advance(pacer);
}

void ll_pacer_order(struct ll_pacer *pacer, const struct ll_pacer_order *order)
{
	bool is_start;
	{
		LL_SCOPE_SHARED_LOCK(pacer->shared);
		struct ll_pacer_shared *shared = pacer->shared;
		is_start =
		    order->is_running && (!shared->order.is_running || order->generation != shared->order.generation);
		shared->order = *order;
		if (is_start)
			shared->report.is_halted = order->generation == shared->halted_generation;
	}
	if (is_start)
		ll_pacer_wake(pacer->call_fd);
}

void ll_pacer_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report)
{
	advance(pacer);
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	*ret_report = pacer->shared->report;
	if (pacer->worker.is_running && pacer->kill_at_ns)
		ret_report->state = LL_PACER_CLOSING;
	ret_report->taken_ns = ll_now_ns();
	ret_report->pid = pacer->worker.is_running ? pacer->worker.pid : 0;
}

size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max)
{
	LL_SCOPE_SHARED_LOCK(pacer->shared);
	struct ll_pacer_shared *shared = pacer->shared;
	size_t n = 0;
	while (n < max && shared->intervals_tail < shared->intervals_head)
		ret_intervals[n++] = shared->intervals[shared->intervals_tail++ % LL_PACER_INTERVALS];
	return n;
}

bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns)
{
	if (!pacer)
		return true;
	uint64_t until_ns = ll_now_ns() + timeout_ns;
	pacer->wants_context = false;
	retire(pacer, until_ns);
	for (advance(pacer); pacer->worker.is_running && ll_now_ns() < until_ns + REAP_WITHIN_NS; advance(pacer))
		ll_sleep_until_ns(ll_now_ns() + LOOK_EVERY_NS);
	bool ended_by_itself = !pacer->worker.is_running && !pacer->has_killed;
	if (pacer->worker.is_running && pacer->worker.is_thread)
		pthread_detach(pacer->worker.thread);
	else
		destroy(pacer);
	return ended_by_itself;
}
