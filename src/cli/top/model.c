/* What `loadline top` shows: what `status` and `queue list` read, by tenant and by job, with histories. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process_id.h"
#include "base/translate.h"
#include "cli/common/user.h"
#include "cli/queue/queue.h"
#include "cli/run/run.h"
#include "cli/top/top.h"
#include "hold/command/words.h"

void ll_top_history_add(struct ll_top_history *history, double value)
{
	if (history->count == LL_TOP_HISTORY)
		memmove(history->values, history->values + 1, --history->count * sizeof *history->values);
	history->values[history->count++] = value;
}

int ll_top_init(struct ll_top *top, const struct ll_card *const *chosen, size_t count, struct ll_err *err)
{
	*top = (struct ll_top){.chosen = chosen,
			       .card_count = count,
			       .notes = LL_STRBUF_INIT,
			       .cards = calloc(count + 1, sizeof *top->cards),
			       .now = calloc(count + 1, sizeof *top->now),
			       .earlier = calloc(count + 1, sizeof *top->earlier)};
	if (!top->cards || !top->now || !top->earlier)
		return ll_err_set(err, -ENOMEM, "top: %s", strerror(ENOMEM));
	for (size_t i = 0; i < count; i++) {
		ll_util_reader_init(&top->cards[i].reader, chosen[i]);
		ll_util_reader_look_back(&top->cards[i].reader, 60 * LL_NS_PER_S);
	}
	return 0;
}

static void fini_cards(struct ll_status_card *cards, size_t count)
{
	for (size_t i = 0; cards && i < count; i++)
		ll_status_card_fini(&cards[i]);
}

void ll_top_fini(struct ll_top *top)
{
	if (top->has_earlier)
		fini_cards(top->earlier, top->card_count);
	ll_daemon_view_fini(&top->view);
	ll_strbuf_fini(&top->notes);
	free(top->cards);
	free(top->tenants);
	free(top->rows);
	free(top->now);
	free(top->earlier);
}

/* ---- cards ---- */

/* Adds the mean of the samples since the last reading. The first time there are those that the driver has kept: each
 * value is the mean of a span as long as that between two readings. */
static void add_samples(struct ll_top_card *card, double now_percent, uint64_t every_ns)
{
	struct ll_util_sample samples[256];
	size_t count = 0, used = 0;
	double sum = 0;
	uint64_t span_ns = card->util.count ? UINT64_MAX / 2 : every_ns, until_ns = 0;
	bool is_read =
	    card->reader.card->fault == 0 && ll_util_reader_next(&card->reader, samples, 256, &count, NULL) == 0;
	for (size_t i = 0; is_read && i < count; i++) {
		if (used && samples[i].end_wall_ns > until_ns) {
			ll_top_history_add(&card->util, sum / (double)used);
			sum = 0;
			used = 0;
		}
		if (!used)
			until_ns = samples[i].end_wall_ns - samples[i].window_ns + span_ns;
		sum += samples[i].percent;
		used++;
	}
	/* A span shorter than that of a sample has the newest one. */
	ll_top_history_add(&card->util, used ? sum / (double)used : now_percent);
}

/* ---- tenants ---- */

/* Returns the tenant's row. NULL: no memory. */
static struct ll_top_tenant *tenant_of(struct ll_top *top, const char *name, bool is_synthetic)
{
	for (size_t i = 0; i < top->tenant_count; i++) {
		struct ll_top_tenant *tenant = &top->tenants[i];
		if (tenant->is_synthetic == is_synthetic && strcmp(tenant->name, name) == 0) {
			tenant->is_seen = true;
			return tenant;
		}
	}
	struct ll_top_tenant new = {.is_synthetic = is_synthetic, .is_seen = true};
	snprintf(new.name, sizeof new.name, "%s", name);
	if (ll_client_add_row(&top->tenants, &top->tenant_count, &new, sizeof new))
		return NULL;
	return &top->tenants[top->tenant_count - 1];
}

