/*
 * command.h - the commands that make and change a simulated machine. They are lines of scenario files, or come from
 * loadline-simctl while programs run, or are stored in the world until their time ("at 3s card 0 xid 79"). README.md
 * lists them.
 */
#ifndef LOADLINE_SIM_CARD_COMMAND_H
#define LOADLINE_SIM_CARD_COMMAND_H

#include "card/words.h"

enum sim_command_phase {
	SIM_COMMAND_START, /* while the world is made: everything is allowed */
	SIM_COMMAND_LIVE,  /* later: the number of cards, their names and their sizes cannot change, because programs
			      would not notice */
	SIM_COMMAND_CHECK, /* changes nothing, and only checks whether the command could run live */
};

/* Runs one line on a world that is locked and brought up to now. An empty line does nothing. -EINVAL: err says what is
 * wrong. */
int sim_command_run(struct sim_world *w, const char *line, enum sim_command_phase phase, struct ll_err *err);

/* Runs `card N PROPERTY VALUE...` (card_command.c). */
int sim_card_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			 struct ll_err *err);

/* Runs `mps ...` (mps_command.c). */
int sim_mps_command_run(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			struct ll_err *err);

#endif
