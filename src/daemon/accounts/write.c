#include "daemon/accounts/accounts.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "accounts/database.h"
#include "accounts/history.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "base/scope.h"
#include "daemon/accounts/account.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"
#include "daemon/queue/queue.h"
#include "protocol/page.h"

enum { READ_MS = 1000, READS_OF_ROUND = 9, MS_PER_S = 1000 };

/* Old rows are removed only if the wall clock and CLOCK_MONOTONIC have gone alike for so long: a clock that was set
 * wrongly must not remove anything. */
#define FORGET_NS (3600 * LL_NS_PER_S)
#define CLOCK_SLACK_NS (60 * LL_NS_PER_S)

/* A program that was refused memory and ends so soon with an error has ended for that. */
#define REFUSED_NS (10 * LL_NS_PER_S)

/* A job of the former loadlined that has not come by then has ended: monitors try each 0.25 s. */
#define RETURN_NS (60 * LL_NS_PER_S)

struct ll_accounting {
	struct ll_server *server;
	uv_timer_t timer;
	uv_signal_t terminate;
	struct ll_account *accounts;
	struct ll_use_batch pending; /* to be written next */
	struct ll_use_batch former;  /* counters of the former loadlined; valid once is_open */
	bool is_open;                /* the database has been opened once */
	bool is_off;                 /* a newer loadline's database: nothing is counted */
	bool is_failing;             /* that was logged */
	bool has_new_card;
	unsigned reads;
	struct ll_overlap overlap;
	struct ll_energy energy;
	uint64_t lost_rows, said_lost_rows; /* for which there was no room; of these, those that were logged */
	struct ll_use_totals totals;
	struct ll_spending spending;
	uint64_t checked_ns, checked_wall_ns; /* the clocks, when rows were last removed */
	uint64_t return_ns;                   /* until then jobs of the former loadlined may come; 0: not known yet */
	struct ll_use_former former_jobs;

	/* the thread, and what it works on */
	uv_work_t work;
	bool is_working;
	pthread_mutex_t lock; /* the thread has it while it works */
	bool is_finished;     /* the thread does nothing any more */
	struct ll_use_database *database;
	struct ll_use_batch flight;
	size_t flight_rows;      /* of the flight, when the work began */
	int64_t forget_before_s; /* 0: nothing is to be removed */
	char path[LL_USE_PATH_SIZE], moved[LL_USE_PATH_SIZE];
	bool is_new; /* the accounts begin in this file; not told yet */
	int rc;
	struct ll_err err;
};

/* ---- the thread ---- */

static int open_database(struct ll_accounting *accounting)
{
	bool is_new = false;
	int rc =
	    ll_use_database_open(accounting->path, &accounting->database, &is_new, accounting->moved, &accounting->err);
	accounting->is_new |= !rc && is_new;
	if (!rc && !accounting->former.counters)
		rc = ll_use_database_read_counters(accounting->database, &accounting->former, &accounting->err);
	if (rc || accounting->return_ns) { /* in a new file no row is a former one's */
		accounting->former_jobs.last_row = 0;
		return rc;
	}
	rc = ll_use_database_read_former(accounting->database, &accounting->former_jobs, &accounting->err);
	accounting->return_ns = rc ? 0 : ll_now_ns() + RETURN_NS;
	return rc;
}

static bool has_late_jobs(const struct ll_accounting *accounting)
{
	return accounting->former_jobs.last_row && ll_now_ns() >= accounting->return_ns;
}

static int end_former(struct ll_accounting *accounting)
{
	int rc = 0;
	if (has_late_jobs(accounting))
		rc = ll_use_database_end_former(accounting->database, &accounting->former_jobs, &accounting->err);
	if (has_late_jobs(accounting) && !rc)
		accounting->former_jobs.last_row = 0;
	return rc;
}

/* Opens a damaged database again, which moves it aside, and one that somebody has removed. The batch then goes into the
 * new one. */
