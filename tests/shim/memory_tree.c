/* The processes of one tenant: their charges are one sum, which nobody's end leaves wrong. */
#include "governed.h"

#include <dlfcn.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void allocate_and_wait(void)
{
	ll_cu_deviceptr address;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	ready();
	pause();
}

/* Each with a library of its own: the driver does not go on in a forked child. */
TEST_IN_WORLD(NULL, a_tree_s_charges_are_one_sum_and_a_kill_gives_back)
{
	ll_cu_deviceptr address;
	govern(3 * (CONTEXT_BYTES + 100 * MIB) - 1);
	pid_t first = spawn_ready(allocate_and_wait), second = spawn_ready(allocate_and_wait);
	CHECK_EQUAL(charged(), 2 * (CONTEXT_BYTES + 100 * MIB));
	open_context(0);
	CHECK_EQUAL(charged(), 3 * CONTEXT_BYTES + 200 * MIB);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	/* A killed process has nothing any more, and that is found out by whoever needs it. */
	kill(first, SIGKILL);
	CHECK_EQUAL(waitpid(first, NULL, 0), first);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(charged(), 2 * (CONTEXT_BYTES + 100 * MIB));
	kill(second, SIGKILL);
	CHECK_EQUAL(waitpid(second, NULL, 0), second);
	WAIT_FOR(charged() == CONTEXT_BYTES + 100 * MIB); /* nobody needs it: loadlined hears of the death */
}

/* The card is behind the ledger: for a while it goes on counting what a killed process had. */
TEST_IN_WORLD(NULL, a_dead_process_s_memory_is_waited_for_a_while)
{
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	ll_cu_deviceptr address;
	struct ll_cu_mem_pool *pool;
	struct ll_cu_array *array;
	ll_cu_mem_handle handle;
	struct ll_cu_array_descriptor shape = {8192, 8192, LL_CU_AD_FORMAT_FLOAT, 4};
	pid_t children[4];
	govern(8 * GIB);
	for (int kind = 0; kind < 4; kind++)
		children[kind] = spawn_ready(allocate_and_wait);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	/* Nobody has died: the card is full, and that is that. */
	CHECK_EQUAL(simctl("card 0 used all"), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(simctl("card 0 used 0"), 0);
	CHECK_EQUAL(charged(), 5 * CONTEXT_BYTES + 400 * MIB);
	for (int kind = 0; kind < 4; kind++) {
		kill(children[kind], SIGKILL);
		CHECK_EQUAL(waitpid(children[kind], NULL, 0), children[kind]);
		CHECK_EQUAL(simctl("card 0 used all for 200ms"), 0);
		ll_cu_result status = kind == 0   ? cu.cuMemAlloc(&address, GIB)
				      : kind == 1 ? cu.cuMemAllocFromPoolAsync(&address, 100 * MIB, pool, stream)
				      : kind == 2 ? cu.cuMemCreate(&handle, 512 * MIB, &prop, 0)
						  : cu.cuArrayCreate(&array, &shape);
		CHECK_EQUAL(status, 0);
	}
	CHECK_EQUAL(charged(), CONTEXT_BYTES + GIB + 128 * MIB + 512 * MIB + GIB);
}

static struct ll_nvml_process list[8];

static unsigned list_processes(void)
{
	unsigned count = 8;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(open_card(0), &count, list), 0);
	return count;
}

static uint64_t bytes_of(pid_t pid, unsigned count)
{
	for (unsigned i = 0; i < count; i++) {
		if (list[i].pid == (unsigned)pid)
			return list[i].used_bytes;
	}
	return 0;
}

static pid_t stranger(void)
{
	CHECK_EQUAL(unsetenv(LL_RUN_VARIABLE), 0);
	return spawn_ready(allocate_and_wait);
}

typedef ll_nvml_result (*list_v1)(struct ll_nvml_device *, unsigned *, struct ll_nvml_process_v1 *);

static ll_nvml_result list_oldest(const char *symbol, unsigned *count, struct ll_nvml_process_v1 *processes)
{
	list_v1 ask;
	void *found = dlsym(nv.library, symbol);
	CHECK(found);
	memcpy(&ask, &found, sizeof ask);
	return ask(open_card(0), count, processes);
}

/* No simulated process draws, or comes through MPS. */
static void check_no_other_kind(struct ll_nvml_device *card)
{
	struct ll_nvml_process_v1 oldest[8];
	const struct {
		ll_nvml_result (*ask)(struct ll_nvml_device *, unsigned *, struct ll_nvml_process *);
	} lists[] = {{nv.nvmlDeviceGetGraphicsRunningProcesses},
		     {nv.nvmlDeviceGetGraphicsRunningProcesses_v2},
		     {nv.nvmlDeviceGetMPSComputeRunningProcesses},
		     {nv.nvmlDeviceGetMPSComputeRunningProcesses_v2}};
	for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
		unsigned count = 8;
		CHECK_EQUAL(lists[i].ask(card, &count, list), 0);
		CHECK_EQUAL(count, 0);
	}
	unsigned count = 8;
	CHECK_EQUAL(list_oldest("nvmlDeviceGetGraphicsRunningProcesses", &count, oldest), 0);
	CHECK_EQUAL(count, 0);
	count = 8;
	CHECK_EQUAL(list_oldest("nvmlDeviceGetMPSComputeRunningProcesses", &count, oldest), 0);
	CHECK_EQUAL(count, 0);
}

/* A list without a place, in each version: it is refused only if the tenant has processes, and after the room that is
 * too small for the tenant's, whoever else is on the card. */
