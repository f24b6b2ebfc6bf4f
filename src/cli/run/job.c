#include "cli/run/job.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/detach.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/daemon.h"
#include "cli/common/still.h"
#include "cli/run/bequeath.h"
#include "protocol/message.h"
#include "protocol/run_settings.h"
#include "protocol/start.h"

/* The lifeline's descriptor is higher than those of shells and scripts. One page is what a pipe needs at least; a
 * user's pipes together are limited. */
enum { REPORT_MS = 5000, PIPE_BYTES = 4096 };

/* A loadlined that can start has answered by then, where the machine is not busy. */
enum { TRY_AFTER_MS = 500, TRY_MS = 2000 };

void ll_run_job_limits(const struct ll_run_settings *settings, struct ll_limits *ret_limits)
{
	*ret_limits = (struct ll_limits){
	    .memory_bytes = settings->memory_limit_bytes,
	    .request_bytes = settings->memory_request_bytes,
	    .max_kernel_ns = settings->max_kernel_ns,
	    .compute_permille = settings->compute_cap_permille,
	    .space_permille = settings->space_permille,
	    .weight_permille = settings->weight_permille,
	    .priority = ll_class_of_priority(settings->priority),
	    .slowdown_permille = (uint16_t)settings->slowdown_permille,
	    .flags = (settings->is_evictable ? LL_LIMIT_EVICTABLE : 0U) | (settings->is_strict ? LL_LIMIT_STRICT : 0U) |
		     (settings->counts_context ? LL_LIMIT_COUNTS_CONTEXT : 0U) |
		     (settings->kills_at_max_kernel ? LL_LIMIT_KILLS_MAX_KERNEL : 0U),
	};
}

void ll_run_job_take_limits(struct ll_run_settings *settings, const struct ll_message_accepted *accepted)
{
	const struct ll_limits *limits = &accepted->limits;
	if (!accepted->tenant[0])
		return;
	settings->memory_limit_bytes = limits->memory_bytes;
	settings->memory_request_bytes = limits->request_bytes;
	settings->compute_cap_permille = limits->compute_permille;
	settings->priority = ll_priority_of_class(limits->priority);
	settings->is_evictable = limits->flags & LL_LIMIT_EVICTABLE;
}

void ll_run_job_describe(const struct ll_run_job *job, union ll_message *ret_message)
{
	const char *slash = strrchr(job->command, '/');
	ll_message_init(ret_message, LL_MESSAGE_JOB);
	ret_message->job.said = job->said;
	if (job->project)
		ll_message_text_set(ret_message->job.project, sizeof ret_message->job.project, job->project);
	if (job->name)
		ll_message_text_set(ret_message->job.name, sizeof ret_message->job.name, job->name);
	struct ll_job_facts *facts = &ret_message->job.job;
	facts->token[0] = job->settings->id;
	if (getrandom(&facts->token[1], sizeof facts->token[1], 0) < 0)
		facts->token[1] = ll_now_ns();
	facts->uid = geteuid();
	facts->pid = (uint32_t)getpid();
	facts->state = LL_JOB_RUNNING;
	facts->flags = job->is_named ? LL_JOB_NAMED : 0;
	ll_run_job_limits(job->settings, &facts->limits);
	ll_message_text_set(facts->tenant, sizeof facts->tenant, job->settings->tenant);
	if (job->words) {
		ret_message->job.program = ll_program_key(job->path, job->words);
		ll_program_name(job->words, ret_message->job.program_name);
	}
	ll_message_text_set(facts->command, sizeof facts->command, slash && slash[1] ? slash + 1 : job->command);
}

/* Says why a loadlined that should serve by now does not start: a library may be missing. Its monitor would start it
 * again and again. The system's is systemd's. */
static int check_daemon(const struct ll_run_job *job, struct ll_err *err)
{
	struct ll_daemon_paths paths;
	const char *const words[] = {"loadlined", "--version", NULL};
	int rc = ll_place_is_system(job->place) ? 0 : ll_daemon_paths_find(&paths, err);
	if (rc || ll_place_is_system(job->place))
		return rc;
	rc = ll_detach_try(paths.daemon, words, ll_now_ns() + TRY_MS * LL_NS_PER_MS, err);
	if (rc == -ETIMEDOUT)
		return 0;
	return rc ? ll_err_wrap(err, "loadlined cannot start") : 0;
}

