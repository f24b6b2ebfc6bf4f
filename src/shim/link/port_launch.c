/*
 * The launch part of the port (port.h): a process writes its state into its slot (a post), and reads its orders.
 *
 * The process sends WAKE only when loadlined must decide again, and not at each look. If a process begins to want the
 * card, its launches are held until loadlined has read the post, some 20 us later. They are not held if its orders have
 * LL_ORDER_IS_FREE. loadlined first writes the orders and then shuts the gate. So after a process has opened its gate,
 * it reads the orders again, and shuts the gate if they have changed.
 */
#include "base/clock.h"
#include "protocol/accounts.h"
#include "shim/link/link.h"
#include "shim/link/port.h"

enum { READ_TRIES = 1000, PERMILLE = 1000 };

/* A loadlined that works replies to a post within this time. */
#define HEARD_NS (20 * LL_NS_PER_MS)

/* The longest time for which the filling of an account is computed. */
#define LONGEST_NS UINT64_C(3600000000000)

/* ---- posts ---- */

/* Posts a change about which loadlined must decide. The count is kept in the claim, because other processes may damage
 * the copy in the page. */
static void write_post(struct ll_claim *claim, struct ll_page_slot *slot, uint64_t now_ns)
{
	atomic_store(&slot->post, ++claim->posts);
	claim->posted_ns = now_ns;
	ll_claim_wake_daemon(claim);
}

static bool set_flags(struct ll_claim *claim, struct ll_page_slot *slot, uint32_t flags)
{
	bool is_new = claim->posted_flags != flags;
	claim->posted_flags = flags;
	atomic_store_explicit(&slot->post_flags, flags, memory_order_relaxed);
	return is_new;
}

void ll_port_set_launch_mode(struct ll_claim *claim, enum ll_launch_mode launch_mode)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot && atomic_exchange(&slot->launch_mode, launch_mode) != launch_mode)
		write_post(claim, slot, ll_now_ns());
}

void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	uint32_t others = claim->posted_flags & ~(uint32_t)LL_POST_ON_CARD;
	if (slot && set_flags(claim, slot, others | (waits ? LL_POST_ON_CARD : 0U)))
		write_post(claim, slot, ll_now_ns());
}

void ll_port_want(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot || atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed))
		return;
	uint64_t page_ns = ll_claim_page_ns(claim, now_ns);
	atomic_store_explicit(&slot->activity_ns, LL_ACTIVITY_NOW, memory_order_relaxed);
	atomic_store_explicit(&slot->posted_ns, page_ns, memory_order_relaxed);
	atomic_store(&slot->want_since_ns, page_ns);
	atomic_store(&claim->want_post, claim->posts + 1);
	write_post(claim, slot, now_ns);
}

void ll_port_rest(struct ll_claim *claim, uint64_t now_ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot || !atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed))
		return;
	uint64_t page_ns = ll_claim_page_ns(claim, now_ns), want_since_ns = slot->want_since_ns;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	if (page_ns > want_since_ns)
		atomic_fetch_add_explicit(&slot->wanted_ns, page_ns - want_since_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_launches, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->running_ns, 0, memory_order_relaxed);
	atomic_store_explicit(&slot->activity_ns, page_ns, memory_order_relaxed);
	atomic_store(&slot->want_since_ns, 0);
	claim->posted_launches = 0;
	write_post(claim, slot, now_ns);
}

/* ---- orders ---- */

struct order {
	uint32_t sequence, post, flags, waiting, sharing, awaited_launches, gang_launches;
	uint64_t awaited_ns, turn_since_ns, tokens_at_ns, charged_ns, queue_bound_ns, gang_ns;
	int64_t tokens_ns, tokens_most_ns;
};

#define READ(field) atomic_load_explicit(&from->field, memory_order_relaxed)

/* Reads a consistent copy of the orders. If a loadlined was killed while it wrote, the sequence stays odd. Then the
 * function uses the last copy that it read. */
