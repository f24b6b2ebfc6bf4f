/* Turns among several claims on one card, on a simulated clock: who gets how much of it, and who waits for how long. */
#include "test.h"

#include <signal.h>
#include <sys/wait.h>

#include "control/visits.h"
#include "ledger/contender.h"
#include "ledger/decide.h"
#include "ledger/rows.h"
#include "turn_card.h"

static void test_two_share_by_weight(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 300, 0), *b = add(card, LL_PRIORITY_NORMAL, 700, 0);
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 30, 1);
	assert_near(percent_of(b, TEN_S), 70, 1);
	release_all(card);
}

static void test_three_share_by_weight(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 3000, 0),
		       *c = add(card, LL_PRIORITY_NORMAL, 6000, 0);
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 10, 1);
	assert_near(percent_of(b, TEN_S), 30, 1);
	assert_near(percent_of(c, TEN_S), 60, 1);
	release_all(card);
}

static void test_kernels_of_any_length_share_by_weight(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	a->kernel_ns = 30 * LL_NS_PER_MS;
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 50, 1);
	assert_near(percent_of(b, TEN_S), 50, 1);
	release_all(card);
}

static void test_a_higher_class_gets_the_card_at_its_first_look(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *normal = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	assert_true(normal->look.may_launch);
	struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0);
	step(card);
	assert_true(high->look.may_launch);
	uint64_t before_ns = normal->used_ns;
	run_for(card, LL_VISIT_STARVED_NS - LL_NS_PER_MS);
	assert_int_equal(normal->used_ns, before_ns);
	/* It goes on when the high one has no more work. */
	ll_turn_rest(high->claim, card->now_ns);
	high->is_resting = true;
	run_for(card, 10 * LL_NS_PER_MS);
	assert_true(normal->used_ns > before_ns);
	release_all(card);
}

static void test_a_low_class_has_its_service_however_busy_the_others_are(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	add(card, LL_PRIORITY_HIGH, 1000, 0);
	struct program *low = add(card, LL_PRIORITY_LOW, 1000, 0);
	uint64_t longest_ns = 0, piece_ns = 0, before_ns = 0;
	for (uint64_t until_ns = card->now_ns + TEN_S; card->now_ns < until_ns; before_ns = low->used_ns) {
		step(card);
		piece_ns = low->used_ns > before_ns ? piece_ns + STEP_NS : 0;
		longest_ns = piece_ns > longest_ns ? piece_ns : longest_ns;
	}
	/* Between 1 and 10 % of the time, in pieces of 1 ms. */
	assert_in_range(low->used_ns, TEN_S / 100, TEN_S / 80);
	assert_in_range(longest_ns, LL_VISIT_SERVICE_NS, LL_VISIT_SERVICE_NS + STEP_NS);
	assert_in_range(low->first_ns - LL_NS_PER_S, LL_VISIT_STARVED_NS, LL_VISIT_STARVED_NS + LL_NS_PER_MS);
	release_all(card);
}

static void test_who_has_the_turn_is_not_impatient_when_it_gives_it_away(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *high = add(card, LL_PRIORITY_HIGH, 1000, 0);
	struct program *low = add(card, LL_PRIORITY_LOW, 1000, 0);
	while (!low->look.may_launch)
		step(card);
	assert_true(card->now_ns > LL_VISIT_STARVED_NS);
	for (unsigned i = 0; i < 10; i++) { /* as others see it: at any moment of its service */
		step(card);
		assert_true(card->now_ns - low->claim->slot->want_since_ns <= STEP_NS);
	}
	(void)high;
	release_all(card);
}

static void test_processes_of_a_tenant_have_its_turn_together(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *sibling = &card->programs[card->count++];
	*sibling = (struct program){.claim = take_claim_of(card->fixture->ledger, one->claim->tenant_row - 1)};
	ll_turn_want(sibling->claim, card->now_ns);
	unsigned together = 0;
	for (unsigned i = 0; i < 10000; i++) {
		step(card);
		assert_int_equal(ll_turn_is_mine(one->claim), ll_turn_is_mine(sibling->claim));
		assert_false(ll_turn_is_mine(one->claim) && ll_turn_is_mine(other->claim));
		together += one->look.may_launch && sibling->look.may_launch;
	}
	assert_in_range(together, 4500, 5500);
	ll_turn_rest(one->claim, card->now_ns); /* whoever of them goes, the other keeps it */
	one->is_resting = true;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(other, card->now_ns - LL_NS_PER_S), 50, 2);
	ll_turn_rest(sibling->claim, card->now_ns);
	sibling->is_resting = true;
	run_for(card, 100 * LL_NS_PER_MS);
	assert_true(ll_turn_is_mine(other->claim));
	release_all(card);
}

