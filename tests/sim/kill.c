/*
 * SIGKILL at any instruction: the world stays whole, the lock stays usable, and nothing of the dead stays on the card.
 */
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "card/attach.h"
#include "card/context.h"
#include "card/engine.h"
#include "card/memory.h"
#include "card/process.h"
#include "card/queue.h"
#include "card/world.h"
#include "process.h"
#include "skipped.h"

enum { KILLS = 300, LONG_KILLS = 1500, AT_LEAST = 100, SECONDS = 6, LONG_SECONDS = 25 };

static struct sim_world *attach(void)
{
	struct sim_world *w;
	CHECK_EQUAL(sim_world_attach(&w, NULL), 0);
	return w;
}

/* What must hold of every world whenever the lock is free. */
static void check_world(struct sim_world *w)
{
	sim_lock(w);
	unsigned streams_of_contexts = 0, streams = 0, contexts = 0, on_cards = 0;
	CHECK_EQUAL(w->undo.used, 0);
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++) {
		const struct sim_context *context = &w->contexts[i];
		if (!context->is_used)
			continue;
		contexts++;
		CHECK(context->card < w->slot_count);
		CHECK(w->procs[context->proc].is_used);
		CHECK(context->stream_count <= SIM_CONTEXT_STREAMS);
		streams_of_contexts += context->stream_count;
		for (uint32_t k = 0; k < context->stream_count; k++) {
			const struct sim_stream *stream = &w->streams[context->streams[k]];
			CHECK(stream->is_used);
			CHECK_EQUAL(stream->context, i);
		}
	}
	for (uint32_t i = 0; i < SIM_STREAMS; i++) {
		const struct sim_stream *stream = &w->streams[i];
		streams += stream->is_used;
		CHECK(!stream->is_used || (stream->reaped <= stream->done && stream->done <= stream->submitted &&
					   stream->submitted - stream->reaped <= SIM_RING));
	}
	for (uint32_t i = 0; i < w->slot_count; i++) {
		const struct sim_card *card = &w->cards[i];
		on_cards += card->context_count;
		CHECK(card->turn.tenant == SIM_NONE || w->contexts[card->turn.tenant].is_used);
		CHECK(card->meter.window_start_ns <= w->now_ns && w->now_ns - card->meter.window_start_ns <= 200000000);
	}
	for (uint32_t i = 0; i < SIM_SHARES; i++) {
		for (uint32_t k = 0; w->shares[i].is_used && k < SIM_PROCS; k++)
			CHECK(!(w->shares[i].holders[k / 64] >> k % 64 & 1) || w->procs[k].is_used);
	}
	CHECK_EQUAL(streams, streams_of_contexts);
	CHECK_EQUAL(contexts, on_cards);
	sim_unlock(w);
}

static unsigned used_slots(struct sim_world *w)
{
	unsigned used = 0;
	sim_lock(w);
	sim_advance_to_now(w);
	for (uint32_t i = 0; i < SIM_PROCS; i++)
		used += w->procs[i].is_used;
	for (uint32_t i = 0; i < SIM_CONTEXTS; i++)
		used += w->contexts[i].is_used;
	for (uint32_t i = 0; i < SIM_MODULES; i++)
		used += w->module_owner[i] != 0;
	for (uint32_t i = 0; i < SIM_SHARES; i++)
		used += w->shares[i].is_used;
	for (uint32_t i = 0; i < SIM_SHARED_EVENTS; i++)
		used += w->shared_events[i].is_used;
	sim_unlock(w);
	return used;
}

/* Spends nearly all of its time with the lock held, changing things. */
static void churn_the_world(void)
{
	struct sim_world *w = attach();
	uint32_t proc, context, stream;
	for (unsigned round = 0;; round++) {
		uint64_t position;
		sim_lock(w);
		sim_advance_to_now(w);
		proc = sim_proc_join(w);
		if (sim_context_new(w, 0, proc, false, &context) == 0) {
			sim_module_new(w, proc);
			for (int i = 0; i < 20; i++) {
				CHECK_EQUAL(sim_stream_new(w, context, 0, i & 1, &stream), 0);
				for (int k = 0; k < 5; k++) {
					struct sim_op op = {.kind = SIM_OP_KERNEL,
							    .length_ns = 1000,
							    .module = SIM_NONE,
							    .blocks = 1,
							    .threads = 32};
					sim_submit(w, stream, &op, &position);
				}
			}
			sim_advance(w, w->now_ns + 100000, 0);
			if (round % 3 == 0)
				sim_context_lose(w, context, 700);
			sim_context_free(w, context);
		}
		sim_unlock(w);
	}
}

