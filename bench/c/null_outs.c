/*
 * null_outs.c - calls each function that the governing library hooks with NULL where it writes, each call in a process
 * of its own, and prints a line for each call:
 *
 *     cuMemGetInfo_v2(NULL, &out.size): 0 CUDA_SUCCESS, written
 *
 * "written" says that another out-pointer of the call was written. A call that ends the process is answered with the
 * signal. null_outs.txt has the answers of an H100 with nobody else at work on it, driver 580.159.04:
 *
 *     null_outs > card.txt; diff bench/c/null_outs.txt card.txt      on a card that nobody else uses
 *     LD_LIBRARY_PATH=build/sim null_outs; loadline --sim run --mem 20G -- null_outs      (tests/e2e/null_outs.bats)
 *
 * null_outs NUMBER... makes the calls of those lines alone (the first is 1). Where there is no meson:
 *
 *     cc -D_GNU_SOURCE -Isrc -o null_outs bench/c/null_outs.c -ldl
 */
#include <dlfcn.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/cuda_prototypes.h"
#include "abi/nvml_prototypes.h"

enum { BLOCK_BYTES = 2 << 20, PLAIN_BYTES = 4 << 20, SIDE_BY_SIDE = 4, LONGEST_S = 60, LINE_BYTES = 512 };

/* A row's answer that is none of the driver's. */
enum { NOT_EXPORTED = -1 };

static union {
	unsigned char bytes[256];
	size_t size;
	unsigned int number;
	int value;
	void *pointer;
	ll_cu_deviceptr address;
	enum ll_cu_proc_address_result found;
	enum ll_cu_graph_update_result updated;
	struct ll_cu_mem_pool *pool;
	struct ll_cu_graph_node *node;
	struct ll_cu_graph_exec *exec;
} out;

/* ---- one call's process ---- */

static int report_fd;
static void *libraries[2];

static void end_with(const char *text)
{
	if (write(report_fd, text, strlen(text)) < 0)
		_exit(2);
	_exit(0);
}

/* The call cannot be made, because what it takes cannot. */
static void give_up(const char *what, int status)
{
	char line[LINE_BYTES];
	snprintf(line, sizeof line, "cannot be tried: %s: %d", what, status);
	end_with(line);
}

typedef void any_function(void);

static any_function *look_up(const char *name)
{
	any_function *function = NULL;
	for (int i = 0; i < 2 && !function; i++) {
		void *address = libraries[i] ? dlsym(libraries[i], name) : NULL;
		memcpy(&function, &address, sizeof function);
	}
	return function;
}

static any_function *need(const char *name)
{
	any_function *function = look_up(name);
	if (!function)
		give_up(name, NOT_EXPORTED);
	return function;
}