/* It was stopped with work in the queue, which the card has long done. */
static void test_a_stopped_process_of_a_tenant_holds_up_no_turn(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct program *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct ll_claim *stopped = take_claim_of(card->fixture->ledger, one->claim->tenant_row - 1);
	ll_turn_want(stopped, card->now_ns);
	stopped->slot->queued_ns = 2 * LL_NS_PER_MS;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(one, LL_NS_PER_S), 50, 2);
	assert_near(percent_of(other, LL_NS_PER_S), 50, 2);
	ll_claim_release(stopped);
	release_all(card);
}

/* Others have cleared it, and its slot is another tenant's. */
static void test_a_lost_claim_does_nothing_to_whoever_has_its_slot(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *one = add(card, LL_PRIORITY_NORMAL, 1000, 0), *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct ll_ledger_file *file = card->fixture->ledger->file;
	struct ll_ledger_tenant *its = &file->tenants[other->claim->tenant_row - 1];
	uint64_t token = one->claim->slot->token;
	one->claim->slot->token = token + 1000;
	one->claim->slot->tenant_row = other->claim->tenant_row;
	ll_turn_note_gang(one->claim, card->now_ns);
	ll_account_charge(one->claim, card->now_ns, card->now_ns + LL_NS_PER_MS, LL_NS_PER_MS);
	assert_int_equal(its->gang_turn_until_ns, 0);
	assert_int_equal(its->gpu_time_ns, 0);
	one->claim->slot->token = token;
	one->claim->slot->tenant_row = one->claim->tenant_row;
	release_all(card);
}

static void test_a_holder_that_does_not_look_is_overtaken(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * LL_NS_PER_MS);
	a->is_deaf = true;
	uint64_t deaf_ns = card->now_ns;
	struct program *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 100 * LL_NS_PER_MS);
	assert_near((double)(b->first_ns - deaf_ns) / (double)LL_NS_PER_MS, 20, 1);
	/* Nothing is kept for it while it is away, and it is not made up for its absence. */
	assert_near((double)b->used_ns / (double)LL_NS_PER_MS, 80, 2);
	a->is_deaf = false;
	uint64_t used_ns = b->used_ns;
	run_for(card, LL_NS_PER_S);
	assert_true(b->used_ns - used_ns > 400 * LL_NS_PER_MS);
	release_all(card);
}

static void test_a_dead_claim_that_nobody_has_cleared_gets_nothing(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	int ready[2];
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();
	if (pid == 0) {
		struct fixture *f = card->fixture;
		struct ll_ledger *ledger = NULL;
		struct ll_claim *claim = NULL;
		unsigned row;
		struct ll_tenant_wish wish = {.id = 77, .name = "dead", .priority = LL_PRIORITY_HIGH};
		if (ll_ledger_open(f->folder, UUID, true, &ledger, NULL) || ll_tenant_join(ledger, &wish, &row, NULL))
			_exit(1);
		struct ll_claim_wish claim_wish = {.priority = LL_PRIORITY_HIGH, .tenant_row = row + 1};
		if (ll_claim_take(ledger, &claim_wish, "0", &claim, NULL))
			_exit(1);
		ll_turn_want(claim, card->now_ns);
		if (write(ready[1], "x", 1) == 1)
			pause();
		_exit(1);
	}
	char byte;
	assert_int_equal(read(ready[0], &byte, 1), 1);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 50, 1);
	assert_near(percent_of(b, TEN_S), 50, 1);
	close(ready[0]);
	close(ready[1]);
	release_all(card);
}

static void test_a_cap_holds_with_kernels_far_longer_than_its_account(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *capped = add(card, LL_PRIORITY_NORMAL, 1000, 100),
		       *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	capped->kernel_ns = 100 * LL_NS_PER_MS;
	run_for(card, TEN_S);
	assert_near(percent_of(capped, TEN_S), 10, 1);
	assert_near(percent_of(other, TEN_S), 90, 2);
	assert_true(capped->look.tokens_ns <= (int64_t)(20 * LL_NS_PER_MS));
	release_all(card);
}

