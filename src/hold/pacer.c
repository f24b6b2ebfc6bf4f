#include "hold/pacer.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/scope.h"
#include "control/duty.h"
#include "hold/flight.h"
#include "hold/limits.h"
#include "ledger/ledger.h"

enum {
	INTERVAL_SLOTS = 8192, /* 8 s at the shortest period */
	MAX_IN_FLIGHT = 4,     /* more would only lengthen the way out */
};

#define IDLE_TICK_NS (250 * LL_NS_PER_MS) /* how often a stopped pacer looks at its context */
#define CHECK_EVERY_NS (250 * LL_NS_PER_MS)
#define STALL_NS (250 * LL_NS_PER_MS) /* a kernel this late has not got the card at all; it will end at once when it does */
#define PAUSE_NS (50 * LL_NS_PER_MS) /* longer than any period: the next kernel is a first one */
#define HANG_NS (2 * LL_NS_PER_S)    /* a kernel this late means a dead context */

struct ll_pacer {
	struct ll_pacer_config config;
	pthread_t thread;

	pthread_mutex_t lock; /* guards everything down to the next blank line */
	pthread_cond_t changed;
	struct ll_pacer_order order;
	struct ll_pacer_report report;
	bool wants_context;
	bool is_ending;
	uint64_t changes;           /* counts what the thread must look at; it sleeps only while nothing new has come */
	uint32_t halted_generation; /* the generation it stopped itself in, 0 for none */
	struct ll_interval intervals[INTERVAL_SLOTS];
	uint64_t intervals_head, intervals_tail;

	/* The thread's own. */
	struct ll_payload *payload;
	struct ll_flight flight;
	struct ll_duty duty;
	bool was_running;
	uint32_t epoch;
	uint64_t running_since_ns;
	uint64_t tick_ns;
	uint64_t step_back_until_ns;
	uint64_t checked_ns;
	uint64_t launched_ns;
};

/* Called with the lock held. */
static void wake_pacer(struct ll_pacer *pacer)
{
	pacer->changes++;
	pthread_cond_signal(&pacer->changed);
}

static void wake_governor(const struct ll_pacer *pacer)
{
	if (pacer->config.wake_fd < 0)
		return;
	uint64_t one = 1;
	/* Full only when the governor has not looked for 2^64 events: nothing is lost. */
	ssize_t n = write(pacer->config.wake_fd, &one, sizeof one);
	(void)n;
}

static void set_state(struct ll_pacer *pacer, enum ll_pacer_state state, const struct ll_err *why)
{
	{
		LL_SCOPE_LOCK(&pacer->lock);
		pacer->report.state = state;
		if (why)
			pacer->report.err = *why;
	}
	wake_governor(pacer);
}

static void open_context(struct ll_pacer *pacer)
{
	set_state(pacer, LL_PACER_OPENING, NULL);
	struct ll_err err = {0};
	int rc = pacer->config.payload_ops->open(pacer->config.card, &pacer->config.payload, &pacer->payload, &err);
	if (rc < 0) {
		set_state(pacer, LL_PACER_FAILED, &err);
		return;
	}
	ll_flight_init(&pacer->flight, pacer->payload->records);
	pacer->epoch++;
	pacer->was_running = false;
	{
		LL_SCOPE_LOCK(&pacer->lock);
		pacer->report.payload_name = pacer->payload->ops->name;
		pacer->report.sm_count = pacer->payload->sm_count;
		pacer->report.has_card_clock = pacer->payload->has_card_clock;
	}
	set_state(pacer, LL_PACER_OPEN, NULL);
}

static void close_context(struct ll_pacer *pacer)
{
	if (pacer->payload)
		pacer->payload->ops->close(pacer->payload);
	pacer->payload = NULL;
	ll_flight_init(&pacer->flight, NULL);
	set_state(pacer, LL_PACER_CLOSED, NULL);
}

static void lose_context(struct ll_pacer *pacer, const struct ll_err *why)
{
	set_state(pacer, LL_PACER_LOST, why);
}

/* Called with the lock held. */
static void store_interval(struct ll_pacer *pacer, struct ll_interval interval)
{
	if (pacer->intervals_head - pacer->intervals_tail == INTERVAL_SLOTS)
		pacer->intervals_tail++;
	pacer->intervals[pacer->intervals_head++ % INTERVAL_SLOTS] = interval;
}

