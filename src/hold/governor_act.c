#include "base/translate.h"
#include "hold/governor_state.h"

#include <errno.h>
#include <math.h>

#include "base/clock.h"
#include "hold/hold_socket.h"

/* ---- the account ---- */

void ll_governor_account(struct ll_governor *gov)
{
	uint64_t busy_ns = gov->report.busy_ns - gov->busy_told_ns;
	gov->busy_told_ns = gov->report.busy_ns;
	ll_summary_add_busy(&gov->summary, busy_ns);
	double joules = 0;
	double counter = gov->sense.values.energy_joules;
	if (!isnan(counter)) {
		if (!isnan(gov->energy_told_joules) && counter > gov->energy_told_joules)
			joules = counter - gov->energy_told_joules;
		gov->energy_told_joules = counter;
		ll_summary_add_energy(&gov->summary, joules, gov->held_since_ns != 0);
	}
	ll_hold_socket_account(gov->config.hold_socket, busy_ns, gov->held_since_ns ? (uint64_t)(joules * 1000) : 0,
			       gov->sense.values.own_memory_bytes);
}

/* ---- the policy's verdict ---- */

static void report_state(struct ll_governor *gov)
{
	static const enum ll_claim_state states[] = {
	    [LL_HOLD_RELEASED] = LL_CLAIM_RELEASED, [LL_HOLD_OPENING] = LL_CLAIM_STARTING,
	    [LL_HOLD_YIELDED] = LL_CLAIM_YIELDED,   [LL_HOLD_HOLDING] = LL_CLAIM_RUNNING,
	    [LL_HOLD_ENDED] = LL_CLAIM_ENDING,
	};
	bool is_why = gov->verdict.state == LL_HOLD_YIELDED || gov->verdict.state == LL_HOLD_RELEASED;
	ll_hold_socket_set_state(gov->config.hold_socket, states[gov->verdict.state],
				 is_why ? ll_hold_reason_text(gov->verdict.reason) : "");
}

/* Books energy and time before a change of state, because both belong to the old state. */
static void book_energy(struct ll_governor *gov)
{
	ll_sense_read_energy(&gov->sense);
	ll_governor_account(gov);
}

static void start_holding(struct ll_governor *gov, uint64_t now_ns)
{
	book_energy(gov);
	gov->generation++;
	gov->held_since_ns = now_ns;
}

static void book_stop(struct ll_governor *gov, uint64_t now_ns)
{
	bool is_yield = gov->verdict.reason == LL_HOLD_REASON_FOREIGN;
	if (is_yield && !gov->first_kernel_ns)
		ll_summary_keep(&gov->summary, gov->config.start_ns);
	else
		ll_summary_stop(&gov->summary, now_ns, is_yield);
}

static void stop_holding(struct ll_governor *gov, uint64_t now_ns)
{
	struct ll_pacer_order order = {.generation = gov->generation};
	ll_pacer_send_order(gov->pacer, &order);
	ll_drive_pause(&gov->drive, now_ns);
	book_energy(gov);
	book_stop(gov, now_ns);
	gov->held_since_ns = 0;
}

/*
 * If the load cannot start, the policy has no action for that, but a new state, or a new reason not to leave RELEASED.
 * A reading that is still missing at the start is none: it comes, or watch_faults says why it does not.
 */
static void note_obstacle(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_hold_verdict *verdict = &gov->verdict;
	bool was_before_start = gov->last_state == LL_HOLD_RELEASED || gov->last_state == LL_HOLD_OPENING;
	bool is_new = verdict->state != gov->last_state || verdict->reason != gov->last_reason;
	bool is_stopped = verdict->reason == LL_HOLD_REASON_FOREIGN || verdict->reason == LL_HOLD_REASON_TOO_HOT ||
			  verdict->reason == LL_HOLD_REASON_SLOWDOWN;
	if (is_new)
		report_state(gov);
	if (!is_new || !was_before_start || !is_stopped)
		return;
	book_stop(gov, now_ns);
	ll_governor_tell_stop(gov);
}

