#include "rules/share/lever.h"

#include <math.h>

#define NS_PER_S 1e9
/* Time constants: of the sums of a gauge, in seconds of work; of `busy`, in seconds. */
#define MEMORY_S 5.0
#define BUSY_MEMORY_S 10.0
/* Launches that were queued when a phase began are completed after this. */
#define SKIP_NS UINT64_C(2000000)
/* The part is checked after this many seconds of work, and moves by this fraction towards the needed part. The time
 * constant is 2.5 s of work. */
#define WEIGH_EACH_S 0.25
#define STEP 0.1
/* A speed is known after this time and this many launches. */
#define ENOUGH_S 0.04
#define ENOUGH_LAUNCHES 20
/* The part while it is unknown: both speeds are measured soon. */
#define UNKNOWN_PART 0.5
/* If holding for all of the time gains less than 0.12, which is 0.03 for each quarter, it is useless. */
#define USELESS 0.88
/* Work that was sparse counts as dense from here on. */
#define DENSE (1.2 * LL_LEVER_SPARSE)
#define PENDING_STEP 0.25

/* ---- the speeds of a job ---- */

static bool has_enough(const struct ll_lever_gauge *gauge)
{
	return gauge->seconds[LL_LEVER_HELD] >= ENOUGH_S && gauge->seconds[LL_LEVER_OPEN] >= ENOUGH_S &&
	       gauge->launches[LL_LEVER_HELD] >= ENOUGH_LAUNCHES;
}

double ll_lever_open_speed(const struct ll_lever_gauge *gauge)
{
	if (!has_enough(gauge))
		return 0;
	double open = gauge->launches[LL_LEVER_OPEN] / gauge->seconds[LL_LEVER_OPEN];
	return open * gauge->seconds[LL_LEVER_HELD] / gauge->launches[LL_LEVER_HELD];
}

void ll_lever_forget_open(struct ll_lever_gauge *gauge)
{
	gauge->launches[LL_LEVER_OPEN] = gauge->seconds[LL_LEVER_OPEN] = 0;
	gauge->all_launches = gauge->all_seconds[LL_LEVER_OPEN] = gauge->all_seconds[LL_LEVER_HELD] = 0;
}

double ll_lever_loss(const struct ll_lever_gauge *gauge)
{
	double seconds = gauge->all_seconds[LL_LEVER_OPEN] + gauge->all_seconds[LL_LEVER_HELD];
	if (!has_enough(gauge) || seconds <= 0)
		return 0;
	double held = gauge->launches[LL_LEVER_HELD] / gauge->seconds[LL_LEVER_HELD];
	double expected =
	    gauge->all_seconds[LL_LEVER_HELD] + ll_lever_open_speed(gauge) * gauge->all_seconds[LL_LEVER_OPEN];
	return fmax((expected - gauge->all_launches / held) / seconds, 0);
}

double ll_lever_slowdown(const struct ll_lever *lever, const struct ll_lever_gauge *gauge)
{
	if (!has_enough(gauge))
		return 0;
	return 1 / (lever->part + (1 - lever->part) * ll_lever_open_speed(gauge));
}

static void forget_some(struct ll_lever_gauge *gauge, double seconds)
{
	double keep = exp(-seconds / MEMORY_S);
	for (int way = LL_LEVER_OPEN; way <= LL_LEVER_HELD; way++) {
		gauge->launches[way] *= keep;
		gauge->seconds[way] *= keep;
		gauge->all_seconds[way] *= keep;
	}
	gauge->all_launches *= keep;
}

