#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/hold/words.h"
#include "cli/status/status.h"

static const char synthetic[] = N_("synthetic");

enum { CELL_SIZE = 128, LEAST_USER = 4, LEAST_TENANT = sizeof synthetic - 1, LEAST_COMMAND = 10, LEAST_LAST = 11 };

/* If the table is too wide, columns that may go do so from the right: the number of the job stays longest. */
static const struct ll_table_column columns_of_claims[] = {
    {.heading = N_("claim")},
    {.heading = N_("job"), .may_go = true},
    {.heading = N_("pid"), .is_second = true},
    {.heading = N_("user"), .least = LEAST_USER, .is_second = true},
    {.heading = N_("tenant"), .least = LEAST_TENANT},
    {.heading = N_("state")},
    {.heading = N_("last kernel"), .least = LEAST_LAST, .is_second = true, .may_go = true},
    {.heading = N_("age"), .is_second = true, .may_go = true},
    {.heading = N_("memory"), .is_second = true},
    {.heading = N_("share"), .is_second = true, .may_go = true},
    {.heading = N_("time"), .is_second = true, .may_go = true},
    {.heading = N_("command"), .least = LEAST_COMMAND, .is_second = true},
};

/* One row. What is unknown, or does not apply, is empty. The pointers are never NULL, but for those that say so. */
struct row {
	char claim[CELL_SIZE], pid[CELL_SIZE];
	uint64_t job_number; /* as `queue` and `history` have it; 0: none */
	const char *user, *command, *tenant;
	const char *configured_tenant; /* put before the tenant's name if that is another one; NULL: none */
	char state[CELL_SIZE];
	uint64_t age_ns; /* LL_AGE_UNKNOWN */
	bool has_last;
	struct ll_status_last last;
	uint64_t memory_bytes, limit_bytes; /* LL_MEMORY_UNKNOWN; 0: no limit */
	double seconds;                     /* NaN */
	bool has_share;
	double share_percent; /* of the card's time: since the earlier reading, or lately */
	double cap_percent;   /* of the card's time, or by space of its SMs; 0: none */
	bool is_by_space;
	const char *class; /* NULL: normal */
};

/* Writes the memory, and the limit if there is one, in the limit's unit: "0.3/8.0 GiB". */
static void write_memory(struct ll_strbuf *cell, const struct row *row)
{
	const uint64_t mib = 1 << 20, gib = 1 << 30;
	if (row->memory_bytes == LL_MEMORY_UNKNOWN)
		return;
	if (row->limit_bytes >= gib) {
		ll_strbuf_addf(cell, "%.1f/", (double)row->memory_bytes / (double)gib);
	} else if (row->limit_bytes >= mib) {
		ll_strbuf_addf(cell, "%.0f/", (double)row->memory_bytes / (double)mib);
	} else {
		ll_hold_add_bytes(cell, row->memory_bytes);
		ll_strbuf_adds(cell, row->limit_bytes ? "/" : "");
	}
	if (row->limit_bytes)
		ll_hold_add_bytes(cell, row->limit_bytes);
}

/* Writes the state, and the limits of time that are not the usual ones: "running, ≤25 %, low". In a narrow terminal
 * this column stays. */
static void write_state(struct ll_strbuf *cell, const struct row *row)
{
	ll_strbuf_adds(cell, row->state);
	if (row->cap_percent > 0)
		ll_strbuf_addf(cell, ", ≤%g %%%s", row->cap_percent, row->is_by_space ? _(" of SMs") : "");
	if (row->class)
		ll_strbuf_addf(cell, ", %s", row->class);
}

static void add_text(struct ll_table *table, const struct ll_strbuf *text)
{
	ll_table_add(table, text->buf);
	table->cells.failed |= text->failed;
}

