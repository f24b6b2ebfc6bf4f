/*
 * fake_payload.h - a payload without a card: every kernel runs as ordered, except for what a test injects.
 *
 * Its card clock is the host's plus a constant. Records are written at launch. One instance, so tests use it one at a
 * time; what a test sets while the pacer runs is atomic. Its world is shared memory: a worker process that the test
 * program starts (itself, once more) meets the same one.
 */
#ifndef LOADLINE_TESTS_UNIT_FAKE_PAYLOAD_H
#define LOADLINE_TESTS_UNIT_FAKE_PAYLOAD_H

#include <stdatomic.h>
#include <stdbool.h>

#include "hold/payload.h"

struct fake_payload_world {
	atomic_int open_rc;   /* what opening returns */
	atomic_bool is_lost;  /* launch and check fail from now on */
	atomic_bool is_stuck; /* kernels never write their record */
	atomic_bool hangs_in_open;
	atomic_bool has_hung_in_open; /* one has begun to */
	atomic_bool hangs_in_close;
	atomic_bool has_stranger; /* the next kernel starts 1 ms late and ends at once; then cleared */
	atomic_bool has_gap;      /* the next kernel has a hole of 2 ms and ends at once; then cleared */
	atomic_bool
	    has_slow_call; /* the next launch call takes long, the kernel is stopped on the card; then cleared */
	atomic_bool has_unseen_record; /* the next kernel's record is written when the driver is asked,
					  LL_PACER_STALL_NS or more after its end; then cleared */
	atomic_ulong launches;
	atomic_ulong contexts; /* open now */
	atomic_ulong last_blocks;
};

/* Valid after fake_world_open, which is called first thing in main, in the test and in its worker. */
extern struct fake_payload_world *fake_world;
void fake_world_open(void);

extern const struct ll_payload_ops fake_payload_ops;

/* Named "fake-alone"; what it opens is the same. open_rc means nothing to it. */
extern const struct ll_payload_ops fake_payload_alone_ops;

#endif
