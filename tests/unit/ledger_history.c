/* Whatever the tenants of a card did before: when all of them want all of it, each has its part by weight soon. */
#include "test.h"

#include "base/clock.h"
#include "control/turns.h"
#include "ledger/account.h"
#include "ledger/contender.h"
#include "ledger/handle.h"
#include "ledger/turn.h"
#include "ledger_fixture.h"

enum { MOST = 4, PHASES = 12, HISTORIES = 200 };
#define STEP_NS (LL_NS_PER_MS / 4)

enum conduct { RESTS, STOPPED, LIGHT, FLOODS, CONDUCTS };
static const char *const conduct_names[CONDUCTS] = {"rests", "stopped", "light", "floods"};

struct program {
	struct ll_claim *claim;
	struct ll_turn turn;
	struct ll_turn_look look;
	enum conduct conduct;
	bool waits_on_card;
	unsigned weight_permille;
	uint64_t visited_ns, used_ns;
};

static struct {
	struct fixture *fixture;
	struct program programs[MOST];
	size_t count;
	uint64_t now_ns, dice;
	char history[2000];
} card;

static unsigned throw(unsigned sides)
{
	card.dice = card.dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return sides ? (unsigned)(card.dice >> 33) % sides : 0;
}

static void set_conduct(struct program *program, enum conduct conduct)
{
	if (conduct == RESTS)
		ll_turn_rest(program->claim, card.now_ns);
	else if (program->conduct == RESTS)
		ll_turn_want(program->claim, card.now_ns);
	program->conduct = conduct;
}

static struct ll_ledger_tenant *tenant_of(const struct program *program)
{
	return &card.fixture->ledger->file->tenants[program->claim->tenant_row - 1];
}

/* Its visit, or its turn. Without tokens its host launches nothing. */
static bool has_card(const struct program *program)
{
	bool is_open = *ll_turn_card_word(program->claim) & LL_VISIT_WORD_OPEN;
	return program->conduct >= LIGHT && ll_turn_is_mine(program->claim) && program->look.tokens_ns > 0 &&
	       (program->waits_on_card ? is_open : program->look.may_launch);
}

/* A light program has 1 ms of work at a time: then its visit is dry. One that waits in its host rests while it has no
 * work, or no tokens. */
static void work(struct program *program)
{
	program->visited_ns = has_card(program) ? program->visited_ns + STEP_NS : 0;
	if (program->visited_ns) {
		program->used_ns += STEP_NS;
		ll_account_charge(program->claim, card.now_ns - STEP_NS, card.now_ns, STEP_NS);
	}
	bool is_dry = program->conduct == LIGHT && program->visited_ns > LL_NS_PER_MS;
	bool is_in_debt = program->conduct >= LIGHT && program->look.tokens_ns <= 0;
	if (!program->waits_on_card && (is_dry || is_in_debt)) {
		ll_turn_rest(program->claim, card.now_ns);
		ll_turn_want(program->claim, card.now_ns);
	} else if (!is_dry) {
		program->turn.dry_since_ns = 0;
	} else if (!program->turn.dry_since_ns) {
		program->turn.dry_since_ns = card.now_ns;
	}
}

static void run_for(uint64_t ns)
{
	for (uint64_t until_ns = card.now_ns + ns; card.now_ns < until_ns;) {
		card.now_ns += STEP_NS;
		for (size_t i = 0; i < card.count; i++) {
			struct program *program = &card.programs[i];
			if (program->conduct >= LIGHT)
				ll_turn_look(program->claim, &program->turn, card.now_ns, 0, &program->look);
		}
		for (size_t i = 0; i < card.count; i++)
			work(&card.programs[i]);
	}
}

static void note_history(const struct program *program, const char *what)
{
	size_t length = strlen(card.history);
	snprintf(card.history + length, sizeof card.history - length, " %zu %s,", (size_t)(program - card.programs),
		 what);
}

static void change_something(void)
{
	static const enum ll_priority classes[] = {LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW};
	struct program *program = &card.programs[throw((unsigned)card.count)];
	switch (throw(4)) {
	case 0:
		tenant_of(program)->compute_cap_permille = throw(2) ? 100 : 0;
		note_history(program, tenant_of(program)->compute_cap_permille ? "has a cap" : "has none");
		break;
	case 1:
		ll_tenant_set_priority(card.fixture->ledger, program->claim->tenant_row - 1, classes[throw(3)],
				       card.now_ns);
		note_history(program, "changes its class");
		break;
	default:
		set_conduct(program, throw(CONDUCTS));
		note_history(program, conduct_names[program->conduct]);
	}
}

static void add_program(void)
{
	struct program *program = &card.programs[card.count++];
	*program =
	    (struct program){.waits_on_card = throw(2), .weight_permille = 1000 * (1 + throw(4)), .conduct = FLOODS};
	struct ll_tenant_wish wish = {.id = 1 + card.dice,
				      .name = "test",
				      .priority = LL_PRIORITY_NORMAL,
				      .weight_permille = program->weight_permille};
	program->claim = take_claim_of_new(card.fixture->ledger, &wish);
	ll_turn_set_waits_on_card(program->claim, program->waits_on_card);
	ll_turn_want(program->claim, card.now_ns);
}

static void make_history(void)
{
	card.history[0] = 0;
	card.count = 0;
	for (unsigned i = 2 + throw(MOST - 1); i > 0; i--)
		add_program();
	for (unsigned i = 0; i < PHASES; i++) {
		change_something();
		run_for((1 + throw(40)) * 10 * LL_NS_PER_MS);
	}
	for (size_t i = 0; i < card.count; i++) {
		ll_tenant_set_priority(card.fixture->ledger, card.programs[i].claim->tenant_row - 1, LL_PRIORITY_NORMAL,
				       card.now_ns);
		set_conduct(&card.programs[i], FLOODS);
	}
	run_for(20 * LL_NS_PER_MS); /* the others see that */
	for (size_t i = 0; i < card.count; i++)
		tenant_of(&card.programs[i])->compute_cap_permille = 0;
}

static void check_parts(unsigned history)
{
	uint64_t all_ns = 0, weights = 0;
	run_for(LL_NS_PER_S / 2); /* a newcomer has its share after that */
	for (size_t i = 0; i < card.count; i++)
		card.programs[i].used_ns = 0;
	run_for(LL_NS_PER_S);
	for (size_t i = 0; i < card.count; i++) {
		all_ns += card.programs[i].used_ns;
		weights += card.programs[i].weight_permille;
	}
	for (size_t i = 0; i < card.count; i++) {
		const struct program *program = &card.programs[i];
		double part = (double)program->used_ns / (double)LL_NS_PER_S;
		double wanted = (double)program->weight_permille / (double)weights;
		if (part < wanted - 0.06 || part > wanted + 0.06)
			fail_msg("history %u:%s then %zu has %.3f of the time, not %.3f", history, card.history, i,
				 part, wanted);
	}
	assert_true(all_ns >= 97 * LL_NS_PER_S / 100);
}

static void test_each_has_its_part_whatever_was_before(void **state)
{
	card.fixture = *state;
	for (unsigned history = 1; history <= HISTORIES; history++) {
		card.now_ns = LL_NS_PER_S;
		card.dice = history;
		open_ledger(card.fixture);
		make_history();
		check_parts(history);
		for (size_t i = 0; i < card.count; i++)
			ll_claim_release(card.programs[i].claim);
		ll_ledger_close(card.fixture->ledger);
		card.fixture->ledger = NULL;
		remove_files(card.fixture->folder);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test_setup_teardown(test_each_has_its_part_whatever_was_before, fixture_setup,
					    fixture_teardown),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