/* Waits for what the monitor tells. */
static int wait_for_report(const struct ll_run_job *job, int fd, struct ll_message_accepted *ret_accepted,
			   struct ll_err *err)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count = 0;
	struct pollfd report = {.fd = fd, .events = POLLIN};
	struct ll_still still;
	uint64_t since_ns = ll_now_ns();
	int rc = 0;
	if (poll(&report, 1, TRY_AFTER_MS) <= 0)
		rc = check_daemon(job, err);
	if (rc)
		return rc;
	int passed_ms = (int)((ll_now_ns() - since_ns) / LL_NS_PER_MS);
	ll_still_begin(&still, N_("waits for loadlined to answer"));
	int is_ready = poll(&report, 1, passed_ms < REPORT_MS ? REPORT_MS - passed_ms : 0);
	ll_still_end(&still);
	if (is_ready <= 0)
		return ll_err_set(err, -ETIMEDOUT, "loadlined does not answer");
	rc = ll_message_receive(fd, &message, fds, &count);
	ll_message_close_fds(fds, count);
	if (rc)
		return ll_err_set(err, rc, "the job's monitor has ended");
	if (message.header.kind == LL_MESSAGE_REFUSED && message.refused.code == -EPERM)
		return ll_err_set(err, -EPERM, "another user has the name of loadlined, %s%s",
				  ll_place_mark(job->place), job->place->name);
	if (message.header.kind == LL_MESSAGE_REFUSED)
		return ll_err_set(err, message.refused.code, "%s", message.refused.reason);
	*ret_accepted = message.accepted;
	return 0;
}

/* The command shall have the writable end; this process's other descriptors are closed on exec. */
static int keep_lifeline(int fd, struct ll_err *err)
{
	if (fcntl(fd, F_DUPFD, LL_RUN_FIRST_FD) >= 0 || fcntl(fd, F_DUPFD, STDERR_FILENO + 1) >= 0)
		return 0;
	return ll_err_set(err, -errno, "lifeline: %s", strerror(errno));
}

static int start_monitor(const struct ll_run_job *job, const int report[2], const int lifeline[2], struct ll_err *err)
{
	struct ll_daemon_paths paths;
	union ll_message message;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	int rc = ll_daemon_paths_find(&paths, err);
	if (!rc && process_fd < 0)
		rc = ll_err_set(err, process_fd, "this process: %s", strerror(-process_fd));
	if (rc)
		return rc;
	ll_run_job_describe(job, &message);
	rc = ll_message_send(report[0], &message, NULL, 0);
	if (rc)
		return ll_err_set(err, rc, "socket: %s", strerror(-rc));
	return ll_monitor_start(report[1], lifeline[0], process_fd, job->place, &paths.programs, err);
}

static void close_both(const int ends[2])
{
	close(ends[0]);
	close(ends[1]);
}

int ll_run_job_start(const struct ll_run_job *job, struct ll_message_accepted *ret_accepted, struct ll_err *err)
{
	int report[2], lifeline[2];
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, report) < 0)
		return ll_err_set(err, -errno, "socket: %s", strerror(errno));
	if (pipe2(lifeline, O_CLOEXEC | O_NONBLOCK) < 0) {
		int code = errno;
		close_both(report);
		return ll_err_set(err, -code, "pipe: %s", strerror(code));
	}
	fcntl(lifeline[1], F_SETPIPE_SZ, PIPE_BYTES);
	int rc = start_monitor(job, report, lifeline, err);
	close(report[1]);
	if (!rc)
		rc = wait_for_report(job, report[0], ret_accepted, err);
	/* Also after a refusal: the monitor tries again. */
	int kept = keep_lifeline(lifeline[1], rc ? NULL : err);
	close(report[0]);
	close_both(lifeline);
	return rc ? rc : kept;
}
