/*
 * mix_program.h - programs of work on the simulated card, on a clock of the caller's own.
 *
 * A program makes rounds: its host pauses, makes so many launches, and waits for this round or for an earlier one. A
 * round is the same work whatever it takes. The host's speed drifts as that of real ones does (doc/facts.md, "How
 * programs get on"): it depends on the program's seed and on the time alone, so that a program meets the same drift in
 * whatever way the card is shared.
 *
 * With a gate the program does what the library does (src/shim/time/flow_hold.c, flow_tick.c): launches wait on the
 * card for the job's word, and the host waits while much is queued.
 */
#ifndef LOADLINE_TESTS_MIX_PROGRAM_H
#define LOADLINE_TESTS_MIX_PROGRAM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "card/world.h"

enum {
	MIX_STREAMS = 8,
	MIX_LAUNCHES = 1024, /* of a round, at most */
	MIX_ROUNDS = 64,     /* that the host may be ahead, at most, and one more */
	MIX_DRIFTS = 512,
	MIX_LATENCIES = 4096, /* of the newest rounds */
};
#define MIX_DRIFT_NS (50 * LL_NS_PER_MS)
#define MIX_BEGIN_NS (1000 * LL_NS_PER_S) /* the world's time at which drift begins */

struct mix_kind {
	const char *name;
	unsigned launches;    /* of a round */
	double kernel_ns;     /* mean length of its kernels */
	double kernel_spread; /* of the lengths within a round: deviation of their logarithms */
	double call_ns;       /* from one launch to the next, of the host */
	double pause_ns;      /* of the host, before each round */
	double think_ns;      /* and this, at random: the mean of an exponential distribution */
	double copy_ns;       /* a copy back behind the round; 0: none */
	double drift;         /* of the host's speed: deviation of its logarithm */
	unsigned streams;
	unsigned ahead; /* rounds that the host may be ahead of the card; 0: it waits for each */
	unsigned weight_permille;
	unsigned rank;         /* of its class (enum ll_priority); 0: normal */
	unsigned cap_permille; /* 0: none */
	uint64_t seed;
};

/* Whether people wait for its rounds: they come at random times, and take so long from their first launch on. */
static inline bool mix_kind_answers(const struct mix_kind *kind)
{
	return kind->think_ns > 0;
}

/* What the library knows of the gate. */
struct mix_gate {
	bool is_exclusive; /* launches wait on the card */
	uint64_t bound_ns; /* of work that may be queued, and two launches in any case; 0: none */
	/* of one with a cap: its account is in debt, its orders let it launch, and what the account holds */
	bool is_in_debt, may_launch;
	uint64_t tokens_ns;
	bool is_open;     /* as the card sees it from seen_ns on */
	uint32_t word;    /* counts its changes */
	uint64_t seen_ns; /* when the card sees the last change */
	bool waits_for_room;
	bool must_ask, is_asking; /* it rests, and the next launch waits in the host for an answer; it does so now */
	uint64_t unheld_ns[MIX_STREAMS]; /* work since the last wait in that stream */
	uint32_t waits_at[MIX_STREAMS];  /* the word when that wait was made; 0: none was */
};

struct mix_program {
	struct mix_kind kind;
	struct sim_world *w;
	uint32_t context, streams[MIX_STREAMS];
	uint64_t dice;
	double drifts[MIX_DRIFTS], lengths_ns[MIX_LAUNCHES];
	/* the host */
	uint64_t act_ns;         /* when it goes on; SIM_NEVER: it waits */
	uint64_t round, awaited; /* awaited: the round that it waits for, + 1; 0: none */
	unsigned at;             /* launches made of the round */
	unsigned left[MIX_ROUNDS];
	uint64_t noted[MIX_STREAMS];
	/* counts */
	uint64_t launched, completed, waits;
	uint64_t queued_ns, ended_ns; /* work launched and not done; when the last launch was done */
	uint64_t kernels_ns;          /* lengths of the kernels that are done */
	uint64_t stalled_since_ns,
	    stalled_most_ns;    /* a launch waits for its cap, since when; 0: none does; the longest time */
	uint64_t idle_since_ns; /* nothing is queued since then; 0: something is */
	struct mix_gate gate;
	/* of a kind that answers: the newest rounds */
	uint64_t asked_ns; /* when the round began; 0: it has not */
	uint64_t latencies_ns[MIX_LATENCIES], answered;
};

void mix_program_init(struct mix_program *self, struct sim_world *w, const struct mix_kind *kind);

/* When it does something next by itself. */
uint64_t mix_program_next_ns(const struct mix_program *self);

/* Brings it to the world's time. True: the card may have something to do at once. */
bool mix_program_go_on(struct mix_program *self);

/* The word of its job is so now. */
void mix_program_set_word(struct mix_program *self, bool is_open);

/* The launch that was asked for may go. */
void mix_program_answer(struct mix_program *self);

/* The median latency of the rounds that were answered since `answered` was 0, or of the newest of them; 0: none was. */
uint64_t mix_program_latency_ns(const struct mix_program *self);

/* The GPU time that it has used. Kernels that run at once count once. */
uint64_t mix_program_used_ns(const struct mix_program *self);

/* The longest kernel of a round. */
double mix_longest_kernel_ns(const struct mix_kind *kind);

/* The longest time that a launch waited for the program's cap since stalled_most_ns was 0, until now. */
uint64_t mix_program_stall_ns(const struct mix_program *self);

/* Whether a launch that passed the gate goes on while the word is shut. */
bool mix_program_overruns(const struct mix_program *self);

#endif
