#include "world.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/process.h"
#include "test.h"
#include "wait_for.h"

enum { WAIT_MS = 30000, FDS = 4096, PATH_SIZE = 40 };

static const char *program(const char *variable)
{
	const char *path = getenv(variable);
	if (!path)
		fail_msg("%s is not set: run this through meson test", variable);
	return path;
}

void world_init(struct world *world)
{
	/* Random: in a PID namespace many have the same number, and the place is one for all of them. */
	uint64_t number;
	assert_int_equal(getrandom(&number, sizeof number, 0), sizeof number);
	world->limits = (struct ll_limits){0};
	world->programs = (struct ll_programs){program("LOADLINED"), program("LOADLINE_JOB")};
	snprintf(world->place.name, sizeof world->place.name, "loadline/%u/0-%jx", (unsigned)geteuid(),
		 (uintmax_t)number);
}

void kill_process(pid_t pid, int signal)
{
	assert_true(pid > 1);
	assert_int_equal(kill(pid, signal), 0);
}

/* Returns who made the socket listen; 0: it does not. Until a new daemon does that again, it is who starts the daemon:
 * a monitor. */
static pid_t find_listener(const struct world *world)
{
	struct ucred peer = {0};
	socklen_t length = sizeof peer;
	int fd;
	if (ll_place_connect(&world->place, &fd, NULL))
		return 0;
	getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length);
	close(fd);
	return peer.pid;
}

static bool is_daemon(pid_t pid)
{
	char path[PATH_SIZE], name[PATH_SIZE] = "";
	snprintf(path, sizeof path, "/proc/%d/comm", (int)pid);
	FILE *file = fopen(path, "re");
	bool is_so = file && fgets(name, sizeof name, file) && strncmp(name, "loadlined", strlen("loadlined")) == 0;
	if (file)
		fclose(file);
	return is_so;
}

pid_t world_daemon(const struct world *world)
{
	pid_t pid = find_listener(world);
	return is_daemon(pid) ? pid : 0;
}

void world_fini(struct world *world)
{
	while (find_listener(world)) {
		pid_t pid = world_daemon(world);
		if (pid <= 1)
			continue;
		int fd = ll_process_open(pid);
		kill(pid, SIGKILL);
		wait_for(fd < 0 || ll_process_has_ended(fd));
		if (fd >= 0)
			close(fd);
	}
}

/* Those of other jobs too: who has the writable end of a job's pipe keeps that job. */
static void close_all_but(int one, int other, int third)
{
	for (int fd = STDERR_FILENO + 1; fd < FDS; fd++) {
		if (fd != one && fd != other && fd != third)
			close(fd);
	}
}

static _Noreturn void be_first_process(const int stop[2], const int lifeline[2], const int ready[2], job_body *body,
				       uint64_t id)
{
	char end;
	close_all_but(stop[0], lifeline[1], ready[1]);
	if (body)
		body(lifeline[1], id);
	if (write(ready[1], "", 1) != 1)
		_exit(1);
	_exit(read(stop[0], &end, 1) == 0 ? 0 : 1);
}

static void make_facts(struct ll_job_facts *facts, const char *name, const struct ll_limits *limits)
{
	facts->limits = *limits;
	assert_int_equal(getrandom(facts->token, sizeof facts->token, 0), sizeof facts->token);
	facts->state = LL_JOB_RUNNING;
	facts->flags = name ? LL_JOB_NAMED : 0;
	ll_message_text_set(facts->tenant, sizeof facts->tenant, name ? name : "alone");
	ll_message_text_set(facts->command, sizeof facts->command, "test");
}

static void start_monitor(struct job *job, const struct world *world, const union ll_message *message, int lifeline_fd)
{
	int report[2];
	struct ll_err err = {0};
	int process_fd = ll_process_open(job->pid);
	assert_true(process_fd >= 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, report), 0);
	assert_int_equal(ll_message_send(report[0], message, NULL, 0), 0);
	if (ll_monitor_start(report[1], lifeline_fd, process_fd, &world->place, &world->programs, &err))
		fail_msg("%s", err.text);
	close(report[1]);
	close(process_fd);
	job->report_fd = report[0];
}