static void do_action(struct ll_governor *gov, uint64_t now_ns)
{
	switch (gov->verdict.action) {
	case LL_HOLD_ACT_NONE:
		note_obstacle(gov, now_ns);
		return;
	case LL_HOLD_ACT_START:
		start_holding(gov, now_ns);
		if (gov->first_kernel_ns)
			ll_governor_tell(gov, LL_EVENT_RESUME, "holding again");
		break;
	case LL_HOLD_ACT_STOP:
		stop_holding(gov, now_ns);
		ll_governor_tell_stop(gov);
		break;
	case LL_HOLD_ACT_RELEASE:
		if (gov->held_since_ns)
			stop_holding(gov, now_ns);
		ll_sense_context_changes(&gov->sense, false);
		ll_pacer_close(gov->pacer);
		if (gov->verdict.state != LL_HOLD_ENDED)
			ll_governor_tell(gov, LL_EVENT_RELEASE, "context and memory given back: %s",
					 _(ll_hold_reason_text(gov->verdict.reason)));
		break;
	case LL_HOLD_ACT_REOPEN:
		ll_sense_context_changes(&gov->sense, true);
		ll_pacer_open(gov->pacer);
		break;
	}
	report_state(gov);
}

void ll_governor_act(struct ll_governor *gov, uint64_t now_ns)
{
	bool was_stopped = gov->last_state == LL_HOLD_YIELDED || gov->last_state == LL_HOLD_RELEASED;
	bool is_yielded = was_stopped && gov->last_reason == LL_HOLD_REASON_FOREIGN;
	bool adds_nothing = gov->config.hold->mode == LL_HOLD_MODE_FILL && !gov->first_kernel_ns;
	if (gov->verdict.state == LL_HOLD_ENDED && (is_yielded || adds_nothing))
		ll_governor_find_stranger(gov); /* NVML's process list was older when the yield began */
	do_action(gov, now_ns);
	gov->last_state = gov->verdict.state;
	gov->last_reason = gov->verdict.reason;
}

/* ---- the context ---- */

static void context_opened(struct ll_governor *gov)
{
	ll_sense_context_changed(&gov->sense, true);
	ll_hold_socket_set_payload(gov->config.hold_socket, gov->report.payload_name);
	uint32_t sms = gov->report.sm_count ? gov->report.sm_count : gov->config.card->sm_count;
	ll_drive_restart(&gov->drive, gov->config.hold, sms);
	ll_governor_tell(gov, LL_EVENT_STATE, "payload %s%s%s", gov->report.payload_name,
			 gov->report.slices_rc == -ECANCELED ? ""
			 : gov->report.slices_rc             ? _(", its time slices cannot be set")
							     : _(", time slices of 0.1 ms"),
			 gov->report.has_card_clock ? ""
						    : _(" (no card clock: a calibrated loop, lateness is not seen)"));
}

/*
 * A context that cannot be made ends the hold, with three exceptions. If the card has no memory for it, the hold waits
 * as long as --timeout allows. If the card was held before, or if another card's fault ended the worker, the context is
 * made again.
 */
static void context_failed(struct ll_governor *gov, uint64_t now_ns)
{
	const struct ll_err *why = &gov->report.err;
	ll_pacer_close(gov->pacer);
	bool may_wait = why->code == -ENOMEM && now_ns < gov->wait_until_ns;
	bool was_held = gov->first_kernel_ns != 0;
	if (may_wait || was_held || gov->report.is_bystander) {
		ll_governor_tell_err(gov, LL_EVENT_FAULT, why);
		return;
	}
	gov->code = why->code;
	gov->end_err = *why;
	gov->is_ending = true;
}

static void context_lost(struct ll_governor *gov)
{
	struct ll_err err = gov->report.err;
	ll_err_wrap(&err, "context lost");
	ll_governor_tell_err(gov, LL_EVENT_FAULT, &err);
}

void ll_governor_watch_context(struct ll_governor *gov, uint64_t now_ns)
{
	enum ll_pacer_state state = gov->report.state;
	if (gov->report.kills != gov->seen_kills)
		ll_governor_tell(gov, LL_EVENT_FAULT, "the driver hung: the payload process had to be killed");
	gov->seen_kills = gov->report.kills;
	if (state == gov->seen_state)
		return;
	gov->seen_state = state;
	if (state == LL_PACER_OPEN)
		context_opened(gov);
	else if (state == LL_PACER_FAILED)
		context_failed(gov, now_ns);
	else if (state == LL_PACER_LOST)
		context_lost(gov);
	else if (state == LL_PACER_CLOSED)
		ll_sense_context_changed(&gov->sense, false);
}
