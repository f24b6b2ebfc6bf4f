/* The time of a job that runs: the signals before and at its end. The keeper ends a job that has a control group. The
 * job's monitor sends what the keeper may not, and signals to a job without a group; it has the job's user. */
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/admission_state.h"
#include "daemon/connection.h"
#include "daemon/death_watch.h"
#include "daemon/events.h"
#include "daemon/job_group.h"
#include "daemon/server.h"
#include "daemon/users.h"

/* By the index of ll_config_signals. */
static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGKILL};

#define TELL_BEFORE_NS (300 * LL_NS_PER_S)

/* Asks the keeper, so that a user who has killed the monitor does not have the card for longer. SIGKILL goes to the
 * processes that use cards too, because the job's first process may have ended before them. Returns false if the keeper
 * cannot be asked. */
static bool end_by_keeper(struct ll_server *server, const struct ll_admission_entry *entry, int number)
{
	const struct ll_job *job = ll_books_after(&server->books, entry->job_number - 1);
	bool is_sent = false;
	if (!job || job->number != entry->job_number || !job->has_group || (number != SIGTERM && number != SIGKILL))
		return false;
	for (const struct ll_job_process *process = job->processes; process; process = process->next)
		is_sent |= ll_job_group_signal(server, job, process->fd, number);
	for (const struct ll_user *user = server->users; user && number == SIGKILL; user = user->next) {
		if (user->job == job && user->watch)
			is_sent |= ll_job_group_signal(server, job, user->watch->fd, number);
	}
	return is_sent;
}

/* Returns false if the job has no monitor that listens. */
static bool send_by_monitor(const struct ll_server *server, const struct ll_admission_entry *entry, int number)
{
	union ll_message message;
	for (struct ll_connection *connection = server->connections; connection; connection = connection->next) {
		if (!connection->job || connection->job->number != entry->job_number)
			continue;
		ll_message_init(&message, LL_MESSAGE_SIGNAL);
		message.signal.signal = (uint32_t)number;
		return ll_message_send(connection->fd, &message, NULL, 0) == 0;
	}
	return false;
}

static void signal_job(struct ll_server *server, const struct ll_admission_entry *entry, int number, const char *why)
{
	bool is_sent = end_by_keeper(server, entry, number) || send_by_monitor(server, entry, number);
	ll_warn("job %" PRIu64 " of user %" PRIu32 ": %s: signal %d%s", entry->queued.number, entry->uid, why, number,
		is_sent ? "" : " could not be sent, its monitor does not listen");
}

static const struct ll_job *job_of(const struct ll_server *server, const struct ll_admission_entry *entry)
{
	const struct ll_job *job = ll_books_after(&server->books, entry->job_number - 1);
	return job && job->number == entry->job_number ? job : NULL;
}

/* The user is told first: the signal may end the job, and its terminal with it. */
static void warn_entry(struct ll_server *server, struct ll_admission_entry *entry, uint64_t left_ns)
{
	const struct ll_config_warn_signal *warn = &ll_department_policy(&server->department)->reclaim.warn;
	struct ll_event_about about = {.job = job_of(server, entry)};
	char left[LL_EVENT_DURATION_SIZE];
	entry->is_warned = true;
	server->admission->must_save = true;
	ll_event_duration(left_ns, left);
	ll_events_tell(server, LL_EVENT_TIME_ENDING, &about, "the time of job %" PRIu64 " ends in %s",
		       entry->queued.number, left);
	if (warn->from && warn->signal >= 0 && !entry->signal)
		signal_job(server, entry, numbers[warn->signal], "its time ends");
}

static void send_wished(struct ll_server *server, struct ll_admission_entry *entry)
{
	entry->is_signaled = true;
	server->admission->must_save = true;
	signal_job(server, entry, entry->signal, "its time ends, and it wishes a signal");
}

static void stop_entry(struct ll_server *server, struct ll_admission_entry *entry, uint64_t grace_ns)
{
	const struct ll_config_stop_signal *stop = &ll_department_policy(&server->department)->reclaim.stop;
	struct ll_event_about about = {.job = job_of(server, entry)};
	entry->stopped_ns = ll_now_ns();
	server->admission->must_save = true;
	ll_events_tell(server, LL_EVENT_STOPPED, &about,
		       "job %" PRIu64 " is stopped: %s; it is killed if it has not ended in %" PRIu64 " s",
		       entry->queued.number, entry->stop_why ? entry->stop_why : "its time is over",
		       grace_ns / LL_NS_PER_S);
	signal_job(server, entry, stop->signal >= 0 ? numbers[stop->signal] : SIGTERM, "its time is over");
}

/* Without a configured time the users are told when half of the job's time is left, but not earlier than 5 minutes
 * before its end. */
static uint64_t warn_before_ns(const struct ll_config_warn_signal *warn, const struct ll_admission_entry *entry)
{
	uint64_t half_ns = entry->queued.duration_ns / 2;
	if (warn->from && warn->before_ns != LL_CONFIG_NONE)
		return warn->before_ns;
	return half_ns < TELL_BEFORE_NS ? half_ns : TELL_BEFORE_NS;
}

static void keep_time_of(struct ll_server *server, struct ll_admission_entry *entry, uint64_t now_ns)
{
	const struct ll_config_reclaim *reclaim = &ll_department_policy(&server->department)->reclaim;
	uint64_t end_ns = ll_queue_end_ns(&entry->queued);
	uint64_t grace_ns = reclaim->stop.grace_ns != LL_CONFIG_NONE ? reclaim->stop.grace_ns : 60 * LL_NS_PER_S;
	if (end_ns == LL_QUEUE_NONE)
		return;
	if (!entry->is_warned && now_ns + warn_before_ns(&reclaim->warn, entry) >= end_ns)
		warn_entry(server, entry, end_ns > now_ns ? end_ns - now_ns : 0);
	if (entry->signal && !entry->is_signaled && now_ns + entry->signal_before_s * LL_NS_PER_S >= end_ns)
		send_wished(server, entry);
	if (!entry->stopped_ns && now_ns >= end_ns)
		stop_entry(server, entry, grace_ns);
	/* Also a loadlined that was late leaves the job its grace. */
	if (entry->stopped_ns && !entry->is_killed && now_ns >= entry->stopped_ns + grace_ns) {
		entry->is_killed = true;
		signal_job(server, entry, SIGKILL, "it has not ended in its grace");
	}
}

void ll_admission_keep_time(struct ll_admission *admission)
{
	uint64_t now_ns = ll_now_ns();
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry->has_end && entry->uuid_count && entry->job_number)
			keep_time_of(admission->server, entry, now_ns);
	}
}
