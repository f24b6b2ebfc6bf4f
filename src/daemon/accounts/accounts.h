/*
 * accounts.h - adds up what the jobs use of the cards, and writes it into the accounts (accounts/database.h). Only
 * the system's loadlined does so, if it has a folder for its state.
 *
 * Once a second it reads the counters of each job on each card: those of the job's page, which count from the job's
 * begin on. Once in 9 s it adds what was new since the last time to a batch, and a thread of libuv's pool writes the
 * batch in one transaction. So `kill -9` loses at most the last 9 s, and the time of the write, of jobs that end before
 * the next loadlined has them. For all others the next loadlined continues at the stored counters, and nothing is lost
 * or counted twice. At SIGTERM everything is written before the process ends.
 *
 * If the disk is full, the batch is kept in memory, up to LL_USE_BATCH_ROWS rows, and is written later. That is logged
 * once.
 *
 * A program can write its job's page. So a job is never said to have used more time than has passed since it came to
 * the card, nor more memory than the card has.
 */
#ifndef LOADLINE_DAEMON_ACCOUNTS_ACCOUNTS_H
#define LOADLINE_DAEMON_ACCOUNTS_ACCOUNTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "accounts/batch.h"
#include "protocol/message.h"
#include "protocol/message_rows.h"

struct ll_account;
struct ll_accounting;
struct ll_connection;
struct ll_job;
struct ll_past_job;
struct ll_past_status;
struct ll_server;
struct ll_spending;
struct ll_use_totals;

/* The file in the folder of the state. */
#define LL_ACCOUNTING_FILE "accounts.db"

/* Rows are kept so long if no configuration is in force; else accounts.keep of loadline.yaml says it. */
#define LL_ACCOUNTING_KEEP_S (INT64_C(400) * 86400)

/* Opens the database in that folder, in the background. Errors of the database are logged; loadlined goes on without
 * it. -ENAMETOOLONG, -ENOMEM. */
int ll_accounting_new(struct ll_server *server, const char *folder, struct ll_accounting **ret_accounting);

/* The budgets; NULL without accounting. accounting may be NULL. */
struct ll_spending *ll_accounting_spending(struct ll_accounting *accounting);

/* The path of the database. */
const char *ll_accounting_path(const struct ll_accounting *accounting);

/* What each tenant has used since loadlined's start. NULL: accounting is NULL. */
const struct ll_use_totals *ll_accounting_totals(const struct ll_accounting *accounting);

/* Returns the state of the accounts. *ret_rows: rows that are not written yet. *ret_lost: rows that were lost since
 * loadlined's start. accounting may be NULL. */
enum ll_metrics_accounts ll_accounting_state(const struct ll_accounting *accounting, uint64_t *ret_rows,
					     uint64_t *ret_lost);

/* A job has come to a card: it is read at the next ll_accounting_look, so that it is known early whether it shares the
 * card. accounting may be NULL. */
void ll_accounting_note_card(struct ll_accounting *accounting);

/* A job may have come: starts the timer, which stops without jobs. accounting may be NULL. */
void ll_accounting_look(struct ll_accounting *accounting);

/* Reads the counters of a job on a card. */
void ll_account_read(struct ll_account *account, uint64_t now_ns);

/* The sensor's round is complete: its cards' energy is divided among the jobs. accounting may be NULL. */
void ll_accounting_note_energy(struct ll_accounting *accounting);

/* The job ends now: reads its counters for the last time, and notes how it ended. accounting may be NULL. */
void ll_accounting_end_job(struct ll_accounting *accounting, const struct ll_job *job);

/* Notes a job that left the queue without a place, or that ended while there was no loadlined; and the status of a job
 * that has ended. accounting may be NULL. */
void ll_accounting_note_past(struct ll_accounting *accounting, const struct ll_past_job *past);
void ll_accounting_note_status(struct ll_accounting *accounting, const struct ll_past_status *status);

/* Writes everything, and waits for the disk. Nothing is counted afterwards. accounting may be NULL. */
void ll_accounting_finish(struct ll_accounting *accounting);

/* After ll_accounting_finish, and after the loop has closed its handles. */
void ll_accounting_free(struct ll_accounting *accounting);

/*
 * minute.c: where the last minute of each job on each card went (rules/explain/explain.h), for the row of the card. It
 * looks every half a second while a process has a card.
 */

int ll_minutes_init(struct ll_server *server);

/* A process has come to a card: starts to look. */
void ll_minutes_wake(struct ll_server *server);

/*
 * write.c: what each tenant has used since loadlined's start: sums that only grow, for metrics.
 */

/* Tenants of more names are counted as jobs of no tenant. */
enum { LL_USE_TOTALS_MAX = 1024 };

struct ll_use_total {
	char tenant[LL_USE_TENANT_SIZE]; /* empty: jobs of no configured tenant */
	double granted_s, used_s, idle_held_s, memory_byte_s;
};

/* Zeroed, it is empty. A tenant keeps its place. */
struct ll_use_totals {
	struct ll_use_total *items;
	size_t count;
};

/* Adds to the tenant's sums. Without memory for a new tenant the use is left out. */
void ll_use_totals_add(struct ll_use_totals *totals, const char *tenant, const struct ll_use *use);

/* Returns the tenant's sums; NULL: it has none. */
const struct ll_use_total *ll_use_totals_find(const struct ll_use_totals *totals, const char *tenant);

void ll_use_totals_fini(struct ll_use_totals *totals);

/*
 * reports.c: reads sums of the accounts for a command, in a thread, and sends them.
 *
 * A connection has at most one report at a time, and so has a user other than root. The daemon reads at most
 * LL_REPORTS_MAX, so that the thread that writes the accounts always finds a place. What a user may see: root, admins
 * and operators, the use of all; others, the use of their own jobs, or with `visibility: {others: all}` that of all.
 */

enum { LL_REPORTS_MAX = 3 };

/* Handles REPORT and HISTORY: starts to read. Returns false if the message is not allowed here. */
bool ll_report_handle(struct ll_connection *connection, const union ll_message *message);

/* The connection ends. */
void ll_report_disconnect(struct ll_connection *connection);

#endif
