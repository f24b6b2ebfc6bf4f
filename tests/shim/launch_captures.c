/* Streams that come to a capture after it has begun. */
#include "launching.h"

#define ID 7
#define MS UINT64_C(1000000)

/*
 * A stream comes to a capture by waiting for it, while the agent is about to time what was launched there before: it
 * has looked, and the driver takes its time to record.
 */
TEST_IN_WORLD(NULL, a_stream_that_joins_a_capture_is_left_alone)
{
	struct ll_cu_graph *graph = NULL;
	struct ll_cu_event *fork, *join;
	size_t nodes = 0;
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = 500});
	open_context(0);
	struct ll_cu_function *work = get_kernel("work_ns");
	struct ll_cu_stream *stream = new_stream();
	struct ll_cu_stream *side = new_stream();
	for (int i = 0; i < 12; i++) {
		launch_timed(work, side, MS / 50, 1, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(side), 0);
	}
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK_EQUAL(cu.cuEventCreate(&fork, LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuEventCreate(&join, LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_RELAXED), 0);
	CHECK_EQUAL(cu.cuEventRecord(fork, stream), 0);
	unsetenv("LD_PRELOAD");
	CHECK_EQUAL(simctl("hang cuEventRecord 200ms after 1 count 1"), 0);
	launch_timed(work, side, MS / 50, 1, 32);
	sleep_ms(30);
	CHECK_EQUAL(cu.cuStreamWaitEvent(side, fork, 0), 0);
	launch_timed(work, side, MS / 50, 1, 32);
	sleep_ms(300);
	CHECK_EQUAL(simctl("heal cuEventRecord"), 0);
	CHECK_EQUAL(cu.cuEventRecord(join, side), 0);
	CHECK_EQUAL(cu.cuStreamWaitEvent(stream, join, 0), 0);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	CHECK_EQUAL(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
	CHECK_EQUAL(nodes, 1);
	launch_timed(work, side, MS / 50, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	WAIT_FOR(!claim_of(ID)->want_since_ns);
	CHECK_EQUAL(has_note(ID), 0);
}