/* Adds a job or a synthetic load to its tenant. */
static void count_row(struct ll_top *top, const struct ll_top_row *row)
{
	struct ll_top_tenant *tenant = tenant_of(top, row->tenant, row->kind == LL_TOP_HOLD);
	if (!tenant)
		return;
	tenant->running++;
	tenant->used_bytes += row->used_bytes;
	tenant->share_percent += isnan(row->share_percent) ? 0 : row->share_percent / (double)top->card_count;
}

/* Adds what the configuration guarantees: cards, else compute, else memory. */
static void take_guarantees(struct ll_top *top)
{
	const struct ll_policy *policy = &top->view.policy;
	for (size_t i = 0; i < policy->tenant_count; i++) {
		struct ll_strbuf text = LL_STRBUF_INIT;
		uint64_t cards = 0, permille = 0, bytes = 0;
		for (size_t k = 0; k < policy->part_count; k++) {
			const struct ll_message_policy_part *part = &policy->parts[k];
			if (strcmp(part->tenant, policy->tenants[i].name) != 0)
				continue;
			cards += part->guaranteed_cards == UINT64_MAX ? 0 : part->guaranteed_cards;
			permille +=
			    part->guaranteed_compute_permille == UINT64_MAX ? 0 : part->guaranteed_compute_permille;
			bytes += part->guaranteed_memory_bytes == UINT64_MAX ? 0 : part->guaranteed_memory_bytes;
		}
		struct ll_top_tenant *tenant =
		    cards || permille || bytes ? tenant_of(top, policy->tenants[i].name, false) : NULL;
		if (!tenant)
			continue;
		if (cards)
			ll_strbuf_addf(&text, cards == 1 ? _("1 card") : _("%u cards"), (unsigned)cards);
		else
			ll_policy_add_amount(&text, permille ? 'c' : 'm', permille ? permille : bytes);
		snprintf(tenant->guaranteed, sizeof tenant->guaranteed, "%s", text.buf);
		ll_strbuf_fini(&text);
	}
}

static int compare_tenants(const void *left, const void *right)
{
	const struct ll_top_tenant *one = left, *other = right;
	if (one->is_synthetic != other->is_synthetic)
		return one->is_synthetic ? 1 : -1;
	return strcmp(one->name, other->name);
}

/* One that has gone stays until its history has only zeros: its share over time is that of a tenant. */
static void end_tenants(struct ll_top *top)
{
	size_t kept = 0;
	for (size_t i = 0; i < top->tenant_count; i++) {
		struct ll_top_tenant *tenant = &top->tenants[i];
		bool is_shown = tenant->is_seen;
		ll_top_history_add(&tenant->share, tenant->share_percent);
		for (size_t k = 0; !is_shown && k < tenant->share.count; k++)
			is_shown = tenant->share.values[k] > 0;
		if (is_shown)
			memmove(&top->tenants[kept++], tenant, sizeof *tenant);
	}
	top->tenant_count = kept;
	if (kept)
		qsort(top->tenants, kept, sizeof *top->tenants, compare_tenants);
}

/* ---- jobs ---- */

static void take_process(struct ll_top_row *row, const struct ll_status_card *status, pid_t pid)
{
	const struct ll_status_process *process = ll_status_process_of(status, pid);
	struct ll_process_stat stat;
	row->pid = pid;
	row->start_ticks = ll_process_stat_of(pid, &stat) ? 0 : stat.start_ticks;
	row->age_ns = process->age_ns;
	snprintf(row->user, sizeof row->user, "%s", process->user);
	snprintf(row->command, sizeof row->command, "%s", process->command);
}

