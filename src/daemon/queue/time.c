/* The time of a job that runs: the signal before its end, and its end (job_stop.h). */
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/machine/events.h"
#include "daemon/queue/state.h"

/* By the index of ll_config_signals. */
static const int numbers[] = {SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGKILL};

#define TELL_BEFORE_NS (300 * LL_NS_PER_S)

static struct ll_job *job_of(const struct ll_server *server, const struct ll_admission_entry *entry)
{
	struct ll_job *job = ll_books_after(&server->books, entry->job_number - 1);
	return job && job->number == entry->job_number ? job : NULL;
}

/* The user is told first: the signal may end the job, and its terminal with it. */
static void warn_entry(struct ll_server *server, const struct ll_job *job, struct ll_admission_entry *entry,
		       uint64_t left_ns)
{
	const struct ll_config_warn_signal *warn = &ll_department_policy(&server->department)->reclaim.warn;
	struct ll_event_about about = {.job = job};
	char left[LL_EVENT_DURATION_SIZE];
	entry->is_warned = true;
	server->admission->must_save = true;
	ll_event_duration(left_ns, left);
	ll_events_tell(server, LL_EVENT_TIME_ENDING, &about, "the time of job %" PRIu64 " ends in %s",
		       entry->queued.number, left);
	if (warn->from && warn->signal >= 0 && !entry->signal)
		ll_job_stop_warn(server, job, numbers[warn->signal], "its time ends");
}

static void send_wished(struct ll_server *server, struct ll_job *job, struct ll_admission_entry *entry)
{
	entry->is_signaled = true;
	server->admission->must_save = true;
	ll_job_stop_warn(server, job, entry->signal, "its time ends, and it wishes a signal");
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
	const struct ll_config_warn_signal *warn = &ll_department_policy(&server->department)->reclaim.warn;
	struct ll_job *job = job_of(server, entry);
	uint64_t end_ns = ll_queue_end_ns(&entry->queued);
	if (end_ns == LL_QUEUE_NONE || !job)
		return;
	if (!entry->is_warned && now_ns + warn_before_ns(warn, entry) >= end_ns)
		warn_entry(server, job, entry, end_ns > now_ns ? end_ns - now_ns : 0);
	if (entry->signal && !entry->is_signaled && now_ns + entry->signal_before_s * LL_NS_PER_S >= end_ns)
		send_wished(server, job, entry);
	if (now_ns < end_ns)
		return;
	server->admission->must_save |= !entry->stop.since_ns || !entry->stop.killed_ns;
	ll_job_stop_step(server, job, &entry->stop);
}

void ll_admission_keep_time(struct ll_admission *admission)
{
	uint64_t now_ns = ll_now_ns();
	struct ll_admission_entry *next;
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = next) {
		next = entry->next;
		if (entry->has_end && entry->uuid_count && entry->job_number)
			keep_time_of(admission->server, entry, now_ns);
	}
}