/* Calls a function of the driver that must succeed. */
#define MAKE(function, args)                                                                                           \
	do {                                                                                                           \
		int status_ = (int)((__typeof__(&function))need(#function))args;                                       \
		if (status_)                                                                                           \
			give_up(#function, status_);                                                                   \
	} while (0)

/* ---- what the calls take, made when a call asks for it ---- */

static char log_text[64];
static void *nowhere;
static enum ll_cu_pointer_attribute size_attribute = LL_CU_POINTER_ATTRIBUTE_RANGE_SIZE;
static enum ll_cu_pointer_attribute type_attribute = LL_CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
static const struct ll_cu_mem_location here = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE};
static const struct ll_cu_mem_pool_props pool_props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						       .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
						       .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
static const struct ll_cu_mem_allocation_prop physical_prop = {
    .type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
    .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
    .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE},
};
static const struct ll_cu_array_descriptor array_shape = {64, 64, LL_CU_AD_FORMAT_FLOAT, 1};
static const struct ll_cu_array_descriptor_v1 array_shape_v1 = {64, 64, LL_CU_AD_FORMAT_FLOAT, 1};
static const struct ll_cu_array3d_descriptor box_shape = {64, 64, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0};
static const struct ll_cu_array3d_descriptor_v1 box_shape_v1 = {64, 64, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0};
static const struct ll_cu_external_buffer_desc external_buffer = {.bytes = BLOCK_BYTES};
static const struct ll_cu_external_mipmap_desc external_mipmap = {.array = {64, 64, 0, LL_CU_AD_FORMAT_FLOAT, 1, 0},
								  .levels = 1};

static const char ptx[] = ".version 7.4\n"
			  ".target sm_50\n"
			  ".address_size 64\n"
			  ".visible .global .align 8 .b8 counts[32];\n"
			  ".visible .entry nothing()\n"
			  "{\n"
			  "\tret;\n"
			  "}\n";

static void *as_pointer(unsigned long long value)
{
	return (void *)(uintptr_t)value; /* NOLINT(performance-no-int-to-ptr) */
}

static ll_cu_deviceptr plain(void)
{
	ll_cu_deviceptr address = 0;
	MAKE(cuMemAlloc_v2, (&address, PLAIN_BYTES));
	return address;
}

static void *host(void)
{
	void *pointer = NULL;
	MAKE(cuMemHostAlloc, (&pointer, 4096, LL_CU_MEMHOSTALLOC_DEVICEMAP));
	return pointer;
}

static struct ll_cu_stream *stream(void)
{
	struct ll_cu_stream *made = NULL;
	MAKE(cuStreamCreate, (&made, LL_CU_STREAM_NON_BLOCKING));
	return made;
}

static struct ll_cu_array *array(void)
{
	struct ll_cu_array *made = NULL;
	MAKE(cuArrayCreate_v2, (&made, &array_shape));
	return made;
}

/* Copies of one piece each, by the functions that take several. */
static struct batch {
	ll_cu_deviceptr to, from;
	size_t bytes, first_of;
	struct ll_cu_copy_attributes attributes;
} * batch(void)
{
	static struct batch made;
	if (!made.to)
		made = (struct batch){.to = plain(), .from = plain(), .bytes = 4096};
	made.attributes.order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return &made;
}

static struct ll_cu_copy3d_op *block(void)
{
	static struct ll_cu_copy3d_op made;
	made.from.type = made.to.type = LL_CU_MEMCPY_OPERAND_TYPE_POINTER;
	made.from.at.pointer.address = plain();
	made.to.at.pointer.address = plain();
	made.extent = (struct ll_cu_copy_extent){64, 1, 1};
	made.order = LL_CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
	return &made;
}

static struct ll_cu_mem_pool *pool(void)
{
	static struct ll_cu_mem_pool *made;
	if (!made)
		MAKE(cuMemPoolCreate, (&made, &pool_props));
	return made;
}

static unsigned long long pool_file(void)
{
	int fd = -1;
	MAKE(cuMemPoolExportToShareableHandle, (&fd, pool(), LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return (unsigned)fd;
}

static ll_cu_deviceptr pooled(void)
{
	ll_cu_deviceptr address = 0;
	pool_file();
	MAKE(cuMemAllocFromPoolAsync, (&address, 4096, pool(), NULL));
	return address;
}

static struct ll_cu_mem_pool_pointer *pool_pointer(void)
{
	static struct ll_cu_mem_pool_pointer made;
	MAKE(cuMemPoolExportPointer, (&made, pooled()));
	return &made;
}

static ll_cu_mem_handle physical(void)
{
	ll_cu_mem_handle handle = 0;
	MAKE(cuMemCreate, (&handle, BLOCK_BYTES, &physical_prop, 0));
	return handle;
}

static unsigned long long physical_file(void)
{
	int fd = -1;
	MAKE(cuMemExportToShareableHandle, (&fd, physical(), LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0));
	return (unsigned)fd;
}

static ll_cu_deviceptr mapped(void)
{
	ll_cu_deviceptr address = 0;
	struct ll_cu_mem_access_desc access = {.location = here, .flags = LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	MAKE(cuMemAddressReserve, (&address, BLOCK_BYTES, 0, 0, 0));
	MAKE(cuMemMap, (address, BLOCK_BYTES, 0, physical(), 0));
	MAKE(cuMemSetAccess, (address, BLOCK_BYTES, &access, 1));
	return address;
}

/* On a card only memory of another API is external, so the rows that take it are tried on the simulator alone. */
static struct ll_cu_external_memory_desc *external_desc(void)
{
	static struct ll_cu_external_memory_desc made;
	int fd = memfd_create("external", MFD_CLOEXEC);
	if (fd < 0 || ftruncate(fd, BLOCK_BYTES) < 0)
		give_up("memfd_create", 0);
	made.type = LL_CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD;
	made.handle.fd = fd;
	made.bytes = BLOCK_BYTES;
	return &made;
}

static struct ll_cu_external_memory *external(void)
{
	struct ll_cu_external_memory *made = NULL;
	MAKE(cuImportExternalMemory, (&made, external_desc()));
	return made;
}

static struct ll_cu_ipc_mem_handle *letter(void)
{
	static struct ll_cu_ipc_mem_handle made;
	MAKE(cuIpcGetMemHandle, (&made, plain()));
	return &made;
}

static struct ll_cu_event *event(void)
{
	struct ll_cu_event *made = NULL;
	MAKE(cuEventCreate, (&made, LL_CU_EVENT_DISABLE_TIMING | LL_CU_EVENT_INTERPROCESS));
	return made;
}

static struct ll_cu_ipc_event_handle *event_letter(void)
{
	static struct ll_cu_ipc_event_handle made;
	MAKE(cuIpcGetEventHandle, (&made, event()));
	return &made;
}

static struct ll_cu_graph_node_params *node_params(void)
{
	static struct ll_cu_graph_node_params made = {.type = LL_CU_GRAPH_NODE_TYPE_EMPTY};
	return &made;
}

static struct ll_cu_mem_alloc_params *alloc_params(void)
{
	static struct ll_cu_mem_alloc_params made = {.bytes = 4096};
	made.pool = (struct ll_cu_mem_pool_props){.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED, .location = here};
	return &made;
}

static struct ll_cu_graph_instantiate_params *instantiate_params(void)
{
	static struct ll_cu_graph_instantiate_params made;
	return &made;
}

/* A graph of one empty node. */
static struct ll_cu_graph *graph(void)
{
	static struct ll_cu_graph *made;
	struct ll_cu_graph_node *node;
	if (made)
		return made;
	MAKE(cuGraphCreate, (&made, 0));
	MAKE(cuGraphAddEmptyNode, (&node, made, NULL, 0));
	return made;
}

static struct ll_cu_graph_exec *exec(void)
{
	struct ll_cu_graph_exec *made = NULL;
	MAKE(cuGraphInstantiateWithFlags, (&made, graph(), 0));
	return made;
}

static struct ll_cu_resource_desc *green_desc(void)
{
	struct ll_cu_resource whole, part;
	unsigned int count = 1;
	struct ll_cu_resource_desc *made = NULL;
	MAKE(cuDeviceGetDevResource, (0, &whole, LL_CU_DEV_RESOURCE_TYPE_SM));
	MAKE(cuDevSmResourceSplitByCount, (&part, &count, &whole, NULL, 0, 8));
	MAKE(cuDevResourceGenerateDesc, (&made, &part, 1));
	return made;
}

static struct ll_cu_green_context *green(void)
{
	struct ll_cu_green_context *made = NULL;
	MAKE(cuGreenCtxCreate, (&made, green_desc(), 0, LL_CU_GREEN_CTX_DEFAULT_STREAM));
	return made;
}

/* A file that ends with the process. */
static const char *ptx_file(void)
{
	static char path[64];
	int fd = memfd_create("nothing.ptx", 0);
	if (fd < 0 || write(fd, ptx, sizeof ptx - 1) != (ssize_t)sizeof ptx - 1)
		give_up("memfd_create", 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

static struct ll_cu_module *module(void)
{
	struct ll_cu_module *made = NULL;
	MAKE(cuModuleLoadData, (&made, ptx));
	return made;
}

static struct ll_cu_library *library(void)
{
	struct ll_cu_library *made = NULL;
	MAKE(cuLibraryLoadData, (&made, ptx, NULL, NULL, 0, NULL, NULL, 0));
	return made;
}

static struct ll_cu_kernel *kernel(void)
{
	struct ll_cu_kernel *made = NULL;
	MAKE(cuLibraryGetKernel, (&made, library(), "nothing"));
	return made;
}

static struct ll_cu_function *function(void)
{
	struct ll_cu_function *made = NULL;
	MAKE(cuModuleGetFunction, (&made, module(), "nothing"));
	return made;
}

static struct ll_cu_kernel_params *kernel_params(void)
{
	static struct ll_cu_kernel_params made;
	made = (struct ll_cu_kernel_params){
	    .function = function(), .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1};
	return &made;
}

static struct ll_cu_kernel_params_v1 *old_kernel_params(void)
{
	static struct ll_cu_kernel_params_v1 made;
	made = (struct ll_cu_kernel_params_v1){
	    .function = function(), .grid_x = 1, .grid_y = 1, .grid_z = 1, .block_x = 1, .block_y = 1, .block_z = 1};
	return &made;
}

static struct ll_nvml_device *card(void)
{
	struct ll_nvml_device *made = NULL;
	MAKE(nvmlInit_v2, ());
	MAKE(nvmlDeviceGetHandleByIndex_v2, (0, &made));
	return made;
}

static unsigned int *no_entries(void)
{
	static unsigned int count;
	return &count;
}

static unsigned int *four_entries(void)
{
	static unsigned int count = 4;
	return &count;
}

static struct ll_nvml_process_detail_list *details(unsigned int count)
{
	static struct ll_nvml_process_detail_list made = {.version = LL_NVML_PROCESS_DETAIL_LIST_V1};
	made.count = count;
	return &made;
}

/* ---- the table ---- */

#define JOIN_(a, b) a##b
#define JOIN(a, b) JOIN_(a, b)
#define CALL(function) JOIN(call_##function##_, __LINE__)

#define NULL_OUT_ROW(function, args, text)                                                                             \
	static int CALL(function)(void)                                                                                \
	{                                                                                                              \
		__typeof__(&function) its = (__typeof__(&function))look_up(#function);                                 \
		return its ? (int)its args : NOT_EXPORTED;                                                             \
	}
#include "null_outs.def"

static const struct row {
	const char *function, *args;
	int (*call)(void);
} rows[] = {
#define NULL_OUT_ROW(function, args, text) {#function, text, CALL(function)},
#include "null_outs.def"
};
enum { ROWS = sizeof rows / sizeof *rows };

static const char *name_of(int number, int answer)
{
	const char *name = "";
	__typeof__(&cuGetErrorName) get_name = (__typeof__(&cuGetErrorName))look_up("cuGetErrorName");
	bool is_cuda = strncmp(rows[number].function, "cu", 2) == 0;
	return is_cuda && get_name && get_name((ll_cu_result)answer, &name) == LL_CUDA_SUCCESS ? name : "";
}

static void make_call(int number)
{
	static const unsigned char untouched = 0xa5;
	char line[LINE_BYTES];
	struct ll_cu_context *context = NULL;
	bool is_written = false;
	alarm(LONGEST_S);
	libraries[0] = dlopen("libcuda.so.1", RTLD_NOW);
	libraries[1] = dlopen("libnvidia-ml.so.1", RTLD_NOW);
	MAKE(cuInit, (0));
	MAKE(cuDevicePrimaryCtxRetain, (&context, 0));
	MAKE(cuCtxSetCurrent, (context));
	memset(&out, untouched, sizeof out);
	int answer = rows[number].call();
	for (size_t i = 0; i < sizeof out; i++)
		is_written |= out.bytes[i] != untouched;
	if (answer == NOT_EXPORTED)
		end_with("not exported");
	const char *name = name_of(number, answer);
	snprintf(line, sizeof line, "%d%s%s%s", answer, *name ? " " : "", name, is_written ? ", written" : "");
	end_with(line);
}

/* ---- all calls ---- */

struct child {
	pid_t pid;
	int fd;
};

static struct child start(int number)
{
	int fds[2];
	fflush(stdout);
	if (pipe(fds) < 0)
		return (struct child){.pid = -1};
	pid_t pid = fork();
	if (pid == 0) {
		close(fds[0]);
		report_fd = fds[1];
		make_call(number);
	}
	close(fds[1]);
	return (struct child){pid, fds[0]};
}

/* False: the process could not be started, or ended without a word. */
static bool print_answer(int number, const struct child *child)
{
	char line[LINE_BYTES] = "";
	int status = 0;
	bool is_answered = child->pid > 0;
	ssize_t length = is_answered ? read(child->fd, line, sizeof line - 1) : 0;
	is_answered = is_answered && waitpid(child->pid, &status, 0) == child->pid;
	if (is_answered && WIFSIGNALED(status))
		snprintf(line, sizeof line, "signal %d", WTERMSIG(status));
	else
		is_answered &= length > 0;
	printf("%s%s: %s\n", rows[number].function, rows[number].args, is_answered ? line : "no answer");
	if (child->pid > 0)
		close(child->fd);
	return is_answered;
}

/* A list of processes has room for four: this call's own, and what others have left behind for a moment. */
static bool is_made_alone(int number)
{
	return strstr(rows[number].function, "Running");
}

static bool print_all(const int *numbers, int count)
{
	struct child children[SIDE_BY_SIDE];
	bool is_good = true;
	int printed = 0;
	for (int i = 0; i <= count; i++) {
		int left = i == count || is_made_alone(numbers[i]) ? 0 : SIDE_BY_SIDE - 1;
		for (; i - printed > left; printed++)
			is_good &= print_answer(numbers[printed], &children[printed % SIDE_BY_SIDE]);
		if (i < count)
			children[i % SIDE_BY_SIDE] = start(numbers[i]);
	}
	return is_good;
}

int main(int argc, char **argv)
{
	int numbers[ROWS], count = 0;
	for (int i = 1; i < argc && count < ROWS; i++) {
		int number = atoi(argv[i]);
		if (number >= 1 && number <= ROWS)
			numbers[count++] = number - 1;
	}
	for (int i = 0; argc < 2 && i < ROWS; i++)
		numbers[count++] = i;
	return print_all(numbers, count) ? 0 : 1;
}
