/*
 * takeover.h - jobs that ran under their users' own loadlined when the system's began to serve.
 *
 * Such a job has no place in the queue and was never checked against the configuration. It goes on with the limits that
 * it has, and the queue counts it as running. So that nobody goes round the queue in this way, it must register within
 * a minute after the socket of the service was made, and its first process must be older than the socket. If loadlined
 * starts anew, systemd keeps the socket.
 */
#ifndef LOADLINE_DAEMON_JOBS_TAKEOVER_H
#define LOADLINE_DAEMON_JOBS_TAKEOVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct ll_job_facts;
struct ll_server;

/* Whether the job is taken over. page_fds: the pages that its monitor brings; NULL: none. facts->pid: its first process
 * as this process sees it; 0: it does not. */
bool ll_takeover_is_due(const struct ll_server *server, const struct ll_job_facts *facts, const int *page_fds);

/* The jobs of which the log has a line. */
enum { LL_TAKEOVER_TOLD = 64 };
struct ll_takeover_told {
	uint64_t tokens[LL_TAKEOVER_TOLD];
	size_t count;
};

/* Logs that the job, which runs already, is taken over, or that it is refused and goes on ungoverned. Once for a job;
 * nothing more when LL_TAKEOVER_TOLD jobs have been logged. */
void ll_takeover_log(struct ll_takeover_told *told, const struct ll_job_facts *facts, bool is_taken);

#endif
