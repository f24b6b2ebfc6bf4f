#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "cli/common/table.h"
#include "cli/status/status.h"

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)LL_NS_PER_S;
}

static json_t *card_identity(const struct ll_status_card *status)
{
	const struct ll_card *card = status->card;
	return json_pack("{s:i, s:o, s:o, s:o, s:o, s:b, s:b}", "card", (int)card->index, "slice",
			 card->is_mig ? json_integer(card->slice) : json_null(), "uuid",
			 ll_json_known(card->uuid[0], card->uuid), "name", ll_json_known(card->name[0], card->name),
			 "pci", ll_json_known(card->pci[0], card->pci), "simulated", status->is_simulated, "mig",
			 card->has_slices);
}

static json_t *card_readings(const struct ll_status_card *status)
{
	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "util_percent", ll_json_real(status->util_percent, 1),
	    "memory_bytes", ll_json_number(status->has_memory, status->memory.used_bytes), "memory_total_bytes",
	    ll_json_number(status->has_memory, status->memory.total_bytes), "power_watts",
	    ll_json_real(status->power_watts, 1), "power_limit_watts", ll_json_real(status->power_limit_watts, 1),
	    "energy_joules", ll_json_real(status->energy_joules, 3), "temperature_celsius",
	    ll_json_real(status->celsius, 1), "slowdown_celsius", ll_json_real(status->slowdown_celsius, 1),
	    "sm_clock_mhz", ll_json_number(status->has_clocks, status->clocks.sm_mhz), "processes",
	    ll_json_number(status->has_processes, status->processes.count));
}

static json_t *card_state(const struct ll_status_card *status)
{
	char slowdown[64];
	const char *name = ll_sharing_name(status->sharing);
	json_t *sharing = ll_json_known(name, name);
	ll_slowdown_text(status->slowdown, slowdown, sizeof slowdown);
	return json_pack("{s:b, s:o, s:o, s:o, s:o, s:i, s:o, s:o}", "drained", status->is_drained, "drained_for",
			 ll_json_known(status->drained[0], status->drained), "compute_mode",
			 ll_json_known(status->has_mode, ll_compute_mode_text(status->mode)), "slowdown",
			 ll_json_known(status->has_slowdown, slowdown), "fault",
			 ll_json_known(status->card->fault, strerror(-status->card->fault)), "claims",
			 (int)status->claim_count, "sharing", sharing, "visits_gain",
			 ll_json_times(status->visits_permille));
}

static json_t *claim_identity(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	char number[LL_STATUS_NUMBER_SIZE];
	ll_status_number(status, claim, number);
	const struct ll_status_process *process = ll_status_process_of(status, claim->is_pid_ours ? claim->pid : 0);
	return json_pack(
	    "{s:s, s:i, s:b, s:o, s:o, s:s, s:s, s:o, s:o, s:s, s:o, s:b, s:s, s:o, s:o}", "claim", number, "pid",
	    (int)claim->pid, "pid_is_local", claim->is_pid_ours, "user", ll_json_known(process->user[0], process->user),
	    "command", ll_json_known(process->command[0], process->command), "uuid", status->card->uuid, "tenant",
	    claim->told.job.tenant, "configured_tenant", ll_json_known(claim->told.tenant[0], claim->told.tenant),
	    "project", ll_json_known(claim->told.project[0], claim->told.project), "class",
	    ll_priority_name(claim->priority), "lending", ll_status_lending_json(claim->told.lending), "synthetic",
	    claim->priority == LL_PRIORITY_HOLD, "state", ll_status_state(claim), "proof",
	    ll_json_known(claim->row.job_number, claim->told.job.flags & LL_JOB_HAS_GROUP ? "cgroup" : "token"),
	    "job_number", ll_json_number(claim->row.job_number, claim->row.job_number));
}

