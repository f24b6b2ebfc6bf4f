/* Cards of the daemon over made-up pages, with a real loop and a real clock: orders, gates, words and beats. */
#include "test.h"

#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "protocol/records.h"
#include "protocol/words.h"

#define MS LL_NS_PER_MS
#define CARD "GPU-one"
#define OTHER_CARD "GPU-another"

enum { MOST = 8 };

/* A job with one page, of which this test plays the processes. */
struct job {
	struct ll_page *page;
	struct ll_orders *orders;
	struct ll_card_job *cards[2];
};

struct process {
	struct job *job;
	unsigned slot, card;
	struct ll_card_claim *claim;
	bool works;       /* it uses the card whenever it may */
	uint64_t used_ns; /* so long */
};

static uv_loop_t loop;
static uv_timer_t worker;
static struct ll_cards cards;
static struct job jobs[MOST];
static struct process processes[MOST];
static size_t job_count, process_count;
static uint64_t worked_ns;

static struct ll_page_slot *slot_of(const struct process *process)
{
	return &process->job->page->slots[process->slot];
}

static const struct ll_orders_slot *orders_of(const struct process *process)
{
	return &process->job->orders->slots[process->slot];
}

static uint32_t flags_of(const struct process *process)
{
	return orders_of(process)->flags;
}

static bool has_flag(const struct process *process, enum ll_order_flag flag)
{
	return flags_of(process) & flag;
}

static void post(struct process *process)
{
	slot_of(process)->posted_ns = ll_now_ns();
}

static void send_wake(struct process *process)
{
	post(process);
	slot_of(process)->post++;
	ll_card_claim_wake(process->claim);
}

static void set_wanting(struct process *process, enum ll_launch_mode launch_mode, bool is_wanting)
{
	struct ll_page_slot *slot = slot_of(process);
	slot->launch_mode = launch_mode;
	slot->want_since_ns = is_wanting ? ll_now_ns() : 0;
	slot->activity_ns = is_wanting ? LL_ACTIVITY_NOW : ll_now_ns();
	send_wake(process);
}

/* Each ms: whoever works and may launch has used the card since the last time. */
static void on_work(uv_timer_t *timer)
{
	uint64_t now_ns = ll_now_ns(), ns = now_ns - worked_ns;
	if (ns > 5 * MS) /* the host was busy with others */
		ns = 5 * MS;
	(void)timer;
	worked_ns = now_ns;
	for (size_t i = 0; i < process_count; i++) {
		struct process *process = &processes[i];
		if (!process->works || !process->claim)
			continue;
		post(process);
		if (!has_flag(process, LL_ORDER_MAY_LAUNCH) || orders_of(process)->tokens_ns <= 0)
			continue;
		process->used_ns += ns;
		process->job->page->cards[process->card].gpu_time_ns += ns;
	}
}

static void on_end(uv_timer_t *timer)
{
	uv_stop(timer->loop);
}

static void run_for(uint64_t ns)
{
	uv_timer_t end;
	uv_timer_init(&loop, &end);
	uv_timer_start(&end, on_end, ns / MS, 0);
	worked_ns = ll_now_ns();
	uv_run(&loop, UV_RUN_DEFAULT);
	uv_close((uv_handle_t *)&end, NULL);
	uv_run(&loop, UV_RUN_NOWAIT);
}

static int setup(void **state)
{
	(void)state;
	job_count = process_count = 0;
	memset(processes, 0, sizeof processes);
	memset(jobs, 0, sizeof jobs);
	if (uv_loop_init(&loop) || ll_cards_init(&cards, &loop))
		return -1;
	uv_timer_init(&loop, &worker);
	return uv_timer_start(&worker, on_work, 1, 1);
}