static void note_run(struct ll_pacer *pacer, const struct ll_flight_run *run)
{
	LL_SCOPE_LOCK(&pacer->lock);
	struct ll_pacer_report *report = &pacer->report;
	report->outstanding = ll_flight_outstanding(&pacer->flight);
	report->busy_ns += run->interval.end_ns - run->interval.start_ns;
	report->last_end_ns = run->interval.end_ns;
	if (report->first_start_ns == 0)
		report->first_start_ns = run->interval.start_ns;
	store_interval(pacer, run->interval);
}

static void note_foreign(struct ll_pacer *pacer, enum ll_hold_sensor sensor, struct ll_contention seen)
{
	uint64_t now_ns = ll_now_ns();
	{
		LL_SCOPE_LOCK(&pacer->lock);
		pacer->report.foreign_seen_ns = now_ns;
		pacer->report.foreign_count++;
		pacer->report.foreign_sensor = sensor;
		pacer->report.foreign = seen;
		if (pacer->config.manners == LL_PACER_YIELDS) {
			pacer->halted_generation = pacer->order.generation;
			pacer->report.is_halted = true;
		}
	}
	pacer->step_back_until_ns = now_ns + pacer->config.step_back_ns;
	wake_governor(pacer);
}

/* A governed program has said in the shared page that it has work: known before its first kernel starts. */
static bool ledger_is_active(const struct ll_pacer *pacer)
{
	return pacer->config.ledger && pacer->config.manners == LL_PACER_YIELDS &&
	       ll_ledger_activity_ns(pacer->config.ledger) > pacer->running_since_ns;
}

static bool looks_for_strangers(const struct ll_pacer *pacer)
{
	return pacer->config.manners != LL_PACER_STAYS && pacer->payload->has_card_clock &&
	       !pacer->config.payload.as_mps_client;
}

/* Reads back what has finished; says whether a stranger was met. */
static bool collect(struct ll_pacer *pacer, struct ll_contention *ret_seen)
{
	bool is_foreign = false;
	struct ll_flight_run run;
	while (ll_flight_collect(&pacer->flight, &pacer->config.limits, &run)) {
		note_run(pacer, &run);
		ll_duty_refund(&pacer->duty, run.unused_ns);
		if (run.interval.flags != 0)
			pacer->epoch++; /* that epoch is stopped on the card, rightly or not */
		if (run.contention.is_foreign && !is_foreign) {
			is_foreign = true;
			*ret_seen = run.contention;
		}
	}
	uint64_t overdue_ns = ll_flight_overdue_ns(&pacer->flight, ll_now_ns());
	if (overdue_ns > STALL_NS && !is_foreign) {
		is_foreign = true;
		*ret_seen = (struct ll_contention){.late_ns = overdue_ns, .is_foreign = true};
	}
	return is_foreign && looks_for_strangers(pacer);
}

/* Whether so long ago something of ours ran that a switch to our context would not be remarkable. */
static bool submit_after_pause(const struct ll_pacer *pacer)
{
	return ll_now_ns() - pacer->launched_ns > PAUSE_NS;
}

static bool launch(struct ll_pacer *pacer, const struct ll_pacer_order *order, uint64_t length_ns)
{
	bool is_alert = looks_for_strangers(pacer);
	bool is_first = submit_after_pause(pacer);
	struct ll_launch launch = {
	    .kernel = order->kernel,
	    .blocks = order->blocks,
	    .threads = order->threads,
	    .length_ns = length_ns,
	    .gap_limit_ns = is_alert ? pacer->config.limits.gap_ns : 0,
	    .epoch = pacer->epoch,
	    .sequence = ll_flight_next_sequence(&pacer->flight),
	};
	uint64_t submit_ns = ll_now_ns();
	if (is_alert && !is_first)
		launch.late_after_ns = ll_flight_late_after(&pacer->flight, submit_ns, LL_LIMIT_LATE_ON_CARD_NS);
	struct ll_err err = {0};
	int rc = pacer->payload->ops->launch(pacer->payload, &launch, &err);
	if (rc == -EAGAIN) {
		ll_duty_refund(&pacer->duty, length_ns);
		return false;
	}
	if (rc < 0) {
		lose_context(pacer, &err);
		return false;
	}
	ll_flight_launched(&pacer->flight, submit_ns, ll_now_ns(), length_ns, is_first);
	pacer->launched_ns = submit_ns;
	LL_SCOPE_LOCK(&pacer->lock);
	pacer->report.launches++;
	pacer->report.outstanding = ll_flight_outstanding(&pacer->flight);
	return true;
}

