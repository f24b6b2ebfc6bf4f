/* Jobs that wait for the end of another job, and how jobs ended. */
#include "daemon/queue/state.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "accounts/history.h"
#include "base/clock.h"
#include "base/err.h"
#include "daemon/accounts/accounts.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/policy/policy.h"

/* A job that the user may not see is one that is not there. Also the status of a job is not for other users. */
int ll_admission_check_after(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			     struct ll_err *err)
{
	char reason[LL_REASON_SIZE];
	const struct ll_books *books = admission->books;
	if (!entry->after)
		return 0;
	const struct ll_admission_entry *other = ll_admission_find(admission, entry->after);
	other = other ? other : ll_admission_former_find(admission, entry->after);
	const struct ll_job *job = other ? NULL : ll_books_find_number(books, entry->after);
	const struct ll_ended_job *ended = other || job ? NULL : ll_ended_find(&admission->ended, entry->after);
	bool is_there = (other && other != entry) || job || ended;
	bool is_own = is_there && entry->uid == (other ? other->uid : job ? job->facts.uid : ended->uid);
	bool is_seen = is_there && ll_rights_see_others(entry->connection);
	if (entry->must_be_ok ? is_own && !job : is_own || is_seen)
		return 0;
	ll_ended_explain(NULL, entry->after, reason, sizeof reason);
	return ll_err_set(err, -EACCES, "%s",
			  is_seen && !is_own ? "the job that must end with status 0 is another user's" : reason);
}

bool ll_admission_look_after(const struct ll_admission *admission, struct ll_admission_entry *entry,
			     char ret_reason[LL_REASON_SIZE])
{
	if (!entry->after || ll_admission_find(admission, entry->after) ||
	    ll_admission_former_find(admission, entry->after) || ll_books_find_number(admission->books, entry->after))
		return true;
	const struct ll_ended_job *ended = ll_ended_find(&admission->ended, entry->after);
	enum ll_ended_verdict verdict = entry->must_be_ok ? ll_ended_judge(ended, ll_now_ns()) : LL_ENDED_OK;
	if (verdict == LL_ENDED_FAILED || verdict == LL_ENDED_UNKNOWN) {
		ll_ended_explain(ended, entry->after, ret_reason, LL_REASON_SIZE);
		return false;
	}
	if (verdict == LL_ENDED_OK)
		entry->after = 0;
	return true;
}

/* ---- the history ---- */

static void fill_past(const struct ll_server *server, const struct ll_admission_entry *entry, struct ll_past_job *past)
{
	past->came_s = (int64_t)entry->came_s;
	if (entry->begin_ns)
		past->began_s = (int64_t)ll_admission_second(entry->begin_ns);
	past->memory_bytes = entry->queued.memory_bytes;
	past->compute_permille = entry->queued.compute_permille;
	past->time_ns = entry->asked_time_ns;
	past->card_count = entry->queued.card_count;
	past->class = ll_lending_class(entry);
	past->recalls = entry->loan.all_recalls;
	past->slept_ns = entry->loan.slept_ns + (entry->queued.is_asleep ? ll_now_ns() - entry->loan.since_ns : 0);
	if (entry->loan.told_ns)
		past->lendable_ns = (entry->begin_ns ? entry->begin_ns : ll_now_ns()) - entry->loan.told_ns;
	ll_message_text_set(past->tenant, sizeof past->tenant, entry->tenant);
	past->cards[0] = '\0';
	for (uint32_t i = 0; i < entry->uuid_count; i++)
		ll_machine_add_label(server, entry->uuids[i], past->cards, sizeof past->cards);
	if (entry->has_status) {
		past->status = entry->status;
		past->how = ll_past_how_of(entry->status);
	}
	if (entry->is_canceled) {
		past->how = LL_PAST_CANCELED;
		past->by_uid = entry->canceled_by;
	} else if (entry->loan.is_requeued) {
		past->how = LL_PAST_REQUEUED;
		ll_message_text_set(past->why, sizeof past->why, LL_LENDING_STOP_WHY);
	} else if (entry->stop.since_ns) {
		past->how = entry->stop.why ? LL_PAST_STOPPED : LL_PAST_TIME;
		ll_message_text_set(past->why, sizeof past->why, entry->stop.why ? entry->stop.why : "");
	}
}

