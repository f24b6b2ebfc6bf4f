/* Writes the decision for a claim: its orders, its gate, and the wake-up. */
#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "daemon/arbiter/decide.h"

#define COMPANY_NS (500 * LL_NS_PER_MS)

static uint32_t flag_if(bool is_set, enum ll_order_flag flag)
{
	return is_set ? flag : 0;
}

static uint32_t flags_of(const struct ll_share_claim *claim, uint64_t now_ns)
{
	const struct ll_turn_look *look = &claim->look;
	bool is_free = !claim->want_since_ns && ll_share_is_free(claim, now_ns);
	return flag_if(look->may_launch, LL_ORDER_MAY_LAUNCH) | flag_if(look->is_alone, LL_ORDER_IS_ALONE) |
	       flag_if(look->is_sliced, LL_ORDER_IS_SLICED) | flag_if(look->is_above, LL_ORDER_IS_ABOVE) |
	       flag_if(ll_share_has_turn(claim), LL_ORDER_IS_HOLDER) |
	       flag_if(look->is_exclusive, LL_ORDER_IS_EXCLUSIVE) |
	       flag_if(claim->ending_since_ns, LL_ORDER_IS_ENDING) | flag_if(claim->paused_since_ns, LL_ORDER_PAUSED) |
	       flag_if(is_free, LL_ORDER_IS_FREE) | flag_if(claim->gang.yields_to_gang, LL_ORDER_YIELDS_TO_GANG) |
	       flag_if(claim->gang.is_ending, LL_ORDER_GANG_IS_ENDING);
}

/* Longer than any period of windows, so a loadlined that takes over knows it (ll_card_claim_add). */
static const struct ll_card_time off = {.period_ns = LL_CARD_SUSPENDED_NS};

static struct ll_card_told find_told(const struct ll_card_claim *claim, uint64_t now_ns)
{
	const struct ll_turn_look *look = &claim->share.look;
	return (struct ll_card_told){
	    .post = claim->post,
	    .flags = flags_of(&claim->share, now_ns),
	    .waiting = look->waiting_claims,
	    .sharing = look->sharing,
	    .awaited_launches = look->awaited.launches,
	    .awaited_ns = look->awaited.seen_ns,
	    .gang_launches = claim->share.gang.work.launches,
	    .gang_ns = claim->share.gang.work.seen_ns,
	    .turn_since_ns = look->turn_since_ns,
	    .tokens_ns = look->tokens_ns,
	    .tokens_most_ns = look->tokens_most_ns,
	    .tokens_at_ns = look->tokens_at_ns,
	    .charged_ns = look->tokens_at_ns ? claim->job->charged_ns + 1 : 0,
	    .queue_bound_ns = look->queue_bound_ns,
	    .time = claim->is_suspended ? off : claim->share.job->time,
	};
}

#define STORE(field) atomic_store_explicit(&orders->field, told->field, memory_order_relaxed)

/* The sequence is odd already if a daemon was killed while it wrote. */
static void write_orders(struct ll_orders_slot *orders, const struct ll_card_told *told)
{
	uint32_t odd = atomic_load_explicit(&orders->sequence, memory_order_relaxed) | 1;
	atomic_store_explicit(&orders->sequence, odd, memory_order_relaxed);
	atomic_thread_fence(memory_order_release);
	STORE(flags);
	STORE(waiting);
	STORE(sharing);
	STORE(awaited_launches);
	STORE(awaited_ns);
	STORE(gang_launches);
	STORE(gang_ns);
	STORE(turn_since_ns);
	STORE(tokens_ns);
	STORE(tokens_most_ns);
	STORE(tokens_at_ns);
	STORE(charged_ns);
	STORE(queue_bound_ns);
	const struct ll_card_time *time = &told->time;
	atomic_store_explicit(&orders->window_us, (uint32_t)(time->window_ns / LL_NS_PER_US), memory_order_relaxed);
	atomic_store_explicit(&orders->window_period_us, (uint32_t)(time->period_ns / LL_NS_PER_US),
			      memory_order_relaxed);
	atomic_store_explicit(&orders->window_from_ns, time->from_ns, memory_order_relaxed);
	atomic_store_explicit(&orders->slice_us, time->slice_us, memory_order_relaxed);
	STORE(post);
	atomic_store(&orders->sequence, odd + 1);
}

