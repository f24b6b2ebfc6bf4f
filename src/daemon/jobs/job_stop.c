#include "daemon/jobs/job_stop.h"

#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/jobs/job_group.h"
#include "daemon/machine/events.h"
#include "daemon/queue/admission.h"

#define GRACE_NS (60 * LL_NS_PER_S) /* if the configuration has none */
/* The monitor kills within milliseconds. systemd starts a keeper that has ended within seconds. */
#define MONITOR_NS (3 * LL_NS_PER_S)
#define KEEPER_NS (60 * LL_NS_PER_S)
#define AGAIN_MIN_NS LL_NS_PER_S
#define AGAIN_MAX_NS (60 * LL_NS_PER_S)

/* By the index of ll_config_signals. */
static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGKILL};

/* ---- signals ---- */

/* Returns false if the job has no monitor that listens. */
static bool send_by_monitor(const struct ll_server *server, const struct ll_job *job, int number, bool is_for_all)
{
	union ll_message message;
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (connection->job != job)
			continue;
		ll_message_init(&message, LL_MESSAGE_SIGNAL);
		message.signal.signal = (uint32_t)number;
		message.signal.is_for_all = is_for_all;
		return ll_message_send(connection->fd, &message, NULL, 0) == 0;
	}
	return false;
}

static void log_signal(const struct ll_job *job, int number, const char *why, bool is_sent)
{
	ll_warn("job %" PRIu64 " of user %" PRIu32 ": %s: signal %d%s", job->number, job->facts.uid, why, number,
		is_sent ? "" : " could not be sent, its monitor does not listen");
}

void ll_job_stop_warn(struct ll_server *server, const struct ll_job *job, int number, const char *why)
{
	log_signal(job, number, why, send_by_monitor(server, job, number, false));
}

/* The keeper is asked also about a job of which it is not known whether it has a group: so a user who has killed the
 * monitor does not have the card for longer. The keeper sends no SIGHUP. */
static bool send_to_all(struct ll_server *server, const struct ll_job *job, struct ll_job_stop *stop, int number)
{
	bool is_asked = number != SIGHUP && ll_job_group_signal(server, job, number);
	if (is_asked)
		stop->asked_ns = ll_now_ns();
	if (is_asked && job->has_group)
		return true;
	return send_by_monitor(server, job, number, true) || is_asked;
}

/* ---- steps ---- */

static const struct ll_config_stop_signal *policy_of(const struct ll_server *server)
{
	const struct ll_config_policy *policy = ll_department_policy(&server->department);
	return policy ? &policy->reclaim.stop : NULL;
}

uint64_t ll_job_stop_grace_ns(const struct ll_server *server)
{
	const struct ll_config_stop_signal *policy = policy_of(server);
	return policy && policy->grace_ns != LL_CONFIG_NONE ? policy->grace_ns : GRACE_NS;
}

static void begin_stop(struct ll_server *server, const struct ll_job *job, struct ll_job_stop *stop, uint64_t now_ns)
{
	const struct ll_config_stop_signal *policy = policy_of(server);
	int number = policy && policy->signal >= 0 ? numbers[policy->signal] : SIGTERM;
	const char *why = stop->why ? stop->why : "its time is over";
	stop->since_ns = now_ns;
	ll_events_tell(server, LL_EVENT_STOPPED, &(struct ll_event_about){.job = job},
		       "job %" PRIu64 " is stopped: %s; it is killed if it has not ended in %" PRIu64 " s", job->number,
		       why, ll_job_stop_grace_ns(server) / LL_NS_PER_S);
	log_signal(job, number, why, send_to_all(server, job, stop, number));
}

/* A process that the kernel does not end now is not killed each second for days: the times between grow. */
static void kill_again(struct ll_server *server, const struct ll_job *job, struct ll_job_stop *stop, uint64_t now_ns)
{
	bool is_first = !stop->killed_ns;
	stop->killed_ns = is_first ? now_ns : stop->killed_ns;
	bool is_sent = send_to_all(server, job, stop, SIGKILL);
	uint64_t pause_ns = now_ns - stop->killed_ns;
	pause_ns = pause_ns < AGAIN_MIN_NS ? AGAIN_MIN_NS : pause_ns > AGAIN_MAX_NS ? AGAIN_MAX_NS : pause_ns;
	stop->again_ns = now_ns + pause_ns;
	if (is_first)
		log_signal(job, SIGKILL, "it has not ended in its grace", is_sent);
}

static uint64_t later_of(uint64_t one_ns, uint64_t other_ns)
{
	return one_ns > other_ns ? one_ns : other_ns;
}

/* A loadlined that has just started learns where groups are when the keeper answers. */
static bool is_out_of_reach(const struct ll_server *server, const struct ll_job *job, const struct ll_job_stop *stop,
			    uint64_t now_ns)
{
	uint64_t since_ns = later_of(stop->killed_ns, server->born_ns);
	if (!stop->killed_ns)
		return false;
	if (!job->has_group || job->is_group_lost)
		return now_ns >= since_ns + MONITOR_NS;
	return now_ns >= later_of(since_ns, stop->asked_ns) + KEEPER_NS + AGAIN_MAX_NS;
}

void ll_job_stop_step(struct ll_server *server, struct ll_job *job, struct ll_job_stop *stop)
{
	uint64_t now_ns = ll_now_ns();
	if (!stop->since_ns)
		begin_stop(server, job, stop, now_ns);
	/* Also a loadlined that was late leaves the job its grace. */
	if (now_ns < stop->since_ns + ll_job_stop_grace_ns(server))
		return;
	if (is_out_of_reach(server, job, stop, now_ns)) {
		ll_events_tell(server, LL_EVENT_STOPPED, &(struct ll_event_about){.job = job},
			       "job %" PRIu64 " has no control group and has not ended: its place is given back, and "
			       "what it still runs is outside of jobs",
			       job->number);
		ll_job_abandon(server, job);
	} else if (now_ns >= stop->again_ns) {
		kill_again(server, job, stop, now_ns);
	}
}
