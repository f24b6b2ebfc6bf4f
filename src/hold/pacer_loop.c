#include "hold/pacer.h"

#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "hold/others.h"
#include "rules/hold/level.h"
#include "slices/own.h"

/* ---- flight ---- */

/*
 * The kernels in flight: launched and not yet read back.
 *
 * For each it keeps what the host knew at its launch. When the kernel has written its record, the two give one run,
 * with a judgement whether foreign work ran. Kernels of a payload run one after another in launch order.
 */

struct flight_slot {
	uint64_t submit_ns;    /* host clock, before the launch call */
	uint64_t submitted_ns; /* host clock, after it */
	uint64_t length_ns;
	uint64_t due_ns; /* host clock: when the kernel should end */
	bool is_first;   /* the first after a pause: the card may have to switch contexts */
};

struct flight {
	const volatile struct ll_record *records;
	struct flight_slot slots[LL_RECORD_SLOTS];
	uint32_t next;        /* sequence of the next launch, from 1 */
	uint32_t oldest;      /* the first sequence not yet read back; equal to next if none is in flight */
	uint64_t last_end_ns; /* card's clock */
	uint64_t last_due_ns; /* host clock */
	struct ll_clock_fit fit;
};

struct flight_run {
	struct ll_interval interval;
	uint64_t unused_ns; /* the part of its length that a kernel did not run because it ended early */
	struct ll_contention contention;
};

static uint32_t count_outstanding(const struct flight *flight)
{
	return flight->next - flight->oldest;
}

/* Returns the card's time after which a kernel that is submitted now counts as late: when it can start behind the
 * queued kernels, plus allowed_ns. 0: the two clocks are not fitted yet. */
static uint64_t late_after_ns(const struct flight *flight, uint64_t submit_ns, uint64_t allowed_ns)
{
	if (!flight->fit.has_fit)
		return 0;
	bool is_queued = count_outstanding(flight) > 0 && flight->last_due_ns > submit_ns;
	return ll_clock_fit_to_card_latest(&flight->fit, is_queued ? flight->last_due_ns : submit_ns) + allowed_ns;
}

/* Notes that the kernel of the next sequence was launched between these two host times. */
static void note_launch(struct flight *flight, uint64_t submit_ns, uint64_t submitted_ns, uint64_t length_ns,
			bool is_first)
{
	uint64_t start_ns = flight->last_due_ns > submitted_ns ? flight->last_due_ns : submitted_ns;
	flight->last_due_ns = start_ns + length_ns;
	flight->slots[flight->next++ % LL_RECORD_SLOTS] = (struct flight_slot){
	    .submit_ns = submit_ns,
	    .submitted_ns = submitted_ns,
	    .length_ns = length_ns,
	    .due_ns = flight->last_due_ns,
	    .is_first = is_first,
	};
}

/* Takes the oldest kernel if it has finished. False: it has not, or none is in flight. */
static bool collect_kernel(struct flight *flight, const struct ll_contention_limits *limits, struct flight_run *ret_run)
{
	if (flight->oldest == flight->next)
		return false;
	const volatile struct ll_record *record = &flight->records[flight->oldest % LL_RECORD_SLOTS];
	/* The card writes sequence last, so the fields that are read after it are complete. */
	if (__atomic_load_n(&record->sequence, __ATOMIC_ACQUIRE) != flight->oldest)
		return false;

	const struct flight_slot *slot = &flight->slots[flight->oldest % LL_RECORD_SLOTS];
	struct ll_kernel_trace trace = {
	    .submit_ns = slot->submit_ns,
	    .submitted_ns = slot->submitted_ns,
	    .start_ns = record->start_ns,
	    .end_ns = record->end_ns,
	    .gap_ns = record->gap_ns,
	    .previous_end_ns = flight->last_end_ns,
	    .is_first = slot->is_first,
	};
	/* The fit learns from this kernel only after it has judged it. Otherwise a late start would count as normal. */
	struct ll_contention contention = ll_contention_judge(&trace, &flight->fit, limits);
	bool was_queued = trace.previous_end_ns > 0 && flight->fit.has_fit &&
			  trace.previous_end_ns > ll_clock_fit_to_card(&flight->fit, trace.submit_ns);
	if (!was_queued)
		ll_clock_fit_add(&flight->fit, trace.submit_ns, trace.start_ns);
	flight->last_end_ns = trace.end_ns;
	flight->oldest++;

	uint64_t used_ns = trace.end_ns - trace.start_ns;
	uint32_t flags = record->flags;
	*ret_run = (struct flight_run){
	    .interval = {.start_ns = ll_clock_fit_to_host(&flight->fit, trace.start_ns),
			 .end_ns = ll_clock_fit_to_host(&flight->fit, trace.end_ns),
			 .card_start_ns = trace.start_ns,
			 .card_end_ns = trace.end_ns,
			 .flags = flags},
	    .unused_ns = flags != 0 && used_ns < slot->length_ns ? slot->length_ns - used_ns : 0,
	    .contention = contention,
	};
	return true;
}

