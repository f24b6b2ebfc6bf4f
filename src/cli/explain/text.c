/* What each cause is called, and what helps against it. */
#include <stdio.h>

#include "base/translate.h"
#include "cli/explain/parts.h"
#include "cli/run/run.h"
#include "hold/command/words.h"

enum { WORDS_SIZE = 96 };

/* ---- the others on the card ---- */

static uint64_t weight_of(const struct ll_status_job *other, enum ll_cause cause)
{
	const uint32_t *permille = other->row.minute_permille;
	return cause == LL_CAUSE_MEMORY ? other->row.used_bytes : permille[LL_TIME_WORK] + permille[LL_TIME_SPACE];
}

const struct ll_status_job *ll_explain_other(const struct ll_explain_job *job, enum ll_cause cause)
{
	const struct ll_status_job *found = NULL;
	for (size_t i = 0; job->card && i < job->card->job_count; i++) {
		const struct ll_status_job *other = &job->card->jobs[i];
		bool is_higher = other->priority < job->job->priority;
		if (other == job->job || !weight_of(other, cause) || (cause == LL_CAUSE_CLASS && !is_higher) ||
		    (cause == LL_CAUSE_SHARED && is_higher) ||
		    (cause == LL_CAUSE_SPACE && !other->told.job.limits.space_permille))
			continue;
		if (!found || weight_of(other, cause) > weight_of(found, cause))
			found = other;
	}
	return found;
}

/* "tenant infer", or "another job", which is not told of. */
static const char *name_other(const struct ll_explain_job *job, enum ll_cause cause, char text[WORDS_SIZE])
{
	const struct ll_status_job *other = ll_explain_other(job, cause);
	if (!other)
		return _("another job");
	snprintf(text, WORDS_SIZE, _("tenant %.60s"), other->told.job.tenant);
	return text;
}

/* ---- causes ---- */

static void add_shared(struct ll_strbuf *text, const struct ll_explain_job *job)
{
	char other[WORDS_SIZE];
	uint64_t slice_us = job->job->row.slice_us;
	const char *name = name_other(job, LL_CAUSE_SHARED, other);
	if (job->job->row.shared == LL_SHARED_VISITS)
		ll_strbuf_addf(text, _("waits for its turn: %s has the card"), name);
	else if (slice_us)
		ll_strbuf_addf(text, _("shares the card by time slices, its own are %.3g ms long: %s has the card"),
			       (double)slice_us / 1000.0, name);
	else
		ll_strbuf_addf(text, _("shares the card by time slices: %s has the card"), name);
}

static void add_memory(struct ll_strbuf *text, const struct ll_explain_job *job)
{
	char other[WORDS_SIZE];
	const struct ll_status_job *has_most = ll_explain_other(job, LL_CAUSE_MEMORY);
	ll_strbuf_adds(text, _("waits for room: the card's memory is full"));
	if (!has_most)
		return;
	ll_strbuf_addf(text, _("; %s has "), name_other(job, LL_CAUSE_MEMORY, other));
	ll_hold_add_bytes(text, has_most->row.used_bytes);
}

static void add_peer(struct ll_strbuf *text, const struct ll_explain_job *job)
{
	static const char *const waits[1 + LL_WAITS] = {
	    N_("one process waits, and the others are idle until it goes on"),
	    [1 + LL_WAIT_TURN] = N_("one process waits for its turn, and the others are idle until it goes on"),
	    [1 + LL_WAIT_CAP] = N_("one process waits for its share of time, and the others are idle until it goes on"),
	    [1 + LL_WAIT_MEMORY] = N_("one process waits for memory, and the others are idle until it goes on"),
	    [1 + LL_WAIT_MOVE] = N_("one process is suspended or evicted, and the others are idle until it goes on")};
	ll_strbuf_adds(text, _(waits[job->job->row.waiting_for]));
	if (job->job->row.waiting_pid)
		ll_strbuf_addf(text, _(" (pid %u)"), job->job->row.waiting_pid);
}

static void add_clocks(struct ll_strbuf *text, const struct ll_status_card *card)
{
	char reasons[WORDS_SIZE];
	ll_strbuf_addf(text, _("the card's clocks are held down (%s): %u of %u MHz"),
		       ll_slowdown_text(card->slowdown, reasons, sizeof reasons), card->clocks.sm_mhz,
		       card->clocks.max_sm_mhz);
}

