#include "daemon/arbiter/windows.h"

#include "daemon/arbiter/gang.h"
#include "daemon/arbiter/time_on_card.h"
#include "rules/share/windows.h"

enum { JOBS = 64, PERMILLE = 1000 };

/* A job counts as one that works on the card for this long after it last wanted it. */
#define LATELY_NS UINT64_C(500000000)
/* A job that fills less than this part of its windows does not reach its cap. What it uses is measured with timing
 * events, up to a fifth too low for programs of many small kernels, and a cap must not be passed. So it is given but
 * `lengthens` of what it seems to lack. */
static const double fills = 0.75, lengthens = 0.85;

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

/* Work that the card has not completed, such as a kernel of seconds, is not charged yet. */
static uint64_t running_ns(const struct ll_share_job *job)
{
	uint64_t most_ns = 0;
	LL_SHARE_EACH_OF(job, claim)
	most_ns = claim->want_since_ns && claim->said.running_ns > most_ns ? claim->said.running_ns : most_ns;
	return most_ns;
}

/* The part of its windows since the last look in which the job used the card. */
static double find_use(const struct ll_share_job *job, uint64_t now_ns)
{
	double part = job->time.period_ns ? (double)job->time.window_ns / (double)job->time.period_ns : 1;
	double on_ns = part * (double)ll_share_elapsed_ns(job->window_looked_ns, now_ns);
	uint64_t used_ns = job->used_ns + running_ns(job);
	return on_ns > 0 && used_ns > job->window_used_ns ? (double)(used_ns - job->window_used_ns) / on_ns : 0;
}

static void begin_look(struct ll_share_job *job, uint64_t now_ns)
{
	job->window_looked_ns = now_ns;
	job->window_used_ns = job->used_ns + running_ns(job);
}

static bool is_look_due(const struct ll_share_job *job, uint64_t now_ns)
{
	return ll_share_elapsed_ns(job->window_looked_ns, now_ns) >= LL_SHARE_WINDOWS_LOOK_NS;
}

/* A job that is alone and does not fill its windows, such as a program that waits for its host, is on the card for
 * longer than its cap, so that it can use its cap. */
static void follow_use(struct ll_share_job *job, uint64_t now_ns, bool is_alone)
{
	double used = find_use(job, now_ns), most = (double)PERMILLE / job->cap_permille;
	double wanted = !is_alone || used >= fills ? 1 : used > lengthens / most ? lengthens / used : most;
	job->window_factor = is_alone ? (job->window_factor + wanted) / 2 : 1;
}

/* A job that would be on the card all the time needs no window. */
static bool reaches_cap(struct ll_share_job *job, uint64_t now_ns, bool is_alone)
{
	if (!job->cap_permille)
		return false;
	if (!job->is_windowed)
		return ll_share_tokens_ns(job, now_ns) < (int64_t)running_ns(job);
	if (is_look_due(job, now_ns))
		follow_use(job, now_ns, is_alone);
	return job->window_factor * job->cap_permille < PERMILLE;
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
		bool was_windowed = who[i]->is_windowed, reaches = reaches_cap(who[i], now_ns, count == 1);
		if (!was_windowed)
			who[i]->window_factor = 1;
		if (!was_windowed || is_look_due(who[i], now_ns))
			begin_look(who[i], now_ns);
		who[i]->is_windowed = reaches;
		has_reason |= who[i]->is_windowed;
		jobs[i] = (struct ll_windows_job){
		    .weight_permille = who[i]->weight_permille,
		    .cap_permille = reaches ? (unsigned)(who[i]->window_factor * who[i]->cap_permille) : 0,
		    .is_windowed = who[i]->is_windowed};
	}
	set_all(card, who, jobs, count, ll_windows_divide(jobs, count), ret_is_new);
	return has_reason ? now_ns + LL_SHARE_WINDOWS_LOOK_NS : UINT64_MAX;
}