void ll_admission_describe_end(const struct ll_server *server, const struct ll_job *job, struct ll_past_job *past)
{
	struct ll_admission_entry *entry = server->admission ? ll_admission_find(server->admission, job->number) : NULL;
	if (!entry || entry->job_number != job->number)
		return;
	fill_past(server, entry, past);
	entry->is_past = true;
}

/* It was not in the books when it ended: it never ran, or it ended while there was no loadlined. */
static void note_past(const struct ll_server *server, struct ll_admission_entry *entry)
{
	struct ll_past_job past = {.number = entry->queued.number,
				   .uid = entry->uid,
				   .by_uid = UINT32_MAX,
				   .ended_s = (int64_t)(ll_wall_ns() / LL_NS_PER_S),
				   .how = entry->has_run ? LL_PAST_ENDED : LL_PAST_NOT_RUN};
	ll_message_text_set(past.command, sizeof past.command, entry->command);
	ll_message_text_set(past.name, sizeof past.name, entry->name);
	ll_message_text_set(past.why, sizeof past.why, entry->left_why);
	fill_past(server, entry, &past);
	entry->is_past = true;
	ll_accounting_note_past(server->accounting, &past);
}

/* A request that was refused at once was never in the queue. */
void ll_admission_note_end(struct ll_admission *admission, struct ll_admission_entry *entry)
{
	if (!entry->told_ns && !entry->uuid_count)
		return;
	if (!entry->is_past && admission->server->accounting)
		note_past(admission->server, entry);
	/* A job that comes again has not ended; what is left of its killed processes gets no card any more. */
	if (entry->loan.is_requeued && !entry->stop.killed_ns)
		return;
	ll_ended_add(&admission->ended, &(struct ll_ended_job){
					    .number = entry->loan.is_requeued ? 0 : entry->queued.number,
					    .job_number = entry->loan.is_requeued ? 0 : entry->job_number,
					    .token = entry->token,
					    .ended_s = ll_wall_ns() / LL_NS_PER_S,
					    .ended_ns = ll_now_ns(),
					    .uid = entry->uid,
					    .status = entry->status,
					    .has_status = entry->has_status,
					    .has_run = entry->has_run,
					    .is_killed = entry->stop.killed_ns != 0,
					    .tells_status = entry->tells_status,
					});
}

/* ---- JOB_STATUS ---- */

/* *ret_again: the number of the job, if it goes back into the queue. */
static bool note_status(struct ll_admission *admission, uint32_t uid, const struct ll_message_job_status *status,
			uint64_t *ret_again)
{
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry->token != status->job || entry->uid != uid)
			continue;
		entry->status = status->status;
		entry->has_status = true;
		*ret_again = entry->loan.is_requeued ? entry->queued.number : 0;
		return true;
	}
	for (const struct ll_admission_entry *former = admission->former; former; former = former->next) {
		if (former->token != status->job || former->uid != uid || !former->loan.is_requeued)
			continue;
		*ret_again = former->queued.number;
		return true;
	}
	struct ll_job *job = ll_books_find_id(admission->books, status->job);
	if (job && job->facts.uid == uid) {
		job->status = status->status;
		job->has_status = true;
		return true;
	}
	const struct ll_ended_job *ended = ll_ended_set_status(&admission->ended, status->job, uid, status->status);
	if (ended)
		ll_accounting_note_status(admission->server->accounting,
					  &(struct ll_past_status){ended->number, uid, status->status});
	return ended;
}

