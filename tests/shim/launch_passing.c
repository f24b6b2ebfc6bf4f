/* What a stream does in its order without working on the card: it waits for no turn, and no account is charged for it.
 */
#include "launching.h"

#define ID 7
#define MS UINT64_C(1000000)
#define WAIT_NS (30000 * MS) /* less than a wait for it lasts */
enum { BYTES = 64 * 1024, ROUNDS = 50 };

static struct ll_cu_stream *stream;
static ll_cu_deviceptr value, managed;
static union ll_cu_stream_mem_op operations[2];
static struct ll_cu_event *event;

static void hear(struct ll_cu_stream *from, ll_cu_result status, void *user)
{
	(void)from;
	(void)status;
	(void)user;
}

#define HERE ((struct ll_cu_mem_location){.type = LL_CU_MEM_LOCATION_TYPE_DEVICE})

/* ENTRY(symbol, call) */
#define PASSING                                                                                                        \
	ENTRY(cuStreamWriteValue32_v2, cu.cuStreamWriteValue32(stream, value, 1, 0))                                   \
	ENTRY(cuStreamWriteValue32, cu.cuStreamWriteValue32_v1(stream, value, 1, 0))                                   \
	ENTRY(cuStreamWriteValue64_v2, cu.cuStreamWriteValue64(stream, value, 1, 0))                                   \
	ENTRY(cuStreamWriteValue64, cu.cuStreamWriteValue64_v1(stream, value, 1, 0))                                   \
	ENTRY(cuStreamWaitValue32_v2, cu.cuStreamWaitValue32(stream, value, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))           \
	ENTRY(cuStreamWaitValue32, cu.cuStreamWaitValue32_v1(stream, value, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))           \
	ENTRY(cuStreamWaitValue64_v2, cu.cuStreamWaitValue64(stream, value, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))           \
	ENTRY(cuStreamWaitValue64, cu.cuStreamWaitValue64_v1(stream, value, 0, LL_CU_STREAM_WAIT_VALUE_GEQ))           \
	ENTRY(cuStreamBatchMemOp_v2, cu.cuStreamBatchMemOp(stream, 2, operations, 0))                                  \
	ENTRY(cuStreamBatchMemOp, cu.cuStreamBatchMemOp_v1(stream, 2, operations, 0))                                  \
	ENTRY(cuEventRecord, cu.cuEventRecord(event, stream))                                                          \
	ENTRY(cuEventRecordWithFlags, cu.cuEventRecordWithFlags(event, stream, 0))                                     \
	ENTRY(cuStreamWaitEvent, cu.cuStreamWaitEvent(stream, event, 0))                                               \
	ENTRY(cuStreamAddCallback, cu.cuStreamAddCallback(stream, hear, NULL, 0))                                      \
	ENTRY(cuStreamAttachMemAsync, cu.cuStreamAttachMemAsync(stream, managed, 0, LL_CU_MEM_ATTACH_GLOBAL))          \
	ENTRY(cuMemPrefetchAsync_v2, cu.cuMemPrefetchAsync(managed, BYTES, HERE, 0, stream))                           \
	ENTRY(cuMemPrefetchAsync, cu.cuMemPrefetchAsync_v1(managed, BYTES, 0, stream))

static void prepare(void)
{
	struct ll_cu_function *work;
	begin_program(ID, 100, &work, &stream);
	CHECK_EQUAL(cu.cuMemAlloc(&value, BYTES), 0);
	CHECK_EQUAL(cu.cuEventCreate(&event, 0), 0);
	for (int i = 0; i < 2; i++) {
		operations[i].value.operation = LL_CU_STREAM_MEM_OP_WRITE_VALUE_32;
		operations[i].value.address = value;
	}
	CHECK_EQUAL(cu.cuMemAllocManaged(&managed, BYTES, LL_CU_MEM_ATTACH_GLOBAL), 0);
}

#define ENTRY(symbol, call)                                                                                            \
	static ll_cu_result do_##symbol(void)                                                                          \
	{                                                                                                              \
		return call;                                                                                           \
	}
PASSING
#undef ENTRY

static const struct {
	const char *symbol;
	ll_cu_result (*call)(void);
} passing[] = {
#define ENTRY(symbol, call) {#symbol, do_##symbol},
    PASSING
#undef ENTRY
};

/* Debt holds back no call, and none is paid for. */
static void check_passes(const char *symbol, ll_cu_result (*call)(void))
{
	owe_for_long(ID);
	uint64_t before_ns = gpu_ns(ID);
	uint64_t start_ns = ll_now_ns();
	ll_cu_result status = 0;
	for (int i = 0; i < ROUNDS && !status; i++)
		status = call();
	if (status || ll_now_ns() - start_ns > WAIT_NS || tokens_ns(ID) > 0)
		give_up_numbers(__FILE__, __LINE__, symbol, status, tokens_ns(ID));
	check_rests(ID);
	if (gpu_ns(ID) != before_ns)
		give_up_numbers(__FILE__, __LINE__, symbol, (long long)gpu_ns(ID), (long long)before_ns);
}

TEST_IN_WORLD(NULL, what_is_only_in_a_stream_s_order_waits_for_nothing_and_costs_nothing)
{
	prepare();
	check_rests(ID);
	for (size_t i = 0; i < sizeof passing / sizeof *passing; i++)
		check_passes(passing[i].symbol, passing[i].call);
}
