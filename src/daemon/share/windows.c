#include "daemon/share/windows.h"

#include "control/share/windows.h"
#include "daemon/share/account.h"
#include "daemon/share/gang.h"

enum { JOBS = 64, PERMILLE = 1000 };

/* A job counts as one that works on the card for this long after it last wanted it. */
#define LATELY_NS UINT64_C(500000000)
/* A job that fills less than this part of its windows does not reach its cap. What it uses is measured with timing
 * events, up to a fifth too low for programs of many small kernels, and a cap must not be passed. So it is given but
 * `lengthens` of what it seems to lack. */
static const double fills = 0.75, lengthens = 0.85;

/* All its processes that work. has_levers: each of them can be taken off the card. */
static bool works_lately(const struct ll_share_job *job, uint64_t now_ns, bool *ret_has_levers)
{
	bool works = false;
	*ret_has_levers = true;
	LL_SHARE_EACH_OF(job, claim)
	{
		if (claim->want_since_ns)
			works = true;
		else if (!claim->wanted_ns || ll_share_elapsed_ns(claim->wanted_ns, now_ns) > LATELY_NS)
			continue;
		works = true;
		*ret_has_levers &= claim->said.lever == LL_TIME_LEVER_WORKS;
	}
	return works;
}

static bool can_have_windows(const struct ll_share_job *job, uint64_t now_ns)
{
	return !job->is_by_space && !job->first_card && !ll_share_is_in_gang(job, now_ns);
}

/* Work that the card has not completed, such as a kernel of seconds, is not charged yet. */
static uint64_t running_ns(const struct ll_share_job *job)
{
	uint64_t most_ns = 0;
	LL_SHARE_EACH_OF(job, claim)
	most_ns = claim->want_since_ns && claim->said.running_ns > most_ns ? claim->said.running_ns : most_ns;
	return most_ns;
}

/* A job that is alone and does not fill its windows, such as a program that waits for its host, is on the card for
 * longer than its cap, so that it can use its cap. */
static void follow_use(struct ll_share_job *job, uint64_t on_ns, bool is_alone)
{
	uint64_t used_ns = job->used_ns + running_ns(job);
	double used =
	    on_ns && used_ns > job->window_used_ns ? (double)(used_ns - job->window_used_ns) / (double)on_ns : 0;
	double most = (double)PERMILLE / job->cap_permille;
	double wanted = !is_alone || used >= fills ? 1 : used > lengthens / most ? lengthens / used : most;
	job->window_factor = is_alone ? (job->window_factor + wanted) / 2 : 1;
}

static void begin_look(struct ll_share_job *job, uint64_t now_ns)
{
	job->window_looked_ns = now_ns;
	job->window_used_ns = job->used_ns + running_ns(job);
}

/* A job that would be on the card all the time needs no window. */
static bool reaches_cap(struct ll_share_job *job, uint64_t now_ns, bool is_alone)
{
	uint64_t since_ns = ll_share_elapsed_ns(job->window_looked_ns, now_ns);
	if (!job->cap_permille)
		return false;
	if (!job->is_windowed) {
		job->window_factor = 1;
		begin_look(job, now_ns);
		return ll_share_tokens_ns(job, now_ns) < (int64_t)running_ns(job);
	}
	if (since_ns >= LL_SHARE_WINDOWS_LOOK_NS) {
		double part = job->time.period_ns ? (double)job->time.window_ns / (double)job->time.period_ns : 1;
		follow_use(job, (uint64_t)(part * (double)since_ns), is_alone);
		begin_look(job, now_ns);
	}
	return job->window_factor * job->cap_permille < PERMILLE;
}

static bool is_same(const struct ll_card_time *a, const struct ll_card_time *b)
{
	return a->slice_us == b->slice_us && a->window_ns == b->window_ns && a->period_ns == b->period_ns &&
	       a->from_ns == b->from_ns;
}

static void set_time(struct ll_share_job *job, const struct ll_card_time *time, bool *ret_is_new)
{
	if (is_same(&job->time, time))
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

uint64_t ll_share_step_windows(struct ll_share_card *card, uint64_t now_ns, bool *ret_is_new)
{
	struct ll_share_job *who[JOBS];
	struct ll_windows_job jobs[JOBS];
	size_t count = 0;
	bool is_possible = card->forced == LL_LIMIT_SHARING_MEASURED, has_cap = false;
	for (struct ll_share_job *job = card->jobs; job; job = job->next) {
		bool has_levers;
		if (!works_lately(job, now_ns, &has_levers)) {
			job->is_windowed = false;
			continue;
		}
		has_cap |= job->cap_permille;
		is_possible &= has_levers && count < JOBS && can_have_windows(job, now_ns);
		is_possible &= !count || job->rank == who[0]->rank;
		if (count < JOBS)
			who[count++] = job;
	}
	if (!is_possible || !has_cap) {
		clear_all(card, ret_is_new);
		return UINT64_MAX;
	}
	for (size_t i = 0; i < count; i++) {
		who[i]->is_windowed = reaches_cap(who[i], now_ns, count == 1);
		jobs[i] =
		    (struct ll_windows_job){.weight_permille = who[i]->weight_permille,
					    .cap_permille = (unsigned)(who[i]->window_factor * who[i]->cap_permille),
					    .is_windowed = who[i]->is_windowed};
	}
	uint64_t period_ns = ll_windows_divide(jobs, count);
	if (!period_ns) {
		for (size_t i = 0; i < count; i++)
			set_time(who[i], &(struct ll_card_time){0}, ret_is_new);
		card->has_windows = false;
	}
	for (size_t i = 0; i < count && period_ns; i++) {
		/* The clock's own multiples: windows stay where they are when a job comes or goes. */
		struct ll_card_time time = {
		    .window_ns = jobs[i].length_ns, .period_ns = period_ns, .from_ns = period_ns + jobs[i].offset_ns};
		set_time(who[i], &time, ret_is_new);
		card->has_windows = true;
	}
	return card->has_windows ? now_ns + LL_SHARE_WINDOWS_LOOK_NS : UINT64_MAX;
}