/* Adds what the job has done since the last step. */
static void note_job(const struct ll_lever *lever, const struct ll_lever_job *job, bool has_beneath, uint64_t now_ns)
{
	struct ll_lever_gauge *gauge = job->gauge;
	bool is_first = !gauge->seen_ns || job->completed < gauge->seen_completed;
	uint64_t launches = is_first ? 0 : job->completed - gauge->seen_completed;
	uint64_t since_work_ns = gauge->worked_ns ? now_ns - gauge->worked_ns : 0;
	bool counts = !is_first && has_beneath && gauge->seen_ns >= lever->phase_ns + SKIP_NS;
	if (job->has_work || gauge->had_work) {
		bool goes_on = gauge->had_work || since_work_ns <= LL_LEVER_GAP_NS;
		double seconds = goes_on ? (double)since_work_ns / NS_PER_S : 0;
		if (!is_first && has_beneath) {
			forget_some(gauge, seconds);
			gauge->all_launches += (double)launches;
			gauge->all_seconds[lever->phase] += seconds;
		}
		if (counts) {
			gauge->launches[lever->phase] += (double)launches;
			gauge->seconds[lever->phase] += seconds;
		}
		gauge->worked_ns = now_ns;
	}
	gauge->had_work = job->has_work;
	gauge->seen_completed = job->completed;
	gauge->seen_ns = now_ns;
}

/* ---- the part ---- */

static double limit_part(double part)
{
	return fmin(fmax(part, LL_LEVER_LEAST), LL_LEVER_MOST);
}

static double needed_by(const struct ll_lever *lever, const struct ll_lever_job *job)
{
	double open = ll_lever_open_speed(job->gauge), wanted = job->slowdown_permille / 1000.0;
	if (open >= USELESS)
		return LL_LEVER_LEAST;
	if (lever->is_known && fabs(ll_lever_slowdown(lever, job->gauge) / wanted - 1) <= LL_LEVER_DEAD_BAND)
		return lever->part;
	return limit_part((1 / wanted - open) / (1 - open));
}

static enum ll_lever_move weigh_lever(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count)
{
	double needed = 0, from = lever->part;
	bool was_known = lever->is_known;
	for (size_t i = 0; i < count; i++) {
		if (has_enough(jobs[i].gauge))
			needed = fmax(needed, needed_by(lever, &jobs[i]));
	}
	if (needed <= 0)
		return LL_LEVER_MOVE_UNSEEN;
	lever->part = was_known ? limit_part(from + STEP * (needed - from)) : needed;
	lever->is_known = true;
	if (!was_known)
		return LL_LEVER_MOVE_FOUND;
	return fabs(lever->part - from) > 0 ? LL_LEVER_MOVE_MENDED : LL_LEVER_MOVE_STAYS;
}

/* At part 1, as with sparse work, the speed with lower classes cannot be measured. At part 0, as a user may force it,
 * the other speed cannot. So in both cases the part starts again at UNKNOWN_PART. */
static enum ll_lever_move tend_part(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count)
{
	bool was_one_way = lever->part >= 1 || lever->part <= 0;
	if (lever->is_forced) {
		lever->is_known = false;
		return LL_LEVER_MOVE_NONE;
	}
	if (lever->busy < (was_one_way ? DENSE : LL_LEVER_SPARSE)) {
		lever->part = 1;
		lever->is_known = false;
		return LL_LEVER_MOVE_SPARSE;
	}
	if (was_one_way) {
		lever->part = UNKNOWN_PART;
		lever->left_ns = 0;
	}
	if (lever->weighed_s < WEIGH_EACH_S)
		return was_one_way ? LL_LEVER_MOVE_DENSE : LL_LEVER_MOVE_NONE;
	lever->weighed_s = 0;
	enum ll_lever_move move = weigh_lever(lever, jobs, count);
	return was_one_way && move == LL_LEVER_MOVE_UNSEEN ? LL_LEVER_MOVE_DENSE : move;
}

static void choose_part(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count)
{
	struct ll_lever_choice choice = {
	    .from_part = lever->part, .busy = lever->busy, .weighed_s = lever->weighed_s, .was_known = lever->is_known};
	choice.move = tend_part(lever, jobs, count);
	choice.part = lever->part;
	lever->choice = choice;
}

/* ---- phases ---- */

static double length_of(const struct ll_lever *lever, enum ll_lever_way phase)
{
	double smaller = fmin(lever->part, 1 - lever->part);
	double side_ns = fmax((double)LL_LEVER_SIDE_NS, 2 * lever->pending_ns);
	double period_ns = fmax((double)LL_LEVER_PERIOD_NS, side_ns / fmax(smaller, LL_LEVER_LEAST));
	return period_ns * (phase == LL_LEVER_HELD ? lever->part : 1 - lever->part);
}