static int teardown(void **state)
{
	(void)state;
	for (size_t i = 0; i < process_count; i++)
		ll_card_claim_remove(processes[i].claim);
	for (size_t i = 0; i < job_count; i++) {
		ll_card_job_leave(jobs[i].cards[0]);
		ll_card_job_leave(jobs[i].cards[1]);
		ll_page_unmap(jobs[i].page);
		ll_orders_unmap(jobs[i].orders);
	}
	ll_cards_fini(&cards);
	uv_close((uv_handle_t *)&worker, NULL);
	uv_run(&loop, UV_RUN_DEFAULT);
	return uv_loop_close(&loop);
}

TEST_EACH(setup, teardown);

static void join(struct job *job, unsigned index, const char *uuid, const struct ll_limits *limits)
{
	const struct ll_card_join call = {.uuid = uuid,
					  .id = (uint64_t)(1 + (job - jobs)),
					  .page = job->page,
					  .orders = job->orders,
					  .index = index,
					  .limits = *limits};
	assert_int_equal(ll_cards_join(&cards, &call, &job->cards[index]), 0);
}

static struct job *new_job(const struct ll_limits *limits)
{
	struct job *job = &jobs[job_count++];
	const uint64_t token[2] = {job_count, 1};
	int page_fd, orders_fd;
	assert_int_equal(ll_page_make(&page_fd), 0);
	assert_int_equal(ll_orders_make(token, &orders_fd), 0);
	assert_int_equal(ll_page_map(page_fd, true, &job->page), 0);
	assert_int_equal(ll_orders_map(orders_fd, true, &job->orders), 0);
	close(page_fd);
	close(orders_fd);
	join(job, 0, CARD, limits);
	return job;
}

static struct process *new_process(struct job *job, unsigned slot, unsigned card)
{
	struct process *process = &processes[process_count++];
	*process = (struct process){.job = job, .slot = slot, .card = card};
	job->page->slots[slot].token = 1000 + process_count;
	job->page->slots[slot].card = card;
	const char *first_card = card ? CARD : NULL;
	assert_int_equal(ll_card_claim_add(job->cards[card], slot, first_card, &process->claim), 0);
	return process;
}

static struct process *come(const struct ll_limits *limits)
{
	struct process *process = new_process(new_job(limits), 0, 0);
	process->works = true;
	return process;
}

static void settle(void)
{
	ll_cards_settle(&cards, ll_now_ns());
}

static bool is_word_open(const struct process *process)
{
	return process->job->page->card_words[process->card] & LL_VISIT_WORD_OPEN;
}

static const struct ll_limits none;

/* Without a measurement, which takes seconds. */
static void force(enum ll_limit_sharing forced)
{
	for (struct ll_served_card *card = cards.cards; card; card = card->next)
		card->share.forced = forced;
}

/* ---- tests ---- */

TEST(who_rests_has_leave_to_open_its_gate_and_costs_nothing)
{
	struct process *one = come(&none), *other = come(&none);
	settle();
	assert_true(has_flag(one, LL_ORDER_IS_FREE) && has_flag(other, LL_ORDER_IS_FREE));
	assert_int_equal(cards.timer_ns, 0);
	assert_false(cards.is_unsettled);
	uint32_t wakes = slot_of(other)->wake_count;
	slot_of(one)->gate = LL_GATE_OPEN; /* it begins, without asking */
	set_wanting(one, LL_LAUNCH_MODE_UNKNOWN, true);
	settle();
	assert_int_equal(slot_of(one)->gate, LL_GATE_OPEN);
	assert_true(has_flag(one, LL_ORDER_IS_ALONE) && has_flag(one, LL_ORDER_IS_HOLDER));
	assert_int_equal(orders_of(one)->post, slot_of(one)->post);
	assert_false(has_flag(other, LL_ORDER_IS_FREE));     /* both are new: their kernels are to be timed */
	assert_int_equal(slot_of(other)->wake_count, wakes); /* it sleeps on */
	assert_int_equal(cards.timer_ns, 0);
	set_wanting(one, LL_LAUNCH_MODE_UNKNOWN, false);
	settle();
	assert_true(has_flag(one, LL_ORDER_IS_FREE) && has_flag(other, LL_ORDER_IS_FREE));
}

