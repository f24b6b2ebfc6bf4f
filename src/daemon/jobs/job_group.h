/*
 * job_group.h - the control group of a job, and the proof that a process belongs to the job.
 *
 * If the keeper serves, the first process of a new job is put into a group of the job before the job is accepted, and
 * all that it starts is in that group too. Root owns the group, so ssh, exec, `env -i` and a new environment do not
 * lead out of it. A process belongs to the job in whose group it is; only if it is in none, to the job whose token it
 * knows. Without a keeper, jobs are known by their tokens only.
 *
 * The number of a group is the inode of the job's page, which is the same for each daemon.
 */
#ifndef LOADLINE_DAEMON_JOBS_JOB_GROUP_H
#define LOADLINE_DAEMON_JOBS_JOB_GROUP_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/jobs/books.h"

struct ll_server;
struct ll_connection;

/* The keeper is asked to place a new job. Returns false if there is none. Otherwise ll_job_group_on_placed is called
 * later, also if the keeper refuses. */
bool ll_job_group_place(struct ll_server *server, struct ll_job *job);

/* The keeper is asked to give the job's control group its limit of memory, where the kernel has such limits. Nothing
 * happens for a job without a group. */
void ll_job_group_limit(struct ll_server *server, const struct ll_job *job);

/* Of calls.c: the job is accepted on the connection of its monitor. */
void ll_job_group_on_placed(struct ll_connection *connection, const struct ll_job *job);

/* The keeper has told where groups are: finds which jobs have one. */
void ll_job_groups_look(const struct ll_server *server);

/* Requests the removal of the group of a job that has ended. Returns false if there is no keeper. It is also asked
 * about a job of a former daemon, of which it is not known whether it has a group. Otherwise ll_job_on_group_removed is
 * called later. */
bool ll_job_group_remove(struct ll_server *server, const struct ll_job *job);

/* Requests that all processes in the job's group get a signal that the keeper may send (LL_KEEPER_SIGNAL_GROUP).
 * It is also asked about a job of which it is not known whether it has a group. Returns false if there is no keeper, or
 * it has failed to send one before, which is logged. */
bool ll_job_group_signal(struct ll_server *server, const struct ll_job *job, int number);

/* Returns the job in whose group the process is; NULL: it is in none, or it is not known where groups are. */
struct ll_job *ll_job_group_find(struct ll_server *server, int process_fd);

/*
 * Finds the job of the process of the connection. id: the token that it knows; 0: none. -EAGAIN: the job is not known
 * (yet). -EPERM: the job is another user's. A process whose user changed inside the job needs both, the group and the
 * token.
 */
int ll_job_group_prove(const struct ll_connection *connection, uint64_t id, struct ll_job **ret_job);

#endif
