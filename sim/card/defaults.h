/*
 * defaults.h - the default properties of a card: an H200 as measured in doc/facts.md.
 */
#ifndef LOADLINE_SIM_CARD_DEFAULTS_H
#define LOADLINE_SIM_CARD_DEFAULTS_H

#include "card/world.h"

/* Fills w (all zero) with the default machine: one H200, driver 580, as of now_ns. */
void sim_world_init(struct sim_world *w, uint64_t now_ns, uint64_t wall_offset_ns);

/* Makes physical card `index` an H200; the UUID and the PCI address differ from card to card, never from run to run. */
void sim_card_init(struct sim_world *w, uint32_t index);

/* Returns the GPU memory that a context takes with this stack limit. The first process that initialises CUDA while the
 * card is visible takes SIM_PROCESS_BYTES more, until the last one ends. With CUDA_DEVICE_MAX_CONNECTIONS=1 a context
 * takes SIM_LEAN_BYTES less. */
uint64_t sim_context_bytes(const struct sim_card *card, uint64_t stack_bytes);
enum {
	SIM_PROCESS_BYTES = 3407872, /* 3.25 MiB */
	SIM_LEAN_BYTES = 1 << 20,
	SIM_DEFAULT_STACK_BYTES = 1024, /* per thread */
	SIM_UNLISTED_BYTES = 9227468,   /* 8.8 MiB that the process list does not show */
};

/* libcuda asks for slices of 2048 us, which last 2.09 ms on the card. */
enum { SIM_SLICE_ASKED = 2048, SIM_SLICE_LASTS = 2090 };

/* The unit in which a pool takes memory of the card, the unit of a pool's blocks, and the unit of physical memory by
 * cuMemCreate. */
#define SIM_POOL_CHUNK_BYTES (UINT64_C(32) << 20)
#define SIM_POOL_BLOCK_BYTES UINT64_C(512)
#define SIM_GRANULARITY_BYTES (UINT64_C(2) << 20)

#endif
