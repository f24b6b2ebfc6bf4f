#include "cli/status/status.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "hold/command/words.h"

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
	char state[LL_STATUS_STATE_SIZE];
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

bool ll_status_share(const struct ll_status_card *status, const struct ll_status_job *job, double *ret_percent)
{
	struct ll_status_recent recent;
	bool is_seen_here = job && ll_status_recent_job(status, job, &recent);
	if (!is_seen_here && (!job || !job->row.recent_ns))
		return false;
	*ret_percent = is_seen_here ? recent.percent : job->row.recent_permille / 10.0;
	return true;
}

static void write_share(struct row *row, const struct ll_status_card *status, const struct ll_status_job *job)
{
	row->has_share = ll_status_share(status, job, &row->share_percent);
}

static void write_limits(struct row *row, uint64_t memory_bytes, unsigned cap_permille, unsigned space_permille,
			 enum ll_priority priority)
{
	row->limit_bytes = memory_bytes;
	row->is_by_space = !cap_permille && space_permille;
	row->cap_percent = (row->is_by_space ? space_permille : cap_permille) / 10.0;
	row->class = priority == LL_PRIORITY_HIGH || priority == LL_PRIORITY_LOW ? ll_priority_name(priority) : NULL;
}

static void write_state_of_hold(const struct ll_status_claim *claim, char ret_text[LL_STATUS_STATE_SIZE])
{
	const char *state = _(ll_status_state(claim));
	if (claim->row.state != LL_CLAIM_RUNNING || claim->is_stopped)
		snprintf(ret_text, LL_STATUS_STATE_SIZE, "%s", state);
	else if (claim->target_watts)
		snprintf(ret_text, LL_STATUS_STATE_SIZE, "%s %u W", state, claim->target_watts);
	else
		snprintf(ret_text, LL_STATUS_STATE_SIZE, "%s %g %%", state, claim->target_permille / 10.0);
}

void ll_status_write_state(const struct ll_status_card *status, const struct ll_status_claim *claim,
			   char ret_text[LL_STATUS_STATE_SIZE])
{
	const struct ll_status_claim *holder = ll_status_waits_for(status, claim);
	char number[LL_STATUS_NUMBER_SIZE];
	if (claim->priority == LL_PRIORITY_HOLD)
		write_state_of_hold(claim, ret_text);
	else if (ll_status_has_mismatch(ll_status_job_of(status, claim)))
		snprintf(ret_text, LL_STATUS_STATE_SIZE, "%s", _("mismatch"));
	else if (holder && !claim->is_stopped)
		snprintf(ret_text, LL_STATUS_STATE_SIZE, _("waits for %s"), ll_status_number(status, holder, number));
	else if (ll_status_is_over_cap(status, claim) && !claim->is_stopped)
		snprintf(ret_text, LL_STATUS_STATE_SIZE, _("waits for time"));
	else
		snprintf(ret_text, LL_STATUS_STATE_SIZE, "%s", _(ll_status_state(claim)));
}

static void write_hold(struct row *row, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	row->tenant = _(synthetic);
	row->seconds = (double)claim->synthetic_busy_ns / (double)LL_NS_PER_S;
	struct ll_status_recent recent;
	row->has_share = ll_status_recent_hold(status, claim, &recent);
	row->share_percent = row->has_share ? recent.percent : 0;
}

static void write_program(struct row *row, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	const struct ll_status_job *job = ll_status_job_of(status, claim);
	row->job_number = claim->row.job_number;
	row->tenant = claim->told.job.tenant;
	row->configured_tenant = claim->told.tenant;
	write_limits(row, claim->told.job.limits.memory_bytes, claim->told.job.limits.compute_permille,
		     job ? job->told.job.limits.space_permille : 0, claim->priority);
	row->seconds = (double)claim->row.gpu_time_ns / (double)LL_NS_PER_S;
	row->has_last = true;
	row->last = ll_status_last_of_claim(status, claim);
	write_share(row, status, job);
}