/* Returns by how much the oldest kernel in flight is past its due end; 0: it is not, or none is in flight. */
static uint64_t overdue_ns_of(const struct flight *flight, uint64_t now_ns)
{
	if (flight->oldest == flight->next)
		return 0;
	uint64_t due_ns = flight->slots[flight->oldest % LL_RECORD_SLOTS].due_ns;
	return now_ns > due_ns ? now_ns - due_ns : 0;
}

/* ---- pacer loop ---- */

enum {
	MAX_IN_FLIGHT_FILL = 2,
	MAX_IN_FLIGHT = 4,      /* more kernels would only lengthen the time to stop */
	EXPIRED_TICK_MS = 1000, /* how often a loop whose order has expired looks for a new one */
};

#define CHECK_EVERY_NS (250 * LL_NS_PER_MS)
#define BESIDE_NS                                                                                                      \
	(5 * LL_NS_PER_MS) /* fill: two late kernels within this time mean that other programs work without a pause */
#define PAUSE_NS (50 * LL_NS_PER_MS) /* longer than any period: the next kernel counts as the first after a pause */
/* A kernel this late means that the context is dead. Other clients of MPS may delay a kernel for seconds. If a
 * processor is the card (lavapipe), other work on it does so too. */
#define HANG_NS (6 * LL_NS_PER_S)

struct loop {
	struct ll_pacer_loop_config config;
	struct ll_pacer_shared *shared;
	const struct ll_pacer_work *work;
	struct ll_payload *payload;
	struct flight flight;
	struct ll_duty duty;
	struct ll_job_watch jobs; /* while the load runs */
	bool is_lost;
	bool was_running;
	uint32_t epoch;
	uint64_t tick_ns;
	uint64_t step_back_until_ns;
	uint64_t beside_until_ns;
	uint64_t checked_ns;
	uint64_t launched_ns;
};

static void set_state(struct loop *loop, enum ll_pacer_state state, const struct ll_err *why)
{
	ll_pacer_shared_state(loop->shared, state, why);
	ll_pacer_wake(loop->config.governor_fd);
}

static bool open_context(struct loop *loop)
{
	struct ll_err err = {0};
	int rc = loop->config.payload_ops->open(loop->config.card, &loop->work->payload, &loop->payload, &err);
	if (rc < 0) {
		set_state(loop, LL_PACER_FAILED, &err);
		return false;
	}
	malloc_trim(0); /* compiling the kernels has used memory that is free now */
	/* A program that comes does not wait for the rest of a longer slice. A load beside other programs needs slices
	 * as long as theirs. */
	int slices_rc = loop->work->manners == LL_PACER_YIELDS ? ll_own_slices_set(LL_OWN_SLICE_LEAST_US) : -ECANCELED;
	loop->flight = (struct flight){.records = loop->payload->records, .next = 1, .oldest = 1};
	{
		LL_SCOPE_SHARED_LOCK(loop->shared);
		struct ll_pacer_report *report = &loop->shared->report;
		snprintf(report->payload_name, sizeof report->payload_name, "%s", loop->payload->ops->name);
		report->sm_count = loop->payload->sm_count;
		report->has_card_clock = loop->payload->has_card_clock;
		report->slices_rc = slices_rc;
	}
	set_state(loop, LL_PACER_OPEN, NULL);
	return true;
}