static int write_batch(struct ll_accounting *accounting)
{
	if (accounting->database && ll_use_database_is_gone(accounting->database)) {
		ll_use_database_close(accounting->database);
		accounting->database = NULL;
	}
	int rc = accounting->database ? 0 : open_database(accounting);
	if (!rc)
		rc = ll_use_database_write(accounting->database, &accounting->flight, &accounting->err);
	if (rc == -EUCLEAN) {
		ll_use_database_close(accounting->database);
		accounting->database = NULL;
		rc = open_database(accounting);
		if (!rc)
			rc = ll_use_database_write(accounting->database, &accounting->flight, &accounting->err);
	}
	if (!rc)
		ll_use_batch_fini(&accounting->flight);
	if (!rc)
		rc = end_former(accounting);
	if (!rc)
		rc = ll_spending_read(&accounting->spending, accounting->database, &accounting->err);
	if (!rc && accounting->forget_before_s)
		rc = ll_use_database_forget(accounting->database, accounting->forget_before_s, &accounting->err);
	return rc;
}

static void work_in_thread(uv_work_t *work)
{
	struct ll_accounting *accounting = work->data;
	LL_SCOPE_LOCK(&accounting->lock);
	if (!accounting->is_finished)
		accounting->rc = write_batch(accounting);
}

/* ---- after the thread ---- */

static void log_result(struct ll_accounting *accounting)
{
	const struct ll_server *server = accounting->server;
	if (accounting->moved[0])
		ll_events_tell(server, LL_EVENT_DATABASE, NULL,
			       "accounts: %s was damaged; it is %s now, and a new one was begun", accounting->path,
			       accounting->moved);
	else if (accounting->is_new)
		ll_events_tell(server, LL_EVENT_DATABASE, NULL,
			       "accounts: %s was missing or empty; the accounts begin now", accounting->path);
	accounting->moved[0] = '\0';
	accounting->is_new = false;
	if (accounting->rc == -EPROTONOSUPPORT) {
		ll_events_tell(server, LL_EVENT_DATABASE, NULL, "accounts: %s; no use is counted",
			       accounting->err.text);
	} else if (accounting->rc && !accounting->is_failing) {
		ll_events_tell(server, LL_EVENT_DATABASE, NULL,
			       "accounts: %s; use is kept in memory until it can be written", accounting->err.text);
	} else if (!accounting->rc && accounting->is_failing) {
		ll_events_tell(server, LL_EVENT_DATABASE, NULL,
			       "accounts: %s can be written again; %llu rows were lost", accounting->path,
			       (unsigned long long)(accounting->lost_rows - accounting->said_lost_rows));
		accounting->said_lost_rows = accounting->lost_rows;
	}
	accounting->is_failing = accounting->rc && accounting->rc != -EPROTONOSUPPORT;
}

static void free_accounts(struct ll_accounting *accounting)
{
	while (accounting->accounts) {
		struct ll_account *account = accounting->accounts;
		accounting->accounts = account->next;
		if (account->card)
			((struct ll_job_card *)account->card)->account = NULL;
		free(account);
	}
}

/* What was not written is put before what came meanwhile. */
static void take_back(struct ll_accounting *accounting)
{
	struct ll_use_batch later = accounting->pending;
	accounting->pending = accounting->flight;
	accounting->flight = (struct ll_use_batch){0};
	if (ll_use_batch_merge(&accounting->pending, &later))
		accounting->lost_rows++;
}

static void on_worked(uv_work_t *work, int status)
{
	struct ll_accounting *accounting = work->data;
	(void)status;
	accounting->is_working = false;
	if (accounting->is_finished)
		return;
	take_back(accounting);
	log_result(accounting);
	ll_spending_end_read(&accounting->spending, accounting->server);
	accounting->is_open |= !accounting->rc;
	accounting->is_off = accounting->rc == -EPROTONOSUPPORT;
	if (accounting->is_off) {
		uv_timer_stop(&accounting->timer);
		free_accounts(accounting);
		ll_use_batch_fini(&accounting->pending);
	}
}