static bool is_same(const struct ll_card_told *a, const struct ll_card_told *b)
{
	return a->post == b->post && a->flags == b->flags && a->waiting == b->waiting && a->sharing == b->sharing &&
	       a->awaited_launches == b->awaited_launches && a->awaited_ns == b->awaited_ns &&
	       a->gang_launches == b->gang_launches && a->gang_ns == b->gang_ns &&
	       a->turn_since_ns == b->turn_since_ns && a->tokens_ns == b->tokens_ns &&
	       a->tokens_most_ns == b->tokens_most_ns && a->tokens_at_ns == b->tokens_at_ns &&
	       a->charged_ns == b->charged_ns && a->queue_bound_ns == b->queue_bound_ns &&
	       ll_card_time_is_same(&a->time, &b->time);
}

/* Whether a thread of the process may wait for the change. Amounts and times can wait until its next look. A process
 * that wants nothing waits for nothing. */
static bool is_awaited(const struct ll_card_claim *claim, const struct ll_card_told *told)
{
	const struct ll_card_told *before = &claim->told;
	if (!claim->share.want_since_ns)
		return false;
	bool is_reply = told->post != before->post &&
			(claim->want_ns != claim->told_want_ns || !(told->flags & LL_ORDER_MAY_LAUNCH));
	return is_reply || !claim->has_told || told->flags != before->flags || told->waiting != before->waiting ||
	       told->queue_bound_ns != before->queue_bound_ns || told->awaited_launches != before->awaited_launches ||
	       told->gang_launches != before->gang_launches;
}

/* The program opens its gate before it reads its orders, and the orders are written before this read of the gate. So at
 * least one of the two sees the other's change. */
static bool shut_gate(struct ll_page_slot *slot, uint32_t flags)
{
	bool may_be_open = flags & (LL_ORDER_IS_ALONE | LL_ORDER_IS_FREE);
	if (may_be_open || atomic_load(&slot->gate) == LL_GATE_SHUT)
		return false;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	return true;
}

static bool is_bound(const struct ll_card_claim *claim, const struct ll_card_told *told)
{
	if (ll_card_time_is_ordered(&told->time))
		return true;
	bool is_sliced = told->flags & LL_ORDER_IS_SLICED && told->flags & LL_ORDER_MAY_LAUNCH &&
			 !told->queue_bound_ns && told->tokens_most_ns == INT64_MAX;
	return claim->share.want_since_ns && !(told->flags & LL_ORDER_IS_ALONE) && !is_sliced;
}

void ll_card_tell(struct ll_card_claim *claim, uint64_t now_ns)
{
	struct ll_page_slot *slot = &claim->job->page->slots[claim->slot];
	struct ll_card_told told = find_told(claim, now_ns);
	bool wakes = false;
	bool is_new_time = !claim->has_told || !ll_card_time_is_same(&told.time, &claim->told.time);
	if (told.sharing) { /* the process follows the trace for a while after its last company */
		is_new_time |= now_ns - claim->company_ns > COMPANY_NS;
		claim->company_ns = now_ns;
	}
	if (!claim->has_told || !is_same(&told, &claim->told)) {
		write_orders(&claim->job->orders->slots[claim->slot], &told);
		wakes = is_awaited(claim, &told);
	}
	wakes |= shut_gate(slot, told.flags);
	claim->is_bound = is_bound(claim, &told);
	claim->told_want_ns = claim->want_ns;
	claim->has_told = true;
	claim->told = told;
	if (wakes)
		ll_page_wake(&slot->wake_count);
	if (is_new_time)
		ll_page_wake(&claim->job->orders->wake_count);
}

void ll_card_untell(struct ll_card_claim *claim)
{
	const struct ll_card_told nothing = {0};
	write_orders(&claim->job->orders->slots[claim->slot], &nothing);
}

static bool has_bound(const struct ll_share_job *job)
{
	LL_SHARE_EACH_OF(job, claim)
	{
		if (ll_card_claim_of(claim)->is_bound)
			return true;
	}
	return false;
}

bool ll_card_beat(struct ll_served_card *card, uint64_t now_ns)
{
	bool is_due = now_ns - card->beat_ns >= LL_BEAT_NS, has_any = false;
	for (struct ll_share_job *job = card->share.jobs; job; job = job->next) {
		if (!has_bound(job))
			continue;
		has_any = true;
		if (is_due)
			atomic_fetch_add(&ll_card_job_of(job)->orders->beat, 1);
	}
	if (is_due)
		card->beat_ns = now_ns;
	return has_any;
}