static void lose_context(struct loop *loop, const struct ll_err *why)
{
	loop->is_lost = true;
	set_state(loop, LL_PACER_LOST, why);
}

static void note_run(struct loop *loop, const struct flight_run *run)
{
	struct ll_pacer_shared *shared = loop->shared;
	LL_SCOPE_SHARED_LOCK(shared);
	struct ll_pacer_report *report = &shared->report;
	report->outstanding = count_outstanding(&loop->flight);
	report->busy_ns += run->interval.end_ns - run->interval.start_ns;
	report->last_end_ns = run->interval.end_ns;
	if (report->first_start_ns == 0)
		report->first_start_ns = run->interval.start_ns;
	if (shared->intervals_head - shared->intervals_tail == LL_PACER_INTERVALS)
		shared->intervals_tail++;
	shared->intervals[shared->intervals_head++ % LL_PACER_INTERVALS] = run->interval;
}

static void note_foreign(struct loop *loop, enum ll_hold_sensor sensor, struct ll_contention seen)
{
	uint64_t now_ns = ll_now_ns();
	{
		LL_SCOPE_SHARED_LOCK(loop->shared);
		struct ll_pacer_report *report = &loop->shared->report;
		report->foreign_seen_ns = now_ns;
		report->foreign_count++;
		report->foreign_sensor = sensor;
		report->foreign = seen;
		if (loop->work->manners == LL_PACER_YIELDS) {
			loop->shared->halted_generation = loop->shared->order.generation;
			report->is_halted = true;
		}
	}
	loop->step_back_until_ns = now_ns + loop->work->step_back_ns;
	ll_pacer_wake(loop->config.governor_fd);
}

static bool looks_for_foreign_work(const struct loop *loop)
{
	return loop->work->manners != LL_PACER_STAYS && loop->payload->has_card_clock &&
	       !loop->work->payload.as_mps_client;
}

/* Whether others work without a long pause: a kernel of ours was late less than BESIDE_NS ago. */
static bool is_beside_others(const struct loop *loop)
{
	return loop->work->manners == LL_PACER_STEPS_BACK && ll_now_ns() < loop->beside_until_ns;
}

/*
 * Whether the loop must react to this run. Fill steps back when a first kernel is late. If the next ones are late too,
 * fill goes on, and steps back only when it loses the card while a kernel runs. Beside a program of many small kernels
 * each of ours is late by the context switch, and the level would otherwise never be reached.
 */
static bool must_react(struct loop *loop, const struct flight_run *run)
{
	const struct ll_contention *seen = &run->contention;
	bool went_on = run->interval.flags == 0 && seen->gap_ns <= loop->work->limits.gap_ns;
	bool reacts = seen->is_foreign && !(went_on && is_beside_others(loop));
	if (seen->is_foreign)
		loop->beside_until_ns = ll_now_ns() + BESIDE_NS;
	return reacts;
}

/* Reads the finished kernels. True: foreign work was met. */
static bool collect_runs(struct loop *loop, struct ll_contention *ret_seen)
{
	bool is_foreign = false;
	struct flight_run run;
	while (collect_kernel(&loop->flight, &loop->work->limits, &run)) {
		note_run(loop, &run);
		ll_duty_refund(&loop->duty, run.unused_ns);
		if (run.interval.flags != 0)
			loop->epoch++; /* the kernel has stopped its epoch on the card */
		if (must_react(loop, &run) && !is_foreign) {
			is_foreign = true;
			*ret_seen = run.contention;
		}
	}
	return is_foreign && looks_for_foreign_work(loop);
}

/*
 * Whether a kernel should have ended long before now_ns, when the records were not read yet, and has not. The driver is
 * asked first. The process may have been stopped, by a debugger or a busy host. A simulated card needs a thread of it
 * to write the records, which may go on later than this one.
 */
