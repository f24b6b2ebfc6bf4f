#include "control/holder.h"

#include "control/visits.h"

static struct ll_holder_verdict keep_turn(const struct ll_holder *holder)
{
	return (struct ll_holder_verdict){.act = LL_HOLDER_KEEPS, .may_launch = holder->self->has_tokens};
}

static struct ll_visit_contender as_visited(const struct ll_turn_contender *contender)
{
	return (struct ll_visit_contender){
	    .rank = contender->rank,
	    .weight_permille = contender->weight_permille,
	    .virtual_ns = contender->virtual_ns,
	    .has_work = true,
	    .launches_ahead = contender->launches_ahead,
	    .runs_dry = contender->ran_dry,
	};
}

static bool is_visit_over(const struct ll_holder *holder, const struct ll_turn_contender *best)
{
	struct ll_visit_contender visited = as_visited(holder->self), other = as_visited(best);
	visited.has_work = !holder->is_dry || holder->has_busy_sibling;
	uint64_t dry_ns = visited.has_work ? 0 : holder->dry_ns;
	uint64_t held_ns = holder->held_ns;
	return !holder->self->has_tokens || ll_turns_is_impatient(best, holder->self) ||
	       ll_visits_end_ns(&visited, &other, held_ns, dry_ns < held_ns ? dry_ns : held_ns) <= held_ns;
}

/* The holder would launch by now if it had anything to launch. */
static bool is_out_of_work(const struct ll_holder *holder)
{
	return holder->is_dry && holder->dry_ns >= LL_VISIT_GRACE_WAITS_NS;
}

/* A long launch would run in slices with the next visitor's work. */
static struct ll_holder_verdict decide_visit(const struct ll_holder *holder, const struct ll_turn_contender *others,
					     size_t count, size_t best)
{
	bool is_served = holder->is_promoted && holder->held_ns < LL_TURN_SERVICE_NS && !is_out_of_work(holder);
	if (is_served || !is_visit_over(holder, &others[best]))
		return keep_turn(holder);
	if (holder->is_lingering && holder->draining_ns < LL_TURN_DRAIN_NS)
		return (struct ll_holder_verdict){.act = LL_HOLDER_DRAINS};
	return (struct ll_holder_verdict){
	    .act = LL_HOLDER_GIVES,
	    .next = best,
	    .is_service = ll_turns_is_service(is_out_of_work(holder) ? NULL : holder->self, others, count, best),
	    .is_visit = true,
	    .ran_dry = holder->is_dry && holder->self->launches_ahead,
	    .loses_credit = holder->is_dry,
	    .is_paused = is_out_of_work(holder) && holder->self->rank < others[best].rank,
	};
}

/* Work on another card may wait for what is left here. */
static bool is_drained(const struct ll_holder *holder)
{
	return holder->had_work_elsewhere ? !holder->queued_ns && !holder->has_work_elsewhere
					  : holder->queued_ns <= LL_TURN_DRAINED_NS;
}

static struct ll_holder_verdict decide_turn(const struct ll_holder *holder, const struct ll_turn_contender *others,
					    size_t count, size_t best)
{
	if (!holder->yields_to_gang &&
	    !ll_turns_gives_way(holder->self, &others[best], holder->held_ns, holder->is_promoted))
		return keep_turn(holder);
	if (!is_drained(holder) && holder->draining_ns < LL_TURN_DRAIN_NS)
		return (struct ll_holder_verdict){.act = LL_HOLDER_DRAINS, .tells_cards = true};
	return (struct ll_holder_verdict){
	    .act = LL_HOLDER_GIVES,
	    .next = best,
	    .is_service = ll_turns_is_service(holder->self, others, count, best),
	};
}

struct ll_holder_verdict ll_holder_decide(const struct ll_holder *holder, const struct ll_turn_contender *others,
					  size_t count)
{
	size_t best = ll_turns_best(others, count);
	if (best == count)
		return keep_turn(holder);
	return holder->self->waits_on_card ? decide_visit(holder, others, count, best)
					   : decide_turn(holder, others, count, best);
}
