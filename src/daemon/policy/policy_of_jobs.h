/*
 * policy_of_jobs.h - the configuration (policy.h) applied to the jobs in the books.
 *
 * A job gets its tenant when it registers, and keeps it until it ends: its `department_tenant`. Jobs of a time without
 * a configuration have none, and no check concerns them. Without a configuration in force the checks allow everything.
 */
#ifndef LOADLINE_DAEMON_POLICY_POLICY_OF_JOBS_H
#define LOADLINE_DAEMON_POLICY_POLICY_OF_JOBS_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/allowance.h"
#include "protocol/message.h"

struct ll_err;
struct ll_server;
struct ll_job;

/*
 * A job registers: finds its tenant, by the name if the user named one, and completes and checks its limits. page_fds:
 * of a former daemon; NULL: none. A job that was admitted already, or is taken over (takeover.h), keeps its limits.
 * ret_tenant: the tenant's name; empty if no configuration is in force. Errors: ll_department_tenant,
 * ll_allowance_check.
 */
int ll_department_admit(const struct ll_server *server, struct ll_message_job *message, const int *page_fds,
			char ret_tenant[LL_NAME_SIZE], struct ll_err *err);

/* A job that this daemon does not know may come with the pages of a former daemon, right after the start of this one:
 * it was admitted then. page_fds may be NULL. */
bool ll_department_was_admitted(const struct ll_server *server, const int *page_fds);

/* Whether the job may have this card besides those that it has. -EACCES. */
int ll_department_check_card(const struct ll_server *server, const struct ll_job *job, const char *uuid,
			     struct ll_err *err);

/* Whether the job may have these limits in place of its present ones. What becomes smaller is always allowed. -EACCES.
 */
int ll_department_check_limits(const struct ll_server *server, const struct ll_job *job, const struct ll_limits *limits,
			       struct ll_err *err);

/* Whose jobs a sum counts. */
struct ll_department_scope {
	const char *tenant;
	bool is_of_user;
	uint32_t uid;                        /* with is_of_user */
	const struct ll_job *except;         /* NULL: none */
	const struct ll_config_group *group; /* NULL: all cards */
	bool is_high;                        /* class high alone */
};

/* Sums what jobs have asked for. Jobs whose processes have ended do not count. */
void ll_department_sum(const struct ll_server *server, const struct ll_department_scope *scope, struct ll_use *ret_use);

/* Finds the number of a card as the sensor reported it, for struct ll_department. */
bool ll_department_find_card(const struct ll_server *server, const char *uuid, struct ll_config_card *ret_card);

/* Whether the sensor has reported cards, so that groups are known. */
bool ll_department_knows_cards(const struct ll_server *server);

/* Returns the group of a card; NULL: no configuration is in force, or the card's number is not known. */
const struct ll_config_group *ll_department_group(const struct ll_server *server, const char *uuid);

/* The job has just got the card. If the card is given whole, limits of memory and compute that the user did not say are
 * taken off the job. Returns whether the limits have changed. */
bool ll_department_fit_limits(const struct ll_server *server, struct ll_job *job, const char *uuid);

/* Another configuration is in force: logs which tenants and users have more than it allows. No job is changed. */
void ll_department_note_change(struct ll_server *server);

#endif
