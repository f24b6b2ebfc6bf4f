#include "rules/share/regime.h"

#include <math.h>
#include <string.h>

#include "rules/share/visits.h"

enum { BLOCKS = 4, SLICES = 0, VISITS = 1 };

#define NS_PER_S 1e9
/* The interval between two steps while a block is measured. */
#define LOOK_NS UINT64_C(10000000)
/* If a job has completed nothing in a block, this many launches are counted. */
#define NEXT_TO_NONE 0.25

static const uint64_t again_s[] = {10, 30, 90, 300};

/* ---- the mix ---- */

bool ll_regime_is_asked(const struct ll_regime_job *jobs, size_t count)
{
	for (size_t i = 1; i < count && !jobs[0].has_slices; i++) {
		if (jobs[i].weight_permille != jobs[0].weight_permille || jobs[i].processes != jobs[0].processes)
			return true;
	}
	return false;
}

bool ll_regime_has_reason(const struct ll_regime_job *jobs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (jobs[i].waits)
			return count > 1;
	}
	return ll_regime_is_asked(jobs, count);
}

static uint64_t mix_hash(uint64_t value)
{
	value = (value ^ (value >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	value = (value ^ (value >> 27)) * UINT64_C(0x94d049bb133111eb);
	return value ^ (value >> 31);
}

/* Returns the number of the mix, which does not depend on the order of the jobs; 0: no jobs. */
static uint64_t number_of_mix(const struct ll_regime_job *jobs, size_t count)
{
	uint64_t number = 0;
	for (size_t i = 0; i < count; i++)
		number += mix_hash(mix_hash(jobs[i].id) + jobs[i].weight_permille * UINT64_C(4096) +
				   jobs[i].processes * UINT64_C(2) + jobs[i].waits);
	return number;
}

static struct ll_regime_mix *find_mix(struct ll_regime *regime, uint64_t number)
{
	for (size_t i = 0; i < LL_REGIME_MIXES; i++) {
		if (regime->mixes[i].number == number)
			return &regime->mixes[i];
	}
	return NULL;
}

/* Adds a mix, in place of the one that was last present the longest time ago. */
static struct ll_regime_mix *add_mix(struct ll_regime *regime, uint64_t number, uint64_t now_ns)
{
	struct ll_regime_mix *oldest = &regime->mixes[0];
	for (size_t i = 1; i < LL_REGIME_MIXES; i++) {
		if (regime->mixes[i].used_ns < oldest->used_ns)
			oldest = &regime->mixes[i];
	}
	*oldest = (struct ll_regime_mix){.number = number, .next_ns = now_ns, .why = LL_REGIME_NOT_MEASURED};
	return oldest;
}

/* A mix becomes known when it has lasted long enough. Until then the card is shared as before. */
static void know_mix(struct ll_regime *regime, uint64_t number, uint64_t now_ns)
{
	struct ll_regime_mix *former = regime->mix;
	regime->mix = find_mix(regime, number);
	if (!regime->mix && number != regime->new_mix) {
		regime->new_mix = number;
		regime->new_mix_ns = now_ns;
		regime->moves |= LL_REGIME_MOVE_MIX;
	}
	if (!regime->mix && now_ns - regime->new_mix_ns >= LL_REGIME_SETTLE_NS) {
		regime->mix = add_mix(regime, number, now_ns);
		regime->mix->gives_visits = regime->gives_visits;
	}
	if (regime->mix != former)
		regime->moves |= LL_REGIME_MOVE_MIX;
	if (!regime->mix)
		return;
	regime->mix->used_ns = now_ns;
	if (regime->mix != former)
		regime->new_mix = 0;
}

/* ---- blocks ---- */

/* Returns the way of the block: the present one, the other one twice, the present one. */
static int way_of_block(const struct ll_regime *regime)
{
	unsigned block = regime->block % BLOCKS;
	bool is_other = block == 1 || block == 2;
	return regime->was_visits != is_other ? VISITS : SLICES;
}

static void begin_block(struct ll_regime *regime, const struct ll_regime_job *jobs, uint64_t now_ns)
{
	regime->gives_visits = way_of_block(regime) == VISITS;
	regime->block_ns = now_ns;
	regime->drained_ns = regime->measured_ns = 0;
	for (size_t i = 0; i < regime->count; i++)
		regime->jobs[i].drained_at = jobs[i].completed + jobs[i].queued_launches;
}

static void begin_trial(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns)
{
	regime->is_trying = true;
	regime->was_visits = regime->gives_visits;
	regime->block = 0;
	regime->count = count;
	memset(regime->seconds, 0, sizeof regime->seconds);
	memset(regime->jobs, 0, count * sizeof *regime->jobs);
	for (size_t i = 0; i < count; i++)
		regime->jobs[i].id = jobs[i].id;
	begin_block(regime, jobs, now_ns);
	regime->moves |= LL_REGIME_MOVE_BEGINS;
}

static void plan_next(struct ll_regime_mix *mix, uint64_t now_ns)
{
	size_t last = sizeof again_s / sizeof *again_s - 1;
	mix->next_ns = now_ns + again_s[mix->tries < last ? mix->tries : last] * (uint64_t)NS_PER_S;
	mix->tries++;
}

/* Ends the measurement. The card is shared as before it. */
static void stop_trying(struct ll_regime *regime)
{
	regime->is_trying = false;
	regime->gives_visits = regime->was_visits;
	regime->credit_ns -= (int64_t)((regime->seconds[SLICES] + regime->seconds[VISITS]) * NS_PER_S);
	if (regime->credit_ns < -LL_REGIME_CREDIT_NS)
		regime->credit_ns = -LL_REGIME_CREDIT_NS;
}

static void give_up(struct ll_regime *regime)
{
	stop_trying(regime);
	regime->moves |= LL_REGIME_MOVE_GIVES_UP;
}

static void end_trial(struct ll_regime *regime, bool gives_visits, enum ll_regime_why why, uint64_t now_ns)
{
	stop_trying(regime);
	regime->mix->gives_visits = gives_visits;
	regime->mix->why = why;
	plan_next(regime->mix, now_ns);
}

static bool is_drained(const struct ll_regime *regime, const struct ll_regime_job *jobs)
{
	for (size_t i = 0; regime->gives_visits && i < regime->count; i++) {
		if (jobs[i].completed < regime->jobs[i].drained_at)
			return false;
	}
	return true;
}

static bool has_enough(const struct ll_regime *regime, const struct ll_regime_job *jobs)
{
	for (size_t i = 0; i < regime->count; i++) {
		if (jobs[i].completed - regime->jobs[i].from_completed < LL_REGIME_ENOUGH)
			return false;
	}
	return true;
}

static void begin_measuring(struct ll_regime *regime, const struct ll_regime_job *jobs, uint64_t now_ns)
{
	regime->moves |= LL_REGIME_MOVE_MEASURES;
	regime->measured_ns = now_ns;
	for (size_t i = 0; i < regime->count; i++) {
		regime->jobs[i].from_completed = jobs[i].completed;
		regime->jobs[i].from_visited_ns = jobs[i].visited_ns;
	}
}

static void add_block(struct ll_regime *regime, const struct ll_regime_job *jobs, uint64_t now_ns)
{
	regime->moves |= LL_REGIME_MOVE_BLOCK;
	int way = way_of_block(regime);
	uint64_t lasted_ns = now_ns > regime->measured_ns ? now_ns - regime->measured_ns : 0;
	regime->seconds[way] += (double)lasted_ns / NS_PER_S;
	for (size_t i = 0; i < regime->count; i++) {
		struct ll_regime_tried *tried = &regime->jobs[i];
		tried->done[way] += (double)(jobs[i].completed - tried->from_completed);
		if (way == VISITS)
			tried->visited_s += (double)(jobs[i].visited_ns - tried->from_visited_ns) / NS_PER_S;
	}
}

/* ---- the verdict ---- */

static double rate_of(const struct ll_regime *regime, const struct ll_regime_tried *tried, int way)
{
	double done = tried->done[way] > NEXT_TO_NONE ? tried->done[way] : NEXT_TO_NONE;
	return done / regime->seconds[way];
}

/* Returns the job's share of its speed alone. That speed is unknown if the job was not visited. */
static double owed_of(const struct ll_regime_tried *tried, double part)
{
	return tried->visited_s > 0 ? part * tried->done[VISITS] / tried->visited_s : INFINITY;
}

/* If a job is visited for less than its share, its host limits it: it has no more work for the card. Its speed alone is
 * then lower than its speed in a visit, and at most HOST_LIMITED times its speed in the better way. */
#define LEAVES_SOME 0.9
#define HOST_LIMITED 1.5

static double surely_owed_of(const struct ll_regime *regime, const struct ll_regime_tried *tried, double part)
{
	double better = fmax(rate_of(regime, tried, SLICES), rate_of(regime, tried, VISITS));
	bool leaves_some = tried->visited_s < LEAVES_SOME * part * regime->seconds[VISITS];
	double owed = owed_of(tried, part);
	return leaves_some ? fmin(owed, part * HOST_LIMITED * better) : owed;
}

/* Whether the job has, by visits, its speed by slices or its due. One visit more or less at the end of a block must not
 * count. The tolerance is one visit in one of two blocks, or in both if the user asked for shares, because a share may
 * then be small. */
static bool has_its_share(const struct ll_regime *regime, const struct ll_regime_tried *tried, double part,
			  bool is_asked)
{
	double slices = rate_of(regime, tried, SLICES), visits = rate_of(regime, tried, VISITS);
	double owed = surely_owed_of(regime, tried, part), by_chance = 0;
	unsigned visits_by_chance = is_asked ? 2 : 1;
	if (tried->visited_s > 0)
		by_chance = owed / part * visits_by_chance * LL_VISIT_QUANTUM_NS / NS_PER_S / regime->seconds[VISITS];
	return visits + by_chance >= LL_REGIME_LEAST * fmin(slices, owed);
}

/* Whether the job has less than its due by slices, and more by visits. */
static bool is_helped(const struct ll_regime *regime, const struct ll_regime_tried *tried, double part)
{
	double slices = rate_of(regime, tried, SLICES), visits = rate_of(regime, tried, VISITS);
	return slices * LL_REGIME_MORE < owed_of(tried, part) && visits > slices * LL_REGIME_MORE;
}

static bool has_worked(const struct ll_regime_tried *tried)
{
	return tried->done[SLICES] > 0 || tried->done[VISITS] > 0;
}

static double sum_weights(const struct ll_regime *regime, const struct ll_regime_job *jobs)
{
	double sum = 0;
	for (size_t i = 0; i < regime->count; i++)
		sum += has_worked(&regime->jobs[i]) ? jobs[i].weight_permille : 0;
	return sum;
}

static bool visits_pay(struct ll_regime *regime, const struct ll_regime_job *jobs, double least_gain)
{
	double gain = 0, weights = sum_weights(regime, jobs);
	bool have_shares = weights > 0, is_one_helped = false, is_asked = ll_regime_is_asked(jobs, regime->count);
	for (size_t i = 0; i < regime->count; i++) {
		const struct ll_regime_tried *tried = &regime->jobs[i];
		if (!has_worked(tried))
			continue;
		double part = jobs[i].weight_permille / weights;
		gain += part * log(rate_of(regime, tried, VISITS) / rate_of(regime, tried, SLICES));
		have_shares = have_shares && has_its_share(regime, tried, part, is_asked);
		is_one_helped |= is_helped(regime, tried, part);
	}
	regime->mix->gain = gain;
	return have_shares && (gain >= least_gain || (is_asked && is_one_helped));
}

/* Whether the gain may be real but cannot be told from noise after so few blocks. */
static bool is_in_doubt(struct ll_regime *regime, const struct ll_regime_job *jobs)
{
	return regime->block == BLOCKS && !visits_pay(regime, jobs, LL_REGIME_GAIN) &&
	       visits_pay(regime, jobs, LL_REGIME_GAIN_LONG);
}

struct ll_regime_rates ll_regime_rates_of(const struct ll_regime *regime, size_t index)
{
	const struct ll_regime_tried *tried = &regime->jobs[index];
	double alone = owed_of(tried, 1);
	return (struct ll_regime_rates){.slices = tried->done[SLICES] / regime->seconds[SLICES],
					.visits = tried->done[VISITS] / regime->seconds[VISITS],
					.alone = isfinite(alone) ? alone : 0};
}

/* ---- a step ---- */

static void give_up_too_deep(struct ll_regime *regime, uint64_t now_ns)
{
	end_trial(regime, regime->was_visits, LL_REGIME_TOO_DEEP, now_ns);
	regime->moves |= LL_REGIME_MOVE_GIVES_UP;
}

static void go_on_trying(struct ll_regime *regime, const struct ll_regime_job *jobs, uint64_t now_ns)
{
	bool is_asked = ll_regime_is_asked(jobs, regime->count);
	regime->due_ns = now_ns + LOOK_NS;
	if (!regime->measured_ns) {
		uint64_t most_ns = is_asked ? LL_REGIME_DRAIN_ASKED_NS : LL_REGIME_DRAIN_NS;
		if (!regime->drained_ns && is_drained(regime, jobs)) {
			regime->drained_ns = now_ns;
			regime->is_drained = regime->gives_visits;
			regime->moves |= LL_REGIME_MOVE_DRAINED;
		}
		uint64_t skip_ns = is_asked && regime->gives_visits ? LL_REGIME_SKIP_ASKED_NS : LL_REGIME_SKIP_NS;
		if (regime->drained_ns && now_ns - regime->drained_ns >= skip_ns)
			begin_measuring(regime, jobs, now_ns);
		else if (now_ns - regime->block_ns > most_ns)
			give_up_too_deep(regime, now_ns);
		return;
	}
	uint64_t measured_ns = now_ns - regime->measured_ns;
	uint64_t least_ns = is_asked ? LL_REGIME_BLOCK_ASKED_NS : LL_REGIME_BLOCK_NS;
	if (measured_ns < least_ns || (measured_ns < LL_REGIME_BLOCK_MOST_NS && !has_enough(regime, jobs)))
		return;
	add_block(regime, jobs, now_ns);
	if (++regime->block % BLOCKS || is_in_doubt(regime, jobs)) {
		begin_block(regime, jobs, now_ns);
		return;
	}
	bool is_good = visits_pay(regime, jobs, regime->block > BLOCKS ? LL_REGIME_GAIN_LONG : LL_REGIME_GAIN);
	end_trial(regime, is_good, is_good ? LL_REGIME_PAYS : LL_REGIME_PAYS_NOT, now_ns);
	regime->gives_visits = is_good;
	regime->moves |= LL_REGIME_MOVE_VERDICT;
}

/* The sum does not depend on the number of steps in which it is earned. So steps that change nothing else may be left
 * out. */
static void earn_credit(struct ll_regime *regime, uint64_t now_ns)
{
	if (!regime->credit_at_ns)
		regime->credit_ns = LL_REGIME_CREDIT_NS;
	else
		regime->credit_ns +=
		    (int64_t)(now_ns / LL_REGIME_CREDIT_PART - regime->credit_at_ns / LL_REGIME_CREDIT_PART);
	if (regime->credit_ns > LL_REGIME_CREDIT_NS)
		regime->credit_ns = LL_REGIME_CREDIT_NS;
	regime->credit_at_ns = now_ns;
}

static bool are_same_jobs(const struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count)
{
	bool are_same = regime->count == count;
	for (size_t i = 0; are_same && i < count; i++)
		are_same = regime->jobs[i].id == jobs[i].id && jobs[i].completed >= regime->jobs[i].from_completed;
	return are_same;
}

/* Returns the earliest time of the next measurement. */
static uint64_t trial_due_ns(const struct ll_regime *regime, bool is_asked, uint64_t now_ns)
{
	if (is_asked && !regime->mix->tries)
		return regime->mix->next_ns;
	int64_t lacks_ns = LL_REGIME_CREDIT_NS / 2 - regime->credit_ns;
	uint64_t paid_ns = lacks_ns > 0 ? now_ns + (uint64_t)lacks_ns * LL_REGIME_CREDIT_PART : now_ns;
	return paid_ns > regime->mix->next_ns ? paid_ns : regime->mix->next_ns;
}

/* Sets how the card is shared, without a measurement. */
static void decide_without(struct ll_regime *regime, bool gives_visits, enum ll_regime_why why)
{
	if (regime->is_trying)
		give_up(regime);
	regime->mix = NULL;
	regime->new_mix = 0;
	regime->gives_visits = gives_visits;
	regime->why = why;
	regime->due_ns = UINT64_MAX;
}

static void go_on_known(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns)
{
	regime->gives_visits = regime->mix->gives_visits;
	regime->due_ns = trial_due_ns(regime, ll_regime_is_asked(jobs, count), now_ns);
	if (regime->due_ns > now_ns)
		return;
	begin_trial(regime, jobs, count, now_ns);
	regime->due_ns = now_ns + LOOK_NS;
}

static void take_step(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns)
{
	earn_credit(regime, now_ns);
	if (!ll_regime_has_reason(jobs, count)) {
		decide_without(regime, false, LL_REGIME_NO_REASON);
		return;
	}
	if (count > LL_REGIME_JOBS) {
		decide_without(regime, true, LL_REGIME_TOO_MANY);
		return;
	}
	const struct ll_regime_mix *former = regime->mix;
	know_mix(regime, number_of_mix(jobs, count), now_ns);
	if (regime->is_trying && (regime->mix != former || !are_same_jobs(regime, jobs, count)))
		give_up(regime);
	if (regime->is_trying)
		go_on_trying(regime, jobs, now_ns);
	else if (regime->mix)
		go_on_known(regime, jobs, count, now_ns);
	else
		regime->due_ns = regime->new_mix_ns + LL_REGIME_SETTLE_NS;
	regime->why = regime->is_trying ? LL_REGIME_MEASURES : regime->mix ? regime->mix->why : LL_REGIME_NOT_MEASURED;
	regime->gain = regime->mix ? regime->mix->gain : 0;
}

void ll_regime_step(struct ll_regime *regime, const struct ll_regime_job *jobs, size_t count, uint64_t now_ns)
{
	bool gave_visits = regime->gives_visits;
	enum ll_regime_why why = regime->why;
	double gain = regime->gain;
	regime->is_drained = false;
	regime->moves = 0;
	take_step(regime, jobs, count, now_ns);
	bool is_same = regime->gives_visits == gave_visits && regime->why == why && regime->gain == gain;
	regime->moves |= is_same ? 0 : LL_REGIME_MOVE_OUTPUT;
}