/* One kernel as a rule, more when the host has come late: a kernel is never longer than a period. */
static void launch_owed(struct ll_pacer *pacer, const struct ll_pacer_order *order, uint64_t now_ns)
{
	while (ll_flight_outstanding(&pacer->flight) < MAX_IN_FLIGHT) {
		uint64_t length_ns = ll_duty_next_ns(&pacer->duty, now_ns, order->ratio);
		if (length_ns == 0 || !launch(pacer, order, length_ns) || length_ns < LL_DUTY_KERNEL_MAX_NS)
			return;
	}
}

/* A context that answers no more is lost, whatever the driver says. */
static void check_context(struct ll_pacer *pacer, uint64_t now_ns)
{
	if (now_ns - pacer->checked_ns < CHECK_EVERY_NS)
		return;
	pacer->checked_ns = now_ns;
	struct ll_err err = {0};
	if (pacer->payload->ops->check(pacer->payload, &err) < 0) {
		lose_context(pacer, &err);
		return;
	}
	if (ll_flight_overdue_ns(&pacer->flight, now_ns) > HANG_NS) {
		ll_err_set(&err, -EIO, "a kernel has not come back for %u ms", (unsigned)(HANG_NS / LL_NS_PER_MS));
		lose_context(pacer, &err);
	}
}

/* One period: read back, decide, launch. */
static void run_tick(struct ll_pacer *pacer, const struct ll_pacer_order *order)
{
	uint64_t now_ns = ll_now_ns();
	if (!pacer->was_running) {
		pacer->was_running = true;
		pacer->running_since_ns = now_ns;
		pacer->epoch++;
		ll_duty_restart(&pacer->duty, now_ns);
		pacer->tick_ns = now_ns;
		pacer->step_back_until_ns = 0;
	}
	check_context(pacer, now_ns);
	struct ll_contention seen;
	if (collect(pacer, &seen)) {
		note_foreign(pacer, seen.gap_ns > pacer->config.limits.gap_ns ? LL_SENSOR_GAP : LL_SENSOR_LATE, seen);
		if (pacer->config.manners == LL_PACER_YIELDS)
			return;
	}
	if (ledger_is_active(pacer)) {
		note_foreign(pacer, LL_SENSOR_LEDGER, (struct ll_contention){0});
		return;
	}
	if (now_ns >= pacer->step_back_until_ns)
		launch_owed(pacer, order, now_ns);
	pacer->tick_ns += LL_DUTY_PERIOD_NS;
	if (pacer->tick_ns < now_ns)
		pacer->tick_ns = now_ns + LL_DUTY_PERIOD_NS;
}

static void idle_tick(struct ll_pacer *pacer)
{
	pacer->was_running = false;
	struct ll_contention seen;
	if (pacer->payload) {
		collect(pacer, &seen);
		check_context(pacer, ll_now_ns());
	}
}

/* Waits for the next period, or for a change when there is nothing to run. */
static void wait_tick(struct ll_pacer *pacer, bool is_running, uint64_t seen_changes)
{
	if (is_running) {
		ll_sleep_until_ns(pacer->tick_ns);
		return;
	}
	bool is_draining = ll_flight_outstanding(&pacer->flight) > 0;
	uint64_t until_ns = ll_now_ns() + (is_draining ? LL_NS_PER_MS : IDLE_TICK_NS);
	struct timespec until = {
	    .tv_sec = (time_t)(until_ns / LL_NS_PER_S),
	    .tv_nsec = (long)(until_ns % LL_NS_PER_S),
	};
	LL_SCOPE_LOCK(&pacer->lock);
	if (pacer->changes == seen_changes)
		pthread_cond_timedwait(&pacer->changed, &pacer->lock, &until);
}

static bool may_run(const struct ll_pacer *pacer, const struct ll_pacer_order *order, uint32_t halted_generation)
{
	return pacer->payload && order->is_running && order->generation != halted_generation &&
	       ll_now_ns() < order->valid_until_ns;
}