TEST(a_contender_that_waits_shuts_the_gates_of_others)
{
	struct process *one = come(&none), *other = come(&none);
	force(LL_LIMIT_SHARING_VISITS);
	set_wanting(one, LL_LAUNCH_MODE_ASYNC, true);
	settle();
	slot_of(one)->gate = LL_GATE_OPEN;
	uint32_t wakes = slot_of(one)->wake_count;
	slot_of(other)->gate = LL_GATE_OPEN; /* both began at once, by the leave that each had */
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	settle();
	assert_int_equal(slot_of(one)->gate, LL_GATE_SHUT);
	assert_int_equal(slot_of(other)->gate, LL_GATE_SHUT);
	assert_int_not_equal(slot_of(one)->wake_count, wakes);
	assert_true(has_flag(one, LL_ORDER_IS_HOLDER) && !has_flag(other, LL_ORDER_IS_HOLDER));
	assert_true(is_word_open(one) && !is_word_open(other));
	assert_int_equal(orders_of(one)->sequence % 2, 0);
	assert_int_equal(orders_of(one)->waiting, 1);
	slot_of(one)->gate = LL_GATE_OPEN; /* it does as it likes: not for long */
	other->job->page->card_words[0] = 7;
	for (int i = 0; i < 100 && (slot_of(one)->gate || is_word_open(one) == is_word_open(other)); i++)
		run_for(5 * MS);
	assert_int_equal(slot_of(one)->gate, LL_GATE_SHUT);
	assert_true(is_word_open(one) != is_word_open(other));
}

/* Its threads sleep until the answer is there. */
TEST(a_post_is_answered_in_the_round_of_its_wake)
{
	struct process *one = come(&none), *other = come(&none);
	set_wanting(one, LL_LAUNCH_MODE_SYNC, true);
	settle();
	uint32_t wakes = slot_of(other)->wake_count;
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	assert_true(cards.is_unsettled);
	uv_run(&loop, UV_RUN_NOWAIT);
	assert_int_equal(orders_of(other)->post, slot_of(other)->post);
	assert_int_not_equal(slot_of(other)->wake_count, wakes);
	assert_false(cards.is_unsettled);
}

TEST(the_turn_goes_round)
{
	struct process *one = come(&none), *other = come(&none);
	force(LL_LIMIT_SHARING_VISITS);
	set_wanting(one, LL_LAUNCH_MODE_SYNC, true);
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	run_for(600 * MS);
	double part = (double)one->used_ns / (double)(one->used_ns + other->used_ns);
	assert_true(part > 0.4 && part < 0.6);
	assert_true(one->used_ns + other->used_ns > 100 * MS);
	struct ll_card_job_view view;
	ll_card_job_read(one->job->cards[0], &view);
	assert_true(view.is_holder != view.is_held);
	assert_true(view.virtual_time_ns > 0 && view.tokens_ns == INT64_MAX);
	assert_int_equal(view.gpu_time_ns, one->used_ns);
}

TEST(a_cap_holds)
{
	struct process *one = come(&(struct ll_limits){.compute_permille = 250});
	uint64_t began_ns = ll_now_ns();
	set_wanting(one, LL_LAUNCH_MODE_ASYNC, true);
	run_for(600 * MS);
	uint64_t quarter_ns = (ll_now_ns() - began_ns) / 4;
	assert_in_range(one->used_ns, quarter_ns / 2, quarter_ns + 6 * MS);
	assert_false(has_flag(one, LL_ORDER_IS_ALONE));
	ll_card_job_set_limits(one->job->cards[0], &none);
	settle();
	assert_true(has_flag(one, LL_ORDER_IS_ALONE));
}

/* It rests in its debt, and looks at the account that its orders show. */
TEST(an_account_is_told_until_a_debt_is_paid)
{
	struct process *one = come(&(struct ll_limits){.compute_permille = 500});
	set_wanting(one, LL_LAUNCH_MODE_ASYNC, true);
	settle();
	one->works = false;
	one->job->page->cards[0].gpu_time_ns += 20 * MS;
	set_wanting(one, LL_LAUNCH_MODE_ASYNC, false);
	settle();
	assert_true(orders_of(one)->tokens_ns < 0 && orders_of(one)->tokens_at_ns <= ll_now_ns());
	run_for(80 * MS);
	assert_true(orders_of(one)->tokens_ns > 0);
	assert_int_equal(cards.timer_ns, 0);
}

