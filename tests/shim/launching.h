/*
 * launching.h - for tests of programs under limits: the simulator's tests' world (tests/sim/process.h) with the shim
 * preloaded, and what `loadline run` would have said to it.
 *
 * How a program fares is read from the ledger. That a call is gated is told without a clock: its tenant is put in debt
 * first, and the call comes back when that is paid, or does not care.
 */
#ifndef LOADLINE_TESTS_SHIM_LAUNCHING_H
#define LOADLINE_TESTS_SHIM_LAUNCHING_H

#include "../sim/process.h"
#include "base/clock.h"
#include "ledger/handle.h"
#include "ledger/run_settings.h"

/* Before the first call of the driver in this process. The tenant's id is settings.id. */
void govern_by(struct ll_run_settings settings);

/*
 * Governed by that cap (permille; 0: none) as tenant "test": a context on card 0, the kernel work_ns and a stream, in
 * which it has run for 0.1 ms.
 */
struct ll_cu_context *begin_program(uint64_t id, unsigned cap_permille, struct ll_cu_function **ret_work,
				    struct ll_cu_stream **ret_stream);

/* The program has said that it is done: nothing of a launch was left half-way. */
void check_rests(uint64_t id);

/* Card 0's ledger, by a handle of the test's own, and this program's tenant in it. After open_context. */
struct ll_ledger *card_ledger(void);
struct ll_ledger_tenant *tenant(uint64_t id);
struct ll_ledger_slot *claim_of(uint64_t id); /* its first claim; NULL: none */

uint64_t gpu_ns(uint64_t id);
int64_t tokens_ns(uint64_t id);
uint64_t virtual_ns(uint64_t id);

/* The driver is done, the claim rests, and then the tenant owes so much GPU time. */
void owe(uint64_t id, uint64_t ns);

/* A kernel that needs that long, in a stream. */
void launch_work(struct ll_cu_stream *stream, uint64_t ns);

#endif