static void read_order(const struct ll_orders_slot *from, struct order *ret_order)
{
	for (int tries = 0; tries < READ_TRIES; tries++) {
		uint32_t before = atomic_load_explicit(&from->sequence, memory_order_acquire);
		*ret_order = (struct order){
		    .sequence = READ(sequence),
		    .post = READ(post),
		    .flags = READ(flags),
		    .waiting = READ(waiting),
		    .sharing = READ(sharing),
		    .awaited_launches = READ(awaited_launches),
		    .gang_launches = READ(gang_launches),
		    .awaited_ns = READ(awaited_ns),
		    .turn_since_ns = READ(turn_since_ns),
		    .tokens_at_ns = READ(tokens_at_ns),
		    .charged_ns = READ(charged_ns),
		    .queue_bound_ns = READ(queue_bound_ns),
		    .gang_ns = READ(gang_ns),
		    .tokens_ns = READ(tokens_ns),
		    .tokens_most_ns = READ(tokens_most_ns),
		};
		atomic_thread_fence(memory_order_acquire);
		if (before == atomic_load_explicit(&from->sequence, memory_order_relaxed) && !(before & 1))
			return;
	}
}

/* Returns whether loadlined has read that the process wants the card. */
static bool is_known(const struct ll_claim *claim, uint32_t ordered_post)
{
	return (int32_t)(ordered_post - atomic_load(&claim->want_post)) >= 0;
}

/* ---- looks ---- */

/* Handles a pause: the turn went to a lower class because this process had no work. If the process has launched since,
 * the caller has set paused_since_ns to 0. Returns the flag for the post. */
static uint32_t note_pause(struct ll_claim *claim, struct ll_turn *turn, uint32_t flags, uint64_t now_ns)
{
	bool is_paused = flags & LL_ORDER_PAUSED;
	bool has_launched = is_paused && claim->was_paused && !turn->paused_since_ns;
	if (!is_paused)
		turn->paused_since_ns = 0;
	else if (!claim->was_paused)
		turn->paused_since_ns = now_ns;
	claim->was_paused = is_paused;
	return has_launched ? LL_POST_LAUNCHED : 0;
}

static void post_changes(struct ll_claim *claim, struct ll_page_slot *slot, struct ll_turn *turn,
			 const struct order *order, uint64_t now_ns)
{
	bool is_closing = order->flags & (LL_ORDER_IS_ENDING | LL_ORDER_GANG_IS_ENDING | LL_ORDER_YIELDS_TO_GANG);
	bool is_drained = is_closing && claim->posted_launches && !turn->queued_launches;
	uint32_t before = claim->posted_flags;
	uint32_t launched = note_pause(claim, turn, order->flags, now_ns);
	uint32_t state =
	    (turn->queue_empty_since_ns ? LL_POST_QUEUE_EMPTY : 0U) | (turn->is_overrunning ? LL_POST_OVERRUNS : 0U);
	bool is_new = set_flags(claim, slot, (before & LL_POST_ON_CARD) | state | launched);
	/* whether loadlined must know at once that the queue became empty or is filled again */
	bool is_visited = order->waiting && !(order->flags & LL_ORDER_IS_SLICED);
	bool has_launched = launched && !(before & LL_POST_LAUNCHED);
	claim->posted_launches = turn->queued_launches;
	/* If there is no reply, the post is sent again, because a WAKE message or a count may have been lost. */
	bool is_unheard = claim->posts && !is_known(claim, order->post) && now_ns - claim->posted_ns >= HEARD_NS;
	if (is_drained || has_launched || is_unheard || (is_new && is_visited))
		write_post(claim, slot, now_ns);
}

/* Returns the present content of the cap's account: the last written value plus the earned time minus the used time. */
static int64_t tokens_now_ns(const struct ll_claim *claim, const struct order *order, uint64_t now_ns)
{
	struct ll_limits limits;
	uint64_t from_ns = ll_claim_own_ns(claim, order->tokens_at_ns);
	uint64_t elapsed_ns = now_ns > from_ns ? now_ns - from_ns : 0;
	if (!order->tokens_at_ns)
		return order->tokens_ns;
	ll_orders_read_limits(claim->pages->orders, &limits);
	elapsed_ns = elapsed_ns < LONGEST_NS ? elapsed_ns : LONGEST_NS;
	int64_t earned_ns = (int64_t)(elapsed_ns * limits.compute_permille / PERMILLE);
	/* What the job's processes have used since loadlined last wrote the account. It subtracts this at its next
	 * decision. */
	uint64_t count_ns = atomic_load_explicit(&claim->page_card->gpu_time_ns, memory_order_relaxed);
	uint64_t paid_ns = order->charged_ns - 1;
	int64_t unpaid_ns = order->charged_ns && count_ns > paid_ns ? (int64_t)(count_ns - paid_ns) : 0;
	int64_t tokens_ns = order->tokens_ns + earned_ns - unpaid_ns;
	return tokens_ns < order->tokens_most_ns ? tokens_ns : order->tokens_most_ns;
}

