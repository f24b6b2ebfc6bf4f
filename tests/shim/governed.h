/*
 * governed.h - tests of a program that `loadline run` started, on the simulator, with the shim preloaded: what it is
 * allowed, what it was charged.
 */
#ifndef LOADLINE_TESTS_SHIM_GOVERNED_H
#define LOADLINE_TESTS_SHIM_GOVERNED_H

#include "../sim/process.h"

#include "protocol/run_settings.h"

#define KIB UINT64_C(1024)
#define MIB (1024 * KIB)
#define GIB (1024 * MIB)

/* What a context of the simulated H200 is charged before it is made: 132 SMs of 2 MiB, and as much for stacks. */
#define CONTEXT_BYTES (528 * MIB)

/* Before the first call of a hook: this process and its children are a tenant with that limit (0: none). */
void govern(uint64_t limit_bytes);
void govern_without_context(uint64_t limit_bytes);
void govern_evictable(uint64_t limit_bytes); /* and its memory may be moved */

/* The same, as a table of tests has it. */
enum governed_way { GOVERNED_PLAINLY, GOVERNED_STRICTLY, GOVERNED_EVICTABLY, GOVERNED_WAYS };
void govern_in_way(enum governed_way way, uint64_t limit_bytes);

uint64_t governed_id(void); /* the tenant's */
void find_uuid(unsigned card, char ret_uuid[96]);

/* What the job's processes are charged on that card, as anybody reads it in the job's page. Those that have ended are
 * not among them. */
uint64_t charged_on(unsigned card);
uint64_t charged(void); /* on card 0 */

/* Another limit from now on, as `loadline set` does it. */
void set_limit(uint64_t limit_bytes);

/* What card 0 itself says is in use, within 0.1 MiB. */
uint64_t card_used(void);

/* From begin to end a thread looks at the tenant's charges on card 0 without a pause. end_watch returns the most that
 * it has seen. */
void begin_watch(void);
uint64_t end_watch(void);

/* The most that was ever in use there. */
uint64_t card_most(void);

#endif