static void start_work(struct ll_accounting *accounting)
{
	accounting->flight = accounting->pending;
	accounting->flight_rows = accounting->flight.row_count;
	accounting->pending = (struct ll_use_batch){0};
	accounting->work.data = accounting;
	ll_spending_begin_read(&accounting->spending, accounting->server);
	accounting->err = (struct ll_err){0};
	accounting->rc = 0;
	if (uv_queue_work(&accounting->server->loop, &accounting->work, work_in_thread, on_worked) == 0)
		accounting->is_working = true;
	else
		take_back(accounting);
}

/* ---- readings and rounds ---- */

static void read_job(struct ll_accounting *accounting, const struct ll_job *job, uint64_t now_ns)
{
	uint32_t lending = ll_lending_of(accounting->server, job);
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		struct ll_job_card *card = job->claims->cards[i];
		if (!card->account) {
			card->account = ll_account_new(card, now_ns);
			if (!card->account)
				continue;
			card->account->next = accounting->accounts;
			accounting->accounts = card->account;
		}
		card->account->is_lent = lending & LL_QUEUE_IS_LENT;
		card->account->is_asleep = lending & LL_QUEUE_IS_RECALLED;
		ll_account_read(card->account, now_ns);
	}
}

static void describe_job(const struct ll_accounting *accounting, const struct ll_job *job, struct ll_past_job *past)
{
	*past = (struct ll_past_job){.number = job->number,
				     .uid = job->facts.uid,
				     .by_uid = UINT32_MAX,
				     .came_s = job->began_s,
				     .began_s = job->began_s,
				     .memory_bytes = job->facts.limits.memory_bytes,
				     .compute_permille = job->facts.limits.compute_permille,
				     .class = job->facts.limits.priority,
				     .card_count = job->claims ? job->claims->card_count : 0};
	ll_message_text_set(past->tenant, sizeof past->tenant,
			    job->department_tenant[0] ? job->department_tenant : job->tenant->name);
	ll_message_text_set(past->command, sizeof past->command, job->facts.command);
	ll_message_text_set(past->project, sizeof past->project, job->project);
	ll_message_text_set(past->name, sizeof past->name, job->name);
	ll_account_name(&job->facts, past->job);
	for (unsigned i = 0; i < past->card_count; i++)
		ll_machine_add_label(accounting->server, job->claims->cards[i]->uuid, past->cards, sizeof past->cards);
}

/* Also its cards, when another comes. */
static void note_running(struct ll_accounting *accounting, struct ll_job *job)
{
	struct ll_past_job past;
	unsigned cards = 1 + (job->claims ? job->claims->card_count : 0);
	if (job->noted_cards == cards)
		return;
	describe_job(accounting, job, &past);
	if (ll_use_batch_end(&accounting->pending, &past) == 0)
		job->noted_cards = cards;
}

static void read_all(struct ll_accounting *accounting)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_job *job = accounting->server->books.jobs; job; job = job->next) {
		read_job(accounting, job, now_ns);
		note_running(accounting, job);
	}
	ll_overlap_read(&accounting->overlap, accounting->accounts, now_ns);
}

/* Adds the accounts to the batch. A row without room is lost only if the account is over; the others keep what they
 * have. */