static struct ll_top_row row_of_claim(const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct ll_top_row row = {.kind = LL_TOP_PROCESS, .number = claim->row.job_number, .share_percent = (double)NAN};
	if (claim->is_pid_ours)
		take_process(&row, status, claim->pid);
	else
		snprintf(row.command, sizeof row.command, "%s", _("(in another PID namespace)"));
	ll_status_number(status, claim, row.claim);
	ll_status_write_state(status, claim, row.state);
	row.is_alarm = ll_status_has_mismatch(ll_status_job_of(status, claim));
	row.age_ns = ll_status_age(status, claim);
	row.used_bytes = claim->row.used_bytes;
	row.is_evicted = claim->row.residency == LL_CLAIM_EVICTED || claim->row.checkpoint == LL_CHECKPOINT_EVICTED;
	row.is_paused = claim->row.residency == LL_CLAIM_STOPPED || claim->row.checkpoint == LL_CHECKPOINT_SUSPENDED;
	return row;
}

/* Adds what the card knows of the job and, at the end, the rows of its processes there. */
static int take_card_of_job(struct ll_top *top, size_t root, const struct ll_status_card *status)
{
	int rc = 0;
	for (size_t i = 0; i < status->job_count; i++) {
		const struct ll_status_job *job = &status->jobs[i];
		struct ll_top_row *row = &top->rows[root];
		double percent, seconds;
		if (job->row.job_number != row->number)
			continue;
		row->used_bytes += job->row.used_bytes;
		row->limit_bytes += job->told.job.limits.memory_bytes;
		if (ll_status_share(status, job, &percent))
			row->share_percent = isnan(row->share_percent) ? percent : row->share_percent + percent;
		if (ll_status_lost(status, job, &seconds)) {
			row->is_alarm = true;
			snprintf(row->state, sizeof row->state, "%s", _("NOT HELD TO ITS LIMITS"));
		}
	}
	for (size_t i = 0; !rc && i < status->claim_count; i++) {
		if (status->claims[i].priority == LL_PRIORITY_HOLD ||
		    status->claims[i].row.job_number != top->rows[root].number)
			continue;
		struct ll_top_row row = row_of_claim(status, &status->claims[i]);
		row.root = root;
		snprintf(row.tenant, sizeof row.tenant, "%s", top->rows[root].tenant);
		rc = ll_client_add_row(&top->rows, &top->row_count, &row, sizeof row);
	}
	return rc;
}

/* The job's row has what its processes have in common. A single process has no row of its own. */
static void end_job(struct ll_top *top, size_t root)
{
	struct ll_top_row *row = &top->rows[root];
	size_t count = row->processes = top->row_count - root - 1;
	bool is_lost = row->is_alarm;
	for (size_t i = 1; i <= count; i++) {
		const struct ll_top_row *process = &row[i];
		const char *state = i == 1 || strcmp(row->state, process->state) == 0 ? process->state : _("several");
		if (!is_lost)
			snprintf(row->state, sizeof row->state, "%s", state);
		row->is_alarm |= process->is_alarm;
		row->is_evicted |= process->is_evicted;
		row->is_paused |= process->is_paused;
		if (process->age_ns != LL_AGE_UNKNOWN &&
		    (row->age_ns == LL_AGE_UNKNOWN || process->age_ns > row->age_ns))
			row->age_ns = process->age_ns;
	}
	if (count == 1) {
		memcpy(row->claim, row[1].claim, sizeof row->claim);
		row->pid = row[1].pid;
		row->start_ticks = row[1].start_ticks;
		if (row[1].command[0])
			memcpy(row->command, row[1].command, sizeof row->command);
		top->row_count--;
	} else if (count) {
		row[count].is_last = true;
	}
}

