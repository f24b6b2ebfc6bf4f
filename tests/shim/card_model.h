/*
 * card_model.h - a card and a host that cost what doc/facts.md measured, in a time of their own, for tests of what the
 * shim makes of its timing events. Stands in for the driver (ll_real) and for the clock (ll_now_ns). One thread.
 */
#ifndef LOADLINE_TESTS_CARD_MODEL_H
#define LOADLINE_TESTS_CARD_MODEL_H

#include <stdint.h>

struct ll_cu_stream;
struct ll_timing_lock;

/* Everything idle, time at one second; the clocks drift apart by so many parts per million. */
void model_reset(int drift_ppm);

/* Until the next reset: the machine of the two in doc/facts.md on which an event takes longer. */
void model_slow_events(void);

/* Until the next reset: so much lies between two events in a row, for others' work comes in between. */
void model_part_events(uint64_t ns);

/* From now on each call that records an event takes so much longer. */
void model_slow_records(uint64_t ns);

/* Time passes for the host. */
void model_spend(uint64_t ns);

/* The host's launch call of a kernel of that length, and what it costs where the queue is empty. */
void model_launch(struct ll_cu_stream *stream, uint64_t kernel_ns, uint64_t call_ns);

/* A launch that needs so long to begin unless one like it runs directly before: a graph. */
void model_launch_graph(struct ll_cu_stream *stream, uint64_t kernel_ns, uint64_t call_ns, uint64_t begin_ns);

/* A small memset, with which a card is busy for so long. Between two events of a queue it hides in what these take. */
void model_memset(struct ll_cu_stream *stream, uint64_t memset_ns, uint64_t call_ns);

/* The host waits for the stream, and is woken. */
void model_wait(struct ll_cu_stream *stream);

/* The host is interrupted for that long in the next call that records an event, before and after the event is in the
 * queue. */
void model_interrupt_record(uint64_t before_ns, uint64_t after_ns);

/* Calls that wait where a stream is full abort while it is held. Until the next reset. */
void model_watch_lock(struct ll_timing_lock *lock);

/* Time in which the card worked, as GPM counts it; calls of the driver that were not launches. */
uint64_t model_busy_ns(void);
uint64_t model_calls(void);

#endif
