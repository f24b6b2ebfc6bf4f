/*
 * model_world.h - a world of the card model alone, on a clock of the test's own (tests/sim/engine.c and its like): one
 * card whose figures are round. It is made before and freed after each TEST (TEST_EACH(new_world, free_world)).
 */
#ifndef LOADLINE_TESTS_SIM_MODEL_WORLD_H
#define LOADLINE_TESTS_SIM_MODEL_WORLD_H

#include <sys/mman.h>

#include "base/clock.h"
#include "base/err.h"
#include "card/command.h"
#include "card/engine.h"
#include "card/world.h"
#include "test.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS
#define SLICE (2 * MS)
#define SWITCH (150 * US)

static struct sim_world *w;
static uint64_t now_ns;

static inline void run(const char *command)
{
	struct ll_err err = {0};
	if (sim_command_run(w, command, SIM_COMMAND_START, &err) < 0)
		fail_msg("%s: %s", command, err.text);
}

static inline void go_to(uint64_t to_ns)
{
	now_ns = to_ns;
	sim_advance(w, now_ns, 0);
}

static inline int new_world(void **state)
{
	(void)state;
	w = mmap(NULL, sizeof *w, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (w == MAP_FAILED)
		return -1;
	now_ns = 1000 * LL_NS_PER_S;
	sim_world_init(w, now_ns, 0);
	run("card 0 slice 2ms");
	run("card 0 switch 150us");
	run("card 0 save 0s");
	run("card 0 launch-latency 5us");
	run("card 0 kernel-gap 1us");
	run("card 0 drift-ppm 0");
	return 0;
}

static inline int free_world(void **state)
{
	(void)state;
	return munmap(w, sizeof *w);
}

#endif
