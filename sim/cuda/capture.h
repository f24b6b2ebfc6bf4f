/*
 * capture.h - stream capture: what is pushed into a captured stream becomes nodes of a graph.
 *
 * A capture begins in its origin stream; other streams join when they wait for an event recorded in it. What breaks its
 * rules invalidates it, and then only ending it is left. All within the local lock, apart from sim_capture_check_call.
 */
#ifndef LOADLINE_SIM_CUDA_CAPTURE_H
#define LOADLINE_SIM_CUDA_CAPTURE_H

#include "abi/cuda_graph.h"
#include "cuda/local.h"

struct sim_capture {
	struct sim_capture *next;
	uint64_t id; /* never given out again */
	enum ll_cu_capture_mode mode;
	bool is_invalid;
	bool owns_graph; /* it was not the program's before */
	pthread_t thread;
	struct ll_cu_stream *origin;
	struct ll_cu_graph *graph;
};

/* At the head of every exported function: is it one of those that captures forbid (cuda/capture_unsafe.def)? */
ll_cu_result sim_capture_check_call(const char *function);

/* May a stream take work? IMPLICIT: the legacy stream, beside a captured stream that it waits for. INVALIDATED. */
ll_cu_result sim_capture_admit(const struct ll_cu_stream *stream);

/* Makes a node of it. A bad node invalidates nothing. */
ll_cu_result sim_capture_work(struct ll_cu_stream *stream, const struct ll_cu_graph_node_params *params);

/* A captured stream waits for an event, or a stream for a captured event. ret_is_captured: that was all there is to do.
 */
ll_cu_result sim_capture_wait(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags,
			      bool *ret_is_captured);
ll_cu_result sim_capture_record(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags);

/* For what cannot be done to a captured stream, event or context: invalidates the capture; the status to answer with.
 */
ll_cu_result sim_capture_refuse(const struct ll_cu_stream *stream);
ll_cu_result sim_capture_refuse_event(const struct ll_cu_event *event);
ll_cu_result sim_capture_refuse_context(const struct ll_cu_context *context);

/* The stream is going. A capture goes with its origin. */
void sim_capture_forget_stream(struct ll_cu_stream *stream);

#endif