static void add_claim(struct ll_table *table, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct row row = {
	    .memory_bytes = claim->row.used_bytes, .user = "", .command = _("(in another PID namespace)")};
	ll_status_number(status, claim, row.claim);
	if (claim->is_pid_ours)
		write_process(&row, status, claim->pid);
	row.age_ns = ll_status_age(status, claim);
	ll_status_write_state(status, claim, row.state);
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
	    .tenant = job->told.job.tenant,
	    .job_number = job->row.job_number,
	    .age_ns = LL_AGE_UNKNOWN,
	    .memory_bytes = job->row.used_bytes,
	    .seconds = (double)job->row.gpu_time_ns / (double)LL_NS_PER_S,
	};
	write_limits(&row, job->told.job.limits.memory_bytes, job->told.job.limits.compute_permille,
		     job->told.job.limits.space_permille, job->priority);
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
		if (!status->jobs[i].row.claims)
			add_tenant(table, status, &status->jobs[i]);
	}
	for (size_t i = 0; i < status->stranger_count; i++)
		add_stranger(table, status, &status->strangers[i]);
}

/* ---- what does not agree ---- */

bool ll_status_has_mismatch(const struct ll_status_job *job)
{
	return job && job->row.flags & (LL_CARD_MEMORY_MISMATCH | LL_CARD_TIME_MISMATCH);
}

static double to_seconds(uint64_t ns)
{
	return (double)ns / (double)LL_NS_PER_S;
}

void ll_status_add_mismatch(struct ll_strbuf *text, const struct ll_status_card *status,
			    const struct ll_status_job *job)
{
	if (job->row.flags & LL_CARD_MEMORY_MISMATCH) {
		ll_strbuf_addf(text, _("tenant %s: MISMATCH on card %s: its processes report "), job->told.job.tenant,
			       status->card->label);
		ll_hold_add_bytes(text, job->row.used_bytes);
		ll_strbuf_adds(text, _(" of memory, and the driver counts "));
		ll_hold_add_bytes(text, job->row.driver_bytes);
		ll_strbuf_adds(text, _(": a process is without the library, or reports too little\n"));
	}
	if (job->row.flags & LL_CARD_TIME_MISMATCH)
		ll_strbuf_addf(text,
			       _("tenant %s: MISMATCH on card %s: it reports %.1f s of GPU time in %.1f s, and the "
				 "card had work for %.1f s\n"),
			       job->told.job.tenant, status->card->label, to_seconds(job->row.checked_gpu_ns),
			       to_seconds(job->row.checked_ns), to_seconds(job->row.checked_busy_ns));
}

json_t *ll_status_mismatch_json(const struct ll_status_job *job)
{
	const char *word = !ll_status_has_mismatch(job)                  ? NULL
			   : !(job->row.flags & LL_CARD_TIME_MISMATCH)   ? "memory"
			   : !(job->row.flags & LL_CARD_MEMORY_MISMATCH) ? "time"
									 : "memory and time";
	return json_pack("{s:o, s:o}", "mismatch", ll_json_known(word, word), "driver_memory_bytes",
			 ll_json_number(job && job->row.driver_bytes, job ? job->row.driver_bytes : 0));
}

/* ---- the sensor ---- */

void ll_status_add_sensor(struct ll_strbuf *text, const struct ll_daemon_view *view)
{
	const struct ll_message_sense_end *end = &view->sensed.end;
	if (end->silent_ns == UINT64_MAX || view->answer != LL_DAEMON_SERVES)
		return;
	if (end->silent_ns >= LL_SENSED_FRESH_NS)
		ll_strbuf_addf(text, _("loadlined: its sensor has said nothing for %.0f s\n"),
			       to_seconds(end->silent_ns));
	else if (end->reason[0])
		ll_strbuf_addf(text, _("loadlined: its sensor sees no card: %s\n"), end->reason);
}

void ll_status_add_sitter(struct ll_strbuf *text, const struct ll_status_card *status)
{
	if (status->sitter.kind == LL_HOLD_NO_SITTER)
		return;
	ll_hold_add_sitter(text, status->card, &status->sitter);
	ll_strbuf_addc(text, '\n');
}

/* What must not be cut, nor missed. */
static void add_lost(struct ll_strbuf *text, const struct ll_status_card *status)
{
	for (size_t i = 0; i < status->job_count; i++) {
		double seconds;
		if (ll_status_lost(status, &status->jobs[i], &seconds))
			ll_strbuf_addf(
			    text, _("tenant %s: NOT HELD TO ITS LIMITS for %.0f s: a process has lost its claim\n"),
			    status->jobs[i].told.job.tenant, seconds);
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

enum { LEAST_NAME = 20, LEAST_MODE = 7 };

static const char simulated[] = N_(" (simulated)");

/* The claims are counted in the rows below, too. */
static const struct ll_table_column columns_of_cards[] = {
    {.heading = N_("card")},
    {.heading = N_("name"), .least = LEAST_NAME, .tail = simulated},
    {.heading = N_("util"), .is_second = true},
    {.heading = N_("memory"), .is_second = true},
    {.heading = N_("power"), .is_second = true},
    {.heading = N_("temp"), .is_second = true},
    {.heading = N_("mode"), .least = LEAST_MODE},
    {.heading = N_("claims"), .may_go = true},
};

static void add_number(struct ll_table *table, double value, const char *unit)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, "%.0f %s", value, unit);
	ll_table_add(table, isnan(value) ? "" : cell);
}