TEST(a_claim_that_is_removed_passes_the_turn_on)
{
	struct process *one = come(&none), *other = come(&none);
	set_wanting(one, LL_LAUNCH_MODE_SYNC, true);
	settle();
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	settle();
	assert_true(has_flag(one, LL_ORDER_IS_HOLDER));
	ll_card_claim_remove(one->claim);
	one->claim = NULL;
	assert_int_equal(flags_of(one), 0);
	settle();
	assert_true(has_flag(other, LL_ORDER_IS_HOLDER) && has_flag(other, LL_ORDER_IS_ALONE));
	assert_int_equal(cards.timer_ns, 0);
}

TEST(beats_go_on_while_somebody_is_held_and_no_longer)
{
	struct process *one = come(&none), *other = come(&none);
	force(LL_LIMIT_SHARING_VISITS);
	set_wanting(one, LL_LAUNCH_MODE_SYNC, true);
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	run_for(300 * MS);
	assert_in_range(one->job->orders->beat, 1, 60);
	assert_in_range(other->job->orders->beat, 1, 60);
	set_wanting(other, LL_LAUNCH_MODE_SYNC, false);
	settle();
	uint32_t beat = one->job->orders->beat;
	run_for(200 * MS);
	assert_int_equal(one->job->orders->beat, beat);
	assert_int_equal(cards.timer_ns, 0);
}

/* Its agent may hang in the driver behind its own streams. */
TEST(who_is_stopped_is_let_go_and_gets_no_turn)
{
	struct process *one = come(&none), *stopped = come(&none);
	set_wanting(one, LL_LAUNCH_MODE_SYNC, true);
	slot_of(stopped)->post_flags = LL_POST_ON_CARD;
	set_wanting(stopped, LL_LAUNCH_MODE_SYNC, true);
	settle();
	stopped->works = false;
	run_for(100 * MS);
	struct ll_card_claim_view view;
	ll_card_claim_read(stopped->claim, &view);
	assert_true(view.is_wanting && view.is_unresponsive);
	/* A busy host may leave this process aside for so long that the other one seems stopped too. */
	for (int i = 0; i < 1000 && !(is_word_open(stopped) && has_flag(one, LL_ORDER_IS_HOLDER)); i++)
		run_for(5 * MS);
	assert_true(is_word_open(stopped) && has_flag(one, LL_ORDER_IS_HOLDER));
	stopped->works = true;
	run_for(100 * MS);
	assert_true(stopped->used_ns > 5 * MS);
}

TEST(a_higher_class_takes_the_card_at_its_wake)
{
	struct process *low = come(&(struct ll_limits){.priority = LL_LIMIT_CLASS_LOW});
	struct process *high = come(&(struct ll_limits){.priority = LL_LIMIT_CLASS_HIGH});
	set_wanting(low, LL_LAUNCH_MODE_SYNC, true);
	settle();
	assert_true(has_flag(low, LL_ORDER_MAY_LAUNCH) && orders_of(low)->queue_bound_ns);
	set_wanting(high, LL_LAUNCH_MODE_SYNC, true);
	settle();
	assert_true(has_flag(high, LL_ORDER_MAY_LAUNCH) && !has_flag(low, LL_ORDER_MAY_LAUNCH));
	/* It has nothing to do for a while, and then it has. A busy host may leave this process aside for so long that
	 * the part of the time is over in which the lower class is held. */
	bool was_free = false, is_held = false;
	for (int i = 0; i < 100 && !(was_free && is_held); i++) {
		set_wanting(high, LL_LAUNCH_MODE_SYNC, false);
		run_for(3 * MS);
		was_free = has_flag(low, LL_ORDER_MAY_LAUNCH) && orders_of(low)->queue_bound_ns;
		set_wanting(high, LL_LAUNCH_MODE_SYNC, true);
		settle();
		is_held = has_flag(high, LL_ORDER_MAY_LAUNCH) && !has_flag(low, LL_ORDER_MAY_LAUNCH);
	}
	assert_true(was_free && is_held);
}