/* A damaged page: without this nothing would be earned until the clock is there. */
static void test_an_account_whose_stamp_is_ahead_of_the_clock_earns_on(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *program = add(card, LL_PRIORITY_NORMAL, 1000, 250);
	struct ll_ledger_tenant *tenant = &card->fixture->ledger->file->tenants[program->claim->tenant_row - 1];
	run_for(card, LL_NS_PER_S);
	tenant->tokens_at_ns += UINT64_C(1) << 50;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 25, 1);
	release_all(card);
}

static struct ll_ledger_tenant *tenant_of(const struct card *card, const struct program *program)
{
	return &card->fixture->ledger->file->tenants[program->claim->tenant_row - 1];
}

/* The same: a debt of years. */
static void test_an_account_with_a_debt_that_nobody_can_have_earns_on(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *program = add(card, LL_PRIORITY_NORMAL, 1000, 250);
	run_for(card, LL_NS_PER_S);
	tenant_of(card, program)->tokens_ns = INT64_MIN / 2;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 25, 1);
	release_all(card);
}

/* It would come last until the other had as much. Who comes meanwhile does not begin there. */
static void test_virtual_time_that_nobody_can_have_costs_no_share(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	tenant_of(card, a)->virtual_time_ns = UINT64_C(1) << 62;
	a->used_ns = b->used_ns = 0;
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 50, 1);
	b->is_resting = true;
	ll_turn_rest(b->claim, card->now_ns);
	tenant_of(card, a)->virtual_time_ns = UINT64_MAX - LL_NS_PER_S;
	b->is_resting = false;
	ll_turn_want(b->claim, card->now_ns);
	a->used_ns = b->used_ns = 0;
	run_for(card, TEN_S);
	assert_near(percent_of(a, TEN_S), 50, 1);
	assert_near(percent_of(b, TEN_S), 50, 1);
	release_all(card);
}

static void test_moments_ahead_of_the_clock_keep_nobody_waiting(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *low;
	run_for(card, 100 * LL_NS_PER_MS);
	/* A holder that is stopped. */
	struct program *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	a->is_deaf = true;
	card->fixture->ledger->file->turn_since_ns = UINT64_MAX;
	a->claim->slot->heartbeat_ns = UINT64_MAX / 2;
	run_for(card, 30 * LL_NS_PER_MS);
	assert_true(b->used_ns > 0);
	/* A low class that would never have waited long enough. */
	low = add(card, LL_PRIORITY_LOW, 1000, 0);
	low->claim->slot->want_since_ns = UINT64_MAX;
	run_for(card, LL_NS_PER_S);
	assert_true(low->used_ns > 0);
	release_all(card);
}

static void test_a_cap_that_is_new_or_changed_holds_from_then_on(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *program = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	struct ll_ledger_tenant *tenant = &card->fixture->ledger->file->tenants[program->claim->tenant_row - 1];
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 100, 1);
	tenant->compute_cap_permille = 250;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 25, 1);
	tenant->compute_cap_permille = 500;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 50, 1);
	tenant->compute_cap_permille = 0;
	program->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(program, LL_NS_PER_S), 100, 1);
	release_all(card);
}

static void test_a_newcomer_shares_from_now_on_and_is_not_made_up_for_the_past(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *old = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, 5 * LL_NS_PER_S);
	struct program *late = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	uint64_t came_ns = card->now_ns;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(late, LL_NS_PER_S), 50, 3);
	assert_true(late->first_ns - came_ns <= 21 * LL_NS_PER_MS);
	(void)old;
	release_all(card);
}

static void rest(struct card *card, struct program *program)
{
	ll_turn_rest(program->claim, card->now_ns);
	program->is_resting = true;
}

static void come_back(struct card *card, struct program *program)
{
	program->used_ns = 0;
	ll_turn_want(program->claim, card->now_ns);
	program->is_resting = false;
}

static void test_a_pause_is_made_up_for_by_no_more_than_the_lag(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0), *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	rest(card, b);
	run_for(card, 2 * LL_NS_PER_S);
	a->used_ns = 0;
	come_back(card, b);
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(a, LL_NS_PER_S), 50, 3);
	assert_near(percent_of(b, LL_NS_PER_S), 50, 3);
	release_all(card);
}

/* It had the card to itself, and rests while the other comes. */
static void test_nobody_owes_the_time_in_which_nobody_else_wanted_the_card(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *light = add(card, LL_PRIORITY_NORMAL, 100, 0);
	run_for(card, 5 * LL_NS_PER_S);
	rest(card, light);
	add(card, LL_PRIORITY_NORMAL, 900, 0);
	run_for(card, 10 * LL_NS_PER_MS);
	come_back(card, light);
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(light, LL_NS_PER_S), 10, 2);
	release_all(card);
}