/* Subtracts the elapsed time with work from the phase. */
static void pass_time(struct ll_lever *lever, double worked_ns, uint64_t now_ns)
{
	lever->left_ns -= worked_ns;
	if (lever->left_ns > 0)
		return;
	bool is_next_held = lever->part >= 1 || (lever->part > 0 && lever->phase == LL_LEVER_OPEN);
	enum ll_lever_way next = is_next_held ? LL_LEVER_HELD : LL_LEVER_OPEN;
	if (next != lever->phase)
		lever->phase_ns = lever->turned_ns = now_ns;
	lever->phase = next;
	lever->left_ns = length_of(lever, next);
}

/* Moves the start of the phase as long as what was decided is not in force. */
static bool is_phase_pending(struct ll_lever *lever, uint64_t now_ns)
{
	uint64_t since_ns = now_ns - lever->turned_ns;
	bool was_pending = lever->is_waiting;
	lever->is_waiting = lever->is_pending && since_ns < LL_LEVER_PENDING_MOST_NS;
	if (lever->is_waiting)
		lever->phase_ns = now_ns;
	else if (was_pending)
		lever->pending_ns += PENDING_STEP * ((double)(lever->phase_ns - lever->turned_ns) - lever->pending_ns);
	return lever->is_waiting;
}

static void note_busy(struct ll_lever *lever, double worked_ns, double passed_ns)
{
	double keep = exp(-passed_ns / NS_PER_S / BUSY_MEMORY_S);
	lever->busy = lever->busy * keep + (passed_ns > 0 ? (1 - keep) * worked_ns / passed_ns : 0);
}

/* ---- a step ---- */

static bool has_any_work(const struct ll_lever_job *jobs, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		if (jobs[i].has_work)
			return true;
	}
	return false;
}

static void plan_next_step(struct ll_lever *lever, bool has_work, bool has_beneath, uint64_t now_ns)
{
	lever->due_ns = UINT64_MAX;
	if (!has_beneath)
		return;
	uint64_t seen_ns = lever->phase_ns + SKIP_NS; /* launches that complete after this count */
	uint64_t next_ns = now_ns + (uint64_t)fmax(lever->left_ns, 1);
	if (lever->is_waiting)
		lever->due_ns = now_ns + LL_LEVER_PENDING_LOOK_NS;
	else if (has_work)
		lever->due_ns = now_ns < seen_ns && seen_ns < next_ns ? seen_ns : next_ns;
	else if (lever->is_held)
		lever->due_ns = lever->worked_ns + LL_LEVER_HOLD_AFTER_NS;
}

void ll_lever_step(struct ll_lever *lever, const struct ll_lever_job *jobs, size_t count, bool has_beneath,
		   uint64_t now_ns)
{
	bool has_work = has_any_work(jobs, count);
	double passed_ns = lever->stepped_ns ? (double)(now_ns - lever->stepped_ns) : 0;
	double worked_ns = lever->had_work ? passed_ns : 0;
	bool is_pending = is_phase_pending(lever, now_ns);
	for (size_t i = 0; i < count; i++)
		note_job(lever, &jobs[i], has_beneath, now_ns);
	note_busy(lever, worked_ns, passed_ns);
	lever->weighed_s += has_beneath ? worked_ns / NS_PER_S : 0;
	choose_part(lever, jobs, count);
	if (!is_pending)
		pass_time(lever, worked_ns, now_ns);
	lever->stepped_ns = now_ns;
	if (has_work || lever->had_work)
		lever->worked_ns = now_ns;
	lever->had_work = has_work;
	bool is_after_work = lever->worked_ns && now_ns - lever->worked_ns < LL_LEVER_HOLD_AFTER_NS;
	lever->is_held = has_beneath && count && lever->phase == LL_LEVER_HELD && (has_work || is_after_work);
	plan_next_step(lever, has_work, has_beneath, now_ns);
}
