/*
 * timing_setup.h - a program whose launches are timed, on the card of card_model.h, for tests of what the timing events
 * say of it. What the flow and the agent do with the timing events while nobody else wants the card is done here.
 */
#ifndef LOADLINE_TESTS_EVENTING_H
#define LOADLINE_TESTS_EVENTING_H

#include "base/clock.h"
#include "card_model.h"
#include "shim/time/timing.h"
#include "shim/time/timing_clock.h"
#include "test.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS
#define STREAM(number) ((struct ll_cu_stream *)(uintptr_t)(0x1000 * (number)))
#define LAUNCH_NS 2600 /* the call, doc/facts.md */

/* Of the program that was begun last. */
extern struct ll_timing *timing;
extern uint64_t charged_ns, launches;
extern bool are_events_slow; /* of those to come: the card's, doc/facts.md */
extern bool is_cap_far;      /* it is seldom looked after */

/* lock: NULL, there is one thread. */
void begin_program_by(struct ll_timing_lock *lock, int drift_ppm);
void begin_program(int drift_ppm);
void begin_program_far_from_its_cap(void);

/* One thing that the card does, of that kind, and so long. */
void do_in(struct ll_timing_stream name, uint64_t kind, uint64_t ns,
	   void (*work)(struct ll_cu_stream *stream, uint64_t ns, uint64_t call_ns));
void launch_in(struct ll_timing_stream name, uint64_t kind, uint64_t kernel_ns);
void launch(unsigned stream, uint64_t kind, uint64_t kernel_ns);

/* The host does nothing for the card, for so long. */
void pause_ns(uint64_t ns);

/* What the flow and the agent do, where it is time. */
void tend(void);

/* The account against the card, in permille of what the card did; the program ends. */
void assert_account_within(unsigned permille);

/* Calls of the driver for timing events, of which each takes the host some 0.3 to 1 us; in percent of the launches. */
void assert_calls_within(unsigned percent);

/* A main: all tests with events that cost as little as a card's do, and then as much. The exit status. */
int run_with_both_events(int argc, char **argv);

#endif
