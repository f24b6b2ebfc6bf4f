/*
 * capture.h - stream capture: the captures, and the calls that they forbid.
 *
 * A capture begins in its origin stream. Other streams join it when they wait for an event that was recorded in it. A
 * call that breaks a capture's rules invalidates it; the program can then only end it. capture_work.h makes nodes of
 * the work in a captured stream.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_CAPTURE_H
#define LOADLINE_SIM_CUDA_LOCAL_CAPTURE_H

#include "abi/cuda_graph.h"
#include "cuda/local/state.h"

struct sim_capture {
	struct sim_capture *next;
	uint64_t id; /* never reused */
	enum ll_cu_capture_mode mode;
	bool is_invalid;
	bool owns_graph; /* the program did not have the graph before */
	pthread_t thread;
	struct ll_cu_stream *origin;
	struct ll_cu_graph *graph;
};

/* Begins a capture in a stream that is not captured. graph: gets its nodes; NULL: the capture makes and owns a new
 * graph. OUT_OF_MEMORY. */
ll_cu_result sim_capture_begin(struct ll_cu_stream *stream, struct ll_cu_graph *graph, enum ll_cu_capture_mode mode);

/* Ends a capture: all its streams leave it. keep_graph: false frees the graph if the capture owns it. */
void sim_capture_end(struct sim_capture *capture, bool keep_graph);

/* Returns the capture with this id, or NULL. */
struct sim_capture *sim_capture_find(uint64_t id);

/* Returns whether this thread has begun the capture. */
bool sim_capture_is_own(const struct sim_capture *capture);

/* Returns whether the legacy stream of a context would have to wait for a captured stream. invalidate: invalidates such
 * captures. */
bool sim_capture_is_implicit(const struct ll_cu_context *context, bool invalidate);

/* Sets this thread's mode, and returns the mode before. It needs no lock. */
enum ll_cu_capture_mode sim_capture_exchange_mode(enum ll_cu_capture_mode mode);

/* Checks whether a capture forbids a call (capture_unsafe.def), and invalidates such captures. Every exported function
 * calls it first, without the lock. Returns success, IMPLICIT or UNSUPPORTED. */
ll_cu_result sim_capture_check_call(const char *function);

/* Checks whether a stream may take work. IMPLICIT: it is the legacy stream, and would have to wait for a captured
 * stream. INVALIDATED: its capture is invalid. */
ll_cu_result sim_capture_admit(const struct ll_cu_stream *stream);

/* Invalidate the capture of a stream, of an event, or of a context's streams, for a call that cannot be captured. They
 * return the status for the caller. The stream must be captured; a context's streams need not be. */
ll_cu_result sim_capture_refuse(const struct ll_cu_stream *stream);
ll_cu_result sim_capture_refuse_event(const struct ll_cu_event *event);
ll_cu_result sim_capture_refuse_context(const struct ll_cu_context *context);

/* Removes a stream that is destroyed from its capture. If it is the origin, the capture ends; otherwise the capture
 * becomes invalid. */
void sim_capture_forget_stream(struct ll_cu_stream *stream);

#endif
