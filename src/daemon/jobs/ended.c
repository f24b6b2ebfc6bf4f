#include "daemon/jobs/ended.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#define PENDING_NS UINT64_C(3000000000)

static size_t count_of(const struct ll_ended *ended, uint32_t uid)
{
	size_t count = 0;
	for (size_t i = 0; i < ended->count; i++)
		count += ended->jobs[i].uid == uid;
	return count;
}

/* The oldest of the user with the most: going up, the first that has more than all before it. */
static size_t least_needed(const struct ll_ended *ended)
{
	size_t most = 0, at = 0;
	for (size_t i = 0; i < ended->count; i++) {
		size_t count = count_of(ended, ended->jobs[i].uid);
		if (count <= most)
			continue;
		most = count;
		at = i;
	}
	return at;
}

void ll_ended_add(struct ll_ended *ended, const struct ll_ended_job *job)
{
	if (ended->count == LL_ENDED_MAX) {
		size_t at = least_needed(ended);
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