static void collect_all(struct ll_accounting *accounting)
{
	int64_t hour_s = ll_use_hour_s((int64_t)(ll_wall_ns() / LL_NS_PER_S));
	size_t most_rows = LL_USE_BATCH_ROWS - accounting->flight.row_count;
	struct ll_account **at = &accounting->accounts;
	while (*at) {
		struct ll_account *account = *at;
		const struct ll_use_key *key = &account->key;
		if (!account->has_base)
			ll_account_set_base(account,
					    ll_use_batch_find_counter(&accounting->former, key->job, key->card));
		int rc = ll_account_collect(account, &accounting->pending, most_rows, hour_s);
		/* Use counts for the tenant if it is configured now, so that the name of a job, which may be that of
		 * its command, is in no metric. */
		bool is_configured = ll_department_find(&accounting->server->department, key->tenant);
		ll_use_totals_add(&accounting->totals, is_configured ? key->tenant : "", &account->newest);
		ll_spending_add(&accounting->spending, key->tenant, account->newest.granted_ns);
		if (!ll_account_is_over(account, ll_now_ns())) {
			at = &account->next;
			continue;
		}
		accounting->lost_rows += rc != 0;
		*at = account->next;
		free(account);
	}
}

/* Old rows are removed only if the clocks have gone alike. */
static void look_at_clocks(struct ll_accounting *accounting)
{
	const struct ll_config_policy *policy = ll_department_policy(&accounting->server->department);
	uint64_t now_ns = ll_now_ns(), wall_ns = ll_wall_ns(), passed_ns = now_ns - accounting->checked_ns;
	accounting->forget_before_s = 0;
	if (passed_ns < FORGET_NS)
		return;
	int64_t error_ns = (int64_t)(wall_ns - accounting->checked_wall_ns - passed_ns);
	int64_t keep_s = policy ? (int64_t)(policy->accounts.keep_ns / LL_NS_PER_S) : LL_ACCOUNTING_KEEP_S;
	accounting->checked_ns = now_ns;
	accounting->checked_wall_ns = wall_ns;
	if (llabs(error_ns) < (int64_t)CLOCK_SLACK_NS)
		accounting->forget_before_s = (int64_t)(wall_ns / LL_NS_PER_S) - keep_s;
}

static bool has_to_do(const struct ll_accounting *accounting)
{
	return accounting->server->books.job_count || accounting->accounts || accounting->is_working ||
	       !accounting->is_open || accounting->former_jobs.last_row ||
	       !ll_use_batch_is_empty(&accounting->pending) ||
	       ll_spending_is_wanted(&accounting->spending, accounting->server);
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_accounting *accounting = timer->data;
	read_all(accounting);
	bool is_round = ++accounting->reads % READS_OF_ROUND == 0 && !accounting->is_working;
	/* The counters of a former loadlined are needed before anything is added to a batch. Until the database has
	 * been opened each round tries that. */
	if (is_round && accounting->is_open) {
		collect_all(accounting);
		look_at_clocks(accounting);
		ll_spending_tell(&accounting->spending, accounting->server);
	}
	if (is_round &&
	    (!accounting->is_open || !ll_use_batch_is_empty(&accounting->pending) || accounting->forget_before_s ||
	     has_late_jobs(accounting) || ll_spending_is_wanted(&accounting->spending, accounting->server)))
		start_work(accounting);
	if (!has_to_do(accounting))
		uv_timer_stop(timer);
}

void ll_accounting_note_energy(struct ll_accounting *accounting)
{
	size_t count;
	if (!accounting || accounting->is_off || accounting->is_finished)
		return;
	const struct ll_message_sense_card *rows = ll_machine_rows(accounting->server, &count);
	read_all(accounting);
	ll_energy_read(&accounting->energy, rows, count, accounting->accounts, ll_now_ns());
}

void ll_accounting_note_card(struct ll_accounting *accounting)
{
	if (accounting)
		accounting->has_new_card = true;
}

void ll_accounting_look(struct ll_accounting *accounting)
{
	if (!accounting || accounting->is_off || accounting->is_finished || !has_to_do(accounting))
		return;
	if (accounting->has_new_card)
		read_all(accounting);
	accounting->has_new_card = false;
	if (!uv_is_active((uv_handle_t *)&accounting->timer))
		uv_timer_start(&accounting->timer, on_timer, READ_MS, READ_MS);
}

/* ---- jobs that have ended ---- */