static bool has_stalled(struct loop *loop, uint64_t now_ns, struct ll_contention *ret_seen)
{
	if (!looks_for_foreign_work(loop) || overdue_ns_of(&loop->flight, now_ns) <= LL_PACER_STALL_NS)
		return false;
	struct ll_err err = {0};
	loop->payload->ops->check(loop->payload, &err); /* check_context finds a lost context */
	if (collect_runs(loop, ret_seen))
		return true;
	uint64_t overdue_ns = overdue_ns_of(&loop->flight, now_ns);
	*ret_seen = (struct ll_contention){.late_ns = overdue_ns, .is_foreign = true};
	return overdue_ns > LL_PACER_STALL_NS;
}

static bool launch_kernel(struct loop *loop, const struct ll_pacer_order *order, uint64_t length_ns)
{
	bool is_alert = looks_for_foreign_work(loop);
	/* The last launch is so long ago that a context switch before this one is normal. */
	bool is_first = ll_now_ns() - loop->launched_ns > PAUSE_NS;
	struct ll_payload_launch launch = {
	    .kernel = order->kernel,
	    .blocks = order->blocks,
	    .threads = order->threads,
	    .length_ns = length_ns,
	    .gap_limit_ns = is_alert ? loop->work->limits.gap_ns : 0,
	    .epoch = loop->epoch,
	    .sequence = loop->flight.next,
	};
	uint64_t submit_ns = ll_now_ns();
	if (is_alert && !is_first && !is_beside_others(loop))
		launch.late_after_ns = late_after_ns(&loop->flight, submit_ns, LL_LIMIT_LATE_ON_CARD_NS);
	struct ll_err err = {0};
	int rc = loop->payload->ops->launch(loop->payload, &launch, &err);
	if (rc == -EAGAIN) {
		ll_duty_refund(&loop->duty, length_ns);
		return false;
	}
	if (rc < 0) {
		lose_context(loop, &err);
		return false;
	}
	note_launch(&loop->flight, submit_ns, ll_now_ns(), length_ns, is_first);
	loop->launched_ns = submit_ns;
	LL_SCOPE_SHARED_LOCK(loop->shared);
	loop->shared->report.launches++;
	loop->shared->report.outstanding = count_outstanding(&loop->flight);
	return true;
}

/*
 * Launches one kernel as a rule, and more if the host is late, because a kernel is never longer than a period. In fill
 * only one is launched, so that others need not wait for it.
 */
static void launch_owed(struct loop *loop, const struct ll_pacer_order *order, uint64_t now_ns)
{
	bool is_fill = loop->work->manners == LL_PACER_STEPS_BACK;
	uint64_t longest_ns = is_fill ? ll_duty_fill_longest_ns(order->ratio) : LL_DUTY_KERNEL_MAX_NS;
	uint32_t most_in_flight = is_fill ? MAX_IN_FLIGHT_FILL : MAX_IN_FLIGHT;
	while (count_outstanding(&loop->flight) < most_in_flight) {
		uint64_t length_ns = ll_duty_next_ns(&loop->duty, now_ns, order->ratio, longest_ns);
		if (length_ns == 0 || !launch_kernel(loop, order, length_ns) || length_ns < longest_ns || is_fill)
			return;
	}
}

static uint64_t period_ns(const struct loop *loop)
{
	return loop->work->manners == LL_PACER_STEPS_BACK ? LL_DUTY_FILL_PERIOD_NS : LL_DUTY_PERIOD_NS;
}

/* Asks the driver, and also takes a context for lost whose kernel does not come back. */
static void check_context(struct loop *loop, uint64_t now_ns)
{
	if (now_ns - loop->checked_ns < CHECK_EVERY_NS)
		return;
	loop->checked_ns = now_ns;
	struct ll_err err = {0};
	if (loop->payload->ops->check(loop->payload, &err) < 0) {
		lose_context(loop, &err);
		return;
	}
	if (overdue_ns_of(&loop->flight, now_ns) > HANG_NS) {
		ll_err_set(&err, -EIO, "a kernel has not come back for %u s", (unsigned)(HANG_NS / LL_NS_PER_S));
		lose_context(loop, &err);
	}
}

