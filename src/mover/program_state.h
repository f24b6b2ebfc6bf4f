/*
 * program_state.h - what program.c and packets.c do to a program alike: words to it, its state, its room in the pool.
 */
#ifndef LOADLINE_MOVER_PROGRAM_STATE_H
#define LOADLINE_MOVER_PROGRAM_STATE_H

#include "mover/program.h"

/* To a program that is not disowned. If its socket is full it is deaf from now on. fd: to be sent along, or NULL. */
void ll_mover_program_say(struct ll_mover_program *program, const struct ll_mover_message *message, const int *fd);
void ll_mover_program_say_kind(struct ll_mover_program *program, enum ll_mover_kind kind, uint64_t value);

void ll_mover_program_enter(struct ll_mover_program *program, enum ll_residency state);
bool ll_mover_program_is_becoming_quiet(const struct ll_mover_program *program);

/* What of a program that returns is on the card again, and what is not. */
void ll_mover_program_note_came(struct ll_mover_program *program);

/* It had no room, and is told to try again. */
void ll_mover_program_note_no_room(struct ll_mover_program *program, uint64_t now_ns);

/* Notes as the reason for a refusal that the pool has no room for so many bytes. */
void ll_mover_program_note_full(struct ll_mover_program *program, const struct ll_mover_pool *pool, uint64_t bytes);

/* It could not leave: it is asked again after a while. */
void ll_mover_program_put_off(struct ll_mover_program *program, uint64_t now_ns);

/* Gives up a move that has begun: what has left returns. */
void ll_mover_program_turn_back(struct ll_mover_program *program, struct ll_mover_pool *pool, const char *why,
				uint64_t now_ns);

/* Has so many bytes reserved for it. As ll_mover_pool_reserve. */
int ll_mover_program_reserve(struct ll_mover_program *program, struct ll_mover_pool *pool, uint64_t bytes);

/* Frees the batch's block. */
void ll_mover_program_free_block(struct ll_mover_program *program, struct ll_mover_batch *batch);

/* The batch does not go on to the pool now. */
void ll_mover_program_stay_on(struct ll_mover_program *program, struct ll_mover_pool *pool,
			      struct ll_mover_batch *batch);

/* Gives back the places of its batches; the room that was reserved for it. */
void ll_mover_program_forget_batches(struct ll_mover_program *program, struct ll_mover_pool *pool);
void ll_mover_program_forget_reserved(struct ll_mover_program *program, struct ll_mover_pool *pool);

#endif
