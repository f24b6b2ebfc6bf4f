/*
 * scenario.h - the text file that describes a simulated machine: one command on each line (command.h); `#` begins a
 * comment. README.md is its manual.
 */
#ifndef LOADLINE_SIM_CARD_SCENARIO_H
#define LOADLINE_SIM_CARD_SCENARIO_H

#include <stdbool.h>
#include <stdint.h>

struct ll_err;
struct sim_world;

struct sim_scenario {
	char *path;
	char *text;
	uint64_t hash; /* of the text; 0 for no scenario */
	bool is_named; /* false: no file was asked for */
};

/* Reads the file. path NULL or empty: the default machine. -EINVAL: the file cannot be read. The caller frees it with
 * sim_scenario_fini. */
int sim_scenario_load(const char *path, struct sim_scenario *ret_scenario, struct ll_err *err);

/* Runs a scenario on a world that sim_world_init has filled. -EINVAL: err names file and line. */
int sim_scenario_apply(const struct sim_scenario *scenario, struct sim_world *w, struct ll_err *err);

/* Frees the memory of a scenario. */
void sim_scenario_fini(struct sim_scenario *scenario);

#endif