void ll_accounting_note_past(struct ll_accounting *accounting, const struct ll_past_job *past)
{
	if (!accounting || accounting->is_off || accounting->is_finished)
		return;
	if (ll_use_batch_end(&accounting->pending, past))
		accounting->lost_rows++;
	ll_accounting_look(accounting);
}

void ll_accounting_note_status(struct ll_accounting *accounting, const struct ll_past_status *status)
{
	if (!accounting || accounting->is_off || accounting->is_finished)
		return;
	if (ll_use_batch_set_status(&accounting->pending, status))
		accounting->lost_rows++;
	ll_accounting_look(accounting);
}

/* Its counters are read for the last time. */
void ll_accounting_end_job(struct ll_accounting *accounting, const struct ll_job *job)
{
	if (!accounting || accounting->is_off || accounting->is_finished)
		return;
	uint64_t now_ns = ll_now_ns();
	read_job(accounting, job, now_ns);
	struct ll_past_job past;
	describe_job(accounting, job, &past);
	past.ended_s = (int64_t)(ll_wall_ns() / LL_NS_PER_S);
	past.how = job->has_status ? ll_past_how_of(job->status) : LL_PAST_ENDED;
	past.status = job->status;
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		const struct ll_account *account = job->claims->cards[i]->account;
		if (!account)
			continue;
		past.used_ns += ll_account_used_ns(account);
		past.memory_byte_s += (double)account->last.memory_unit_ms * (double)LL_MEMORY_UNIT / MS_PER_S;
		past.borrowed_ns += account->last.borrowed_ns;
		past.borrowed_byte_s += (double)account->last.borrowed_unit_ms * (double)LL_MEMORY_UNIT / MS_PER_S;
	}
	ll_admission_describe_end(accounting->server, job, &past);
	bool has_failed = past.how == LL_PAST_FAILED || past.how == LL_PAST_KILLED;
	if (has_failed && job->refused_ns && now_ns - job->refused_ns < REFUSED_NS)
		past.how = LL_PAST_MEMORY;
	ll_accounting_note_past(accounting, &past);
	for (unsigned i = 0; job->claims && i < job->claims->card_count; i++) {
		struct ll_account *account = job->claims->cards[i]->account;
		if (account)
			ll_account_end(account, ll_energy_has_card(&accounting->energy, account->key.card), now_ns);
	}
}

/* ---- begin and end ---- */

/* The process ends as it would without this handler, after everything is written. Its jobs go on. */
static void on_terminate(uv_signal_t *handle, int number)
{
	ll_accounting_finish(handle->data);
	signal(number, SIG_DFL);
	raise(number);
}

int ll_accounting_new(struct ll_server *server, const char *folder, struct ll_accounting **ret_accounting)
{
	struct ll_accounting *accounting = calloc(1, sizeof *accounting);
	if (!accounting)
		return -ENOMEM;
	int length = snprintf(accounting->path, sizeof accounting->path, "%s/%s", folder, LL_ACCOUNTING_FILE);
	if (length < 0 || (size_t)length >= sizeof accounting->path) {
		free(accounting);
		return -ENAMETOOLONG;
	}
	accounting->server = server;
	accounting->checked_ns = ll_now_ns();
	accounting->checked_wall_ns = ll_wall_ns();
	pthread_mutex_init(&accounting->lock, NULL);
	uv_timer_init(&server->loop, &accounting->timer);
	uv_signal_init(&server->loop, &accounting->terminate);
	accounting->timer.data = accounting->terminate.data = accounting;
	uv_signal_start(&accounting->terminate, on_terminate, SIGTERM);
	start_work(accounting);
	ll_accounting_look(accounting);
	*ret_accounting = accounting;
	return 0;
}

struct ll_spending *ll_accounting_spending(struct ll_accounting *accounting)
{
	return accounting ? &accounting->spending : NULL;
}

const char *ll_accounting_path(const struct ll_accounting *accounting)
{
	return accounting->path;
}

