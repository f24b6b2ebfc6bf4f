/*
 * mix_arbiter.h - the arbiter of a card on a clock of the caller's own: loadlined's books of shares
 * (src/daemon/arbiter) as they are, and around them what lies between them and the programs. That is the library's
 * looks at its own launches (src/shim/time/flow_tick.c) and loadlined's choice of when to decide
 * (src/daemon/arbiter/card_decide.c), with their times.
 */
#ifndef LOADLINE_TESTS_MIX_ARBITER_H
#define LOADLINE_TESTS_MIX_ARBITER_H

#include "daemon/arbiter/card.h"
#include "mix_program.h"

enum { MIX_MOST = 5 };

/* A program's library, and its job in the books. */
struct mix_member {
	struct mix_program *program;
	struct ll_share_job job;
	struct ll_share_claim claim;
	struct ll_share_said said;
	_Atomic uint32_t word;
	bool is_wanting;
	uint64_t tick_ns;                                              /* when it looks next */
	uint64_t paced_used_ns, paced_ns, paced_launches, paced_waits; /* of the last reading of its pace */
	uint64_t used_ns;                                              /* that it had used when it was charged last */
	bool has_looked;
};

struct mix_arbiter {
	struct ll_share_card card;
	struct mix_member members[MIX_MOST];
	unsigned count;
	uint64_t due_ns, all_ns, choice_ns, charged_ns;
	bool is_changed;
	/* how the card is shared, but for measurements; since when */
	bool gives_visits, has_measured;
	uint64_t chosen_ns;
};

/* forced: how the card is shared; MEASURED: by the rule. The programs must not move. */
void mix_arbiter_init(struct mix_arbiter *self, struct mix_program *programs, unsigned count,
		      enum ll_limit_sharing forced);
void mix_arbiter_fini(struct mix_arbiter *self);

/* The part of the time in which the highest class has work, for which those beneath it are held. */
double mix_arbiter_held_part(const struct mix_arbiter *self);

/* How many times as slow as alone the rule takes a program of that class to be, the slowest; 0: it has not seen it. */
double mix_arbiter_seen_slowdown(const struct mix_arbiter *self);

uint64_t mix_arbiter_next_ns(const struct mix_arbiter *self);

/* To be called after anything has happened. */
void mix_arbiter_go_on(struct mix_arbiter *self, uint64_t now_ns);

#endif
