/*
 * job_settings.h - the settings of a job as a program of it gets them, for one that has lost its LOADLINE_RUN.
 */
#ifndef LOADLINE_DAEMON_JOBS_JOB_SETTINGS_H
#define LOADLINE_DAEMON_JOBS_JOB_SETTINGS_H

#include "daemon/jobs/books.h"
#include "protocol/run_settings.h"

struct ll_server;

/* Writes the text of LOADLINE_RUN, with the limits that are in force now. -ENAMETOOLONG. */
int ll_job_settings_write(const struct ll_server *server, const struct ll_job *job, char ret_text[LL_RUN_TEXT_SIZE]);

#endif
