/*
 * share_card.h - a card on a simulated clock, and programs that share it by the rule of src/daemon/arbiter. A program
 * that comes waits for each of its launches. The card is given for visits, if a test does not say otherwise.
 */
#ifndef LOADLINE_TESTS_UNIT_SHARE_CARD_H
#define LOADLINE_TESTS_UNIT_SHARE_CARD_H

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/arbiter/card.h"
#include "daemon/arbiter/contender.h"
#include "daemon/arbiter/decide.h"
#include "daemon/arbiter/time_on_card.h"

enum { MOST = 100 };

/* A program that always has work, in pieces of one step. */
struct program {
	struct ll_share_job own_job, *job;
	struct ll_share_claim claim;
	struct ll_share_said said;
	_Atomic uint32_t word;
	uint64_t used_ns, first_ns;
	uint64_t kernel_ns; /* length of its kernels; 0: a step */
	bool is_unresponsive, is_resting;
};

struct card {
	struct ll_share_card card;
	struct program programs[MOST];
	size_t count;
	uint64_t now_ns, step_ns, busy_until_ns;
	void (*work)(
	    struct card *card); /* what the programs do in a step, after now_ns has moved; NULL: work_in_steps */
};

static inline int card_setup(void **state)
{
	struct card *card = calloc(1, sizeof *card);
	if (!card)
		return -1;
	card->now_ns = LL_NS_PER_S;
	card->step_ns = 100 * LL_NS_PER_US;
	card->card.forced = LL_LIMIT_SHARING_VISITS;
	*state = card;
	return 0;
}

static inline int card_teardown(void **state)
{
	struct card *card = *state;
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].claim.job)
			ll_share_remove_claim(&card->programs[i].claim, card->now_ns);
	}
	bool is_clean = !card->card.wanting && !card->card.holder && !card->card.claim_count;
	ll_share_card_fini(&card->card);
	free(card);
	return is_clean ? 0 : -1;
}

/* A card that is not the setup's, which card_teardown ends. */
static inline struct card *fresh_card(void)
{
	void *fresh = NULL;
	if (card_setup(&fresh))
		abort();
	return fresh;
}

static inline struct card *new_card(void **state, uint64_t step_ns)
{
	struct card *card = *state;
	card->step_ns = step_ns;
	return card;
}

/* The program says what it wants. */
static inline void post(const struct card *card, struct program *program)
{
	program->said.at_ns = card->now_ns;
	ll_share_post(&program->claim, &program->said, card->now_ns);
}

static inline void want(const struct card *card, struct program *program)
{
	program->said.is_wanting = true;
	program->said.activity_ns = LL_ACTIVITY_NOW;
	program->is_resting = false;
	post(card, program);
}

static inline void rest(const struct card *card, struct program *program)
{
	program->said.is_wanting = false;
	program->said.activity_ns = card->now_ns;
	program->said.queued_ns = program->said.queued_launches = 0;
	program->is_resting = true;
	post(card, program);
}

static inline struct program *add_at_rest(struct card *card, const struct ll_share_job *like)
{
	struct program *program = &card->programs[card->count++];
	program->own_job = *like;
	program->own_job.id = card->count;
	program->own_job.word = &program->word;
	program->job = &program->own_job;
	program->said.launch_mode = LL_LAUNCH_MODE_SYNC;
	program->is_resting = true;
	ll_share_add_job(&card->card, program->job);
	assert_int_equal(ll_share_add_claim(program->job, &program->claim), 0);
	return program;
}

static inline struct program *add(struct card *card, enum ll_priority priority, unsigned weight_permille,
				  unsigned cap_permille)
{
	const struct ll_share_job like = {
	    .rank = priority, .weight_permille = weight_permille, .cap_permille = cap_permille};
	struct program *program = add_at_rest(card, &like);
	want(card, program);
	return program;
}

/* A client of MPS, whose launches are not known yet. */
static inline struct program *add_by_space(struct card *card, enum ll_priority priority, unsigned weight_permille)
{
	const struct ll_share_job like = {.rank = priority, .weight_permille = weight_permille, .is_by_space = true};
	struct program *program = add_at_rest(card, &like);
	program->said.launch_mode = LL_LAUNCH_MODE_UNKNOWN;
	want(card, program);
	return program;
}

/* Another process of the same job. */
static inline struct program *add_process(struct card *card, const struct program *of)
{
	struct program *program = &card->programs[card->count++];
	program->job = of->job;
	program->said.launch_mode = LL_LAUNCH_MODE_SYNC;
	assert_int_equal(ll_share_add_claim(program->job, &program->claim), 0);
	want(card, program);
	return program;
}

static inline void end(struct card *card, struct program *program)
{
	ll_share_remove_claim(&program->claim, card->now_ns);
	program->claim.job = NULL;
	program->is_resting = true;
}

static inline bool has_turn(const struct program *program)
{
	return ll_share_has_turn(&program->claim);
}

static inline bool is_word_open(const struct program *program)
{
	return *program->job->word & LL_VISIT_WORD_OPEN;
}

/* The program posts, and the card decides for it. */
static inline const struct ll_turn_look *look(const struct card *card, struct program *program)
{
	post(card, program);
	ll_share_look(&program->claim, card->now_ns);
	return &program->claim.look;
}

/* The card worked for the program. */
static inline void use(struct program *program, uint64_t ns)
{
	program->used_ns += ns;
	ll_share_charge(program->job, ns);
}

/* All programs look, and the first one that may launch has the card. */
static inline void work_in_steps(struct card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		struct program *program = &card->programs[i];
		if (program->is_unresponsive || program->is_resting)
			continue;
		look(card, program);
		if (!program->claim.look.may_launch || card->now_ns < card->busy_until_ns)
			continue;
		uint64_t ns = program->kernel_ns ? program->kernel_ns : card->step_ns;
		if (!program->first_ns)
			program->first_ns = card->now_ns;
		card->busy_until_ns = card->now_ns + ns;
		use(program, ns);
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

#define MS LL_NS_PER_MS
#define STEP_NS (100 * LL_NS_PER_US)
#define TEN_S (10 * LL_NS_PER_S)

#endif
