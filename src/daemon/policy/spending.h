/*
 * spending.h - budgets of tenants (`tenants: budget`), and which jobs the accounts refuse.
 *
 * What counts is the time that was granted (accounts/batch.h), not the time that was used. A job that holds a card and
 * does not use it keeps others away all the same, and a user can compute the granted time before: cards, times their
 * share, times hours. Slurm counts allocated time for the same reason.
 *
 * The sums of a period come from the database when loadlined starts, when a period begins, and when a configuration has
 * its first budget; from then on what is collected is added. While they are not known, no job is refused.
 */
#ifndef LOADLINE_DAEMON_POLICY_SPENDING_H
#define LOADLINE_DAEMON_POLICY_SPENDING_H

#include <stdbool.h>

#include "accounts/spent.h"
#include "protocol/message.h"

struct ll_account;
struct ll_config_tenant;
struct ll_err;
struct ll_server;

/* Zeroed, nothing is known. */
struct ll_spending {
	struct ll_spent spent; /* is_known: of the present periods */
	bool is_known;
	struct ll_spent told; /* events: the part of the budget that was told, as seconds of the period (0.8 or 1) */
	/* of the thread */
	struct ll_spent reading;
	bool is_reading, has_read;
};

/* ---- of the accounting (accounts/write.c) ---- */

/* Whether there are budgets and the sums are not known. */
bool ll_spending_is_wanted(const struct ll_spending *spending, const struct ll_server *server);

/* Before the thread starts; in the thread, after the batch is in the database; and after it. */
void ll_spending_begin_read(struct ll_spending *spending, const struct ll_server *server);
int ll_spending_read(struct ll_spending *spending, struct ll_use_database *database, struct ll_err *err);
void ll_spending_end_read(struct ll_spending *spending, const struct ll_server *server);

/* Adds what a job was granted newly. */
void ll_spending_add(struct ll_spending *spending, const char *tenant, uint64_t granted_ns);

/* Tells of budgets that are spent by 80 % or wholly, once in each period. */
void ll_spending_tell(struct ll_spending *spending, const struct ll_server *server);

void ll_spending_fini(struct ll_spending *spending);

/* ---- of jobs and commands ---- */

/* Whether a new job of the tenant may start. -EACCES: the budget is spent; the job has no project although each must
 * have one (`accounts: projects: required`), or has one although none may. */
int ll_spending_check(const struct ll_server *server, const struct ll_config_tenant *tenant, bool has_project,
		      struct ll_err *err);

/* Makes the row of the tenant's budget. Returns false if it has none. */
bool ll_spending_describe(const struct ll_server *server, const struct ll_config_tenant *tenant,
			  union ll_message *ret_message);

#endif