/* Ctrl-Z, or a batch system that suspends jobs. It still wants the card when it goes on. */
static void test_a_program_that_was_stopped_is_not_made_up_for_it(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *stopped = add(card, LL_PRIORITY_NORMAL, 1000, 0),
		       *other = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, LL_NS_PER_S);
	stopped->is_deaf = true;
	run_for(card, 5 * LL_NS_PER_S);
	stopped->is_deaf = false;
	other->used_ns = 0;
	run_for(card, LL_NS_PER_S);
	assert_near(percent_of(other, LL_NS_PER_S), 50, 3);
	release_all(card);
}

static void test_a_hundred_claims_share_evenly(void **state)
{
	struct card *card = new_card(state, LL_NS_PER_MS);
	for (int i = 0; i < MOST; i++)
		add(card, LL_PRIORITY_NORMAL, 1000, 0);
	run_for(card, TEN_S);
	for (int i = 0; i < MOST; i++)
		assert_near(percent_of(&card->programs[i], TEN_S), 1, 0.3);
	release_all(card);
}

static void test_a_gate_opens_only_for_who_is_alone_and_has_no_cap(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	step(card);
	assert_true(a->look.is_alone);
	assert_true(ll_turn_open_gate(a->claim, LL_GATE_OPEN, card->now_ns));
	assert_int_equal(*ll_turn_gate(a->claim), LL_GATE_OPEN);
	struct program *b = add(card, LL_PRIORITY_NORMAL, 1000, 0);
	assert_int_equal(*ll_turn_gate(a->claim), LL_GATE_SHUT);
	step(card);
	assert_false(a->look.is_alone);
	assert_false(ll_turn_open_gate(a->claim, LL_GATE_OPEN, card->now_ns));
	ll_turn_rest(b->claim, card->now_ns);
	b->is_resting = true;
	struct ll_ledger_tenant *tenant = &card->fixture->ledger->file->tenants[a->claim->tenant_row - 1];
	tenant->compute_cap_permille = 500;
	step(card);
	assert_false(a->look.is_alone);
	assert_false(ll_turn_open_gate(a->claim, LL_GATE_OPEN, card->now_ns));
	release_all(card);
}

/* Three programs that have taken turns for a while, and a copy of the page. */
static struct card *card_of_three(void **state, struct ll_ledger_file *ret_before)
{
	struct card *card = new_card(state, STEP_NS);
	add(card, LL_PRIORITY_NORMAL, 300, 0);
	add(card, LL_PRIORITY_NORMAL, 700, 0);
	add(card, LL_PRIORITY_HIGH, 1000, 0);
	run_for(card, 10 * LL_NS_PER_MS);
	memcpy(ret_before, card->fixture->ledger->file, sizeof *ret_before);
	return card;
}

static void test_what_a_claim_posts_changes_its_own_row_alone(void **state)
{
	static struct ll_ledger_file before;
	struct card *card = card_of_three(state, &before);
	struct program *program = &card->programs[1];
	struct ll_ledger_file *file = card->fixture->ledger->file;
	unsigned index = program->claim->index;
	program->turn = (struct ll_turn){.queued_launches = 7, .running_ns = 8, .dry_since_ns = 9};
	card->now_ns += LL_NS_PER_MS;
	assert_false(ll_turn_post(program->claim, &program->turn, card->now_ns, 6));
	const struct ll_ledger_slot *slot = &file->slots[index];
	assert_int_equal(slot->heartbeat_ns, card->now_ns);
	assert_int_equal(slot->queued_ns, 6);
	assert_int_equal(slot->queued_launches, 7);
	assert_int_equal(slot->running_ns, 8);
	assert_true(slot->visit & LL_VISIT_IS_DRY);
	memcpy(&before.slots[index], slot, sizeof *slot);
	assert_memory_equal(&before, file, sizeof before);
	/* it is not heard for long */
	card->now_ns += LL_TURN_DEAF_NS + 1;
	assert_true(ll_turn_post(program->claim, &program->turn, card->now_ns, 6));
	assert_false(ll_turn_post(program->claim, &program->turn, card->now_ns, 6));
	release_all(card);
}

