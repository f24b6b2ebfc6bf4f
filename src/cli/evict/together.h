/*
 * together.h - requests to several programs at once.
 *
 * The ranks of a training over several cards wait for each other inside kernels. If one rank is stopped, the kernels of
 * the others do not end, so these cannot stop any more. So all are asked at once. Even then one may have launched a
 * kernel that needs another rank's next one. Then those that could stop go on for a moment, and all are asked again, a
 * little more patiently each time.
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

/*
 * Suspends all programs that run and are evictable, if there are several, and puts them first: *ret_stopped.
 * wait_ns: how long they may take to become quiet at the last attempt, 0: 10 s; the attempts before take at most as
 * long together. Returns 0; or a failure, whose subject has it: then they all go on.
 */
int ll_evict_stop_together(struct ll_evict_subject *subjects, size_t count, uint64_t wait_ns, size_t *ret_stopped);

/* Of those that were stopped in this way, lets those go on whose last request failed. */
void ll_evict_let_failed_go_on(const struct ll_evict_subject *subjects, size_t count);

/* After an interruption: makes those as they were before that ran, or were suspended but not by the checkpoint. Their
 * rc and why say how that went; returns the first failure. */
int ll_evict_put_back(struct ll_evict_subject *subjects, size_t count);

#endif
