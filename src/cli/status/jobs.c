#include "cli/status/status.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "base/translate.h"
#include "base/utf8.h"
#include "cli/common/daemon.h"
#include "cli/common/table.h"
#include "cli/common/user.h"
#include "protocol/keeper.h"

enum { CELL_SIZE = 128, ID_SIZE = 24, LEAST_USER = 4, LEAST_TENANT = 9, LEAST_COMMAND = 10 };

static const struct ll_table_column columns_of_jobs[] = {
    {.heading = N_("job")},
    {.heading = N_("pid"), .is_second = true},
    {.heading = N_("user"), .least = LEAST_USER, .is_second = true},
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("state")},
    {.heading = N_("command"), .least = LEAST_COMMAND, .is_second = true},
};

static const char *const states[] = {
    [LL_JOB_QUEUED] = N_("queued"),       [LL_JOB_RESERVED] = N_("reserved"), [LL_JOB_RUNNING] = N_("running"),
    [LL_JOB_SUSPENDED] = N_("suspended"), [LL_JOB_EVICTED] = N_("evicted"),   [LL_JOB_ENDED] = N_("ended"),
};

/* The process may be stopped by a signal, which loadlined does not know. */
const char *ll_status_job_state(const struct ll_daemon_view *view, const struct ll_job_facts *job)
{
	struct ll_process_stat stat;
	bool is_stopped = job->state == LL_JOB_RUNNING && job->pid && ll_daemon_view_pids_are_ours(view) &&
			  !ll_process_stat_of((pid_t)job->pid, &stat) && stat.is_stopped;
	return is_stopped ? N_("stopped") : states[job->state];
}

static void write_id(const struct ll_job_facts *facts, char ret_id[ID_SIZE])
{
	snprintf(ret_id, ID_SIZE, "%" PRIx64, facts->token[0]);
}

static bool has_claim(const struct ll_message_job_row *job, const struct ll_status_card *cards, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < cards[i].job_count; k++) {
			if (cards[i].jobs[k].told.job.token[0] == job->job.token[0] && cards[i].jobs[k].row.claims)
				return true;
		}
	}
	return false;
}

/* ---- text ---- */

static void add_job(struct ll_table *table, const struct ll_daemon_view *view, const struct ll_message_job_row *job)
{
	char number[ID_SIZE], user[CELL_SIZE], cell[CELL_SIZE] = "";
	snprintf(number, sizeof number, "%" PRIu64, job->number);
	ll_table_add(table, number);
	if (ll_daemon_view_pids_are_ours(view) && job->job.pid)
		snprintf(cell, sizeof cell, "%u", job->job.pid);
	ll_table_add(table, cell);
	ll_user_name(job->job.uid, user, sizeof user);
	ll_table_add(table, user);
	ll_table_add(table, job->job.tenant);
	ll_table_add(table, job->job.flags & LL_JOB_UNRESPONSIVE ? _("unresponsive")
								 : _(ll_status_job_state(view, &job->job)));
	ll_table_add(table, job->job.command);
}

void ll_status_add_daemon(struct ll_strbuf *text, const struct ll_daemon_view *view)
{
	char user[CELL_SIZE];
	if (view->answer == LL_DAEMON_SILENT) {
		ll_strbuf_addf(
		    text, _("loadlined, pid %d, has not answered within 1 s: jobs are not shown, nor their claims\n"),
		    (int)view->pid);
	} else if (view->answer == LL_DAEMON_FOREIGN) {
		ll_user_name(view->foreign_uid, user, sizeof user);
		ll_strbuf_addf(text, _("loadlined: user %s has its name %s%s: jobs are not shown, nor their claims\n"),
			       user, ll_place_mark(&view->place), view->place.name);
	} else if (view->answer == LL_DAEMON_SERVES && ll_place_is_system(&view->place)) {
		bool is_operator = view->welcome.is_operator; /* others can do nothing about it */
		if (is_operator)
			ll_strbuf_addf(text, _("loadlined: the system's, for all users (%s)\n"), view->place.name);
		if (is_operator && view->welcome.keeper != LL_KEEPER_PRESENT)
			ll_strbuf_adds(text, _("no loadline-keeper serves: jobs are known by their tokens only\n"));
		if (view->list.end.hides_others)
			ll_strbuf_adds(text,
				       _("programs of other users are not shown (visibility in its configuration)\n"));
		if (is_operator)
			ll_policy_add_state(text, &view->welcome);
		ll_policy_add_tenants(text, &view->policy);
	} else if (view->answer == LL_DAEMON_BROKEN) {
		ll_strbuf_addf(text, _("loadlined: %s: jobs are not shown, nor their claims\n"), strerror(-view->code));
	}
	ll_status_add_sensor(text, view);
}

void ll_status_add_jobs(struct ll_strbuf *text, const struct ll_daemon_view *view, const struct ll_status_card *cards,
			size_t count, unsigned columns)
{
	enum { COUNT = sizeof columns_of_jobs / sizeof *columns_of_jobs };
	struct ll_table table;
	ll_table_init(&table, columns_of_jobs, COUNT);
	for (size_t i = 0; i < view->list.job_count; i++) {
		if (!has_claim(&view->list.jobs[i], cards, count))
			add_job(&table, view, &view->list.jobs[i]);
	}
	if (table.cell_count > COUNT) {
		ll_strbuf_addc(text, '\n');
		ll_table_print(&table, columns, text);
	}
	text->failed |= table.cells.failed;
	ll_table_fini(&table);
}

