/*
 * neighbours.h - memory of other cards of the host, to which programs' memory is moved while nobody uses those cards.
 *
 * Between two H200s a copy runs at 360 GB/s, to the host at 55 (doc/facts.md). The mover needs no context on a
 * neighbour: it makes memory there, and lets its own card use it. NVML lists nobody for such memory.
 *
 * A card is a neighbour if the mover's card can use its memory directly. It is free while no program claims it and none
 * has memory there; holds and that card's own mover do not count. It is wanted as soon as one of both ends. Then its
 * blocks go on to the host, because a program that starts there may need all memory at once. CUDA_VISIBLE_DEVICES, as
 * the mover got it, hides neighbours too.
 *
 * For the thread that makes the mover's transfers.
 */
#ifndef LOADLINE_MOVER_NEIGHBOURS_H
#define LOADLINE_MOVER_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include "driver/cards.h"
#include "mover/books.h"
#include "mover/transfer.h"

struct ll_neighbours;
struct ll_neighbour;

/* Memory on a neighbour, mapped in the mover. */
struct ll_neighbour_block {
	struct ll_neighbour *neighbour;
	uint64_t bytes;
	struct ll_mapping memory;
	int fd; /* of the handle, for the program; -1: closed. ll_neighbour_block_free closes it */
};

/* Looks for neighbours of the engine's card. Engine, card and books outlive it. There may be none; NULL: no memory. */
struct ll_neighbours *ll_neighbours_new(const struct ll_transfer_engine *engine, const struct ll_card *card,
					struct ll_mover_books *books);
void ll_neighbours_free(struct ll_neighbours *neighbours); /* NULL is fine. No block may be left */

/* Returns a free card with room for so many bytes; NULL: there is none. Asks NVML: 0.1 ms for each card. */
struct ll_neighbour *ll_neighbours_choose(struct ll_neighbours *neighbours, uint64_t bytes);

/* Looks whether the cards that have blocks are free still. A card that is not free twice in a row is wanted: memory
 * that was just let go counts as somebody's for a moment. */
void ll_neighbours_look(struct ll_neighbours *neighbours);
bool ll_neighbour_is_wanted(const struct ll_neighbour *neighbour);

const char *ll_neighbour_label(const struct ll_neighbour *neighbour); /* the card's, as `-i` takes it */

/* Makes a block. NULL: the card has no room, or the driver refuses. */
struct ll_neighbour_block *ll_neighbour_block_new(struct ll_neighbour *neighbour, uint64_t bytes);
void ll_neighbour_block_free(struct ll_neighbour_block *block); /* NULL is fine */

/* Describes what is on neighbours, for people: "16384 MiB on card 1"; empty: nothing. */
void ll_neighbours_describe(const struct ll_neighbours *neighbours, char *text, size_t size);

#endif
