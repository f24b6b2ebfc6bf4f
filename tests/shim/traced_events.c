/* A program that is traced by events: each thing that the card does for it is a row, with the card's times. */
#include "../sim/process.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"
#include "abi/cupti.h"
#include "base/clock.h"
#include "trace/trace.h"

#define MS UINT64_C(1000000)
enum { BYTES = 256 * 1024, MOST_ROWS = 512 };

static struct own_functions {
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args) __typeof__(&symbol##suffix) symbol##suffix;
#include "abi/cuda_per_thread.def"
} own;

static const struct {
	const char *name;
	size_t offset; /* in struct own_functions */
} own_names[] = {
#define LL_CUDA_PER_THREAD(symbol, suffix, params, args)                                                               \
	{#symbol #suffix, offsetof(struct own_functions, symbol##suffix)},
#include "abi/cuda_per_thread.def"
};

static char folder[64];
static struct ll_cu_function *work;

/* Before the first call of the driver. */
static void open_traced(void)
{
	void *found;
	snprintf(folder, sizeof folder, "/tmp/loadline-test.XXXXXX");
	CHECK(mkdtemp(folder) != NULL);
	CHECK(setenv(LL_TRACE_FOLDER, folder, 1) == 0 && setenv(LL_TRACE_BY, "events", 1) == 0);
	open_cuda();
	open_context(0);
	work = get_kernel("work_ns");
	for (size_t i = 0; i < sizeof own_names / sizeof *own_names; i++) {
		found = dlsym(cu.library, own_names[i].name);
		memcpy((char *)&own + own_names[i].offset, &found, sizeof found);
	}
}

struct rows {
	struct ll_trace_record at[MOST_ROWS];
	char names[MOST_ROWS][64];
	size_t count;
};

static size_t read_folder(struct rows *rows)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	rows->count = 0;
	CHECK(dir != NULL);
	while (dir && (entry = readdir(dir))) {
		struct ll_trace_file file;
		char path[512];
		snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
		if (entry->d_name[0] == '.' || ll_trace_file_open(path, &file, NULL) != 0)
			continue;
		for (size_t i = 0; i < file.record_count && rows->count < MOST_ROWS; i++) {
			rows->at[rows->count] = *file.records[i];
			snprintf(rows->names[rows->count++], 64, "%s", ll_trace_file_name(&file, file.records[i]));
		}
		ll_trace_file_fini(&file);
	}
	if (dir)
		closedir(dir);
	return rows->count;
}

static void remove_folder(void)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;
	while (dir && (entry = readdir(dir)))
		unlinkat(dirfd(dir), entry->d_name, 0); /* fails for "." and ".." */
	if (dir)
		closedir(dir);
	CHECK_EQUAL(rmdir(folder), 0);
}

/* So many rows are written without the program doing anything for it; then the folder goes. */
static void read_rows(struct rows *rows, size_t count)
{
	WAIT_FOR(read_folder(rows) >= count);
	CHECK_EQUAL(rows->count, count);
	remove_folder();
}

static size_t count_kind(const struct rows *rows, enum ll_trace_kind kind)
{
	size_t count = 0;
	for (size_t i = 0; i < rows->count; i++)
		count += rows->at[i].head.kind == kind;
	return count;
}

static void launch(struct ll_cu_stream *stream, uint64_t ns)
{
	void *params[] = {&ns};
	CHECK_EQUAL(cu.cuLaunchKernel(work, 2, 3, 4, 32, 2, 1, 0, stream, params, NULL), 0);
}

