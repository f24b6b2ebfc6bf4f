/*
 * command.h - the commands that make and change a simulated machine. They stand in scenario files, come from
 * loadline-simctl while programs run, and wait in the world for their time ("at 3s card 0 xid 79"). README.md lists
 * them.
 */
#ifndef LOADLINE_SIM_CARD_COMMAND_H
#define LOADLINE_SIM_CARD_COMMAND_H

#include "card/world.h"

struct ll_err;

enum sim_command_phase {
	SIM_COMMAND_START, /* while the world is made: everything is allowed */
	SIM_COMMAND_LIVE,  /* later: not what programs could not see change (number of cards, names, sizes) */
	SIM_COMMAND_CHECK, /* changes nothing, only says whether it could be run live */
};

enum { SIM_MAX_WORDS = 32 };

/* A line cut into words. rest[i] is the line from word i on. */
struct sim_words {
	char text[256];
	char line[256];
	int count;
	const char *word[SIM_MAX_WORDS];
	const char *rest[SIM_MAX_WORDS];
};

/* Runs one line on a world that is locked and brought up to now. An empty line does nothing. -EINVAL says what is
 * wrong. */
int sim_command_run(struct sim_world *w, const char *line, enum sim_command_phase phase, struct ll_err *err);

/* `card N PROPERTY VALUE...`: card_command.c. */
int sim_card_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			 struct ll_err *err);

/* `mps ...`: mps_command.c. */
int sim_mps_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			struct ll_err *err);

/* [for D] [after N] [count N] from word i on, into a fault. */
int sim_fault_parse_limits(const struct sim_world *w, const struct sim_words *words, int i, struct sim_fault *fault,
			   struct ll_err *err);
/* -ENOSPC: too many at once. */
int sim_fault_add(struct sim_world *w, const struct sim_fault *fault, struct ll_err *err);

/* A number min..max, a duration, a size, at word i; -EINVAL when it is missing or wrong. */
int sim_word_uint(const struct sim_words *words, int i, uint64_t min, uint64_t max, uint64_t *ret, struct ll_err *err);
int sim_word_duration(const struct sim_words *words, int i, uint64_t *ret_ns, struct ll_err *err);
int sim_word_bytes(const struct sim_words *words, int i, uint64_t *ret_bytes, struct ll_err *err);
int sim_word_number(const struct sim_words *words, int i, double min, double max, double *ret, struct ll_err *err);

/* Lines must not go on after `count` words. */
int sim_words_end(const struct sim_words *words, int count, struct ll_err *err);

/* Puts off a command. -EINVAL when it could never run, -ENOSPC when too many wait. */
int sim_command_schedule(struct sim_world *w, uint64_t at_ns, const char *line, struct ll_err *err);

#endif