static void write_look(const struct ll_claim *claim, const struct order *order, uint64_t now_ns,
		       struct ll_turn_look *ret_look)
{
	bool is_answered = is_known(claim, order->post);
	bool is_free = !is_answered && order->flags & LL_ORDER_IS_FREE;
	uint32_t flags = is_answered ? order->flags : is_free ? LL_ORDER_MAY_LAUNCH | LL_ORDER_IS_ALONE : 0;
	*ret_look = (struct ll_turn_look){
	    .may_launch = flags & LL_ORDER_MAY_LAUNCH,
	    .is_alone = flags & LL_ORDER_IS_ALONE,
	    .is_sliced = flags & LL_ORDER_IS_SLICED,
	    .is_holder = flags & LL_ORDER_IS_HOLDER,
	    .is_exclusive = flags & LL_ORDER_IS_EXCLUSIVE,
	    .is_above = flags & LL_ORDER_IS_ABOVE,
	    .turn_since_ns = ll_claim_own_ns(claim, order->turn_since_ns),
	    .tokens_ns = is_answered ? tokens_now_ns(claim, order, now_ns) : INT64_MAX,
	    .tokens_most_ns = is_answered ? order->tokens_most_ns : INT64_MAX,
	    .tokens_at_ns = ll_claim_own_ns(claim, order->tokens_at_ns),
	    .waiting_claims = order->waiting,
	    .awaited = {ll_claim_own_ns(claim, order->awaited_ns), order->awaited_launches},
	    .queue_bound_ns = order->queue_bound_ns,
	    .sharing = order->sharing,
	};
}

/* The result of a look if no loadlined decides: the gate may be open. */
static void look_alone(struct ll_turn *turn, struct ll_turn_look *ret_look, struct ll_gang *ret_gang)
{
	turn->ending_since_ns = turn->paused_since_ns = 0;
	*ret_look = (struct ll_turn_look){
	    .may_launch = true, .is_alone = true, .tokens_ns = INT64_MAX, .tokens_most_ns = INT64_MAX};
	if (ret_gang)
		*ret_gang = (struct ll_gang){0};
}

void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look, struct ll_gang *ret_gang)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	struct order order;
	if (!slot) {
		look_alone(turn, ret_look, ret_gang);
		return;
	}
	atomic_store_explicit(&slot->posted_ns, ll_claim_page_ns(claim, now_ns), memory_order_relaxed);
	atomic_store_explicit(&slot->queued_ns, queued_ns, memory_order_relaxed);
	atomic_store_explicit(&slot->queued_launches, turn->queued_launches, memory_order_relaxed);
	atomic_store_explicit(&slot->completed_launches, turn->completed_launches, memory_order_relaxed);
	atomic_store_explicit(&slot->running_ns, turn->running_ns, memory_order_relaxed);
	read_order(claim->order, &order);
	post_changes(claim, slot, turn, &order, now_ns);
	ll_claim_wake_daemon_if_due(claim);
	write_look(claim, &order, now_ns, ret_look);
	/* The orders keep this process from launching. Then loadlined must write heartbeats. */
	bool holds = atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed) && !ret_look->is_alone;
	if (holds)
		ll_link_thread_look();
	claim->is_over = ll_lease_look(&claim->lease, claim->pages->orders, order.sequence, holds, now_ns);
	if (claim->is_over) {
		look_alone(turn, ret_look, ret_gang);
		return;
	}
	bool is_ending = order.flags & LL_ORDER_IS_ENDING;
	turn->ending_since_ns = !is_ending ? 0 : turn->ending_since_ns ? turn->ending_since_ns : now_ns;
	if (ret_gang)
		*ret_gang = (struct ll_gang){.yields_to_gang = order.flags & LL_ORDER_YIELDS_TO_GANG,
					     .is_ending = order.flags & LL_ORDER_GANG_IS_ENDING,
					     .work = {ll_claim_own_ns(claim, order.gang_ns), order.gang_launches}};
}