static json_t *claim_wishes(const struct ll_status_claim *claim)
{
	return json_pack(
	    "{s:o, s:o, s:o, s:o, s:o, s:o, s:f, s:o, s:o}", "payload",
	    ll_json_known(claim->payload[0], claim->payload), "metric", ll_json_known(claim->metric[0], claim->metric),
	    "target_percent", ll_json_percent(claim->target_permille), "target_watts",
	    ll_json_number(claim->target_watts, claim->target_watts), "memory_limit_bytes",
	    ll_json_number(claim->told.job.limits.memory_bytes, claim->told.job.limits.memory_bytes),
	    "compute_cap_percent", ll_json_percent(claim->told.job.limits.compute_permille), "weight",
	    ll_status_weight(&claim->told) / 1000.0, "slowdown_target", ll_json_times(ll_status_slowdown(&claim->told)),
	    "note", ll_json_known(claim->row.note[0], claim->row.note));
}

static json_t *gib_seconds(const struct ll_accounts *accounts)
{
	double gib = (double)LL_MEMORY_UNIT / (double)(1 << 30);
	return ll_json_real((double)accounts->held_unit_ms * gib / 1000, 3);
}

static json_t *waited_seconds(const struct ll_accounts *accounts)
{
	json_t *causes[LL_WAITS];
	for (unsigned i = 0; i < LL_WAITS; i++)
		causes[i] = ll_json_real(to_seconds(accounts->waited_ns[i]), 3);
	return json_pack("{s:o, s:o, s:o, s:o}", "turn", causes[LL_WAIT_TURN], "cap", causes[LL_WAIT_CAP], "memory",
			 causes[LL_WAIT_MEMORY], "move", causes[LL_WAIT_MOVE]);
}

/* Makes the members about memory over time and waits; null for a synthetic load. */
static json_t *claim_uses(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	if (!claim->row.job_number)
		return json_pack("{s:n, s:n, s:n, s:n, s:n, s:n}", "memory_gib_seconds", "tenant_memory_gib_seconds",
				 "waited_seconds", "slowdown", "lower_held_percent", "slice_ms");
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "memory_gib_seconds", gib_seconds(&claim->row.accounts),
			 "tenant_memory_gib_seconds", job ? gib_seconds(&job->row.accounts) : json_null(),
			 "waited_seconds", waited_seconds(&claim->row.accounts), "slowdown",
			 ll_json_times(job ? job->row.slowdown_permille : 0), "lower_held_percent",
			 ll_json_percent(job ? job->row.held_permille : 0), "slice_ms",
			 job && job->row.slice_us ? ll_json_real((double)job->row.slice_us / 1000.0, 3) : json_null());
}

/* Makes those of a tenant without a claim. */
static json_t *tenant_uses(const struct ll_status_job *job)
{
	return json_pack("{s:o, s:o}", "memory_gib_seconds", gib_seconds(&job->row.accounts), "waited_seconds",
			 waited_seconds(&job->row.accounts));
}

static json_t *claim_accounts(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	double age_s = status->now_ns > claim->taken_ns ? to_seconds(status->now_ns - claim->taken_ns) : 0;
	return json_pack("{s:I, s:o, s:o, s:o, s:o, s:I, s:o}", "memory_bytes", (json_int_t)claim->row.used_bytes,
			 "memory_granted_bytes",
			 ll_json_number(claim->told.job.limits.memory_bytes, claim->row.granted_bytes), "gpu_seconds",
			 ll_json_real(to_seconds(claim->row.gpu_time_ns), 6), "synthetic_busy_seconds",
			 ll_json_real(to_seconds(claim->synthetic_busy_ns), 6), "energy_joules",
			 ll_json_real((double)claim->energy_mj / 1000, 3), "yields", (json_int_t)claim->yields,
			 "age_seconds", ll_json_real(age_s, 3));
}