/* ---- JSON ---- */

static const char *const answers[] = {
    [LL_DAEMON_NONE] = "none",       [LL_DAEMON_SERVES] = "serves", [LL_DAEMON_SILENT] = "silent",
    [LL_DAEMON_FOREIGN] = "foreign", [LL_DAEMON_BROKEN] = "broken",
};

static json_t *daemon_object(const struct ll_daemon_view *view)
{
	bool serves = view->answer == LL_DAEMON_SERVES;
	return json_pack(
	    "{s:{s:s, s:b, s:o, s:o, s:o, s:o, s:o, s:o}}", "daemon", "answer", answers[view->answer], "system",
	    ll_place_is_system(&view->place), "pid", ll_json_number(view->pid > 0, (uint64_t)view->pid), "version",
	    serves ? ll_json_text(view->welcome.version_text) : json_null(), "jobs",
	    ll_json_number(serves, view->list.end.jobs), "tenants", ll_json_number(serves, view->list.end.tenants),
	    "processes", ll_json_number(serves, view->list.end.processes), "sensor_silent_seconds",
	    view->sensed.end.silent_ns == UINT64_MAX || !serves
		? json_null()
		: ll_json_real((double)view->sensed.end.silent_ns / (double)LL_NS_PER_S, 1));
}

static const char *const classes[] = {
    [LL_LIMIT_CLASS_NORMAL] = "normal", [LL_LIMIT_CLASS_HIGH] = "high", [LL_LIMIT_CLASS_LOW] = "low"};

json_t *ll_status_lending_json(uint64_t lending)
{
	return ll_json_known(lending, lending & LL_QUEUE_IS_RECALLED ? "recalled" : "borrows");
}

json_t *ll_status_limits_json(const struct ll_limits *limits)
{
	unsigned slowdown = limits->slowdown_permille ? limits->slowdown_permille : LL_DEFAULT_SLOWDOWN_PERMILLE;
	return json_pack("{s:o, s:o, s:o, s:o, s:s, s:f, s:s, s:o, s:b, s:b}", "memory_bytes",
			 ll_json_number(limits->memory_bytes, limits->memory_bytes), "memory_request_bytes",
			 ll_json_number(limits->request_bytes, limits->request_bytes), "compute_cap_percent",
			 ll_json_percent(limits->compute_permille), "mps_compute_percent",
			 ll_json_percent(limits->space_permille), "by", limits->space_permille ? "space" : "slices",
			 "weight", limits->weight_permille ? limits->weight_permille / 1000.0 : 1.0, "class",
			 classes[limits->priority], "slowdown_target", ll_json_real(slowdown / 1000.0, 3), "evictable",
			 (limits->flags & LL_LIMIT_EVICTABLE) != 0, "strict", (limits->flags & LL_LIMIT_STRICT) != 0);
}

static json_t *job_object(const struct ll_daemon_view *view, const struct ll_message_job_row *row)
{
	char id[ID_SIZE], user[CELL_SIZE];
	const struct ll_job_facts *job = &row->job;
	bool is_local = ll_daemon_view_pids_are_ours(view);
	write_id(job, id);
	ll_user_name(job->uid, user, sizeof user);
	return json_pack(
	    "{s:{s:s, s:o, s:b, s:o, s:i, s:s, s:o, s:b, s:o, s:o, s:s, s:b, s:o, s:o, s:i, s:s, s:o, s:I, s:o}}",
	    "job", "id", id, "pid", ll_json_number(is_local && job->pid, job->pid), "pid_is_local", is_local,
	    "monitor_pid", ll_json_number(is_local && row->monitor_pid, row->monitor_pid), "uid", (int)job->uid, "user",
	    user, "tenant", ll_json_text(job->tenant), "tenant_is_named", (job->flags & LL_JOB_NAMED) != 0,
	    "configured_tenant", ll_json_known(row->tenant[0], row->tenant), "project",
	    ll_json_known(row->project[0], row->project), "state", ll_status_job_state(view, job), "unresponsive",
	    (job->flags & LL_JOB_UNRESPONSIVE) != 0, "command", ll_json_known(job->command[0], job->command), "cgroup",
	    ll_json_known(job->cgroup[0], job->cgroup), "processes", (int)row->processes, "proof",
	    job->flags & LL_JOB_HAS_GROUP ? "cgroup" : "token", "limits", ll_status_limits_json(&job->limits), "number",
	    (json_int_t)row->number, "lending", ll_status_lending_json(row->lending));
}

/* `jq -e` and readers of the last line go by the lines of claims: where there is nothing to tell, none follows them. */
int ll_status_print_jobs_json(const struct ll_daemon_view *view, const struct ll_status_card *cards, size_t count,
			      struct ll_err *err)
{
	bool has_said = false;
	int rc = 0;
	for (size_t i = 0; !rc && i < view->list.job_count; i++) {
		if (has_claim(&view->list.jobs[i], cards, count))
			continue;
		rc = has_said ? 0 : ll_json_line(daemon_object(view), err);
		has_said = true;
		if (!rc)
			rc = ll_json_line(job_object(view, &view->list.jobs[i]), err);
	}
	return rc;
}

int ll_status_print_daemon_json(const struct ll_daemon_view *view, struct ll_err *err)
{
	bool is_trouble = view->answer != LL_DAEMON_NONE && view->answer != LL_DAEMON_SERVES;
	return is_trouble ? ll_json_line(daemon_object(view), err) : 0;
}