static void add_memory(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	const double gib = 1 << 30;
	snprintf(cell, sizeof cell, is_short ? "%.0f/%.0f GiB" : _("%.1f of %.1f GiB"),
		 (double)status->memory.used_bytes / gib, (double)status->memory.total_bytes / gib);
	ll_table_add(table, status->has_memory ? cell : "");
}

static void add_power(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	snprintf(cell, sizeof cell, is_short ? "%.0f/%.0f W" : _("%.0f of %.0f W"), status->power_watts,
		 status->power_limit_watts);
	if (isnan(status->power_watts) || isnan(status->power_limit_watts))
		add_number(table, status->power_watts, "W");
	else
		ll_table_add(table, cell);
}

static const char *mode_text(const struct ll_status_card *status, bool is_short, char cell[CELL_SIZE])
{
	if (status->card->fault)
		return strerror(-status->card->fault);
	if (status->is_drained) {
		snprintf(cell, CELL_SIZE, "%s%s%s", _("drained"), status->drained[0] ? ": " : "", status->drained);
		return cell;
	}
	if (status->card->has_slices)
		return "MIG";
	if (is_short && status->has_mode && status->mode == LL_MODE_EXCLUSIVE_PROCESS)
		return _("exclusive");
	return status->has_mode ? _(ll_compute_mode_text(status->mode)) : "";
}

static void add_card(struct ll_table *table, const struct ll_status_card *status, bool is_short)
{
	char cell[CELL_SIZE];
	const char *name = status->card->name[0] ? status->card->name : _("does not answer");
	ll_table_add(table, status->card->label);
	snprintf(cell, sizeof cell, "%s%s", name, status->is_simulated ? _(simulated) : "");
	ll_table_add(table, cell);
	add_number(table, status->util_percent, "%");
	add_memory(table, status, is_short);
	add_power(table, status, is_short);
	add_number(table, status->celsius, "C");
	ll_table_add(table, mode_text(status, is_short, cell));
	snprintf(cell, sizeof cell, "%zu", status->claim_count);
	ll_table_add(table, cell);
}

static void make_table(struct ll_table *table, const struct ll_status_card *cards, size_t count, bool is_short)
{
	ll_table_init(table, columns_of_cards, sizeof columns_of_cards / sizeof *columns_of_cards);
	for (size_t i = 0; i < count; i++)
		add_card(table, &cards[i], is_short);
}

/* Numbers are short if the long ones do not fit. */
static void add_cards(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns)
{
	struct ll_table table;
	make_table(&table, cards, count, false);
	if (!ll_table_fits(&table, columns)) {
		ll_table_fini(&table);
		make_table(&table, cards, count, true);
	}
	ll_table_print(&table, columns, text);
	text->failed |= table.cells.failed;
	ll_table_fini(&table);
}

/* Adds the text's lines, and after each but the first the card's own lines. */
static void add_claims_below(struct ll_strbuf *text, const char *lines, const struct ll_status_card *cards)
{
	bool is_heading = true;
	while (*lines) {
		size_t length = strcspn(lines, "\n") + 1;
		ll_strbuf_add(text, lines, length);
		if (!is_heading)
			ll_status_add_claims(text, cards++);
		is_heading = false;
		lines += length;
	}
}

void ll_status_add_text(struct ll_strbuf *text, const struct ll_status_card *cards, size_t count, unsigned columns,
			bool is_long)
{
	LL_SCOPE_STRBUF struct ll_strbuf lines = LL_STRBUF_INIT;
	if (!is_long) {
		add_cards(text, cards, count, columns);
		ll_status_add_rows(text, cards, count, columns);
		return;
	}
	add_cards(&lines, cards, count, 0);
	text->failed |= lines.failed;
	add_claims_below(text, lines.buf, cards);
}