/* Makes the members about an evictable program's memory; null if the program is not evictable. */
static json_t *claim_residency(const struct ll_status_claim *claim)
{
	struct ll_status_residency residency = {0};
	bool is_evictable = ll_status_residency_of(claim, &residency);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "resident_bytes",
			 ll_json_number(is_evictable, residency.resident_bytes), "evictable_bytes",
			 ll_json_number(is_evictable, residency.evictable_bytes), "pinned_bytes",
			 ll_json_number(is_evictable, residency.pinned_bytes), "host_bytes",
			 ll_json_number(is_evictable, residency.host_bytes), "neighbour_bytes",
			 ll_json_number(is_evictable, residency.neighbour_bytes), "neighbour",
			 ll_json_known(claim->row.neighbour[0], claim->row.neighbour), "moves",
			 ll_json_number(is_evictable, residency.moves));
}

/* How the job shares the card, as --by says it. job: NULL for a synthetic load. */
static json_t *way_or_null(const struct ll_status_job *job)
{
	return job ? json_string(job->told.job.limits.space_permille ? "space" : "slices") : json_null();
}

/* job: NULL for a synthetic load. */
static json_t *lost_seconds(const struct ll_status_card *status, const struct ll_status_job *job)
{
	double seconds;
	return job && ll_status_lost(status, job, &seconds) ? ll_json_real(seconds, 3) : json_null();
}

/* Makes the members about the turn: whether the claim has it, and the claim that it waits for. */
static json_t *claim_turn(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	char number[LL_STATUS_NUMBER_SIZE] = "";
	const struct ll_status_claim *holder = ll_status_waits_for(status, claim);
	uint64_t card_bytes = ll_status_card_bytes(status, claim);
	if (holder)
		ll_status_number(status, holder, number);
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:b, s:o, s:o}", "card_memory_bytes",
			 ll_json_number(card_bytes != LL_MEMORY_UNKNOWN, card_bytes), "tenant_memory_bytes",
			 ll_json_number(job, job ? job->row.used_bytes : 0), "tenant_leaving_bytes",
			 ll_json_number(job, job ? job->row.leaving_bytes : 0), "memory_request_bytes",
			 ll_json_number(claim->told.job.limits.request_bytes, claim->told.job.limits.request_bytes),
			 "tenant_gpu_seconds", job ? ll_json_real(to_seconds(job->row.gpu_time_ns), 6) : json_null(),
			 "mps_compute_percent", ll_json_percent(job ? job->told.job.limits.space_permille : 0), "by",
			 way_or_null(job), "has_work", claim->row.wanting_ns != 0, "has_turn",
			 ll_status_has_turn(status, claim), "over_cap", ll_status_is_over_cap(status, claim),
			 "waits_for", ll_json_known(holder, number), "lost_seconds", lost_seconds(status, job));
}

static json_t *other_way(const struct ll_status_job *job)
{
	if (!job->has_other_way)
		return json_null();
	const struct ll_other_way *other = &job->other_way;
	return json_pack("{s:s, s:o, s:s, s:s, s:s}", "by", ll_way_name(other->record->way), "times",
			 ll_json_real(other->times, 3), "date", other->date, "name", other->record->name, "beside",
			 other->record->others_names);
}

/* Makes the members about those beside whom the tenant is: how it gets on, and how an earlier run did the other way. */
static json_t *claim_company(const struct ll_status_job *job)
{
	if (!job || !job->row.company_ns)
		return json_pack("{s:n, s:n, s:o}", "company_seconds", "company_launches", "other_way",
				 job ? other_way(job) : json_null());
	return json_pack("{s:o, s:I, s:o}", "company_seconds", ll_json_real(to_seconds(job->row.company_ns), 3),
			 "company_launches", (json_int_t)job->row.company_launches, "other_way", other_way(job));
}