/* No WAKE is sent, because loadlined reads the flag at its next decision. */
void ll_port_note_launch(struct ll_claim *claim)
{
	struct ll_page_slot *slot = claim->posted_flags & LL_POST_QUEUE_EMPTY ? ll_claim_slot(claim) : NULL;
	if (slot)
		set_flags(claim, slot, claim->posted_flags & ~(uint32_t)LL_POST_QUEUE_EMPTY);
}

bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns)
{
	return at_ns && (now_ns < at_ns || now_ns - at_ns <= LL_GANG_FRESH_NS);
}

bool ll_port_is_in_turn(const struct ll_claim *claim)
{
	uint32_t flags = atomic_load_explicit(&claim->order->flags, memory_order_relaxed);
	bool is_answered = is_known(claim, atomic_load_explicit(&claim->order->post, memory_order_relaxed));
	uint32_t enough = is_answered ? LL_ORDER_IS_HOLDER | LL_ORDER_IS_ALONE : LL_ORDER_IS_FREE;
	return atomic_load_explicit(&claim->is_over, memory_order_relaxed) || flags & enough;
}

/* ---- gates ---- */

_Atomic uint32_t *ll_port_gate(struct ll_claim *claim)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	return slot ? &slot->gate : NULL;
}

bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return false;
	atomic_store(&slot->gate, how);
	uint32_t flags = atomic_load(&claim->order->flags);
	bool is_answered = is_known(claim, atomic_load(&claim->order->post));
	if (claim->is_over || flags & (is_answered ? LL_ORDER_IS_ALONE : LL_ORDER_IS_FREE))
		return true;
	atomic_store(&slot->gate, LL_GATE_SHUT);
	return false;
}

void ll_port_shut_gate(struct ll_claim *claim)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		atomic_store(&slot->gate, LL_GATE_SHUT);
}

_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim)
{
	return ll_claim_slot(claim) ? claim->card_word : NULL;
}

/* ---- sleeping ---- */

uint32_t ll_port_wake_count(const struct ll_claim *claim)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	return slot ? atomic_load(&slot->wake_count) : 0;
}

void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	if (slot)
		ll_page_sleep(&slot->wake_count, wake_count, until_ns);
}

void ll_port_wake(struct ll_claim *claim)
{
	struct ll_page_slot *slot = atomic_load_explicit(&claim->slot, memory_order_relaxed);
	if (slot)
		ll_page_wake(&slot->wake_count);
}

/* ---- accounts ---- */

void ll_port_note_wait(struct ll_claim *claim, enum ll_wait cause, uint64_t ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		ll_accounts_note_wait(slot, cause, ns);
}

void ll_port_note_copy(struct ll_claim *claim, uint64_t ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (slot)
		atomic_fetch_add_explicit(&slot->copied_ns, ns, memory_order_relaxed);
}

void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_page_card *card = claim->page_card;
	if (!slot || end_ns <= start_ns)
		return;
	uint64_t from_ns = ll_claim_page_ns(claim, start_ns), to_ns = ll_claim_page_ns(claim, end_ns);
	atomic_fetch_add_explicit(&slot->gpu_time_ns, fresh_ns, memory_order_relaxed);
	atomic_fetch_add_explicit(&card->gpu_time_ns, ll_busy_bins_add(&card->busy, from_ns, to_ns),
				  memory_order_relaxed);
}

void ll_port_note_work(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	struct ll_page_card *card = claim->page_card;
	if (!ll_claim_slot(claim) || end_ns <= start_ns)
		return;
	uint64_t new_ns =
	    ll_work_samples_add(&card->samples, ll_claim_page_ns(claim, start_ns), ll_claim_page_ns(claim, end_ns));
	atomic_fetch_add_explicit(&card->work_ns, new_ns < fresh_ns ? new_ns : fresh_ns, memory_order_relaxed);
}

