/* How a tenant is shared, and why, in words. */
#include "cli/status/status.h"

#include <stdio.h>
#include <time.h>

#include "base/clock.h"
#include "base/translate.h"
#include "hold/command/words.h"

const char *ll_status_shared_name(enum ll_shared shared)
{
	static const char *const names[] = {
	    [LL_SHARED_UNKNOWN] = NULL,        [LL_SHARED_ALONE] = N_("alone"), [LL_SHARED_SLICES] = N_("slices"),
	    [LL_SHARED_VISITS] = N_("visits"), [LL_SHARED_SPACE] = N_("space"), [LL_SHARED_WINDOWS] = N_("windows"),
	};
	return names[shared];
}

/* The time of this machine: "12:01". */
static void add_measured_at(struct ll_strbuf *text, const struct ll_status_job *job)
{
	time_t seconds = (time_t)(job->measured_wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[8];
	if (!job->measured_wall_ns)
		return;
	localtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%H:%M", &tm);
	ll_strbuf_addf(text, _("; measured at %s"), words);
}

static void add_visits_pay(struct ll_strbuf *text, const struct ll_status_job *job)
{
	double slices = job->row.slices_speed_permille / 1000.0, visits = job->row.visits_speed_permille / 1000.0;
	if (!job->measured_wall_ns || !job->row.visits_speed_permille)
		ll_strbuf_adds(text, _("visited in turn: visits were measured to pay"));
	else if (slices <= visits)
		ll_strbuf_addf(text, _("visited in turn: sharing by slices gave it %.2f of its speed, visits %.2f"),
			       slices, visits);
	else
		ll_strbuf_addf(text,
			       _("visited in turn: sharing by slices gave it %.2f of its speed and others too little, "
				 "visits give it %.2f"),
			       slices, visits);
	add_measured_at(text, job);
}

static void add_slowdown(struct ll_strbuf *text, const struct ll_status_job *job)
{
	ll_strbuf_addf(text, _("target %.2f"), job->target_permille / 1000.0);
	if (job->seen_permille)
		ll_strbuf_addf(text, _(", now %.2f"), job->seen_permille / 1000.0);
}

/* Between classes. */
static void add_held(struct ll_strbuf *text, const struct ll_status_job *job)
{
	double percent = job->held_permille / 10.0;
	if (job->held_for)
		ll_strbuf_addf(text, _("held %.0f %% of the time: %s is of a higher class, "), percent, job->held_for);
	else
		ll_strbuf_addf(text, _("gates open: lower classes are held %.0f %% of the time, "), percent);
	add_slowdown(text, job);
}

static void add_by_card(struct ll_strbuf *text, const struct ll_status_job *job)
{
	bool is_visited = job->row.shared == LL_SHARED_VISITS;
	const char *way = is_visited ? _("visited in turn") : _("gates open");
	switch ((enum ll_sharing)job->row.sharing) {
	case LL_SHARING_VISITS_PAY:
		add_visits_pay(text, job);
		break;
	case LL_SHARING_SLICES_PAY:
		ll_strbuf_adds(text, _("gates open: visits were measured not to pay"));
		add_measured_at(text, job);
		break;
	case LL_SHARING_MEASURED:
		ll_strbuf_adds(text, _("shared by slices and by visits in turn, to measure which is better"));
		break;
	case LL_SHARING_SLICES_YET:
		ll_strbuf_addf(text, _("%s: whether visits are better is measured soon"), way);
		break;
	case LL_SHARING_TOO_DEEP:
		ll_strbuf_addf(text, _("%s: too much is queued to measure visits"), way);
		break;
	case LL_SHARING_VISITS_RULE:
		ll_strbuf_addf(text, _("%s: a program works on several cards, or there are very many"), way);
		break;
	case LL_SHARING_CLASSES:
		ll_strbuf_addf(text, _("%s: lower classes need not be held"), way);
		break;
	case LL_SHARING_WINDOWS:
		ll_strbuf_adds(text, _("on the card for its part of each period"));
		break;
	case LL_SHARING_SLICES:
	case LL_SHARING_UNKNOWN:
		ll_strbuf_adds(text, is_visited ? _("visited in turn while a program is new")
						: _("gates open: there is no reason for visits"));
		break;
	}
}

void ll_status_add_why(struct ll_strbuf *text, const struct ll_status_job *job)
{
	if (job->row.flags & LL_CARD_IS_CAPPED)
		ll_strbuf_addf(text, _("held to %g %% by its cap"), job->told.job.limits.compute_permille / 10.0);
	else if (job->held_permille)
		add_held(text, job);
	else if (job->row.flags & LL_CARD_IS_BENEATH && job->row.flags & LL_CARD_IS_HELD)
		ll_strbuf_adds(text, _("waits for a higher class"));
	else if (job->row.flags & LL_CARD_IS_BENEATH)
		ll_strbuf_adds(text, _("beneath a higher class: little of it is queued at a time"));
	else if (job->row.shared == LL_SHARED_ALONE)
		ll_strbuf_adds(text, _("nobody else uses the card"));
	else if (job->row.shared == LL_SHARED_SPACE)
		ll_strbuf_adds(text, _("runs at the same time as the other clients of MPS"));
	else if (job->row.flags & LL_CARD_IS_FORCED)
		ll_strbuf_addf(text, _("%s: decided by hand (`loadline set --sharing`)"),
			       job->row.shared == LL_SHARED_VISITS ? _("visited in turn") : _("gates open"));
	else
		add_by_card(text, job);
}

static void add_target(struct ll_strbuf *text, const struct ll_status_claim *claim)
{
	if (claim->target_watts)
		ll_strbuf_addf(text, _(", %s at %u W"), claim->metric, claim->target_watts);
	else if (claim->target_permille)
		ll_strbuf_addf(text, _(", %s at %g %%"), claim->metric, claim->target_permille / 10.0);
}

static void add_energy(struct ll_strbuf *text, double joules)
{
	if (joules < 10000)
		ll_strbuf_addf(text, "%.0f J", joules);
	else
		ll_strbuf_addf(text, "%.1f kJ", joules / 1000);
}

static void add_hold(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	ll_strbuf_addf(text, _("synthetic load: %s"), _(ll_status_state(claim)));
	if (claim->row.note[0])
		ll_strbuf_addf(text, " (%s)", _(claim->row.note));
	add_target(text, claim);
	if (claim->payload[0])
		ll_strbuf_addf(text, _(", payload %s"), claim->payload);
	ll_strbuf_adds(text, ", ");
	ll_hold_add_bytes(text, claim->row.used_bytes);
	ll_strbuf_addf(text, _(", busy %.1f s"), (double)claim->synthetic_busy_ns / (double)LL_NS_PER_S);
	struct ll_status_recent recent;
	if (ll_status_recent_hold(status, claim, &recent))
		ll_strbuf_addf(text, _(" (%.0f %% of the last %.1f s)"), recent.percent, recent.seconds);
	ll_strbuf_adds(text, ", ");
	add_energy(text, (double)claim->energy_mj / 1000);
	ll_strbuf_addf(text, _(", yields %llu"), (unsigned long long)claim->yields);
}

static void add_memory_limits(struct ll_strbuf *text, uint64_t limit_bytes, uint64_t request_bytes)
{
	if (limit_bytes) {
		ll_strbuf_adds(text, _(" of "));
		ll_hold_add_bytes(text, limit_bytes);
	}
	if (request_bytes) {
		ll_strbuf_adds(text, _(", promised "));
		ll_hold_add_bytes(text, request_bytes);
	}
}

static void add_time_limits(struct ll_strbuf *text, unsigned cap_permille, unsigned space_permille,
			    unsigned weight_permille, unsigned slowdown_permille)
{
	if (cap_permille)
		ll_strbuf_addf(text, _(", compute %g %%"), cap_permille / 10.0);
	if (space_permille)
		ll_strbuf_addf(text, _(", on MPS with %g %% of the SMs"), space_permille / 10.0);
	if (weight_permille && weight_permille != LL_DEFAULT_WEIGHT_PERMILLE)
		ll_strbuf_addf(text, _(", weight %g"), weight_permille / 1000.0);
	if (slowdown_permille && slowdown_permille != LL_DEFAULT_SLOWDOWN_PERMILLE)
		ll_strbuf_addf(text, _(", slowdown target %g"), slowdown_permille / 1000.0);
}

/* The memory limit is the tenant's, so the tenant's memory stands beside it. */
static void add_memory(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	uint64_t card_bytes = ll_status_card_bytes(status, claim);
	ll_hold_add_bytes(text, claim->row.used_bytes);
	if (card_bytes != LL_MEMORY_UNKNOWN) {
		ll_strbuf_adds(text, _(" (the card counts "));
		ll_hold_add_bytes(text, card_bytes);
		ll_strbuf_addc(text, ')');
	}
	if (job && job->row.claims > 1) {
		ll_strbuf_adds(text, _(", with the tenant's other processes "));
		ll_hold_add_bytes(text, job->row.used_bytes);
	}
	if (job && job->row.leaving_bytes) {
		ll_strbuf_adds(text, _(", of ended processes "));
		ll_hold_add_bytes(text, job->row.leaving_bytes);
	}
}

static void add_residency(struct ll_strbuf *text, const struct ll_status_claim *claim)
{
	struct ll_status_residency residency;
	if (!ll_status_residency_of(claim, &residency))
		return;
	ll_strbuf_adds(text, ", ");
	ll_hold_add_bytes(text, residency.resident_bytes);
	ll_strbuf_adds(text, _(" on the card (evictable: "));
	ll_hold_add_bytes(text, residency.evictable_bytes);
	ll_strbuf_adds(text, _(", pinned: "));
	ll_hold_add_bytes(text, residency.pinned_bytes);
	ll_strbuf_adds(text, _(", ready in the host: "));
	ll_hold_add_bytes(text, residency.host_bytes);
	if (residency.neighbour_bytes) {
		ll_strbuf_addf(text, _(", on card %s: "), claim->row.neighbour);
		ll_hold_add_bytes(text, residency.neighbour_bytes);
	}
	ll_strbuf_addc(text, ')');
}

static void add_age_and_last(struct ll_strbuf *text, uint64_t age_ns, const struct ll_status_last *last)
{
	if (age_ns != LL_AGE_UNKNOWN) {
		ll_strbuf_adds(text, _(", age "));
		ll_status_add_age(text, age_ns);
	}
	ll_strbuf_adds(text, _(", last kernel "));
	ll_status_add_last(text, last);
	if (last->kind == LL_LAST_AGO || last->kind == LL_LAST_AT_LEAST)
		ll_strbuf_adds(text, _(" ago"));
}

static void add_wait(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	char number[LL_STATUS_NUMBER_SIZE];
	const struct ll_status_claim *holder = ll_status_waits_for(status, claim);
	if (holder)
		ll_strbuf_addf(text, _(", waits for %s"), ll_status_number(status, holder, number));
	else if (ll_status_is_over_cap(status, claim))
		ll_strbuf_adds(text, _(", waits for its share of time"));
	else if (claim->row.wanting_ns && ll_status_has_turn(status, claim))
		ll_strbuf_adds(text, _(", has the card"));
}

static void add_lost(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_job *job)
{
	double seconds;
	if (ll_status_lost(status, job, &seconds))
		ll_strbuf_addf(text, _(", NOT HELD TO ITS LIMITS for %.0f s: a process has lost its claim"), seconds);
}

/* Adds the recent time of the tenant, with that of its other claims. */
static void add_recent(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_job *job)
{
	struct ll_status_recent recent;
	if (ll_status_recent_job(status, job, &recent))
		ll_strbuf_addf(text, _(" (tenant: %.0f %% of the last %.1f s)"), recent.percent, recent.seconds);
}

static void add_program(struct ll_strbuf *text, const struct ll_status_card *status,
			const struct ll_status_claim *claim)
{
	ll_strbuf_addf(text, "%s: %s", claim->told.job.tenant[0] ? claim->told.job.tenant : _("program"),
		       _(ll_status_state(claim)));
	if (claim->row.note[0])
		ll_strbuf_addf(text, " (%s)", _(claim->row.note));
	if (claim->told.project[0])
		ll_strbuf_addf(text, _(", project %s"), claim->told.project);
	if (claim->told.lending)
		ll_strbuf_adds(text, claim->told.lending & LL_QUEUE_IS_RECALLED ? _(", recalled") : _(", borrows"));
	ll_strbuf_addf(text, _(", class %s, "), ll_priority_name(claim->priority));
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	add_memory(text, status, claim);
	add_memory_limits(text, claim->told.job.limits.memory_bytes, claim->told.job.limits.request_bytes);
	add_time_limits(text, claim->told.job.limits.compute_permille, job ? job->told.job.limits.space_permille : 0,
			ll_status_weight(&claim->told), ll_status_slowdown(&claim->told));
	add_residency(text, claim);
	ll_strbuf_addf(text, _(", GPU time %.1f s"), (double)claim->row.gpu_time_ns / (double)LL_NS_PER_S);
	if (job)
		add_recent(text, status, job);
	struct ll_status_last last = ll_status_last_of_claim(status, claim);
	add_age_and_last(text, ll_status_age(status, claim), &last);
	add_wait(text, status, claim);
	if (job)
		add_lost(text, status, job);
}

static void add_claim(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	char number[LL_STATUS_NUMBER_SIZE];
	ll_status_number(status, claim, number);
	ll_strbuf_addf(text, _("  %s  pid %d%s  "), number, (int)claim->pid,
		       claim->is_pid_ours ? "" : _(" (of another PID namespace)"));
	if (claim->priority == LL_PRIORITY_HOLD)
		add_hold(text, status, claim);
	else
		add_program(text, status, claim);
	ll_strbuf_addc(text, '\n');
}

static void add_tenant(struct ll_strbuf *text, const struct ll_status_card *status, const struct ll_status_job *job)
{
	ll_strbuf_addf(text, _("  tenant %s: nothing on the card, class %s, "), job->told.job.tenant,
		       ll_priority_name(job->priority));
	ll_hold_add_bytes(text, job->row.used_bytes);
	add_memory_limits(text, job->told.job.limits.memory_bytes, job->told.job.limits.request_bytes);
	add_time_limits(text, job->told.job.limits.compute_permille, job->told.job.limits.space_permille,
			ll_status_weight(&job->told), ll_status_slowdown(&job->told));
	ll_strbuf_addf(text, _(", GPU time %.1f s"), (double)job->row.gpu_time_ns / (double)LL_NS_PER_S);
	add_recent(text, status, job);
	add_lost(text, status, job);
	ll_strbuf_addc(text, '\n');
}

static void add_stranger(struct ll_strbuf *text, const struct ll_status_card *status,
			 const struct ll_status_stranger *stranger)
{
	struct ll_status_last last = ll_status_last_of_stranger(status, stranger);
	if (stranger->is_mps_server)
		ll_strbuf_addf(text, _("  pid %d  MPS server"), (int)stranger->pid);
	else if (stranger->is_older)
		ll_strbuf_addf(text, _("  pid %d  %s: governed by an older loadline"), (int)stranger->pid,
			       stranger->name[0] ? stranger->name : _("program"));
	else
		ll_strbuf_addf(text, _("  pid %d  %s: ungoverned"), (int)stranger->pid,
			       stranger->name[0] ? stranger->name : _("program"));
	if (stranger->tenant[0] && !stranger->is_older)
		ll_strbuf_addf(text, _(" (started in tenant %s, without its library)"), stranger->tenant);
	if (stranger->memory_bytes != LL_MEMORY_UNKNOWN) {
		ll_strbuf_adds(text, ", ");
		ll_hold_add_bytes(text, stranger->memory_bytes);
	}
	add_age_and_last(text, ll_status_process_of(status, stranger->pid)->age_ns, &last);
	ll_strbuf_addc(text, '\n');
}

static void add_sharing(struct ll_strbuf *text, const struct ll_status_card *status)
{
	double times = status->visits_permille / 1000.0;
	switch (status->sharing) {
	case LL_SHARING_UNKNOWN:
	case LL_SHARING_SLICES: /* as any card without loadline */
		break;
	case LL_SHARING_SLICES_YET:
		ll_strbuf_addf(text, _("  shared by time slices; whether visits are better is measured soon\n"));
		break;
	case LL_SHARING_MEASURED:
		ll_strbuf_addf(text, _("  shared by time slices and by visits in turn, to measure which is better\n"));
		break;
	case LL_SHARING_VISITS_PAY:
		ll_strbuf_addf(text, _("  shared by visits: measured, %.2f times the progress by time slices\n"),
			       times);
		break;
	case LL_SHARING_SLICES_PAY:
		ll_strbuf_addf(text, _("  shared by time slices: measured, visits give %.2f times the progress\n"),
			       times);
		break;
	case LL_SHARING_TOO_DEEP:
		ll_strbuf_addf(text, _("  shared by time slices: programs have too much queued to measure visits\n"));
		break;
	case LL_SHARING_VISITS_RULE:
		ll_strbuf_addf(text, _("  shared by visits: a program works on several cards\n"));
		break;
	case LL_SHARING_WINDOWS:
		ll_strbuf_addf(text,
			       _("  shared in windows: each program is on the card for its part of each period\n"));
		break;
	case LL_SHARING_CLASSES:
		ll_strbuf_addf(
		    text,
		    _("  shared by class: lower classes have short time slices, or are held for a part of the time\n"));
		break;
	}
}

/* Two jobs of a class share by time slices of the same length, and have different weights. */
static bool ignores_weights(const struct ll_status_card *status)
{
	const struct ll_status_job *first[LL_PRIORITY_HOLD + 1] = {NULL};
	for (size_t i = 0; i < status->job_count; i++) {
		const struct ll_status_job *job = &status->jobs[i];
		if (!job->row.claims || job->row.shared != LL_SHARED_SLICES || job->row.slice_us)
			continue;
		const struct ll_status_job **other = &first[job->priority];
		if (*other && ll_status_weight(&(*other)->told) != ll_status_weight(&job->told))
			return true;
		*other = job;
	}
	return false;
}

static void add_how(struct ll_strbuf *text, const struct ll_status_job *job)
{
	ll_strbuf_addf(text, _("  tenant %s: %s"), job->told.job.tenant,
		       _(ll_status_shared_name((enum ll_shared)job->row.shared)));
	if (job->row.recent_ns)
		ll_strbuf_addf(text, _(", %.0f %% of the card's time in the last %.1f s"),
			       job->row.recent_permille / 10.0, (double)job->row.recent_ns / (double)LL_NS_PER_S);
	ll_strbuf_adds(text, ", ");
	ll_status_add_why(text, job);
	if (job->row.slice_us)
		ll_strbuf_addf(text, _(", time slices of %.3g ms"), (double)job->row.slice_us / 1000.0);
	ll_strbuf_addc(text, '\n');
}

static void add_other_ways(struct ll_strbuf *text, const struct ll_status_card *status)
{
	for (size_t i = 0; i < status->job_count; i++) {
		const struct ll_status_job *job = &status->jobs[i];
		if (!job->has_other_way)
			continue;
		ll_strbuf_addf(text, _("  tenant %s: "), job->told.job.tenant);
		ll_other_way_add(text, &job->other_way);
		ll_strbuf_addc(text, '\n');
	}
}

void ll_status_add_claims(struct ll_strbuf *text, const struct ll_status_card *status)
{
	add_sharing(text, status);
	if (ignores_weights(status))
		ll_strbuf_adds(text, _("  weights are not in force now: all have the same time slices\n"));
	for (size_t i = 0; i < status->job_count; i++) {
		if (status->jobs[i].row.claims && status->jobs[i].row.shared)
			add_how(text, &status->jobs[i]);
	}
	for (size_t i = 0; i < status->claim_count; i++)
		add_claim(text, status, &status->claims[i]);
	for (size_t i = 0; i < status->job_count; i++) {
		if (!status->jobs[i].row.claims)
			add_tenant(text, status, &status->jobs[i]);
	}
	for (size_t i = 0; i < status->stranger_count; i++)
		add_stranger(text, status, &status->strangers[i]);
	add_other_ways(text, status);
	for (size_t i = 0; i < status->job_count; i++)
		ll_status_add_mismatch(text, status, &status->jobs[i]);
	ll_status_add_sitter(text, status);
}