static void *pacer_main(void *arg)
{
	struct ll_pacer *pacer = arg;
	pthread_setname_np(pthread_self(), "ll-pacer");
	prctl(PR_SET_TIMERSLACK, 1UL); /* the default of 50 us would blur every period */
	for (;;) {
		struct ll_pacer_order order;
		bool wants_context, is_ending;
		uint32_t halted_generation;
		uint64_t changes;
		enum ll_pacer_state state;
		{
			LL_SCOPE_LOCK(&pacer->lock);
			order = pacer->order;
			wants_context = pacer->wants_context;
			is_ending = pacer->is_ending;
			halted_generation = pacer->halted_generation;
			state = pacer->report.state;
			changes = pacer->changes;
		}
		if (is_ending)
			break;
		if (wants_context != (state != LL_PACER_CLOSED)) {
			wants_context ? open_context(pacer) : close_context(pacer);
			continue;
		}
		bool is_running = state == LL_PACER_OPEN && may_run(pacer, &order, halted_generation);
		if (is_running)
			run_tick(pacer, &order);
		else if (state == LL_PACER_OPEN)
			idle_tick(pacer);
		wait_tick(pacer, is_running, changes);
	}
	close_context(pacer);
	return NULL;
}

static int init_sync(struct ll_pacer *pacer)
{
	pthread_condattr_t attr;
	pthread_condattr_init(&attr);
	pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
	int rc = pthread_cond_init(&pacer->changed, &attr);
	pthread_condattr_destroy(&attr);
	return rc ? rc : pthread_mutex_init(&pacer->lock, NULL);
}

int ll_pacer_new(const struct ll_pacer_config *config, struct ll_pacer **ret_pacer, struct ll_err *err)
{
	struct ll_pacer *pacer = calloc(1, sizeof *pacer);
	if (!pacer)
		return ll_err_set(err, -ENOMEM, "start the pacer: out of memory");
	pacer->config = *config;
	int rc = init_sync(pacer);
	if (rc == 0)
		rc = pthread_create(&pacer->thread, NULL, pacer_main, pacer);
	if (rc != 0) {
		free(pacer);
		return ll_err_set(err, -rc, "start the pacer: %s", strerror(rc));
	}
	*ret_pacer = pacer;
	return 0;
}

static void want_context(struct ll_pacer *pacer, bool wants)
{
	LL_SCOPE_LOCK(&pacer->lock);
	pacer->wants_context = wants;
	wake_pacer(pacer);
}

void ll_pacer_open(struct ll_pacer *pacer)
{
	want_context(pacer, true);
}

void ll_pacer_close(struct ll_pacer *pacer)
{
	want_context(pacer, false);
}

void ll_pacer_order(struct ll_pacer *pacer, const struct ll_pacer_order *order)
{
	LL_SCOPE_LOCK(&pacer->lock);
	bool is_start = order->is_running && (!pacer->order.is_running || order->generation != pacer->order.generation);
	pacer->order = *order;
	if (!is_start)
		return;
	pacer->report.is_halted = order->generation == pacer->halted_generation;
	wake_pacer(pacer);
}

void ll_pacer_report(struct ll_pacer *pacer, struct ll_pacer_report *ret_report)
{
	LL_SCOPE_LOCK(&pacer->lock);
	*ret_report = pacer->report;
	ret_report->taken_ns = ll_now_ns();
}

size_t ll_pacer_take_intervals(struct ll_pacer *pacer, struct ll_interval *ret_intervals, size_t max)
{
	LL_SCOPE_LOCK(&pacer->lock);
	size_t n = 0;
	while (n < max && pacer->intervals_tail < pacer->intervals_head)
		ret_intervals[n++] = pacer->intervals[pacer->intervals_tail++ % INTERVAL_SLOTS];
	return n;
}

bool ll_pacer_free(struct ll_pacer *pacer, uint64_t timeout_ns)
{
	if (!pacer)
		return true;
	{
		LL_SCOPE_LOCK(&pacer->lock);
		pacer->is_ending = true;
		wake_pacer(pacer);
	}
	uint64_t until_ns = ll_now_ns() + timeout_ns;
	struct timespec until = {
	    .tv_sec = (time_t)(until_ns / LL_NS_PER_S),
	    .tv_nsec = (long)(until_ns % LL_NS_PER_S),
	};
	if (pthread_clockjoin_np(pacer->thread, NULL, CLOCK_MONOTONIC, &until) != 0)
		return false;
	pthread_cond_destroy(&pacer->changed);
	pthread_mutex_destroy(&pacer->lock);
	free(pacer);
	return true;
}
