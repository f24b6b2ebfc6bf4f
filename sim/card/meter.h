/*
 * meter.h - the card's readings: NVML's 200 ms windows, power, energy, temperature, GPM's counters.
 *
 * Power is averaged over the last second, as nvmlDeviceGetPowerUsage does on this generation. Windows of utilisation
 * are 200 ms long, and every card has its own phase.
 */
#ifndef LOADLINE_SIM_CARD_METER_H
#define LOADLINE_SIM_CARD_METER_H

#include "card/world.h"

/* The load of a card during a period. Shares are 0..1 of the whole card. */
struct sim_load {
	bool is_busy;
	double sm;
	double occupancy;
	double fma;
	double tensor;
	double dram;
	bool is_copying[2]; /* to the card, from it */
};

/* Adds a period with this load to the meters of a card. */
void sim_meter_add(struct sim_world *w, uint32_t index, uint64_t length_ns, const struct sim_load *load);

/* Returns when the next window or power bucket ends. */
uint64_t sim_meter_edge_ns(const struct sim_card *card);

/* Closes the windows and buckets that end at the world's now. */
void sim_meter_close(struct sim_world *w, uint32_t index);

/* Skips a long period without work. The caller simulates the last seconds of it. */
void sim_meter_skip(struct sim_world *w, uint32_t index, uint64_t length_ns);

/* Return the card's readings: power, temperature, SM clock, and reasons of a low clock (NVML's bits). */
double sim_card_watts(const struct sim_card *card);         /* mean of the last second */
double sim_card_instant_watts(const struct sim_card *card); /* mean of the last 100 ms */
double sim_card_celsius(const struct sim_world *w, const struct sim_card *card);
uint32_t sim_card_sm_mhz(const struct sim_world *w, const struct sim_card *card);
uint64_t sim_card_clock_reasons(const struct sim_world *w, const struct sim_card *card);

#endif