TEST(a_higher_class_that_pauses_in_its_visit_has_the_card_again_at_its_wake)
{
	struct process *low = come(&(struct ll_limits){.priority = LL_LIMIT_CLASS_LOW});
	struct process *high = come(&(struct ll_limits){.priority = LL_LIMIT_CLASS_HIGH});
	force(LL_LIMIT_SHARING_VISITS);
	set_wanting(low, LL_LAUNCH_MODE_SYNC, true);
	set_wanting(high, LL_LAUNCH_MODE_SYNC, true);
	settle();
	assert_true(has_flag(high, LL_ORDER_MAY_LAUNCH) && !has_flag(low, LL_ORDER_MAY_LAUNCH));
	/* It has nothing to do for a moment, and then it has. A busy host may leave this process aside for so long that
	 * the pause is over. */
	bool was_paused = false, is_back = false;
	for (int i = 0; i < 100 && !(was_paused && is_back); i++) {
		slot_of(high)->post_flags = LL_POST_QUEUE_EMPTY;
		send_wake(high);
		run_for(3 * MS);
		was_paused = has_flag(high, LL_ORDER_PAUSED) && has_flag(low, LL_ORDER_MAY_LAUNCH);
		slot_of(high)->post_flags = LL_POST_LAUNCHED;
		send_wake(high);
		settle();
		is_back = has_flag(high, LL_ORDER_MAY_LAUNCH) && !has_flag(high, LL_ORDER_PAUSED);
	}
	assert_true(was_paused && is_back);
}

TEST(a_class_that_is_changed_is_told_at_once)
{
	struct process *one = come(&none), *other = come(&none);
	set_wanting(one, LL_LAUNCH_MODE_ASYNC, true);
	set_wanting(other, LL_LAUNCH_MODE_ASYNC, true);
	run_for(20 * MS);
	slot_of(one)->gate = slot_of(other)->gate = LL_GATE_OPEN;
	assert_true(has_flag(one, LL_ORDER_IS_ALONE) && has_flag(other, LL_ORDER_IS_ALONE));
	ll_card_job_set_limits(one->job->cards[0], &(struct ll_limits){.priority = LL_LIMIT_CLASS_HIGH});
	settle();
	assert_true(has_flag(one, LL_ORDER_IS_ALONE) && !orders_of(one)->queue_bound_ns);
	assert_true(!has_flag(other, LL_ORDER_IS_ALONE) && orders_of(other)->queue_bound_ns);
	assert_true(slot_of(one)->gate == LL_GATE_OPEN && slot_of(other)->gate == LL_GATE_SHUT);
}

TEST(a_job_on_two_cards_has_its_turns_together)
{
	struct process *first[2], *second[2];
	for (unsigned i = 0; i < 2; i++) {
		struct job *job = new_job(&none);
		join(job, 1, OTHER_CARD, &none);
		first[i] = new_process(job, 0, 0);
		second[i] = new_process(job, 1, 1);
		first[i]->works = second[i]->works = true;
		set_wanting(first[i], LL_LAUNCH_MODE_SYNC, true);
		set_wanting(second[i], LL_LAUNCH_MODE_SYNC, true);
	}
	settle();
	unsigned same = 0, steps = 0;
	while (steps < 300) {
		uint64_t begun_ns = ll_now_ns();
		run_for(MS);
		if (ll_now_ns() - begun_ns > 3 * MS) /* a busy host has decided late */
			continue;
		steps++;
		same += has_flag(first[0], LL_ORDER_IS_HOLDER) == has_flag(second[0], LL_ORDER_IS_HOLDER);
	}
	assert_true(same > steps * 8 / 10);
	assert_true(has_flag(second[0], LL_ORDER_YIELDS_TO_GANG) || has_flag(second[1], LL_ORDER_YIELDS_TO_GANG));
}