/* One period: reads finished kernels, decides, launches. */
static void run_tick(struct loop *loop, const struct ll_pacer_order *order)
{
	uint64_t now_ns = ll_now_ns();
	if (!loop->was_running) {
		loop->was_running = true;
		const struct ll_pacer_work *work = loop->work;
		if (*work->jobs_places.user.name && work->manners == LL_PACER_YIELDS)
			ll_job_watch_begin(&loop->jobs, &work->jobs_places, work->jobs_uuid, now_ns);
		loop->epoch++;
		ll_duty_restart(&loop->duty, now_ns);
		loop->tick_ns = now_ns;
		loop->step_back_until_ns = 0;
	}
	/* Finished kernels are read before the check: after SIGSTOP or a debugger an overdue kernel has finished. */
	struct ll_contention seen;
	if (collect_runs(loop, &seen) || has_stalled(loop, now_ns, &seen)) {
		note_foreign(loop, seen.gap_ns > loop->work->limits.gap_ns ? LL_SENSOR_GAP : LL_SENSOR_LATE, seen);
		if (loop->work->manners == LL_PACER_YIELDS)
			return;
	}
	check_context(loop, now_ns);
	if (loop->is_lost)
		return;
	/* A governed program reports work before its first kernel starts. */
	if (ll_job_watch_look(&loop->jobs, now_ns)) {
		note_foreign(loop, LL_SENSOR_GOVERNED, (struct ll_contention){0});
		return;
	}
	if (now_ns >= loop->step_back_until_ns)
		launch_owed(loop, order, now_ns);
	loop->tick_ns += period_ns(loop);
	if (loop->tick_ns < now_ns)
		loop->tick_ns = now_ns + period_ns(loop);
}

static void idle_tick(struct loop *loop)
{
	struct ll_contention seen;
	loop->was_running = false;
	ll_job_watch_end(&loop->jobs); /* a process that is stopped must not leave messages unread */
	collect_runs(loop, &seen);
	check_context(loop, ll_now_ns());
}

/* Waits for a call: without a limit if nothing is in flight and the order has not expired. A renewed order comes
 * without a call, so a loop with an expired order looks for it. */
static void wait_call(struct loop *loop, bool is_expired, uint32_t heard)
{
	bool is_draining = count_outstanding(&loop->flight) > 0;
	if (!is_draining && !is_expired && loop->payload->ops->is_restless)
		ll_parking_park(&loop->shared->parking, heard);
	ll_pacer_sleep(loop->config.call_fd, is_draining ? 1 : is_expired ? EXPIRED_TICK_MS : -1);
	ll_parking_leave(&loop->shared->parking);
}

/* Makes one pass. Returns false if the loop must end. */
static bool tick_loop(struct loop *loop)
{
	struct ll_pacer_order order;
	bool is_halted, is_ending;
	uint32_t heard = ll_parking_listen(&loop->shared->parking);
	{
		LL_SCOPE_SHARED_LOCK(loop->shared);
		order = loop->shared->order;
		is_halted = order.generation == loop->shared->halted_generation;
		is_ending = loop->shared->is_ending;
	}
	if (is_ending)
		return false;
	bool is_wanted = order.is_running && !is_halted;
	bool is_running = is_wanted && ll_now_ns() < order.valid_until_ns;
	if (is_running)
		run_tick(loop, &order);
	else
		idle_tick(loop);
	if (loop->is_lost)
		return true;
	if (is_running)
		ll_sleep_until_ns(loop->tick_ns);
	else
		wait_call(loop, is_wanted, heard);
	return true;
}

void ll_pacer_loop(const struct ll_pacer_loop_config *config)
{
	struct loop loop = {.config = *config, .shared = config->shared, .work = &config->shared->work, .epoch = 1};
	prctl(PR_SET_TIMERSLACK, 1UL); /* the default of 50 us would make every period inexact */
	if (!open_context(&loop))
		return;
	while (!loop.is_lost && tick_loop(&loop))
		;
	ll_job_watch_end(&loop.jobs);
	loop.payload->ops->close(loop.payload);
}