/* ---- the time of the process's contexts on the card ---- */

/* Returns the sequence of the order; odd: it stayed incomplete, because a loadlined was killed while it wrote. */
static uint32_t read_time_order(const struct ll_orders_slot *from, struct ll_card_time *ret_time)
{
	uint32_t before, after;
	unsigned tries = 0;
	do {
		before = atomic_load(&from->sequence);
		*ret_time = (struct ll_card_time){.window_ns = READ(window_us) * LL_NS_PER_US,
						  .period_ns = READ(window_period_us) * LL_NS_PER_US,
						  .from_ns = READ(window_from_ns),
						  .slice_us = READ(slice_us)};
		atomic_thread_fence(memory_order_acquire);
		after = READ(sequence);
	} while ((before != after || before & 1) && ++tries < READ_TRIES);
	return before == after ? before : before | 1;
}

uint32_t ll_port_read_time(struct ll_claim *claim, uint64_t now_ns, struct ll_card_time *ret_time)
{
	uint32_t count = atomic_load(&claim->pages->orders->wake_count);
	*ret_time = (struct ll_card_time){0};
	if (!ll_claim_slot(claim))
		return count;
	uint32_t sequence = read_time_order(claim->order, ret_time);
	bool is_over = ll_lease_look(&claim->time_lease, claim->pages->orders, sequence,
				     ll_card_time_is_ordered(ret_time), now_ns);
	if (is_over || sequence & 1)
		*ret_time = (struct ll_card_time){0};
	ret_time->from_ns = ll_claim_own_ns(claim, ret_time->from_ns);
	return count;
}

bool ll_port_has_company(struct ll_claim *claim)
{
	return ll_claim_slot(claim) && atomic_load_explicit(&claim->order->sharing, memory_order_relaxed);
}

void ll_port_sleep_for_time(const struct ll_claim *claim, uint32_t count, uint64_t until_ns)
{
	ll_page_sleep(&claim->pages->orders->wake_count, count, until_ns);
}

void ll_port_wake_for_time(const struct ll_claim *claim)
{
	ll_page_wake_all(&claim->pages->orders->wake_count);
}

void ll_port_report_time(struct ll_claim *claim, enum ll_time_lever lever, bool is_off)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	if (!slot)
		return;
	atomic_store_explicit(&slot->time_lever, lever, memory_order_relaxed);
	atomic_store_explicit(&slot->is_off_card, is_off, memory_order_relaxed);
}

bool ll_port_is_off(struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	return slot && atomic_load_explicit(&slot->is_off_card, memory_order_relaxed);
}

/* ---- times off the card ---- */

/* A program that has work and is off the card waits: for its cap, if it has one. */
static bool note_wait(struct ll_claim *claim, uint64_t ns)
{
	struct ll_page_slot *slot = ll_claim_slot(claim);
	struct ll_limits limits;
	if (!slot || !atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed))
		return false;
	ll_orders_read_limits(claim->pages->orders, &limits);
	ll_accounts_note_wait(slot, limits.compute_permille ? LL_WAIT_CAP : LL_WAIT_TURN, ns);
	return true;
}

/* The times of the card's clock and of the calls are known to a millisecond or so. */
#define OFF_MARGIN_NS (3 * LL_NS_PER_MS)
/* A thread that the host keeps waiting amid its notes makes it seem as if work had ended off the card. A card that
 * takes nothing off shows it in most of the times; so few of the last ones prove nothing. */
enum { ESCAPES = 5, JUDGED = 32 };

static void begin_off(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	unsigned next = claim->off_count++ % LL_CLAIM_OFF_TIMES;
	claim->off[next].start_ns = start_ns;
	claim->off[next].end_ns = end_ns;
}