static void check_no_place(struct ll_nvml_device *card, unsigned tenant_s)
{
	const struct {
		unsigned room;
		int expected;
	} rows[] = {{0, tenant_s ? LL_NVML_ERROR_INSUFFICIENT_SIZE : 0},
		    {tenant_s, tenant_s ? LL_NVML_ERROR_INVALID_ARGUMENT : 0},
		    {8, tenant_s ? LL_NVML_ERROR_INVALID_ARGUMENT : 0}};
	ll_nvml_result (*ask)(struct ll_nvml_device *, struct ll_nvml_process_detail_list *);
	void *found = dlsym(nv.library, "nvmlDeviceGetRunningProcessDetailList");
	memcpy(&ask, &found, sizeof ask);
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
		unsigned count = rows[i].room;
		struct ll_nvml_process_detail_list details = {.version = LL_NVML_PROCESS_DETAIL_LIST_V1,
							      .count = count};
		CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), rows[i].expected);
		count = rows[i].room;
		CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses_v2(card, &count, NULL), rows[i].expected);
		count = rows[i].room;
		CHECK_EQUAL(list_oldest("nvmlDeviceGetComputeRunningProcesses", &count, NULL), rows[i].expected);
		count = rows[i].room;
		CHECK_EQUAL(nv.nvmlDeviceGetMPSComputeRunningProcesses(card, &count, NULL), 0);
		CHECK_EQUAL(ask(card, &details), rows[i].expected);
	}
}

/* The newest list says what is asked in itself. */
static void check_details(pid_t child, pid_t other)
{
	ll_nvml_result (*ask)(struct ll_nvml_device *, struct ll_nvml_process_detail_list *);
	struct ll_nvml_process_detail details[8];
	struct ll_nvml_process_detail_list answer = {.version = LL_NVML_PROCESS_DETAIL_LIST_V1};
	struct ll_nvml_device *card = open_card(0);
	void *found = dlsym(nv.library, "nvmlDeviceGetRunningProcessDetailList");
	memcpy(&ask, &found, sizeof ask);
	CHECK_EQUAL(ask(card, &answer), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(answer.count, 2);
	answer.processes = details;
	answer.count = 8;
	CHECK_EQUAL(ask(card, &answer), 0);
	CHECK_EQUAL(answer.count, 2);
	for (unsigned i = 0; i < 2; i++) {
		CHECK(details[i].pid != (unsigned)other);
		CHECK_EQUAL(details[i].used_bytes,
			    details[i].pid == (unsigned)child ? CONTEXT_BYTES + 100 * MIB : CONTEXT_BYTES);
	}
	answer =
	    (struct ll_nvml_process_detail_list){LL_NVML_PROCESS_DETAIL_LIST_V1, LL_NVML_PROCESS_MODE_MPS, 8, details};
	CHECK_EQUAL(ask(card, &answer), 0);
	CHECK_EQUAL(answer.count, 0);
	answer.mode = 99;
	CHECK_EQUAL(ask(card, &answer), LL_NVML_ERROR_INVALID_ARGUMENT);
	answer.version = 0x2000020;
	CHECK_EQUAL(ask(card, &answer), LL_NVML_ERROR_ARGUMENT_VERSION_MISMATCH);
	CHECK(ask(card, NULL) != 0);
}

TEST_IN_WORLD(NULL, lists_show_the_tenant_s_programs_alone)
{
	unsigned count = 0;
	struct ll_nvml_device *card = open_card(0);
	pid_t other = stranger();
	govern(2 * GIB);
	CHECK_EQUAL(list_processes(), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), 0);
	check_no_place(card, 0);
	pid_t child = spawn_ready(allocate_and_wait);
	CHECK_EQUAL(list_processes(), 1);
	CHECK_EQUAL(bytes_of(child, 1), CONTEXT_BYTES + 100 * MIB);
	/* A buffer that is too small: its size is told. */
	count = 0;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, NULL), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 1);
	open_context(0);
	count = 1;
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses_v2(card, &count, list), LL_NVML_ERROR_INSUFFICIENT_SIZE);
	CHECK_EQUAL(count, 2);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses_v2(card, &count, list), 0);
	CHECK_EQUAL(bytes_of(getpid(), count), CONTEXT_BYTES);
	CHECK_EQUAL(bytes_of(other, count), 0);
	CHECK(nv.nvmlDeviceGetComputeRunningProcesses(card, NULL, list) != 0);
	CHECK(nv.nvmlDeviceGetComputeRunningProcesses(NULL, &count, list) != 0);
	struct ll_nvml_process_v1 oldest[8];
	count = 8;
	CHECK_EQUAL(list_oldest("nvmlDeviceGetComputeRunningProcesses", &count, oldest), 0);
	CHECK_EQUAL(count, 2);
	CHECK_EQUAL(oldest[0].used_bytes + oldest[1].used_bytes, 2 * CONTEXT_BYTES + 100 * MIB);
	check_no_other_kind(card);
	check_no_place(card, 2);
	check_details(child, other);
	/* A limit that is taken away shows the card as it is. */
	set_limit(0);
	CHECK_EQUAL(list_processes(), 3);
	kill(child, SIGKILL);
	kill(other, SIGKILL);
}

static ll_cu_deviceptr parents;

/* What the parent had is not the child's to give back; the child of a program that has used the driver has none itself.
 */
static void in_child(void)
{
	CHECK(cu.cuMemFree(parents) != 0);
	CHECK(cu.cuMemAlloc(&parents, MIB) != 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	_exit(0); /* the parent's device states are left behind on purpose, which a leak checker would mind */
}

TEST_IN_WORLD(NULL, a_forked_child_changes_nothing_of_its_parent_s)
{
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&parents, 10 * MIB), 0);
	join(spawn(in_child));
	CHECK_EQUAL(charged(), CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(cu.cuMemFree(parents), 0);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}
