/*
 * turn_card.h - a card on a simulated clock, and programs that are visited on it through the ledger, because they wait
 * for each of their launches.
 */
#ifndef LOADLINE_TESTS_UNIT_TURN_CARD_H
#define LOADLINE_TESTS_UNIT_TURN_CARD_H

#include "base/clock.h"
#include "ledger/account.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

enum { MOST = 100 };

/* A program that always has work, in pieces of one step. */
struct program {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
	uint64_t used_ns, first_ns;
	uint64_t kernel_ns; /* length of its kernels; 0: a step */
	bool is_deaf, is_resting;
};

struct card {
	struct fixture *fixture;
	struct program programs[MOST];
	size_t count;
	uint64_t now_ns, step_ns, busy_until_ns;
	void (*work)(
	    struct card *card); /* what the programs do in a step, after now_ns has moved; NULL: work_in_steps */
};

static inline struct card *new_card(void **state, uint64_t step_ns)
{
	static struct card card;
	card = (struct card){.fixture = *state, .now_ns = LL_NS_PER_S, .step_ns = step_ns};
	open_ledger(card.fixture);
	return &card;
}

static inline struct program *add(struct card *card, enum ll_priority priority, unsigned weight_permille,
				  unsigned cap_permille)
{
	struct program *program = &card->programs[card->count++];
	struct ll_tenant_wish wish = {.id = card->count,
				      .name = "test",
				      .priority = priority,
				      .weight_permille = weight_permille,
				      .compute_cap_permille = cap_permille};
	program->claim = take_claim_of_new(card->fixture->ledger, &wish);
	ll_turn_set_pace(program->claim, LL_PACE_WAITS); /* else nobody takes turns */
	ll_turn_want(program->claim, card->now_ns);
	return program;
}

static inline void release_all(struct card *card)
{
	for (size_t i = 0; i < card->count; i++)
		ll_claim_release(card->programs[i].claim);
}

/* The program asks whether it may launch. The card has none of its work queued. */
static inline void look(const struct card *card, struct program *program)
{
	uint64_t queued_ns = 0;
	ll_turn_look(program->claim, &program->turn, card->now_ns, queued_ns, &program->look);
}

/* The card worked for the program from start_ns to end_ns. */
static inline void use(struct program *program, uint64_t start_ns, uint64_t end_ns)
{
	program->used_ns += end_ns - start_ns;
	ll_account_charge(program->claim, start_ns, end_ns, end_ns - start_ns);
}

/* All programs look, and the first one that may launch has the card. */
static inline void work_in_steps(struct card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		if (program->is_deaf || program->is_resting)
			continue;
		look(card, program);
		if (!program->look.may_launch || card->now_ns < card->busy_until_ns)
			continue;
		uint64_t ns = program->kernel_ns ? program->kernel_ns : card->step_ns;
		if (!program->first_ns)
			program->first_ns = card->now_ns;
		card->busy_until_ns = card->now_ns + ns;
		use(program, card->now_ns, card->busy_until_ns);
	}
}

static inline void step(struct card *card)
{
	card->now_ns += card->step_ns;
	if (card->work)
		card->work(card);
	else
		work_in_steps(card);
}

static inline void run_for(struct card *card, uint64_t ns)
{
	for (uint64_t until_ns = card->now_ns + ns; card->now_ns < until_ns;)
		step(card);
}

static inline double percent_of(const struct program *program, uint64_t ns)
{
	return 100.0 * (double)program->used_ns / (double)ns;
}

static inline void assert_near(double value, double wanted, double tolerance)
{
	if (value < wanted - tolerance || value > wanted + tolerance)
		fail_msg("%.2f is not within %.2f of %.2f", value, tolerance, wanted);
}

#define STEP_NS (100 * LL_NS_PER_US)
#define TEN_S (10 * LL_NS_PER_S)

#define TURN_TEST(name) cmocka_unit_test_setup_teardown(test_##name, fixture_setup, fixture_teardown)

#endif
