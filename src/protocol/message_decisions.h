/*
 * message_decisions.h - the rows of the reply to LL_MESSAGE_DECISIONS (message.h).
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_DECISIONS_H
#define LOADLINE_PROTOCOL_MESSAGE_DECISIONS_H

#include "protocol/message_header.h"

enum { LL_DECISION_MIXES = 8 };

struct ll_message_decisions {
	struct ll_message_header header;
	char uuid[LL_CARD_UUID_SIZE];
};

/* struct ll_regime_mix (rules/share/regime.h) */
struct ll_decision_mix {
	uint64_t number, used_ns, next_ns;
	double gain;
	uint32_t tries, why, gives_visits, unused;
};

/* The state of the rule before the first decision that follows: struct ll_regime, without a measurement. */
struct ll_message_decisions_state {
	struct ll_message_header header;
	uint64_t number; /* of that decision; 0: there is none */
	uint64_t new_mix, new_mix_ns, credit_at_ns;
	int64_t credit_ns;
	double gain;
	uint32_t gives_visits, why;
	uint32_t mix;      /* index of the present mix, from 1; 0: unknown */
	uint32_t has_half; /* a measurement was incomplete, so the decisions that follow cannot be replayed */
	struct ll_decision_mix mixes[LL_DECISION_MIXES];
};

enum ll_decision_flag {
	LL_DECISION_GIVES_VISITS = 1,
	LL_DECISION_IS_RULED = 2,  /* nothing is measured, because a rule serves these jobs */
	LL_DECISION_WAS_KNOWN = 4, /* a step of the lever: struct ll_lever_choice */
};

struct ll_message_decision {
	struct ll_message_header header;
	uint64_t number;
	uint64_t at_ns, age_ns;
	double gain;
	uint32_t moves, why; /* enum ll_regime_move, ll_regime_why */
	uint32_t flags;      /* enum ll_decision_flag */
	uint32_t block;
	uint32_t jobs;  /* number of DECISION_JOB messages that follow */
	uint32_t lever; /* enum ll_lever_move, of a step of a class's lever; 0: a step of the rule. A step of the lever
			   has moves 0 and IS_RULED, so an older command prints that a rule serves these programs */
	/* of a step of the lever: struct ll_lever_choice, and the rank of the class (enum ll_priority) */
	double part, from_part, busy, weighed_s;
	uint32_t rank, slice_us;
};

struct ll_message_decision_job {
	struct ll_message_header header;
	uint64_t number; /* of the decision */
	uint64_t id, completed, queued_launches, visited_ns;
	double slices, visits, alone; /* launches per second, if there was a verdict */
	uint32_t weight_permille, processes, waits;
	uint32_t slowdown_permille; /* this field and the fields after tenant belong to a step of the lever. Such a step
				       sets id and completed, and no other numbers above (struct ll_lever_gauge) */
	char tenant[LL_NAME_SIZE];
	double held_launches, held_s, open_launches, open_s;
	uint32_t has_slices; /* its time slices are by its weight and its processes */
	uint32_t unused;
};

#endif
