#include "cli/doctor/trial_daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "base/scope.h"
#include "cli/common/daemon.h"
#include "cli/run/bind.h"
#include "cli/run/job.h"

static int start_process(const struct ll_trial_daemon *daemon, struct ll_err *err)
{
	struct ll_daemon_paths paths;
	int rc = ll_daemon_paths_find(&paths, err);
	return rc ? rc : ll_daemon_start(&daemon->place, &paths.programs, err);
}

static int register_job(struct ll_trial_daemon *daemon, const struct ll_run_settings *settings, struct ll_err *err)
{
	union ll_message message;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	const struct ll_client_self self = {LOADLINE_VERSION, LL_ROLE_MONITOR, process_fd, NULL};
	const struct ll_run_job job = {.settings = settings, .command = "limit-trial", .place = &daemon->place};
	if (process_fd < 0)
		return ll_err_set(err, process_fd, "this process: %s", strerror(-process_fd));
	if (pipe2(daemon->lifeline, O_CLOEXEC | O_NONBLOCK) < 0)
		return ll_err_set(err, -errno, "pipe: %s", strerror(errno));
	const int fds[] = {process_fd, daemon->lifeline[0]};
	ll_run_job_describe(&job, &message);
	int rc = ll_client_open(&daemon->client, &daemon->place, &self, deadline_ns, err);
	return rc ? rc : ll_client_request(&daemon->client, &message, fds, 2, NULL, deadline_ns, err);
}

int ll_trial_daemon_start(struct ll_trial_daemon *daemon, struct ll_run_settings *settings, const struct ll_card *card,
			  struct ll_err *err)
{
	const struct ll_card *none;
	*daemon = (struct ll_trial_daemon){.client = {.fd = -1}, .lifeline = {-1, -1}};
	int rc = ll_place_find(settings->folder, &daemon->place, err);
	if (!rc)
		rc = start_process(daemon, err);
	if (!rc)
		rc = register_job(daemon, settings, err);
	if (rc)
		return rc;
	memcpy(settings->place, daemon->place.name, sizeof settings->place);
	return ll_run_bind(settings, &card, 1, true, &none, err);
}

bool ll_trial_daemon_has_charged(const struct ll_trial_daemon *daemon)
{
	struct ll_client client;
	struct ll_list list = {0};
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_REPLY_NS;
	bool has_charged = false;
	int rc = ll_client_open(&client, &daemon->place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, NULL);
	if (!rc)
		rc = ll_client_list(&client, &list, deadline_ns, NULL);
	for (size_t i = 0; !rc && i < list.card_count; i++)
		has_charged |= list.cards[i].gpu_time_ns > 0;
	ll_list_fini(&list);
	ll_client_close(&client);
	return has_charged;
}

static void close_end(int fd)
{
	if (fd >= 0)
		close(fd);
}

/* The daemon would end by itself some seconds later. It lives as long as the connection, and its number is its own: who
 * connects before it listens sees this process as the other side, which made the socket. */
void ll_trial_daemon_end(struct ll_trial_daemon *daemon)
{
	if (daemon->client.fd >= 0 && daemon->client.welcome.pid)
		kill((pid_t)daemon->client.welcome.pid, SIGTERM);
	ll_client_close(&daemon->client);
	close_end(daemon->lifeline[0]);
	close_end(daemon->lifeline[1]);
}