const struct ll_use_totals *ll_accounting_totals(const struct ll_accounting *accounting)
{
	return accounting ? &accounting->totals : NULL;
}

enum ll_metrics_accounts ll_accounting_state(const struct ll_accounting *accounting, uint64_t *ret_rows,
					     uint64_t *ret_lost)
{
	*ret_rows = *ret_lost = 0;
	if (!accounting)
		return LL_METRICS_ACCOUNTS_NONE;
	*ret_rows = accounting->pending.row_count + (accounting->is_working ? accounting->flight_rows : 0);
	*ret_lost = accounting->lost_rows;
	return accounting->is_off       ? LL_METRICS_ACCOUNTS_OFF
	       : accounting->is_failing ? LL_METRICS_ACCOUNTS_FAILING
					: LL_METRICS_ACCOUNTS_GOOD;
}

void ll_accounting_finish(struct ll_accounting *accounting)
{
	if (!accounting || accounting->is_finished)
		return;
	LL_SCOPE_LOCK(&accounting->lock); /* waits for the thread */
	accounting->is_finished = true;
	take_back(accounting);
	if (!accounting->is_off) {
		read_all(accounting);
		accounting->rc = accounting->database ? 0 : open_database(accounting);
		if (!accounting->rc) {
			collect_all(accounting);
			accounting->flight = accounting->pending;
			accounting->pending = (struct ll_use_batch){0};
			accounting->rc = write_batch(accounting);
		}
		if (accounting->rc)
			ll_error("accounts: %s; use since the last write is lost", accounting->err.text);
	}
	free_accounts(accounting);
	ll_use_database_close(accounting->database);
	accounting->database = NULL;
	uv_close((uv_handle_t *)&accounting->timer, NULL);
	uv_close((uv_handle_t *)&accounting->terminate, NULL);
}

void ll_accounting_free(struct ll_accounting *accounting)
{
	if (!accounting)
		return;
	ll_use_batch_fini(&accounting->pending);
	ll_use_batch_fini(&accounting->flight);
	ll_use_batch_fini(&accounting->former);
	ll_use_totals_fini(&accounting->totals);
	ll_spending_fini(&accounting->spending);
	pthread_mutex_destroy(&accounting->lock);
	free(accounting);
}

/* ---- what each tenant has used ---- */

const struct ll_use_total *ll_use_totals_find(const struct ll_use_totals *totals, const char *tenant)
{
	for (size_t i = 0; i < totals->count; i++) {
		if (strcmp(totals->items[i].tenant, tenant) == 0)
			return &totals->items[i];
	}
	return NULL;
}

void ll_use_totals_add(struct ll_use_totals *totals, const char *tenant, const struct ll_use *use)
{
	const struct ll_use_total *known = ll_use_totals_find(totals, tenant);
	/* The last place is for jobs of no tenant. */
	if (!known && *tenant && totals->count >= LL_USE_TOTALS_MAX - 1) {
		tenant = "";
		known = ll_use_totals_find(totals, tenant);
	}
	size_t at = known ? (size_t)(known - totals->items) : totals->count;
	if (!known) {
		struct ll_use_total *items = realloc(totals->items, (totals->count + 1) * sizeof *items);
		if (!items)
			return;
		totals->items = items;
		items[totals->count++] = (struct ll_use_total){0};
		snprintf(items[at].tenant, sizeof items[at].tenant, "%s", tenant);
	}
	struct ll_use_total *total = &totals->items[at];
	total->granted_s += (double)use->granted_ns / LL_NS_PER_S;
	total->used_s += (double)use->used_ns / LL_NS_PER_S;
	total->idle_held_s += (double)use->idle_held_ns / LL_NS_PER_S;
	total->memory_byte_s += use->memory_byte_s;
}

void ll_use_totals_fini(struct ll_use_totals *totals)
{
	free(totals->items);
	*totals = (struct ll_use_totals){0};
}