TEST_IN_WORLD(NULL, kernels_are_timed_in_their_order_on_the_common_clock)
{
	static struct rows rows;
	enum { COUNT = 40 };
	open_traced();
	struct ll_cu_stream *stream = new_stream();
	uint64_t from_ns = ll_now_ns();
	for (int i = 0; i < COUNT; i++)
		launch(stream, MS);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	uint64_t to_ns = ll_now_ns();
	read_rows(&rows, COUNT);
	for (int i = 0; i < COUNT; i++) {
		const struct ll_trace_record *row = &rows.at[i];
		CHECK_EQUAL(row->head.kind, LL_TRACE_KERNEL);
		CHECK(strcmp(rows.names[i], "work_ns") == 0);
		CHECK_EQUAL(row->correlation, i + 1);
		CHECK(row->grid[0] == 2 && row->grid[1] == 3 && row->grid[2] == 4);
		CHECK(row->block[0] == 32 && row->block[1] == 2 && row->block[2] == 1);
		CHECK(row->end_ns - row->start_ns >= MS - MS / 100);
		/* An anchor is as good as what it took to wait for it; a drift is 50 ppm at most. */
		CHECK(i == 0 || row->start_ns + MS / 100 >= rows.at[i - 1].end_ns);
		CHECK(row->start_ns + 5 * MS >= from_ns && row->end_ns <= to_ns + 5 * MS);
	}
}

/* Each new anchor, ten a second, says that what was told by the one before was some 30 us late. */
TEST_IN_WORLD("card 0 drift-ppm 300\n", a_stream_s_kernels_keep_their_order_where_the_clocks_run_apart)
{
	static struct rows rows;
	enum { COUNT = 200 };
	open_traced();
	struct ll_cu_stream *stream = new_stream();
	for (int i = 0; i < COUNT; i++, sleep_ms(1)) /* so slowly that anchors come between, and faster than the card */
		launch(stream, 2 * MS);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	read_rows(&rows, COUNT);
	for (int i = 1; i < COUNT; i++) {
		CHECK(rows.at[i].start_ns >= rows.at[i - 1].end_ns);
		CHECK(rows.at[i].end_ns - rows.at[i].start_ns >= 2 * MS - MS / 10);
	}
}

TEST_IN_WORLD(NULL, copies_between_host_and_card_are_timed)
{
	static struct rows rows;
	static char here[BYTES];
	ll_cu_deviceptr there;
	open_traced();
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&there, BYTES), 0);
	CHECK_EQUAL(cu.cuMemcpyHtoD(there, here, BYTES), 0);              /* cuMemcpyHtoD_v2 */
	CHECK_EQUAL(cu.cuMemcpyDtoH(here, there, BYTES), 0);              /* cuMemcpyDtoH_v2 */
	CHECK_EQUAL(cu.cuMemcpyHtoDAsync(there, here, BYTES, stream), 0); /* cuMemcpyHtoDAsync_v2 */
	CHECK_EQUAL(cu.cuMemcpyDtoHAsync(here, there, BYTES, stream), 0); /* cuMemcpyDtoHAsync_v2 */
	CHECK_EQUAL(own.cuMemcpyHtoD_v2_ptds(there, here, BYTES), 0);
	CHECK_EQUAL(own.cuMemcpyDtoH_v2_ptds(here, there, BYTES), 0);
	CHECK_EQUAL(own.cuMemcpyHtoDAsync_v2_ptsz(there, here, BYTES, NULL), 0);
	CHECK_EQUAL(own.cuMemcpyDtoHAsync_v2_ptsz(here, there, BYTES, NULL), 0);
	CHECK_EQUAL(cu.cuMemcpy((uintptr_t)here, there, BYTES), 0);
	CHECK_EQUAL(cu.cuMemcpyAsync(there, (uintptr_t)here, BYTES, stream), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoD(there, there + BYTES / 2, BYTES / 2), 0);
	CHECK_EQUAL(cu.cuMemsetD32Async(there, 1, BYTES / 4, stream), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemFree(there), 0);
	read_rows(&rows, 11 + 1 + 2);
	size_t to_card = 0, from_card = 0;
	for (size_t i = 0; i < rows.count; i++) {
		const struct ll_trace_record *row = &rows.at[i];
		CHECK(row->end_ns >= row->start_ns);
		if (row->head.kind == LL_TRACE_MEMSET)
			CHECK_EQUAL(row->bytes, BYTES);
		if (row->head.kind != LL_TRACE_COPY)
			continue;
		bool is_within = row->to == LL_CUPTI_MEMORY_DEVICE && row->from == LL_CUPTI_MEMORY_DEVICE;
		CHECK_EQUAL(row->bytes, is_within ? BYTES / 2 : BYTES);
		to_card += !is_within && row->to == LL_CUPTI_MEMORY_DEVICE;
		from_card += !is_within && row->from == LL_CUPTI_MEMORY_DEVICE;
	}
	CHECK_EQUAL(to_card, 5);
	CHECK_EQUAL(from_card, 5);
	CHECK_EQUAL(count_kind(&rows, LL_TRACE_COPY), 11);
	CHECK_EQUAL(count_kind(&rows, LL_TRACE_MEMSET), 1);
}

