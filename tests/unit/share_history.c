/* Whatever the tenants of a card did before: when all of them want all of it, each has its part by weight soon. */
#include "test.h"

#include "rules/share/visits.h"
#include "share_card.h"

enum { PROGRAMS = 4, PHASES = 12, HISTORIES = 200 };

enum conduct { RESTS, STOPPED, LIGHT, FLOODS, CONDUCTS };
static const char *const conduct_names[CONDUCTS] = {"rests", "stopped", "light", "floods"};

/* What the program of the same number on the card is like. */
static struct role {
	enum conduct conduct;
	bool waits_on_card;
	unsigned weight_permille;
	uint64_t visited_ns;
} roles[PROGRAMS];

static uint64_t dice;
static char history[2000];

static unsigned throw(unsigned sides)
{
	dice = dice * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return sides ? (unsigned)(dice >> 33) % sides : 0;
}

static void set_conduct(struct card *card, size_t i, enum conduct conduct)
{
	if (conduct == RESTS)
		rest(card, &card->programs[i]);
	else if (roles[i].conduct == RESTS)
		want(card, &card->programs[i]);
	roles[i].conduct = conduct;
}

/* Its visit, or its turn. Without tokens its host launches nothing. */
static bool has_card(const struct program *program, const struct role *role)
{
	const struct ll_turn_look *found = &program->claim.look;
	return role->conduct >= LIGHT && has_turn(program) && found->tokens_ns > 0 &&
	       (role->waits_on_card ? is_word_open(program) : found->may_launch);
}

/* A light program has 1 ms of work at a time: then its visit is dry. One that waits in its host rests while it has no
 * work, or no tokens. */
static void work_by_role(const struct card *card, struct program *program, struct role *role)
{
	role->visited_ns = has_card(program, role) ? role->visited_ns + card->step_ns : 0;
	if (role->visited_ns)
		use(program, card->step_ns);
	bool queue_is_empty = role->conduct == LIGHT && role->visited_ns > LL_NS_PER_MS;
	bool is_in_debt = role->conduct >= LIGHT && program->claim.look.tokens_ns <= 0;
	if (!role->waits_on_card && (queue_is_empty || is_in_debt)) {
		rest(card, program);
		want(card, program);
	} else {
		program->said.queue_is_empty = queue_is_empty;
	}
}

static void work_by_roles(struct card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		if (roles[i].conduct >= LIGHT)
			look(card, &card->programs[i]);
	}
	for (size_t i = 0; i < card->count; i++)
		work_by_role(card, &card->programs[i], &roles[i]);
}

static void note_history(size_t i, const char *what)
{
	size_t length = strlen(history);
	snprintf(history + length, sizeof history - length, " %zu %s,", i, what);
}

static void change_something(struct card *card)
{
	static const enum ll_priority classes[] = {LL_PRIORITY_HIGH, LL_PRIORITY_NORMAL, LL_PRIORITY_LOW};
	size_t i = throw((unsigned)card->count);
	struct ll_share_job *job = card->programs[i].job;
	switch (throw(4)) {
	case 0:
		job->cap_permille = throw(2) ? 100 : 0;
		note_history(i, job->cap_permille ? "has a cap" : "has none");
		break;
	case 1:
		ll_share_set_rank(card->programs[i].job, classes[throw(3)], card->now_ns);
		note_history(i, "changes its class");
		break;
	default:
		set_conduct(card, i, throw(CONDUCTS));
		note_history(i, conduct_names[roles[i].conduct]);
	}
}

static void add_role(struct card *card)
{
	struct role *role = &roles[card->count];
	*role = (struct role){.waits_on_card = throw(2), .weight_permille = 1000 * (1 + throw(4)), .conduct = FLOODS};
	struct program *program = add(card, LL_PRIORITY_NORMAL, role->weight_permille, 0);
	program->said.is_on_card = role->waits_on_card;
}

static void make_history(struct card *card)
{
	history[0] = 0;
	for (unsigned i = 2 + throw(PROGRAMS - 1); i > 0; i--)
		add_role(card);
	for (unsigned i = 0; i < PHASES; i++) {
		change_something(card);
		run_for(card, (1 + throw(40)) * 10 * LL_NS_PER_MS);
	}
	for (size_t i = 0; i < card->count; i++) {
		ll_share_set_rank(card->programs[i].job, LL_PRIORITY_NORMAL, card->now_ns);
		set_conduct(card, i, FLOODS);
	}
	run_for(card, 20 * LL_NS_PER_MS); /* the others see that */
	for (size_t i = 0; i < card->count; i++)
		card->programs[i].job->cap_permille = 0;
}

static void check_parts(struct card *card, unsigned number)
{
	uint64_t all_ns = 0, weights = 0;
	run_for(card, LL_NS_PER_S / 2); /* a newcomer has its share after that */
	for (size_t i = 0; i < card->count; i++)
		card->programs[i].used_ns = 0;
	run_for(card, LL_NS_PER_S);
	for (size_t i = 0; i < card->count; i++) {
		all_ns += card->programs[i].used_ns;
		weights += roles[i].weight_permille;
	}
	for (size_t i = 0; i < card->count; i++) {
		double part = (double)card->programs[i].used_ns / (double)LL_NS_PER_S;
		double wanted = (double)roles[i].weight_permille / (double)weights;
		if (part < wanted - 0.06 || part > wanted + 0.06)
			fail_msg("history %u:%s then %zu has %.3f of the time, not %.3f", number, history, i, part,
				 wanted);
	}
	assert_true(all_ns >= 97 * LL_NS_PER_S / 100);
}

TEST(each_has_its_part_whatever_was_before)
{
	for (unsigned number = 1; number <= HISTORIES; number++) {
		void *fresh = fresh_card();
		struct card *card = new_card(&fresh, LL_NS_PER_MS / 4);
		card->work = work_by_roles;
		dice = number;
		make_history(card);
		check_parts(card, number);
		assert_int_equal(card_teardown(&fresh), 0);
	}
}