static void add_row(struct ll_table *table, const struct row *row)
{
	LL_SCOPE_STRBUF struct ll_strbuf memory = LL_STRBUF_INIT, age = LL_STRBUF_INIT, last = LL_STRBUF_INIT;
	LL_SCOPE_STRBUF struct ll_strbuf state = LL_STRBUF_INIT;
	char cell[CELL_SIZE];
	write_memory(&memory, row);
	write_state(&state, row);
	ll_status_add_age(&age, row->age_ns);
	if (row->has_last)
		ll_status_add_last(&last, &row->last);
	ll_table_add(table, row->claim);
	snprintf(cell, sizeof cell, "%" PRIu64, row->job_number);
	ll_table_add(table, row->job_number ? cell : "");
	ll_table_add(table, row->pid);
	ll_table_add(table, row->user);
	bool has_other =
	    row->configured_tenant && row->configured_tenant[0] && strcmp(row->configured_tenant, row->tenant) != 0;
	snprintf(cell, sizeof cell, "%s: %s", has_other ? row->configured_tenant : "", row->tenant);
	ll_table_add(table, has_other ? cell : row->tenant);
	add_text(table, &state);
	add_text(table, &last);
	add_text(table, &age);
	add_text(table, &memory);
	snprintf(cell, sizeof cell, "%.0f %%", row->share_percent);
	ll_table_add(table, row->has_share ? cell : "");
	snprintf(cell, sizeof cell, "%.1f s", row->seconds);
	ll_table_add(table, isnan(row->seconds) ? "" : cell);
	ll_table_add(table, row->command);
}

/* ---- what the rows are about ---- */

static void write_process(struct row *row, const struct ll_status_card *status, pid_t pid)
{
	const struct ll_status_process *process = ll_status_process_of(status, pid);
	snprintf(row->pid, sizeof row->pid, "%d", (int)pid);
	row->user = process->user;
	row->command = process->command;
	row->age_ns = process->age_ns;
}

/* The share since the earlier reading; without one that which loadlined has seen lately. */
static void write_share(struct row *row, const struct ll_status_card *status, const struct ll_status_job *job)
{
	struct ll_status_recent recent;
	row->has_share = job && ll_status_recent_job(status, job, &recent);
	if (row->has_share) {
		row->share_percent = recent.percent;
	} else if (job && job->how.share_ns) {
		row->has_share = true;
		row->share_percent = job->how.share_permille / 10.0;
	}
}

static void write_limits(struct row *row, uint64_t memory_bytes, unsigned cap_permille, unsigned space_permille,
			 enum ll_priority priority)
{
	row->limit_bytes = memory_bytes;
	row->is_by_space = !cap_permille && space_permille;
	row->cap_percent = (row->is_by_space ? space_permille : cap_permille) / 10.0;
	row->class = priority == LL_PRIORITY_HIGH || priority == LL_PRIORITY_LOW ? ll_priority_name(priority) : NULL;
}

static void write_hold(struct row *row, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const char *state = _(ll_status_state(claim));
	row->tenant = _(synthetic);
	if (claim->state != LL_CLAIM_RUNNING || claim->is_stopped)
		snprintf(row->state, sizeof row->state, "%s", state);
	else if (claim->target_watts)
		snprintf(row->state, sizeof row->state, "%s %u W", state, claim->target_watts);
	else
		snprintf(row->state, sizeof row->state, "%s %g %%", state, claim->target_permille / 10.0);
	row->seconds = (double)claim->synthetic_busy_ns / (double)LL_NS_PER_S;
	struct ll_status_recent recent;
	row->has_share = ll_status_recent_hold(status, claim, &recent);
	row->share_percent = row->has_share ? recent.percent : 0;
}

static void write_program(struct row *row, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	const struct ll_status_claim *holder = ll_status_waits_for(status, claim);
	char number[LL_STATUS_NUMBER_SIZE];
	row->job_number = claim->job_number;
	row->tenant = claim->tenant;
	row->configured_tenant = claim->configured_tenant;
	write_limits(row, claim->memory_limit_bytes, claim->compute_cap_permille, job ? job->space_permille : 0,
		     claim->priority);
	row->seconds = (double)claim->gpu_time_ns / (double)LL_NS_PER_S;
	row->has_last = true;
	row->last = ll_status_last_of_claim(status, claim);
	write_share(row, status, job);
	if (ll_status_has_mismatch(job))
		snprintf(row->state, sizeof row->state, "%s", _("mismatch"));
	else if (holder && !claim->is_stopped)
		snprintf(row->state, sizeof row->state, _("waits for %s"), ll_status_number(status, holder, number));
	else if (ll_status_is_over_cap(status, claim) && !claim->is_stopped)
		snprintf(row->state, sizeof row->state, _("waits for time"));
	else
		snprintf(row->state, sizeof row->state, "%s", _(ll_status_state(claim)));
}