/* Makes the members about the recent use by a tenant or a synthetic load, with the seconds that they cover. */
static json_t *recent_share(bool is_known, const struct ll_status_recent *recent)
{
	return json_pack("{s:o, s:o}", "recent_percent", is_known ? ll_json_real(recent->percent, 1) : json_null(),
			 "recent_seconds", is_known ? ll_json_real(recent->seconds, 3) : json_null());
}

static json_t *claim_recent(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct ll_status_recent recent;
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	bool is_known = job ? ll_status_recent_job(status, job, &recent)
			    : claim->priority == LL_PRIORITY_HOLD && ll_status_recent_hold(status, claim, &recent);
	return recent_share(is_known, &recent);
}

static json_t *tenant_recent(const struct ll_status_card *status, const struct ll_status_job *job)
{
	struct ll_status_recent recent;
	return recent_share(ll_status_recent_job(status, job, &recent), &recent);
}

static json_t *why_text(const struct ll_status_job *job)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_status_add_why(&text, job);
	return text.failed ? NULL : ll_json_text(text.buf);
}

/* Makes the members about how a tenant is shared, and why. job: NULL for a synthetic load: all null. */
static json_t *how_shared(const struct ll_status_job *job)
{
	static const struct ll_status_job none = {.row.shared = LL_SHARED_UNKNOWN};
	job = job ? job : &none;
	const struct ll_message_card_row *row = &job->row;
	const char *name = ll_status_shared_name((enum ll_shared)row->shared);
	double age_s = job->measured_wall_ns ? to_seconds(ll_wall_ns() - job->measured_wall_ns) : (double)NAN;
	return json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "regime", ll_json_known(name, name), "why",
			 name ? why_text(job) : json_null(), "share_percent",
			 row->recent_ns ? ll_json_real(row->recent_permille / 10.0, 1) : json_null(), "share_seconds",
			 row->recent_ns ? ll_json_real(to_seconds(row->recent_ns), 3) : json_null(), "slices_speed",
			 ll_json_times(row->slices_speed_permille), "visits_speed",
			 ll_json_times(row->visits_speed_permille), "measured_seconds_ago", ll_json_real(age_s, 1));
}

static json_t *tenant_object(const struct ll_status_card *status, const struct ll_status_job *job)
{
	/* The row is not written as "0/3", because `set` would read that as claim 3. */
	return json_pack(
	    "{s:i, s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:f, s:o, s:o, s:o, s:o, s:i, s:o}", "tenant_row",
	    (int)job->row.job_number, "tenant", job->told.job.tenant, "uuid", status->card->uuid, "class",
	    ll_priority_name(job->priority), "memory_bytes", (json_int_t)job->row.used_bytes, "memory_limit_bytes",
	    ll_json_number(job->told.job.limits.memory_bytes, job->told.job.limits.memory_bytes),
	    "memory_request_bytes",
	    ll_json_number(job->told.job.limits.request_bytes, job->told.job.limits.request_bytes),
	    "compute_cap_percent", ll_json_percent(job->told.job.limits.compute_permille), "weight",
	    ll_status_weight(&job->told) / 1000.0, "slowdown_target", ll_json_times(ll_status_slowdown(&job->told)),
	    "mps_compute_percent", ll_json_percent(job->told.job.limits.space_permille), "by", way_or_null(job),
	    "gpu_seconds", ll_json_real(to_seconds(job->row.gpu_time_ns), 6), "claims", 0, "lost_seconds",
	    lost_seconds(status, job));
}

/* Makes the members about the age of the process, and when it last had work on the card. age_ns: LL_AGE_UNKNOWN. */
static json_t *age_and_last(uint64_t age_ns, const struct ll_status_last *last)
{
	bool has_ago = last->kind == LL_LAST_AGO || last->kind == LL_LAST_AT_LEAST;
	return json_pack("{s:o, s:s, s:o}", "process_age_seconds",
			 age_ns == LL_AGE_UNKNOWN ? json_null() : ll_json_real(to_seconds(age_ns), 3), "last_kernel",
			 ll_status_last_name(last), "last_kernel_seconds",
			 last->kind == LL_LAST_RUNNING ? ll_json_real(0, 3)
			 : has_ago                     ? ll_json_real(to_seconds(last->ago_ns), 3)
						       : json_null());
}

