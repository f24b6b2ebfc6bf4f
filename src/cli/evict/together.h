/*
 * together.h - requests to several programs at once.
 *
 * Those that are evictable are asked as one batch: loadlined stops them together before anything leaves
 * (daemon/residency/gather.h).
 */
#ifndef LOADLINE_CLI_EVICT_TOGETHER_H
#define LOADLINE_CLI_EVICT_TOGETHER_H

#include "cli/evict/evictor.h"
#include "cli/evict/request.h"
#include "protocol/message.h"
#include "protocol/words.h"

enum { LL_SUBJECT_NAME_SIZE = 128 };

/* A program that something is asked of, and what came of it. */
struct ll_evict_subject {
	struct ll_evictor_target target;
	struct ll_message_claim_row claim; /* with --pid: all zero */
	bool has_claim;
	char tenant[LL_NAME_SIZE];       /* of the claim's job */
	char name[LL_SUBJECT_NAME_SIZE]; /* for people */
	int rc;
	struct ll_err why; /* of rc */
	const struct ll_evictor *evictor;
	struct ll_evictor_moved moved;
};

/*
 * Asks it of each, and waits for all answers; those of evictable ones at once. Who does it: the checkpoint if that has
 * evicted or suspended the program; else the program itself, and the checkpoint if it is not evictable. -EINTR: the
 * target's interrupt.
 */
void ll_evict_ask(struct ll_evict_subject *subjects, size_t count, enum ll_evict_kind kind);

/* Puts those first that are evictable, and makes them one batch if they are several. Returns how many there are. */
size_t ll_evict_run_batch(struct ll_evict_subject *subjects, size_t count);

/* If all have failed: why the first did that was no mere companion of another. 0: not all have. */
int ll_evict_find_failure(const struct ll_evict_subject *subjects, size_t count);

/* At an interruption: asks the evictable ones to become as they were, and waits for nothing. No other request may
 * follow it (ll_evict_interrupt). */
void ll_evict_send_put_back(const struct ll_evict_subject *subjects, size_t count);

/* After an interruption: makes those as they were before that ran, or were suspended but not by the checkpoint. Their
 * rc and why say how that went; returns the first failure. */
int ll_evict_put_back(struct ll_evict_subject *subjects, size_t count);

#endif