static int add_job(struct ll_top *top, const struct ll_message_job_row *job)
{
	struct ll_top_row row = {.kind = LL_TOP_JOB,
				 .root = top->row_count,
				 .number = job->number,
				 .age_ns = LL_AGE_UNKNOWN,
				 .share_percent = (double)NAN};
	struct ll_process_stat stat;
	size_t root = top->row_count;
	ll_user_name(job->job.uid, row.user, sizeof row.user);
	snprintf(row.tenant, sizeof row.tenant, "%s", job->tenant[0] ? job->tenant : job->job.tenant);
	snprintf(row.command, sizeof row.command, "%s", job->job.command);
	snprintf(row.state, sizeof row.state, "%s",
		 job->job.flags & LL_JOB_UNRESPONSIVE ? _("unresponsive")
						      : _(ll_status_job_state(&top->view, &job->job)));
	row.is_alarm = job->job.flags & LL_JOB_UNRESPONSIVE;
	if (job->job.pid && ll_daemon_view_pids_are_ours(&top->view) &&
	    !ll_process_stat_of((pid_t)job->job.pid, &stat)) {
		row.pid = (pid_t)job->job.pid;
		row.start_ticks = stat.start_ticks;
	}
	int rc = ll_client_add_row(&top->rows, &top->row_count, &row, sizeof row);
	for (size_t i = 0; !rc && i < top->card_count; i++)
		rc = take_card_of_job(top, root, &top->now[i]);
	if (rc)
		return rc;
	end_job(top, root);
	if (!top->rows[root].processes && !top->has_all) {
		top->row_count--;
		return 0;
	}
	count_row(top, &top->rows[root]);
	return 0;
}

static int add_hold(struct ll_top *top, const struct ll_status_card *status, const struct ll_status_claim *claim)
{
	struct ll_top_row row = row_of_claim(status, claim);
	struct ll_status_recent recent;
	row.kind = LL_TOP_HOLD;
	row.root = top->row_count;
	row.processes = 1;
	snprintf(row.tenant, sizeof row.tenant, "%s", _("synthetic"));
	if (ll_status_recent_hold(status, claim, &recent))
		row.share_percent = recent.percent;
	count_row(top, &row);
	return ll_client_add_row(&top->rows, &top->row_count, &row, sizeof row);
}

static int add_stranger(struct ll_top *top, const struct ll_status_card *status,
			const struct ll_status_stranger *stranger)
{
	struct ll_top_row row = {.kind = LL_TOP_STRANGER,
				 .root = top->row_count,
				 .is_alarm = !stranger->is_mps_server,
				 .processes = 1,
				 .used_bytes = stranger->memory_bytes,
				 .share_percent = (double)NAN};
	take_process(&row, status, stranger->pid);
	snprintf(row.tenant, sizeof row.tenant, "%s", stranger->tenant);
	snprintf(row.claim, sizeof row.claim, "%s/-", status->card->label);
	snprintf(row.state, sizeof row.state, "%s",
		 stranger->is_mps_server ? _("MPS server")
		 : stranger->is_older    ? _("older loadline")
					 : _("ungoverned"));
	return ll_client_add_row(&top->rows, &top->row_count, &row, sizeof row);
}

/* ---- the queue ---- */

static uint64_t age_since(uint64_t since_s)
{
	uint64_t now_s = ll_wall_ns() / LL_NS_PER_S;
	return now_s > since_s ? (now_s - since_s) * LL_NS_PER_S : 0;
}

static int add_waiting(struct ll_top *top, const struct ll_message_queue_row *queued)
{
	struct ll_strbuf why = LL_STRBUF_INIT;
	struct ll_top_row row = {.kind = LL_TOP_WAITING,
				 .root = top->row_count,
				 .number = queued->number,
				 .is_queued = true,
				 .position = queued->position,
				 .is_paused = queued->flags & LL_QUEUE_IS_PAUSED,
				 .age_ns = age_since(queued->since_s),
				 .used_bytes = LL_MEMORY_UNKNOWN,
				 .limit_bytes = queued->memory_bytes,
				 .share_percent = (double)NAN,
				 .moment_s = queued->start_s};
	ll_user_name(queued->uid, row.user, sizeof row.user);
	snprintf(row.tenant, sizeof row.tenant, "%s", queued->tenant);
	snprintf(row.command, sizeof row.command, "%s", queued->name[0] ? queued->name : queued->command);
	snprintf(row.state, sizeof row.state, "%s",
		 queued->flags & LL_QUEUE_IS_ADMITTED ? _("starting")
		 : row.is_paused                      ? _("paused")
						      : _("waiting"));
	ll_run_waiting_add_why(&why, &queued->waits, &queued->why);
	snprintf(row.why, sizeof row.why, "%s", why.buf);
	ll_strbuf_fini(&why);
	struct ll_top_tenant *tenant = tenant_of(top, row.tenant, false);
	if (tenant)
		tenant->waiting++;
	return ll_client_add_row(&top->rows, &top->row_count, &row, sizeof row);
}