uint64_t ll_port_note_off(struct ll_claim *claim, bool is_off, bool is_wait, uint64_t called_ns, uint64_t now_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	uint64_t since_ns = claim->off_since_ns;
	unsigned last = (claim->off_count - 1) % LL_CLAIM_OFF_TIMES;
	bool is_traced = claim->traced_ns, has_open = claim->off_count && !claim->off[last].end_ns;
	if (is_off && !since_ns && !is_traced)
		begin_off(claim, now_ns, 0);
	else if (!is_off && has_open)
		claim->off[last].end_ns = now_ns;
	/* The contexts were on at some time of the call. */
	if (!is_off && has_open && now_ns > called_ns + OFF_MARGIN_NS)
		claim->judged_off = claim->off_count;
	claim->off_since_ns = !is_off ? 0 : since_ns ? since_ns : now_ns;
	pthread_mutex_unlock(&claim->off_lock);
	return !is_off && is_wait && since_ns && note_wait(claim, now_ns - since_ns) ? since_ns : 0;
}

void ll_port_note_away(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	unsigned last = (claim->off_count - 1) % LL_CLAIM_OFF_TIMES;
	uint64_t before_ns = claim->off_count ? claim->off[last].end_ns : 0;
	if (claim->off_count && !before_ns)
		claim->off[last].end_ns = before_ns = start_ns;
	start_ns = before_ns > start_ns ? before_ns : start_ns;
	if (end_ns > start_ns)
		begin_off(claim, start_ns, end_ns);
	pthread_mutex_unlock(&claim->off_lock);
}

void ll_port_note_traced(struct ll_claim *claim, uint64_t until_ns)
{
	pthread_mutex_lock(&claim->off_lock);
	uint64_t before_ns = claim->traced_ns;
	if (before_ns && !until_ns && claim->off_since_ns)
		begin_off(claim, before_ns > claim->off_since_ns ? before_ns : claim->off_since_ns, 0);
	atomic_store(&claim->traced_ns, until_ns);
	pthread_mutex_unlock(&claim->off_lock);
}

uint64_t ll_port_traced_ns(const struct ll_claim *claim)
{
	return atomic_load(&claim->traced_ns);
}

/* Each time off the card is judged once, by the first work that ends in it or, if none does, after it. */
void ll_port_note_end(struct ll_claim *claim, uint64_t end_ns)
{
	if (atomic_load(&claim->traced_ns))
		return;
	pthread_mutex_lock(&claim->off_lock);
	for (unsigned i = 1; i <= LL_CLAIM_OFF_TIMES && i <= claim->off_count; i++) {
		unsigned number = claim->off_count - i, at = number % LL_CLAIM_OFF_TIMES;
		if (claim->off[at].start_ns + OFF_MARGIN_NS >= end_ns)
			continue;
		if ((int)(number + 1 - claim->judged_off) > 0) {
			claim->judged_off = number + 1;
			claim->escapes += !claim->off[at].end_ns || end_ns + OFF_MARGIN_NS < claim->off[at].end_ns;
			claim->judged++;
		}
		break;
	}
	if (claim->judged >= JUDGED) {
		claim->judged /= 2;
		claim->escapes /= 2;
	}
	pthread_mutex_unlock(&claim->off_lock);
}

bool ll_port_obeys_off(struct ll_claim *claim)
{
	pthread_mutex_lock(&claim->off_lock);
	bool obeys = claim->escapes < ESCAPES;
	pthread_mutex_unlock(&claim->off_lock);
	return obeys;
}

/* The times are in order, so the search ends at the first one that is too old. */
uint64_t ll_port_off_ns(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	uint64_t off_ns = 0;
	pthread_mutex_lock(&claim->off_lock);
	for (unsigned i = 1; i <= LL_CLAIM_OFF_TIMES && i <= claim->off_count; i++) {
		unsigned at = (claim->off_count - i) % LL_CLAIM_OFF_TIMES;
		uint64_t from_ns = claim->off[at].start_ns,
			 to_ns = claim->off[at].end_ns ? claim->off[at].end_ns : end_ns;
		if (to_ns <= start_ns)
			break;
		from_ns = from_ns > start_ns ? from_ns : start_ns;
		to_ns = to_ns < end_ns ? to_ns : end_ns;
		off_ns += to_ns > from_ns ? to_ns - from_ns : 0;
	}
	pthread_mutex_unlock(&claim->off_lock);
	return off_ns;
}
