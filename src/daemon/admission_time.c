/* The time of a job that runs: the signals before and at its end. The job's monitor sends them, because it has the
 * job's user. */
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/admission_state.h"
#include "daemon/connection.h"
#include "daemon/server.h"

/* By the index of ll_config_signals. */
static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGKILL};

/* Returns false if the job has no monitor that listens. */
static bool send_signal(const struct ll_server *server, const struct ll_admission_entry *entry, int number)
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

static void signal_job(const struct ll_server *server, const struct ll_admission_entry *entry, int number,
		       const char *why)
{
	bool is_sent = send_signal(server, entry, number);
	ll_warn("job %" PRIu64 " of user %" PRIu32 ": %s: signal %d%s", entry->queued.number, entry->uid, why, number,
		is_sent ? "" : " could not be sent, its monitor does not listen");
}

static void keep_time_of(const struct ll_server *server, struct ll_admission_entry *entry, uint64_t now_ns)
{
	const struct ll_config_reclaim *reclaim = &ll_department_policy(&server->department)->reclaim;
	uint64_t end_ns = ll_queue_end_ns(&entry->queued);
	bool has_warning = reclaim->warn.signal >= 0 && reclaim->warn.from;
	uint64_t before_ns = has_warning && reclaim->warn.before_ns != LL_CONFIG_NONE ? reclaim->warn.before_ns : 0;
	uint64_t grace_ns = reclaim->stop.grace_ns != LL_CONFIG_NONE ? reclaim->stop.grace_ns : 60 * LL_NS_PER_S;
	if (end_ns == LL_QUEUE_NONE)
		return;
	if (has_warning && !entry->is_warned && now_ns + before_ns >= end_ns) {
		entry->is_warned = true;
		signal_job(server, entry, numbers[reclaim->warn.signal], "its time ends");
	}
	if (!entry->is_stopped && now_ns >= end_ns) {
		entry->is_stopped = true;
		signal_job(server, entry, reclaim->stop.signal >= 0 ? numbers[reclaim->stop.signal] : SIGTERM,
			   "its time is over");
	}
	if (entry->is_stopped && !entry->is_killed && now_ns >= end_ns && now_ns - end_ns >= grace_ns) {
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