/* A machine without a queue has none of these. */
static int take_queue(struct ll_top *top)
{
	struct ll_queue_rows queue;
	int rc = 0;
	ll_queue_read(&queue, NULL);
	for (size_t i = 0; !rc && i < queue.job_count; i++) {
		const struct ll_message_queue_row *queued = &queue.jobs[i];
		struct ll_top_row *running = NULL;
		for (size_t k = 0; queued->job_number && k < top->row_count; k++) {
			if (top->rows[k].kind == LL_TOP_JOB && top->rows[k].number == queued->job_number)
				running = &top->rows[k];
		}
		if (running) {
			running->is_queued = true;
			running->moment_s = queued->end_s;
			if (running->age_ns == LL_AGE_UNKNOWN)
				running->age_ns = age_since(queued->since_s);
		} else if (!(queued->flags & LL_QUEUE_IS_RUNNING)) {
			rc = add_waiting(top, queued);
		}
	}
	ll_queue_free(&queue);
	return rc;
}

/* ---- all ---- */

int ll_top_read(struct ll_top *top, struct ll_err *err)
{
	int rc = 0;
	ll_daemon_view_fini(&top->view);
	ll_daemon_view_init(&top->view, top->sim_folder);
	for (size_t i = 0; i < top->card_count; i++) {
		int card_rc = ll_status_card_init(&top->now[i], top->chosen[i], &top->view, rc ? NULL : err);
		rc = rc ? rc : card_rc;
		top->now[i].earlier = top->has_earlier ? &top->earlier[i] : NULL;
	}
	top->row_count = 0;
	for (size_t i = 0; i < top->tenant_count; i++) {
		struct ll_top_tenant *tenant = &top->tenants[i];
		tenant->running = tenant->waiting = 0;
		tenant->share_percent = 0;
		tenant->used_bytes = 0;
		tenant->is_seen = false;
		tenant->guaranteed[0] = '\0';
	}
	take_guarantees(top);
	for (size_t i = 0; !rc && i < top->view.list.job_count; i++)
		rc = add_job(top, &top->view.list.jobs[i]);
	for (size_t i = 0; i < top->card_count; i++) {
		const struct ll_status_card *status = &top->now[i];
		add_samples(&top->cards[i], status->util_percent, top->every_ns);
		top->cards[i].status = status;
		for (size_t k = 0; !rc && k < status->claim_count; k++) {
			if (status->claims[k].priority == LL_PRIORITY_HOLD)
				rc = add_hold(top, status, &status->claims[k]);
		}
		for (size_t k = 0; !rc && k < status->stranger_count; k++)
			rc = add_stranger(top, status, &status->strangers[k]);
	}
	if (!rc && top->has_all)
		rc = take_queue(top);
	end_tenants(top);
	ll_strbuf_reset(&top->notes);
	if (top->view.answer != LL_DAEMON_SERVES)
		ll_status_add_daemon(&top->notes, &top->view);
	else if (top->view.list.end.hides_others)
		ll_strbuf_adds(&top->notes,
			       _("programs of other users are not shown (visibility in its configuration)\n"));
	if (top->view.answer == LL_DAEMON_SERVES)
		ll_status_add_sensor(&top->notes, &top->view);
	/* The reading of this time is the earlier one of the next. */
	if (top->has_earlier)
		fini_cards(top->earlier, top->card_count);
	struct ll_status_card *old = top->earlier;
	top->earlier = top->now;
	top->now = old;
	top->has_earlier = true;
	if (rc && err && !err->code)
		ll_err_set(err, rc, "top: %s", strerror(-rc));
	return rc;
}