void job_launch(struct job *job, const struct world *world, const char *name, job_body *body)
{
	union ll_message message;
	int stop[2], lifeline[2], ready[2];
	char end;
	ll_message_init(&message, LL_MESSAGE_JOB);
	make_facts(&message.job.job, name, &world->limits);
	job->id = message.job.job.token[0];
	message.job.program = 1;
	ll_message_text_set(message.job.program_name, sizeof message.job.program_name, "test");
	assert_int_equal(pipe2(stop, O_CLOEXEC), 0);
	assert_int_equal(pipe2(lifeline, O_CLOEXEC), 0);
	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	job->pid = fork();
	if (job->pid == 0)
		be_first_process(stop, lifeline, ready, body, job->id);
	assert_true(job->pid > 1);
	close(stop[0]);
	close(lifeline[1]);
	close(ready[1]);
	job->stop_fd = stop[1];
	assert_int_equal(read(ready[0], &end, 1), 1);
	close(ready[0]);
	start_monitor(job, world, &message, lifeline[0]);
	close(lifeline[0]);
}

void job_start(struct job *job, const struct world *world, const char *name, job_body *body)
{
	union ll_message message;
	job_launch(job, world, name, body);
	assert_int_equal(next_message(job->report_fd, &message), LL_MESSAGE_ACCEPTED);
	close(job->report_fd);
	job->report_fd = -1;
}

void job_stop(struct job *job)
{
	pid_t waited;
	int status;
	close(job->stop_fd);
	if (job->report_fd >= 0)
		close(job->report_fd);
	wait_for((waited = waitpid(job->pid, &status, WNOHANG)) != 0);
	assert_int_equal(waited, job->pid);
	assert_true((WIFEXITED(status) && WEXITSTATUS(status) == 0) || WIFSIGNALED(status));
}

bool world_has_jobs(const struct world *world, size_t count)
{
	struct ll_daemon_view view;
	ll_daemon_view_init_at(&view, &world->place);
	bool is_so =
	    count ? view.answer == LL_DAEMON_SERVES && view.list.job_count == count
		  : view.answer == LL_DAEMON_NONE || (view.answer == LL_DAEMON_SERVES && view.list.job_count == 0);
	for (size_t i = 0; i < view.list.job_count; i++)
		is_so &= view.list.jobs[i].monitor_pid > 0 && !(view.list.jobs[i].job.flags & LL_JOB_UNRESPONSIVE);
	ll_daemon_view_fini(&view);
	return is_so;
}

pid_t job_monitor(const struct world *world, const struct job *job)
{
	struct ll_daemon_view view;
	pid_t pid = 0;
	ll_daemon_view_init_at(&view, &world->place);
	for (size_t i = 0; i < view.list.job_count; i++) {
		if (view.list.jobs[i].job.token[0] == job->id)
			pid = (pid_t)view.list.jobs[i].monitor_pid;
	}
	ll_daemon_view_fini(&view);
	return pid;
}

unsigned next_message_with_fds(int fd, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS], size_t *ret_count)
{
	if (poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, WAIT_MS) <= 0)
		fail_msg("no message within %d s", WAIT_MS / 1000);
	*ret_count = 0;
	int rc = ll_message_receive(fd, ret_message, ret_fds, ret_count);
	if (rc == -EPIPE || rc == -ECONNRESET)
		return 0;
	assert_int_equal(rc, 0);
	return ret_message->header.kind;
}

unsigned next_message(int fd, union ll_message *ret_message)
{
	int fds[LL_MESSAGE_FDS];
	size_t count;
	unsigned kind = next_message_with_fds(fd, ret_message, fds, &count);
	ll_message_close_fds(fds, count);
	return kind;
}

/* The system's daemon closes what is too much of one user. */
int world_connect(const struct world *world, uint32_t role)
{
	union ll_message message;
	int fd, rc;
	ll_message_init_hello(&message, role, NULL);
	do {
		assert_int_equal(ll_place_connect_by(&world->place, ll_now_ns() + WAIT_MS * LL_NS_PER_MS, &fd, NULL),
				 0);
		rc = ll_message_send(fd, &message, NULL, 0);
		if (rc)
			close(fd);
	} while (rc == -EPIPE || rc == -ECONNRESET);
	assert_int_equal(rc, 0);
	return fd;
}
