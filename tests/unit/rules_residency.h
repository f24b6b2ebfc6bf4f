/* What the tests of residency.h's rules share: programs in each state. */
#ifndef LOADLINE_TESTS_UNIT_RULES_RESIDENCY_H
#define LOADLINE_TESTS_UNIT_RULES_RESIDENCY_H

#include "base/clock.h"
#include "rules/residency/residency.h"
#include "test.h"

#define MS LL_NS_PER_MS
#define S LL_NS_PER_S
#define GIB (UINT64_C(1) << 30)
#define NOW (1000 * S)

enum { HIGH = 1, NORMAL, LOW };

/* On the card, at work, for long. */
static inline struct ll_residency_program here(uint64_t gib)
{
	return (struct ll_residency_program){
	    .state = LL_RESIDENCY_HERE, .priority = NORMAL, .bytes = gib * GIB, .here_since_ns = 1};
}

/* Away, and wants to return since so long. */
static inline struct ll_residency_program waiting(uint64_t gib, uint64_t since_ns)
{
	return (struct ll_residency_program){.state = LL_RESIDENCY_AWAY,
					     .priority = NORMAL,
					     .bytes = gib * GIB,
					     .wants = true,
					     .want_since_ns = NOW - since_ns};
}

static inline struct ll_residency_program in_state(enum ll_residency state, uint64_t gib)
{
	struct ll_residency_program program = here(gib);
	program.state = state;
	if (state == LL_RESIDENCY_RESUMING || state == LL_RESIDENCY_EVICTING || state == LL_RESIDENCY_STAYING)
		program.left_bytes = program.bytes;
	return program;
}

static inline uint64_t turn_of(uint64_t leaving_gib, uint64_t coming_gib)
{
	return ll_residency_turn_ns(ll_residency_move_ns(leaving_gib * GIB), ll_residency_move_ns(coming_gib * GIB));
}

#define decide(programs, free_gib)                                                                                     \
	ll_residency_decide(programs, sizeof(programs) / sizeof *(programs), (const uint64_t[]){(free_gib)*GIB}, NOW)

#define assert_step(programs, free_gib, wanted_step, wanted_who)                                                       \
	do {                                                                                                           \
		struct ll_residency_decision decision_ = decide(programs, free_gib);                                   \
		assert_int_equal(decision_.step, wanted_step);                                                         \
		assert_int_equal(decision_.who, wanted_who);                                                           \
	} while (0)

#define assert_waits(programs, free_gib, until_ns)                                                                     \
	do {                                                                                                           \
		struct ll_residency_decision decision_ = decide(programs, free_gib);                                   \
		assert_int_equal(decision_.step, LL_RESIDENCY_WAIT);                                                   \
		assert_true(decision_.again_ns == (until_ns));                                                         \
	} while (0)

#endif
