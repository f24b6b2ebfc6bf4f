#include "daemon/arbiter/windows.h"

#include "daemon/arbiter/gang.h"
#include "daemon/arbiter/time_on_card.h"
#include "rules/share/tokens.h"
#include "rules/share/windows.h"

enum { JOBS = 64, PERMILLE = 1000 };

/* What is not completed within this time is a long kernel. */
#define STANDS_NS UINT64_C(100000000)
/* A job counts as one that works on the card for this long after it last wanted it. */
#define LATELY_NS UINT64_C(500000000)

/* A job that uses less than this part of its cap may not need its windows. */
static const double fills = 0.75;

/* A job that works, as far as windows care. */
struct working {
	unsigned processes;
	bool has_levers; /* each process can be taken off the card */
};

static struct working find_working(const struct ll_share_job *job, uint64_t now_ns)
{
	struct working working = {.has_levers = true};
	LL_SHARE_EACH_OF(job, claim)
	{
		bool is_lately = claim->wanted_ns && ll_share_elapsed_ns(claim->wanted_ns, now_ns) <= LATELY_NS;
		if (!claim->want_since_ns && !is_lately)
			continue;
		working.processes++;
		working.has_levers &= claim->said.lever == LL_TIME_LEVER_WORKS;
	}
	return working;
}

static bool can_have_windows(const struct ll_share_job *job, uint64_t now_ns)
{
	return !job->is_by_space && !job->first_card && !ll_share_is_in_gang(job, now_ns);
}

/* Work that the card has not completed, such as a kernel of seconds, is not charged yet. A stream may also stand still
 * because it waits for its host, for a value or for another stream: nobody sees that, so only what lasts counts. */
static uint64_t running_ns(const struct ll_share_job *job)
{
	uint64_t most_ns = 0;
	LL_SHARE_EACH_OF(job, claim)
	most_ns = claim->want_since_ns && claim->said.running_ns > most_ns ? claim->said.running_ns : most_ns;
	return most_ns > STANDS_NS ? most_ns : 0;
}

/* A job reaches its cap when its account is empty. Its windows end when the account is full again and it has used
 * little of them: a job that waits for its host then has all of the card until the account is empty, and so comes to
 * its cap. One that fills its windows keeps them, although what it uses is measured a little too low. */
static bool reaches_cap(struct ll_share_job *job, uint64_t now_ns)
{
	if (!job->cap_permille)
		return false;
	uint64_t running = running_ns(job), used_ns = job->used_ns + running;
	int64_t left_ns = ll_share_tokens_ns(job, now_ns) - (int64_t)running;
	uint64_t looked_ns = ll_share_elapsed_ns(job->window_looked_ns, now_ns);
	if (job->is_windowed && looked_ns < LL_SHARE_WINDOWS_LOOK_NS)
		return true;
	double most_ns = (double)looked_ns * job->cap_permille / PERMILLE;
	bool has_used = used_ns > job->window_used_ns && (double)(used_ns - job->window_used_ns) >= fills * most_ns;
	job->window_looked_ns = now_ns;
	job->window_used_ns = used_ns;
	return job->is_windowed ? has_used || left_ns < ll_tokens_most_ns(job->cap_permille) : left_ns < 0;
}

/* ---- orders ---- */

static void set_time(struct ll_share_job *job, const struct ll_card_time *time, bool *ret_is_new)
{
	if (ll_card_time_is_same(&job->time, time))
		return;
	job->time = *time;
	*ret_is_new = true;
}

static void clear_all(struct ll_share_card *card, bool *ret_is_new)
{
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		job->is_windowed = false;
		set_time(job, &(struct ll_card_time){0}, ret_is_new);
	}
	card->has_windows = false;
}

static void set_all(struct ll_share_card *card, struct ll_share_job **who, const struct ll_windows_job *jobs,
		    size_t count, uint64_t period_ns, bool *ret_is_new)
{
	bool had_windows = card->has_windows;
	card->has_windows = period_ns;
	for (size_t i = 0; i < count && (period_ns || had_windows); i++) {
		/* The clock's own multiples: windows stay where they are when a job comes or goes. */
		struct ll_card_time time = {.window_ns = period_ns ? jobs[i].length_ns : 0,
					    .period_ns = period_ns,
					    .from_ns = period_ns ? period_ns + jobs[i].offset_ns : 0};
		set_time(who[i], &time, ret_is_new);
	}
}

uint64_t ll_share_step_windows(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new)
{
	struct ll_share_job *who[JOBS];
	struct ll_windows_job jobs[JOBS];
	size_t count = 0;
	bool is_possible = card->forced == LL_LIMIT_SHARING_MEASURED, has_reason = false;
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		struct working found = find_working(job, now_ns);
		if (!found.processes || count == JOBS) {
			is_possible &= !found.processes;
			job->is_windowed = false;
			continue;
		}
		is_possible &=
		    found.has_levers && can_have_windows(job, now_ns) && (!count || job->rank == who[0]->rank);
		who[count++] = job;
	}
	if (!is_possible) {
		if (card->has_windows)
			clear_all(card, ret_is_new);
		return UINT64_MAX;
	}
	for (size_t i = 0; i < count; i++) {
		who[i]->is_windowed = reaches_cap(who[i], now_ns);
		has_reason |= who[i]->is_windowed;
		jobs[i] = (struct ll_windows_job){.weight_permille = who[i]->weight_permille,
						  .cap_permille = who[i]->is_windowed ? who[i]->cap_permille : 0,
						  .is_windowed = who[i]->is_windowed};
	}
	set_all(card, who, jobs, count, ll_windows_divide(jobs, count), ret_is_new);
	return has_reason ? now_ns + LL_SHARE_WINDOWS_LOOK_NS : UINT64_MAX;
}
