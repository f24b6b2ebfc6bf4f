/*
 * capture_work.h - turns work in a captured stream into a node of its graph, and lets streams join a capture.
 */
#ifndef LOADLINE_SIM_CUDA_LOCAL_CAPTURE_WORK_H
#define LOADLINE_SIM_CUDA_LOCAL_CAPTURE_WORK_H

#include "cuda/local/capture.h"

/* Makes a node of work for a captured stream. Wrong parameters do not invalidate the capture. The status says what is
 * wrong. */
ll_cu_result sim_capture_work(struct ll_cu_stream *stream, const struct ll_cu_graph_node_params *params);

/* Records an event in a captured stream. The event then represents the stream's work so far. An external record
 * (LL_CU_EVENT_RECORD_EXTERNAL) becomes a node. */
ll_cu_result sim_capture_record(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags);

/* Lets a captured stream wait for an event, or a stream for a captured event. ret_is_captured: false if neither is
 * captured; the caller then queues the wait. */
ll_cu_result sim_capture_wait(struct ll_cu_stream *stream, struct ll_cu_event *event, unsigned flags,
			      bool *ret_is_captured);

#endif