TEST(a_death_is_told_to_all_jobs_of_the_card)
{
	struct process *one = come(&none), *other = come(&none);
	settle();
	uint32_t wakes = slot_of(other)->wake_count;
	ll_card_job_note_death(one->job->cards[0], 77);
	assert_int_equal(one->job->orders->cards[0].death_ns, 77);
	assert_int_equal(other->job->orders->cards[0].death_ns, 77);
	assert_int_not_equal(slot_of(other)->wake_count, wakes);
	uint64_t now_ns = ll_now_ns();
	ll_card_job_note_death(one->job->cards[0], now_ns);
	for (size_t i = 0; i < 2; i++) {
		ll_card_claim_remove(processes[i].claim);
		processes[i].claim = NULL;
		ll_card_job_leave(jobs[i].cards[0]);
		jobs[i].cards[0] = NULL;
	}
	assert_int_equal(come(&none)->job->orders->cards[0].death_ns, now_ns);
}

TEST(a_claim_keeps_its_number_or_gets_the_least)
{
	struct job *job = new_job(&none);
	job->page->slots[5].number = 18; /* as a former daemon left it */
	job->page->slots[6].number = 18;
	job->page->slots[7].number = UINT32_MAX;
	assert_int_equal(ll_card_claim_number(new_process(job, 5, 0)->claim), 17);
	assert_int_equal(ll_card_claim_number(new_process(job, 6, 0)->claim), 0);
	assert_int_equal(ll_card_claim_number(new_process(job, 7, 0)->claim), 1);
	assert_int_equal(job->page->slots[7].number, 2);
	ll_card_claim_remove(processes[1].claim);
	processes[1].claim = NULL;
	assert_int_equal(ll_card_claim_number(new_process(job, 8, 0)->claim), 0);
}

/* Its page says that it used the card for years: it pays for the time that has passed. */
TEST(a_count_that_nobody_can_have_is_not_believed)
{
	struct process *liar = come(&(struct ll_limits){.compute_permille = 500});
	set_wanting(liar, LL_LAUNCH_MODE_ASYNC, true);
	settle();
	liar->works = false;
	liar->job->page->cards[0].gpu_time_ns = UINT64_MAX;
	send_wake(liar);
	settle();
	assert_true(orders_of(liar)->tokens_ns < 0 && orders_of(liar)->tokens_ns > -2 * (int64_t)LL_NS_PER_S);
	liar->job->page->cards[0].gpu_time_ns = 0;
	send_wake(liar);
	settle();
	assert_true(orders_of(liar)->tokens_ns > -2 * (int64_t)LL_NS_PER_S);
}

TEST(a_thousand_claims_of_a_card_are_served)
{
	enum { COUNT = LL_PAGE_SLOTS };
	static struct ll_card_claim *claims[COUNT];
	struct job *job = new_job(&none);
	struct process *other = come(&none);
	force(LL_LIMIT_SHARING_VISITS);
	for (unsigned i = 0; i < COUNT; i++) {
		assert_int_equal(ll_card_claim_add(job->cards[0], i, NULL, &claims[i]), 0);
		job->page->slots[i].want_since_ns = job->page->slots[i].posted_ns = ll_now_ns();
		job->page->slots[i].launch_mode = LL_LAUNCH_MODE_SYNC;
		ll_card_claim_wake(claims[i]);
	}
	set_wanting(other, LL_LAUNCH_MODE_SYNC, true);
	settle();
	for (unsigned i = 0; i < COUNT; i++)
		assert_true(job->orders->slots[i].flags & LL_ORDER_MAY_LAUNCH);
	assert_false(has_flag(other, LL_ORDER_MAY_LAUNCH));
	for (unsigned i = 0; i < COUNT; i++)
		ll_card_claim_remove(claims[i]);
	settle();
	assert_true(has_flag(other, LL_ORDER_IS_ALONE));
}