bool ll_admission_handle_status(struct ll_connection *connection, const struct ll_message_job_status *status)
{
	struct ll_admission *admission = connection->server->admission;
	union ll_message message;
	if (connection->role != LL_ROLE_COMMAND && connection->role != LL_ROLE_MONITOR)
		return false;
	uint64_t again = 0;
	bool is_known = admission && note_status(admission, connection->uid, status, &again);
	if (is_known)
		ll_admission_wake(admission);
	if (connection->role == LL_ROLE_MONITOR)
		return true;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	message.accepted.number = again;
	if (is_known)
		ll_connection_reply(connection, &message, NULL, 0);
	else
		ll_connection_refuse(connection, -ESRCH, "you have no such job in the queue");
	return true;
}

#define PENDING_NS UINT64_C(3000000000)

void ll_ended_add(struct ll_ended *ended, const struct ll_ended_job *job)
{
	if (ended->count == LL_ENDED_MAX) {
		/* The oldest of the user with the most: going up, the first that has more than all before it. */
		size_t most = 0, at = 0;
		for (size_t i = 0; i < ended->count; i++) {
			size_t count = 0;
			for (size_t k = 0; k < ended->count; k++)
				count += ended->jobs[k].uid == ended->jobs[i].uid;
			at = count > most ? i : at;
			most = count > most ? count : most;
		}
		ended->count--;
		memmove(&ended->jobs[at], &ended->jobs[at + 1], (ended->count - at) * sizeof *ended->jobs);
	}
	ended->jobs[ended->count++] = *job;
}

const struct ll_ended_job *ll_ended_find(const struct ll_ended *ended, uint64_t number)
{
	for (size_t i = ended->count; i-- > 0;) {
		const struct ll_ended_job *job = &ended->jobs[i];
		if (job->number == number || (job->job_number && job->job_number == number))
			return job;
	}
	return NULL;
}

bool ll_ended_was_killed(const struct ll_ended *ended, uint64_t token)
{
	size_t at = 0;
	while (at < ended->count && !(ended->jobs[at].is_killed && ended->jobs[at].token == token))
		at++;
	return at < ended->count;
}

const struct ll_ended_job *ll_ended_set_status(struct ll_ended *ended, uint64_t token, uint32_t uid, uint32_t status)
{
	for (size_t i = ended->count; i-- > 0;) {
		struct ll_ended_job *job = &ended->jobs[i];
		if (job->token != token || job->uid != uid)
			continue;
		job->status = status;
		job->has_status = true;
		return job;
	}
	return NULL;
}

enum ll_ended_verdict ll_ended_judge(const struct ll_ended_job *job, uint64_t now_ns)
{
	if (!job)
		return LL_ENDED_UNKNOWN;
	if (job->has_status)
		return job->status ? LL_ENDED_FAILED : LL_ENDED_OK;
	if (!job->has_run)
		return LL_ENDED_FAILED;
	bool may_come = job->tells_status && job->ended_ns && now_ns - job->ended_ns < PENDING_NS;
	return may_come ? LL_ENDED_PENDING : LL_ENDED_UNKNOWN;
}

void ll_ended_explain(const struct ll_ended_job *job, uint64_t number, char *ret_text, size_t size)
{
	int status = job ? (int)job->status : 0;
	if (!job)
		snprintf(ret_text, size, "job %" PRIu64 ": unknown, or it ended too long ago", number);
	else if (!job->has_status && !job->has_run)
		snprintf(ret_text, size, "job %" PRIu64 " was not run", number);
	else if (!job->has_status)
		snprintf(ret_text, size,
			 "job %" PRIu64 " has ended, and nobody told its status; that of a job of `submit` is known",
			 number);
	else if (WIFSIGNALED(status))
		snprintf(ret_text, size, "job %" PRIu64 " was ended by signal %d", number, WTERMSIG(status));
	else
		snprintf(ret_text, size, "job %" PRIu64 " ended with status %d", number, WEXITSTATUS(status));
}
