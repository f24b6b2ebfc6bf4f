/*
 * launching.h - for tests of programs under limits: the simulator's tests' world (tests/sim/process.h) with the shim
 * preloaded, and what `loadline run` would have said to it.
 *
 * How a program fares is read from its job's page. That a call is gated is told without a clock: its tenant is put in
 * debt first, and the call comes back when that is paid, or does not care.
 */
#ifndef LOADLINE_TESTS_SHIM_LAUNCHING_H
#define LOADLINE_TESTS_SHIM_LAUNCHING_H

#include "../sim/process.h"
#include "base/clock.h"
#include "jobs.h"
#include "protocol/words.h"

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

/* After open_cuda: card 0's UUID; the first slot of that job there (NULL: none), and how many it has; its order. */
const char *card_uuid(void);
struct ll_page_slot *claim_of(uint64_t id);
unsigned count_claims(uint64_t id);
const struct ll_orders_slot *order_of(uint64_t id);

/* What the first claim is charged, and its note. */
uint64_t charged_bytes(uint64_t id);
bool has_note(uint64_t id);

/* Zeroed memory that this process shares with those that it starts from now on. */
void *share_memory(size_t bytes);

uint64_t gpu_ns(uint64_t id);
int64_t tokens_ns(uint64_t id);
uint64_t virtual_ns(uint64_t id);

/* Whether it wants the card, and has no more on it than waits there at most: 20 ms, and what runs. */
bool is_bounded(uint64_t id, uint64_t kernel_ns);

/* What the tenants of ids 1 and 2 got of the card while both of them wanted it. kernel_ns is the caller's. */
struct shares {
	struct look {
		bool wants;               /* and has not much on the card, and was seen of late */
		double gpu_ns, lifted_ns; /* virtual time beyond what its GPU time comes to */
	} seen[2];
	double got_ns[2];
	uint64_t kernel_ns; /* of the longest of their kernels */
};

/*
 * The host runs each of them when it can. A program that it leaves aside has nothing on the card and rests. The library
 * does not owe it what the other gets meanwhile: when it comes back, its virtual time is lifted to the other's. Such a
 * stretch is not counted; nor one in which a program has not looked for so long that others may take its turn. Nor is
 * what comes behind a longer one: nobody has seen the program for so long that the other one's gate was opened, and
 * that has hundreds of kernels on the card since. True: they have total_ns together, and each has some of it.
 */
bool have_shared(struct shares *shares, uint64_t total_ns);

/* The driver is done, the claim rests, and then the job owes so much GPU time: the card is said to have worked for it,
 * for no longer than its programs have lived, and a second. Nothing, if it has no cap. */
void owe(uint64_t id, uint64_t ns);
void owe_for_long(uint64_t id);               /* a minute, under a cap of a permille from now on */
void set_cap(uint64_t id, unsigned permille); /* 0: none */

/* A kernel that needs that long, in a stream. */
void launch_work(struct ll_cu_stream *stream, uint64_t ns);

#endif
