/*
 * jobs.h - the jobs that loadlined knows, for `loadline status`.
 */
#ifndef LOADLINE_CLI_STATUS_JOBS_H
#define LOADLINE_CLI_STATUS_JOBS_H

#include <jansson.h>

#include "cli/common/daemon.h"
#include "cli/status/status.h"

/* Adds a table of the jobs that have no claim on these cards, because they do not use CUDA yet; the others are in the
 * rows of the cards. Adds nothing if there is none. */
void ll_status_add_jobs(struct ll_strbuf *text, const struct ll_daemon_view *view, const struct ll_status_card *cards,
			size_t count, unsigned columns);

/* Adds a line if loadlined does not answer, or another user has its name: then jobs and claims are not known. Another
 * one if it is the system's. */
void ll_status_add_daemon(struct ll_strbuf *text, const struct ll_daemon_view *view);

/* Prints one object {"daemon":{...}} and one {"job":{...}} for each of these jobs; nothing if there is none. */
int ll_status_print_jobs_json(const struct ll_daemon_view *view, const struct ll_status_card *cards, size_t count,
			      struct ll_err *err);

/* Makes the object of a job's limits; null for those that there are not. */
json_t *ll_status_limits_json(const struct ll_limits *limits);

/* Prints the object of the daemon if it does not answer, or another user has its name. */
int ll_status_print_daemon_json(const struct ll_daemon_view *view, struct ll_err *err);

#endif