static void add_claim(struct ll_table *table, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct row row = {
	    .memory_bytes = claim->memory_used_bytes, .user = "", .command = _("(in another PID namespace)")};
	ll_status_number(status, claim, row.claim);
	if (claim->is_pid_ours)
		write_process(&row, status, claim->pid);
	row.age_ns = ll_status_age(status, claim);
	if (claim->priority == LL_PRIORITY_HOLD)
		write_hold(&row, status, claim);
	else
		write_program(&row, status, claim);
	add_row(table, &row);
}

static void add_tenant(struct ll_table *table, const struct ll_status_card *status, const struct ll_status_job *job)
{
	struct row row = {
	    .user = "",
	    .command = "",
	    .tenant = job->name,
	    .job_number = job->number,
	    .age_ns = LL_AGE_UNKNOWN,
	    .memory_bytes = job->memory_used_bytes,
	    .seconds = (double)job->gpu_time_ns / (double)LL_NS_PER_S,
	};
	write_limits(&row, job->memory_limit_bytes, job->compute_cap_permille, job->space_permille, job->priority);
	write_share(&row, status, job);
	snprintf(row.claim, sizeof row.claim, "%s/-", status->card->label);
	snprintf(row.state, sizeof row.state, "%s", _("off the card"));
	add_row(table, &row);
}

static void add_stranger(struct ll_table *table, const struct ll_status_card *status,
			 const struct ll_status_stranger *stranger)
{
	struct row row = {.tenant = stranger->tenant,
			  .memory_bytes = stranger->memory_bytes,
			  .seconds = (double)NAN,
			  .has_last = true,
			  .last = ll_status_last_of_stranger(status, stranger)};
	snprintf(row.claim, sizeof row.claim, "%s/-", status->card->label);
	snprintf(row.state, sizeof row.state, "%s",
		 stranger->is_mps_server ? _("MPS server")
		 : stranger->is_older    ? _("older loadline")
					 : _("ungoverned"));
	write_process(&row, status, stranger->pid);
	add_row(table, &row);
}

static void add_rows_of(struct ll_table *table, const struct ll_status_card *status)
{
	for (size_t i = 0; i < status->claim_count; i++)
		add_claim(table, status, &status->claims[i]);
	for (size_t i = 0; i < status->job_count; i++) {
		if (!status->jobs[i].claims)
			add_tenant(table, status, &status->jobs[i]);
	}
	for (size_t i = 0; i < status->stranger_count; i++)
		add_stranger(table, status, &status->strangers[i]);
}

/* What must not be cut, nor missed. */
static void add_lost(struct ll_strbuf *text, const struct ll_status_card *status)
{
	for (size_t i = 0; i < status->job_count; i++) {
		double seconds;
		if (ll_status_lost(status, &status->jobs[i], &seconds))
			ll_strbuf_addf(
			    text, _("tenant %s: NOT HELD TO ITS LIMITS for %.0f s: a process has lost its claim\n"),
			    status->jobs[i].name, seconds);
		ll_status_add_mismatch(text, status, &status->jobs[i]);
	}
}

void ll_status_add_rows(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns)
{
	struct ll_table table;
	ll_table_init(&table, columns_of_claims, sizeof columns_of_claims / sizeof *columns_of_claims);
	for (size_t i = 0; i < count; i++)
		add_rows_of(&table, &cards[i]);
	if (table.cell_count > table.column_count) {
		ll_strbuf_addc(text, '\n');
		ll_table_print(&table, columns, text);
	}
	text->failed |= table.cells.failed;
	ll_table_fini(&table);
	for (size_t i = 0; i < count; i++) {
		add_lost(text, &cards[i]);
		ll_status_add_sitter(text, &cards[i]);
	}
}