static void test_a_pause_that_is_over_is_posted(void **state)
{
	static struct ll_ledger_file before;
	struct card *card = card_of_three(state, &before);
	struct program *program = &card->programs[1];
	const struct ll_ledger_slot *slot = program->claim->slot;
	program->turn.paused_since_ns = card->now_ns;
	ll_slot_set_flag(program->claim->slot, LL_VISIT_PAUSES, true);
	ll_turn_post(program->claim, &program->turn, card->now_ns + LL_TURN_PAUSE_NS - 1, 0);
	assert_true(slot->visit & LL_VISIT_PAUSES && program->turn.paused_since_ns);
	ll_turn_post(program->claim, &program->turn, card->now_ns + LL_TURN_PAUSE_NS, 0);
	assert_false(slot->visit & LL_VISIT_PAUSES || program->turn.paused_since_ns);
	release_all(card);
}

/* The programs say what they want and no more. Somebody who has no claim looks for all of them. */
static void test_one_party_may_decide_for_all(void **state)
{
	struct card *card = new_card(state, STEP_NS);
	struct program *a = add(card, LL_PRIORITY_NORMAL, 300, 0), *b = add(card, LL_PRIORITY_NORMAL, 700, 0);
	struct ll_ledger_file *file = card->fixture->ledger->file;
	for (uint64_t until_ns = card->now_ns + TEN_S; card->now_ns < until_ns;) {
		card->now_ns += card->step_ns;
		for (size_t i = 0; i < card->count; i++)
			ll_turn_post(card->programs[i].claim, &card->programs[i].turn, card->now_ns, 0);
		for (size_t i = 0; i < card->count; i++) {
			struct program *program = &card->programs[i];
			const struct ll_contender_id id = {
			    .file = file, .index = program->claim->index, .row = program->claim->tenant_row};
			ll_decide_look(&id, &program->turn, card->now_ns, &program->look);
		}
		struct program *user = a->look.may_launch ? a : b;
		assert_false(a->look.may_launch && b->look.may_launch);
		if (!user->look.may_launch) /* it has given the turn to one that was looked for before */
			continue;
		user->used_ns += card->step_ns;
		ll_account_charge(user->claim, card->now_ns - card->step_ns, card->now_ns, card->step_ns);
	}
	assert_near(percent_of(a, TEN_S), 30, 1);
	assert_near(percent_of(b, TEN_S), 70, 1);
	release_all(card);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    TURN_TEST(two_share_by_weight),
	    TURN_TEST(three_share_by_weight),
	    TURN_TEST(kernels_of_any_length_share_by_weight),
	    TURN_TEST(a_higher_class_gets_the_card_at_its_first_look),
	    TURN_TEST(a_low_class_has_its_service_however_busy_the_others_are),
	    TURN_TEST(who_has_the_turn_is_not_impatient_when_it_gives_it_away),
	    TURN_TEST(processes_of_a_tenant_have_its_turn_together),
	    TURN_TEST(a_stopped_process_of_a_tenant_holds_up_no_turn),
	    TURN_TEST(a_lost_claim_does_nothing_to_whoever_has_its_slot),
	    TURN_TEST(a_holder_that_does_not_look_is_overtaken),
	    TURN_TEST(a_dead_claim_that_nobody_has_cleared_gets_nothing),
	    TURN_TEST(a_cap_holds_with_kernels_far_longer_than_its_account),
	    TURN_TEST(an_account_whose_stamp_is_ahead_of_the_clock_earns_on),
	    TURN_TEST(an_account_with_a_debt_that_nobody_can_have_earns_on),
	    TURN_TEST(virtual_time_that_nobody_can_have_costs_no_share),
	    TURN_TEST(moments_ahead_of_the_clock_keep_nobody_waiting),
	    TURN_TEST(a_cap_that_is_new_or_changed_holds_from_then_on),
	    TURN_TEST(a_newcomer_shares_from_now_on_and_is_not_made_up_for_the_past),
	    TURN_TEST(a_pause_is_made_up_for_by_no_more_than_the_lag),
	    TURN_TEST(nobody_owes_the_time_in_which_nobody_else_wanted_the_card),
	    TURN_TEST(a_program_that_was_stopped_is_not_made_up_for_it),
	    TURN_TEST(a_hundred_claims_share_evenly),
	    TURN_TEST(a_gate_opens_only_for_who_is_alone_and_has_no_cap),
	    TURN_TEST(what_a_claim_posts_changes_its_own_row_alone),
	    TURN_TEST(a_pause_that_is_over_is_posted),
	    TURN_TEST(one_party_may_decide_for_all),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