static json_t *claim_last(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct ll_status_last last = ll_status_last_of_claim(status, claim);
	pid_t pid = claim->is_pid_ours ? claim->pid : 0;
	return age_and_last(ll_status_process_of(status, pid)->age_ns, &last);
}

static json_t *stranger_last(const struct ll_status_card *status, const struct ll_status_stranger *stranger)
{
	struct ll_status_last last = ll_status_last_of_stranger(status, stranger);
	return age_and_last(ll_status_process_of(status, stranger->pid)->age_ns, &last);
}

static json_t *stranger_object(const struct ll_status_card *status, const struct ll_status_stranger *stranger)
{
	char number[40];
	snprintf(number, sizeof number, "%s/%d", status->card->label, (int)stranger->pid);
	const struct ll_status_process *process = ll_status_process_of(status, stranger->pid);
	return json_pack("{s:s, s:i, s:o, s:o, s:s, s:s, s:b, s:b, s:b, s:o, s:o}", "process", number, "pid",
			 (int)stranger->pid, "user", ll_json_known(process->user[0], process->user), "command",
			 ll_json_known(process->command[0], process->command), "uuid", status->card->uuid, "name",
			 stranger->name, "governed", 0, "older_loadline", stranger->is_older, "mps_server",
			 stranger->is_mps_server, "started_in_tenant",
			 ll_json_known(stranger->tenant[0], stranger->tenant), "memory_bytes",
			 ll_json_number(stranger->memory_bytes != LL_MEMORY_UNKNOWN, stranger->memory_bytes));
}

/* Moves the members of second and third into first. Any of them may be NULL; then the result is NULL, so that the
 * caller checks for lack of memory once.
 */
static json_t *join_objects(json_t *first, json_t *second, json_t *third)
{
	int rc = json_object_update(first, second) | json_object_update(first, third);
	json_decref(second);
	json_decref(third);
	if (!rc)
		return first;
	json_decref(first);
	return NULL;
}

static json_t *claim_object(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	json_t *accounts = join_objects(claim_accounts(status, claim), claim_uses(status, claim), json_object());
	json_t *first = join_objects(claim_identity(status, claim), claim_wishes(claim), accounts);
	json_t *second = join_objects(claim_turn(status, claim), claim_residency(claim), claim_recent(status, claim));
	json_t *job = join_objects(how_shared(ll_status_job_of(status, claim)),
				   claim_company(ll_status_job_of(status, claim)), claim_last(status, claim));
	json_t *mismatch = ll_status_mismatch_json(ll_status_job_of(status, claim));
	return join_objects(first, second, join_objects(job, mismatch, json_object()));
}

int ll_status_print_json(const struct ll_status_card *status, struct ll_err *err)
{
	int rc = ll_json_line(join_objects(card_identity(status), card_readings(status), card_state(status)), err);
	for (size_t i = 0; !rc && i < status->claim_count; i++)
		rc = ll_json_line(claim_object(status, &status->claims[i]), err);
	for (size_t i = 0; !rc && i < status->job_count; i++) {
		if (!status->jobs[i].row.claims)
			rc = ll_json_line(join_objects(tenant_object(status, &status->jobs[i]),
						       tenant_recent(status, &status->jobs[i]),
						       join_objects(tenant_uses(&status->jobs[i]),
								    how_shared(&status->jobs[i]), json_object())),
					  err);
	}
	for (size_t i = 0; !rc && i < status->stranger_count; i++)
		rc = ll_json_line(join_objects(stranger_object(status, &status->strangers[i]),
					       stranger_last(status, &status->strangers[i]), json_object()),
				  err);
	return rc;
}