/* Memory outside of contexts, and shared things. */
static void use_memory(struct ll_cu_stream *s)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
						 .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	struct ll_cu_ipc_event_handle event_handle;
	struct ll_cu_event *event;
	ll_cu_mem_handle physical, imported;
	ll_cu_deviceptr pooled;
	int fd;
	CHECK_EQUAL(cu.cuMemAllocAsync(&pooled, 40 << 20, s), 0);
	CHECK_EQUAL(cu.cuMemCreate(&physical, 4 << 20, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, physical, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&imported, (void *)(intptr_t)fd,
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    0);
	close(fd);
	CHECK_EQUAL(cu.cuMemRelease(physical), 0);
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuIpcGetEventHandle(&event_handle, event), 0);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(pooled, s), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuEventDestroy(event), 0);
	CHECK_EQUAL(cu.cuMemRelease(imported), 0);
}

/* Uses the library as a program does. */
static void churn_the_library(void)
{
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	for (;;) {
		struct ll_cu_context *context;
		ll_cu_deviceptr address;
		if (cu.cuCtxCreate(&context, 0, 0) != LL_CUDA_SUCCESS)
			continue;
		struct ll_cu_function *spin = get_kernel("spin_ns");
		struct ll_cu_stream *s = new_stream();
		struct record *record = new_records(1);
		CHECK_EQUAL(cu.cuMemAlloc(&address, 4 << 20), 0);
		for (uint32_t i = 1; i <= 10; i++)
			launch_spin(spin, s, 20000, record, 0, 0, 1, i);
		use_memory(s);
		CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
		CHECK_EQUAL(cu.cuStreamDestroy(s), 0);
		CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	}
}

static unsigned next_random(void)
{
	static unsigned state = 12345;
	state = state * 1103515245 + 12345;
	return state >> 8;
}

/* It must have lived until now: a victim that met an error ends by itself. */
static void kill_one(pid_t pid)
{
	int status;
	kill(pid, SIGKILL);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
}

static void kill_many(struct sim_world *w, void (*victim)(void))
{
	enum { AT_ONCE = 3 };
	pid_t pids[AT_ONCE] = {0};
	uint64_t deadline = deadline_in_s(is_long_test() ? LONG_SECONDS : SECONDS);
	unsigned kills = 0, kills_max = is_long_test() ? LONG_KILLS : KILLS;
	while (kills < kills_max && !(is_past(deadline) && kills >= AT_LEAST)) {
		unsigned i = kills % AT_ONCE;
		if (pids[i]) {
			struct timespec pause = {.tv_nsec = next_random() % 4000 * 1000L};
			nanosleep(&pause, NULL);
			kill_one(pids[i]);
		}
		pids[i] = spawn(victim);
		kills++;
		if (kills % 50 == 0)
			check_world(w);
	}
	for (unsigned i = 0; i < AT_ONCE; i++)
		kill_one(pids[i]);
	printf("%u killed\n", kills);
	WAIT_FOR(used_slots(w) == 0);
	check_world(w);
	sim_lock(w);
	CHECK_EQUAL(sim_card_used_bytes(w, 0), 0);
	sim_unlock(w);
}

TEST_IN_WORLD(NULL, killed_while_changing_the_world)
{
	kill_many(attach(), churn_the_world);
}

TEST_IN_WORLD(NULL, killed_while_using_the_library)
{
	kill_many(attach(), churn_the_library);
}

static void be_busy_for_ever(void)
{
	open_context(0);
	launch_timed(get_kernel("work_ns"), NULL, UINT64_C(3600000000000), 132, 1024);
	ready();
	for (;;)
		pause();
}

TEST_IN_WORLD(NULL, the_kernels_of_the_dead_end)
{
	struct ll_nvml_utilization utilization = {0};
	spawn_and_kill(be_busy_for_ever);
	struct ll_nvml_device *card = open_card(0);
	WAIT_FOR(used_slots(attach()) == 0);
	WAIT_FOR(nv.nvmlDeviceGetUtilizationRates(card, &utilization) == 0 && utilization.gpu == 0);
	/* The card is nobody's: a kernel runs at once and uncut. */
	open_context(0);
	struct record *record = new_records(1);
	launch_spin(get_kernel("spin_ns"), NULL, 5000000, record, 0, 0, 1, 1);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(record->gap_ns, 352);
}
