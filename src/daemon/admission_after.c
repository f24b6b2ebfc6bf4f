/* Jobs that wait for the end of another job, and how jobs ended. */
#include <errno.h>

#include "base/clock.h"
#include "base/err.h"
#include "daemon/admission_state.h"
#include "daemon/connection.h"
#include "daemon/rights.h"
#include "daemon/server.h"

static bool is_alive(const struct ll_admission *admission, uint64_t number)
{
	const struct ll_job *job = number ? ll_books_after(&admission->server->books, number - 1) : NULL;
	return ll_admission_find(admission, number) || ll_admission_former_find(admission, number) ||
	       (job && job->number == number);
}

/* A job that the user may not see is one that is not there. Also the status of a job is not for other users. */
int ll_admission_check_after(const struct ll_admission *admission, const struct ll_admission_entry *entry,
			     struct ll_err *err)
{
	char reason[LL_REASON_SIZE];
	const struct ll_books *books = &admission->server->books;
	if (!entry->after)
		return 0;
	const struct ll_admission_entry *other = ll_admission_find(admission, entry->after);
	other = other ? other : ll_admission_former_find(admission, entry->after);
	const struct ll_job *job = other ? NULL : ll_books_after(books, entry->after - 1);
	job = job && job->number == entry->after ? job : NULL;
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
	if (!entry->after || is_alive(admission, entry->after))
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

/* A request that was refused at once was never in the queue. */
void ll_admission_note_end(struct ll_admission *admission, const struct ll_admission_entry *entry)
{
	if (!entry->told_ns && !entry->uuid_count)
		return;
	ll_ended_add(&admission->ended, &(struct ll_ended_job){
					    .number = entry->queued.number,
					    .job_number = entry->job_number,
					    .token = entry->token,
					    .ended_s = ll_wall_ns() / LL_NS_PER_S,
					    .ended_ns = ll_now_ns(),
					    .uid = entry->uid,
					    .status = entry->status,
					    .has_status = entry->has_status,
					    .has_run = entry->has_run,
					    .tells_status = entry->tells_status,
					});
}

/* ---- JOB_STATUS ---- */

static bool note_status(struct ll_admission *admission, uint32_t uid, const struct ll_message_job_status *status)
{
	for (struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (entry->token != status->job || entry->uid != uid)
			continue;
		entry->status = status->status;
		entry->has_status = true;
		return true;
	}
	return ll_ended_set_status(&admission->ended, status->job, uid, status->status);
}

bool ll_admission_handle_status(struct ll_connection *connection, const struct ll_message_job_status *status)
{
	struct ll_admission *admission = connection->server->admission;
	union ll_message message;
	if (connection->role != LL_ROLE_COMMAND && connection->role != LL_ROLE_MONITOR)
		return false;
	bool is_known = admission && note_status(admission, connection->uid, status);
	if (is_known)
		ll_admission_wake(admission);
	if (connection->role == LL_ROLE_MONITOR)
		return true;
	ll_message_init(&message, LL_MESSAGE_ACCEPTED);
	if (is_known)
		ll_connection_reply(connection, &message, NULL, 0);
	else
		ll_connection_refuse(connection, -ESRCH, "you have no such job in the queue");
	return true;
}