TEST_IN_WORLD(NULL, memory_comes_and_goes_with_its_size)
{
	static struct rows rows;
	ll_cu_deviceptr plain, ordered;
	open_traced();
	struct ll_cu_stream *stream = new_stream();
	launch(stream, MS / 10);
	CHECK_EQUAL(cu.cuMemAlloc(&plain, BYTES), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&ordered, 2 * BYTES, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(ordered, stream), 0);
	CHECK_EQUAL(cu.cuMemFree(plain), 0);
	read_rows(&rows, 5);
	const struct ll_trace_record *at[4] = {0};
	size_t count = 0;
	for (size_t i = 0; i < rows.count; i++) {
		if (rows.at[i].head.kind != LL_TRACE_KERNEL && count < 4)
			at[count++] = &rows.at[i];
	}
	CHECK_EQUAL(count, 4);
	CHECK(at[0]->head.kind == LL_TRACE_ALLOCATE && at[0]->bytes == BYTES && at[0]->address == plain);
	CHECK(at[1]->head.kind == LL_TRACE_ALLOCATE && at[1]->bytes == 2 * BYTES && at[1]->address == ordered);
	CHECK(at[2]->head.kind == LL_TRACE_FREE && at[2]->bytes == 2 * BYTES && at[2]->address == ordered);
	CHECK(at[3]->head.kind == LL_TRACE_FREE && at[3]->bytes == BYTES && at[3]->address == plain);
}

TEST_IN_WORLD(NULL, nothing_gets_into_a_captured_stream_and_a_graph_is_one_row)
{
	static struct rows rows;
	struct ll_cu_graph *graph;
	struct ll_cu_graph_exec *exec;
	open_traced();
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuStreamBeginCapture(stream, LL_CU_STREAM_CAPTURE_MODE_GLOBAL), 0);
	launch(stream, MS);
	launch(stream, MS);
	CHECK_EQUAL(cu.cuStreamEndCapture(stream, &graph), 0);
	size_t nodes = 0;
	CHECK_EQUAL(cu.cuGraphGetNodes(graph, NULL, &nodes), 0);
	CHECK_EQUAL(nodes, 2);
	CHECK_EQUAL(cu.cuGraphInstantiate(&exec, graph, 0), 0);
	for (int i = 0; i < 3; i++)
		CHECK_EQUAL(cu.cuGraphLaunch(exec, stream), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
	read_rows(&rows, 3);
	CHECK_EQUAL(count_kind(&rows, LL_TRACE_GRAPH), 3);
	for (size_t i = 0; i < rows.count; i++)
		CHECK(rows.at[i].end_ns - rows.at[i].start_ns >= 2 * MS - MS / 100);
}

/* Each has one kernel, with a name of its own; a handle that is free is given to the next. */
static void launch_and_unload(int at)
{
	char ptx[256];
	struct ll_cu_module *module;
	struct ll_cu_library *library;
	struct ll_cu_kernel *kernel;
	snprintf(ptx, sizeof ptx,
		 ".version 7.4\n.target sm_50\n.address_size 64\n.visible .entry work_ns_%d(.param .u64 ns) { ret; }\n",
		 at);
	char name[32];
	snprintf(name, sizeof name, "work_ns_%d", at);
	if (at % 4 < 2) {
		CHECK_EQUAL(cu.cuModuleLoadData(&module, ptx), 0);
		CHECK_EQUAL(cu.cuModuleGetFunction(&work, module, name), 0);
	} else {
		CHECK_EQUAL(cu.cuLibraryLoadData(&library, ptx, NULL, NULL, 0, NULL, NULL, 0), 0);
		CHECK_EQUAL(cu.cuLibraryGetKernel(&kernel, library, name), 0);
		work = (struct ll_cu_function *)(void *)kernel;
	}
	launch(NULL, 1000);
	launch(NULL, 1000);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(at % 4 < 2 ? cu.cuModuleUnload(module) : cu.cuLibraryUnload(library), 0);
}