void ll_explain_add_cause(struct ll_strbuf *text, const struct ll_explain_job *job, const struct ll_cause_part *cause)
{
	char other[WORDS_SIZE];
	switch (cause->cause) {
	case LL_CAUSE_QUEUE:
		ll_strbuf_adds(text, _("waits in the queue: "));
		ll_run_waiting_add_why(text, &job->queued->waits, &job->queued->why);
		break;
	case LL_CAUSE_EVICTED:
		ll_strbuf_adds(text, _("is suspended or evicted by a command"));
		break;
	case LL_CAUSE_MEMORY:
		add_memory(text, job);
		break;
	case LL_CAUSE_CAP:
		ll_strbuf_addf(text, _("waits for its share of time: its cap is %g %%"),
			       job->told->job.limits.compute_permille / 10.0);
		break;
	case LL_CAUSE_CLASS:
		ll_strbuf_addf(text, _("is held for a higher class: %s has the card"),
			       name_other(job, LL_CAUSE_CLASS, other));
		break;
	case LL_CAUSE_SHARED:
		add_shared(text, job);
		break;
	case LL_CAUSE_SPACE:
		ll_strbuf_addf(text, _("shares the SMs with other clients of MPS: %s works at the same time"),
			       name_other(job, LL_CAUSE_SPACE, other));
		break;
	case LL_CAUSE_CLOCKS:
		add_clocks(text, job->card);
		break;
	case LL_CAUSE_PEER:
		add_peer(text, job);
		break;
	case LL_CAUSE_COPIES:
		ll_strbuf_adds(text, _("the card waits while data moves between it and the host"));
		break;
	case LL_CAUSE_HOST:
		ll_strbuf_adds(text, _("the card waits for the program: it computes on the host, or waits for data"));
		break;
	case LL_CAUSE_IDLE:
	case LL_CAUSES:
		ll_strbuf_adds(text, _("the program launches nothing"));
		break;
	}
}

/* ---- advice ---- */

/* An earlier run the other way, if that was faster, is measured; else what is said is the most that it can be. */
static bool add_other_way(struct ll_strbuf *text, const struct ll_explain_job *job)
{
	const struct ll_status_job *row = job->job;
	if (!row->has_other_way || row->other_way.times < LL_MEASURED_BETTER)
		return false;
	ll_other_way_add(text, &row->other_way);
	return true;
}

static void add_gain(struct ll_strbuf *text, const struct ll_cause_part *cause)
{
	if (cause->gain >= LL_MEASURED_BETTER)
		ll_strbuf_addf(text, _(": at most %.1f times the work"), cause->gain);
}

void ll_explain_add_advice(struct ll_strbuf *text, const struct ll_explain_job *job, const struct ll_cause_part *cause)
{
	const char *tenant = job->told ? job->told->job.tenant : job->queued ? job->queued->tenant : "";
	char other[WORDS_SIZE];
	bool has_measured = false;
	switch (cause->cause) {
	case LL_CAUSE_QUEUE:
		if (job->queued && !(job->queued->flags & LL_QUEUE_HAS_TIME))
			ll_strbuf_adds(text, _("a job with --time may start before, where it fits between others"));
		return;
	case LL_CAUSE_EVICTED:
		ll_strbuf_addf(text, _("`loadline resume %s` lets it go on"), tenant);
		break;
	case LL_CAUSE_MEMORY:
		ll_strbuf_addf(text, _("a card with more free memory, or less memory of %s"),
			       name_other(job, LL_CAUSE_MEMORY, other));
		break;
	case LL_CAUSE_CAP:
		ll_strbuf_addf(text, _("a higher cap (`loadline set %s --compute`)"), tenant);
		break;
	case LL_CAUSE_CLASS:
		ll_strbuf_addf(text, _("the same class (`loadline set %s --class`), or another card"), tenant);
		break;
	case LL_CAUSE_SHARED:
		has_measured = add_other_way(text, job);
		if (!has_measured)
			ll_strbuf_addf(text, _("another card, or a higher weight (`loadline set %s --weight`)"),
				       tenant);
		break;
	case LL_CAUSE_SPACE:
		has_measured = add_other_way(text, job);
		if (!has_measured)
			ll_strbuf_adds(text, _("another card, or `loadline run --by slices`"));
		break;
	case LL_CAUSE_CLOCKS:
		ll_strbuf_adds(text, job->card->slowdown & LL_SLOWDOWN_THERMAL ? _("better cooling")
				     : job->card->slowdown & LL_SLOWDOWN_POWER_CAP
					 ? _("a higher power limit (`nvidia-smi -pl`)")
					 : _("look at the power supply, and at `loadline doctor`"));
		break;
	case LL_CAUSE_PEER:
		ll_strbuf_adds(text, _("the same room for each of its processes"));
		break;
	case LL_CAUSE_COPIES:
		ll_strbuf_adds(text, _("pinned memory, and copies in a stream of their own beside the kernels"));
		break;
	case LL_CAUSE_HOST:
		ll_strbuf_adds(text, _("more loader processes, larger batches, or CUDA graphs"));
		break;
	case LL_CAUSE_IDLE:
	case LL_CAUSES:
		if (job->told && !(job->told->job.limits.flags & LL_LIMIT_EVICTABLE))
			ll_strbuf_adds(text, _("end it, or start it with --evictable: then its memory leaves when "
					       "others need it"));
		return;
	}
	if (!has_measured)
		add_gain(text, cause);
}