TEST_IN_WORLD(NULL, a_kernel_that_takes_a_gone_one_s_place_has_its_own_name)
{
	static struct rows rows;
	enum { COUNT = 40 };
	open_traced();
	for (int i = 0; i < COUNT; i++)
		launch_and_unload(i);
	read_rows(&rows, 2 * COUNT);
	for (unsigned i = 0; i < 2 * COUNT; i++) {
		char wanted[32];
		snprintf(wanted, sizeof wanted, "work_ns_%u", (rows.at[i].correlation - 1) / 2);
		CHECK(strcmp(rows.names[i], wanted) == 0);
	}
}

TEST_IN_WORLD(NULL, what_runs_in_a_context_that_goes_is_told_before)
{
	static struct rows rows;
	struct ll_cu_context *first, *second;
	open_traced();
	CHECK_EQUAL(cu.cuCtxGetCurrent(&first), 0);
	struct ll_cu_stream *stream = new_stream();
	launch(stream, MS);
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	/* With work in flight, and a stream that is used while another context is current. */
	stream = new_stream();
	launch(stream, 20 * MS);
	CHECK_EQUAL(cu.cuCtxCreate(&second, 0, 0), 0);
	launch(stream, MS);
	CHECK_EQUAL(cu.cuCtxDestroy(first), 0);
	CHECK_EQUAL(cu.cuCtxSetCurrent(second), 0);
	work = get_kernel("work_ns");
	launch(NULL, MS);
	launch(LL_CU_STREAM_PER_THREAD, MS);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	read_rows(&rows, 5);
	size_t of_first = 0;
	for (size_t i = 0; i < rows.count; i++)
		of_first += rows.at[i].context == rows.at[0].context;
	CHECK_EQUAL(of_first, 3);
}

/* More than a stream's queue takes. */
enum { MANY = 1500 };

static struct ll_cu_stream *full_stream;
static struct ll_cu_context *full_context;
static _Atomic int launched;

static void *fill_queue(void *unused)
{
	(void)unused;
	CHECK_EQUAL(cu.cuCtxSetCurrent(full_context), 0);
	for (int i = 0; i < MANY; i++) {
		launch(full_stream, 1000);
		launched++;
	}
	return NULL;
}

/* The stream waits for a value that this thread writes once it has launched something itself. */
TEST_IN_WORLD(NULL, a_thread_whose_queue_is_full_holds_nobody_up)
{
	pthread_t thread;
	ll_cu_deviceptr value;
	open_traced();
	full_stream = new_stream();
	struct ll_cu_stream *other = new_stream();
	CHECK_EQUAL(cu.cuCtxGetCurrent(&full_context), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&value, 4), 0);
	CHECK_EQUAL(cu.cuMemsetD32(value, 0, 1), 0);
	CHECK_EQUAL(cu.cuStreamWaitValue32(full_stream, value, 1, LL_CU_STREAM_WAIT_VALUE_GEQ), 0);
	CHECK_EQUAL(pthread_create(&thread, NULL, fill_queue, NULL), 0);
	/* It has got as far as it can: three operations a launch, and no more for a while. */
	int before = -1;
	for (int calm = 0; calm < 20; sleep_ms(5)) {
		int now = launched;
		calm = now == before && now > 0 ? calm + 1 : 0;
		before = now;
	}
	CHECK(before < MANY);
	launch(other, 1000);
	CHECK_EQUAL(cu.cuStreamWriteValue32(other, value, 1, 0), 0);
	CHECK_EQUAL(pthread_join(thread, NULL), 0);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(launched, MANY);
	remove_folder();
}
