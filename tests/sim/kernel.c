/*
 * What a program asks of the kernel driver by ioctl, and a library in front of it hears: this program's own ioctl is
 * found first, and passes everything on.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "abi/rm.h"
#include "abi/rm_trace.h"
#include "base/clock.h"
#include "process.h"

enum { MOST_OBJECTS = 256 };

struct object {
	uint32_t client, parent, object, class, engine, cid;
};

static struct object heard[MOST_OBJECTS];
static unsigned heard_count;
static int driver_fd;

static void note_alloc(const struct ll_rm_alloc *alloc)
{
	const uint32_t *params = (const void *)(uintptr_t)alloc->params;
	struct object *object = &heard[heard_count++ % MOST_OBJECTS];
	*object = (struct object){alloc->root, alloc->parent, alloc->object, alloc->class, 0, 0};
	if (alloc->class == LL_RM_CLASS_CHANNEL_GROUP)
		object->engine = params[3];
	else if ((alloc->class & 0xff) == LL_RM_CLASS_CHANNEL_SUFFIX)
		memcpy(&object->cid, (const char *)params + LL_RM_CHANNEL_CID_OFFSET, sizeof object->cid);
}

__attribute__((visibility("default"))) int ioctl(int fd, unsigned long request, ...)
{
	int (*next)(int, unsigned long, ...);
	*(void **)&next = dlsym(RTLD_NEXT, "ioctl");
	va_list arguments;
	va_start(arguments, request);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	int rc = next(fd, request, argument);
	if (request == LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc) && rc == 0 &&
	    !((const struct ll_rm_alloc *)argument)->status) {
		driver_fd = fd;
		note_alloc(argument);
	}
	return rc;
}

static unsigned count(uint32_t class, uint32_t parent)
{
	unsigned n = 0;
	for (unsigned i = 0; i < heard_count; i++)
		n += heard[i].class == class && (!parent || heard[i].parent == parent);
	return n;
}

static const struct object *find(uint32_t class, uint32_t engine)
{
	for (unsigned i = 0; i < heard_count; i++) {
		if (heard[i].class == class && heard[i].engine == engine)
			return &heard[i];
	}
	give_up(__FILE__, __LINE__, "no such object");
}

static const struct object *compute_group(void)
{
	return find(LL_RM_CLASS_CHANNEL_GROUP, LL_RM_ENGINE_COMPUTE);
}

static uint32_t ask(const struct object *of, uint32_t command, void *params, uint32_t size)
{
	struct ll_rm_control control = {.client = of->client,
					.object = of->object,
					.command = command,
					.params = (uintptr_t)params,
					.params_size = size};
	CHECK_EQUAL(ioctl(driver_fd, LL_RM_REQUEST(LL_RM_ESC_CONTROL, struct ll_rm_control), &control), 0);
	return control.status;
}

/* All channels of the compute group, as loadlined does. */
static uint32_t switch_off(bool is_off)
{
	struct ll_rm_disable list = {.is_off = is_off};
	for (unsigned i = 0; i < heard_count; i++) {
		if (heard[i].parent != compute_group()->object)
			continue;
		list.clients[list.count] = heard[i].client;
		list.channels[list.count++] = heard[i].object;
	}
	return ask(find(LL_RM_CLASS_SUBDEVICE, 0), LL_RM_CONTROL_DISABLE_CHANNELS, &list, sizeof list);
}

static void make_a_context(void)
{
	open_cuda();
	struct ll_cu_context *context = open_context(0);
	CHECK_EQUAL(count(LL_RM_CLASS_ROOT, 0), 1);
	CHECK_EQUAL(count(LL_RM_CLASS_DEVICE, heard[0].object), 1);
	CHECK_EQUAL(count(LL_RM_CLASS_SUBDEVICE, 0), 1);
	CHECK_EQUAL(count(LL_RM_CLASS_CHANNEL_GROUP, 0), 4);
	CHECK_EQUAL(count(0xc86f, compute_group()->object), 8);
	for (uint32_t engine = 11; engine <= 13; engine++)
		CHECK_EQUAL(count(0xc86f, find(LL_RM_CLASS_CHANNEL_GROUP, engine)->object), 4);
	CHECK(heard[heard_count - 1].cid);
	CHECK_EQUAL(cu.cuCtxDestroy(context), 0);
	uint64_t us;
	CHECK(ask(compute_group(), LL_RM_CONTROL_GET_SLICE, &us, sizeof us));
	heard_count = 0;
	CHECK_EQUAL(setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 1), 0);
	open_context(0);
	CHECK_EQUAL(count(LL_RM_CLASS_ROOT, 0), 0);
	CHECK_EQUAL(count(0xc86f, compute_group()->object), 32);
}

TEST(test_a_context_has_four_groups)
{
	in_world(NULL, make_a_context);
}

static void ask_for_slices(void)
{
	uint64_t us = 0;
	struct ll_rm_uuid uuid = {0};
	char expected[96];
	open_cuda();
	open_nvml();
	CHECK_EQUAL(nv.nvmlInit(), 0);
	open_context(0);
	CHECK_EQUAL(ask(compute_group(), LL_RM_CONTROL_GET_SLICE, &us, sizeof us), 0);
	CHECK_EQUAL(us, 2048);
	us = 100;
	CHECK_EQUAL(ask(compute_group(), LL_RM_CONTROL_SET_SLICE, &us, sizeof us), 0);
	us = 0;
	CHECK_EQUAL(ask(compute_group(), LL_RM_CONTROL_GET_SLICE, &us, sizeof us), 0);
	CHECK_EQUAL(us, 100);
	CHECK_EQUAL(ask(find(LL_RM_CLASS_SUBDEVICE, 0), LL_RM_CONTROL_GET_UUID, &uuid, sizeof uuid), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetUUID(open_card(0), expected, sizeof expected), 0);
	CHECK(strcmp((const char *)uuid.data, expected) == 0 && uuid.length == strlen(expected) + 1);
	struct object stranger = *compute_group();
	stranger.client ^= 1;
	CHECK_EQUAL(ask(&stranger, LL_RM_CONTROL_GET_SLICE, &us, sizeof us), LL_RM_NO_RIGHT);
}

TEST(test_a_slice_is_told_as_it_was_asked)
{
	in_world(NULL, ask_for_slices);
}

static void put_off_by_a_child(void)
{
	open_cuda();
	open_context(0);
	load_kernels();
	struct ll_cu_stream *stream = new_stream();
	launch_timed(get_kernel("work_ns"), stream, 50 * 1000 * 1000, 132, 1024);
	pid_t child = fork(); /* it has the descriptor */
	if (child == 0)
		_exit((int)switch_off(true));
	int status;
	CHECK_EQUAL(waitpid(child, &status, 0), child);
	CHECK_EQUAL(status, 0);
	/* Far longer than the kernel: it stands, also after the child has ended. */
	sleep_ms(300);
	CHECK_EQUAL(cu.cuStreamQuery(stream), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(switch_off(false), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(stream), 0);
}

TEST(test_who_has_the_descriptor_puts_a_process_off_and_on)
{
	in_world(NULL, put_off_by_a_child);
}

static void refuse_off(void)
{
	open_cuda();
	open_context(0);
	CHECK_EQUAL(switch_off(true), 0x1b);
}

TEST(test_a_card_without_off_refuses)
{
	in_world("card 0 off no\n", refuse_off);
}

/* ---- the trace of context switches ---- */

struct trace {
	int fd;
	uint32_t client, device, subdevice, buffer;
	const volatile struct ll_rm_event_header *header;
	const volatile struct ll_rm_switch_record *records;
};

enum { TRACE_RECORDS = 64 };

static uint32_t make(const struct trace *trace, uint32_t parent, uint32_t class, void *params, size_t size)
{
	struct ll_rm_alloc alloc = {.root = trace->client,
				    .parent = parent,
				    .class = class,
				    .params = (uintptr_t)params,
				    .params_size = (uint32_t)size};
	CHECK_EQUAL(ioctl(trace->fd, LL_RM_REQUEST(LL_RM_ESC_ALLOC, struct ll_rm_alloc), &alloc), 0);
	CHECK_EQUAL(alloc.status, 0);
	return alloc.object;
}

static void tell(const struct trace *trace, uint32_t object, uint32_t command, void *params, size_t size)
{
	struct object of = {.client = trace->client, .object = object};
	driver_fd = trace->fd;
	CHECK_EQUAL(ask(&of, command, params, (uint32_t)size), 0);
}

static const void *map_memory(const struct trace *trace, uint32_t memory, size_t size)
{
	struct ll_rm_map map = {.client = trace->client,
				.device = trace->client,
				.memory = memory,
				.length = size,
				.fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC)};
	CHECK_EQUAL(ioctl(trace->fd, LL_RM_REQUEST(LL_RM_ESC_MAP_MEMORY, struct ll_rm_map), &map), 0);
	CHECK_EQUAL(map.status, 0);
	const void *at = mmap(NULL, size, PROT_READ, MAP_SHARED, map.fd, 0);
	CHECK(at != MAP_FAILED);
	const void *writable = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, map.fd, 0);
	CHECK(writable == MAP_FAILED);
	return at;
}

static void open_trace(struct trace *trace, bool all_users)
{
	uint32_t number = 0;
	trace->client = 0;
	trace->fd = open("/dev/nvidiactl", O_RDWR | O_CLOEXEC);
	trace->client = make(trace, 0, LL_RM_CLASS_ROOT, NULL, 0);
	trace->device = make(trace, trace->client, LL_RM_CLASS_DEVICE, &number, sizeof number);
	trace->subdevice = make(trace, trace->device, LL_RM_CLASS_SUBDEVICE, &number, sizeof number);
	struct ll_rm_memory_params memory = {.size = 4096};
	uint32_t header = make(trace, trace->client, LL_RM_CLASS_READ_ONLY_MEMORY, &memory, sizeof memory);
	memory.size = TRACE_RECORDS * sizeof(struct ll_rm_switch_record);
	uint32_t records = make(trace, trace->client, LL_RM_CLASS_READ_ONLY_MEMORY, &memory, sizeof memory);
	trace->header = map_memory(trace, header, 4096);
	trace->records = map_memory(trace, records, memory.size);
	struct ll_rm_event_buffer_params buffer = {.record_size = sizeof(struct ll_rm_switch_record),
						   .record_count = TRACE_RECORDS,
						   .subdevice = trace->subdevice,
						   .header = header,
						   .records = records};
	trace->buffer = make(trace, trace->client, LL_RM_CLASS_EVENT_BUFFER, &buffer, sizeof buffer);
	struct ll_rm_bind_switches bind = {.buffer = trace->buffer,
					   .record_size = sizeof(struct ll_rm_switch_record),
					   .detail = LL_RM_SWITCHES_SIMPLE,
					   .all_users = all_users};
	tell(trace, trace->subdevice, LL_RM_CONTROL_BIND_SWITCHES, &bind, sizeof bind);
	struct ll_rm_enable_events enable = {1, LL_RM_EVENTS_KEEP_OLDEST};
	tell(trace, trace->buffer, LL_RM_CONTROL_ENABLE_EVENTS, &enable, sizeof enable);
}

static unsigned unread(const struct trace *trace)
{
	return (trace->header->put + TRACE_RECORDS - trace->header->get) % TRACE_RECORDS;
}

/* The world's files that stand for memory. */
static size_t count_memories(void)
{
	char pattern[PATH_MAX];
	glob_t found = {0};
	snprintf(pattern, sizeof pattern, "%s/memory-*", getenv("LOADLINE_SIM_DIR"));
	glob(pattern, 0, NULL, &found);
	size_t count = found.gl_pathc;
	globfree(&found);
	return count;
}

static void be_killed_with_a_trace(void)
{
	struct trace trace;
	open_trace(&trace, false);
	ready();
}

static void leave_no_memory(void)
{
	spawn_and_kill(be_killed_with_a_trace);
	open_cuda();
	open_context(0);
	WAIT_FOR(count_memories() == 0);
}

TEST(test_memory_ends_with_its_process)
{
	in_world(NULL, leave_no_memory);
}

static void read_a_trace(void)
{
	struct trace trace;
	pid_t stranger = spawn_ready(be_a_stranger);
	open_cuda();
	open_context(0);
	load_kernels();
	uint32_t cid = find(0xc86f, 0)->cid;
	open_trace(&trace, false);
	launch_timed(get_kernel("work_ns"), new_stream(), 10 * LL_NS_PER_S, 132, 1024);
	/* Each 33 ms, without a call. */
	WAIT_FOR(unread(&trace) >= 16);
	bool is_on = false, has_own = false;
	uint64_t before_ns = 0;
	for (unsigned i = 0; i < 16; i++) {
		const volatile struct ll_rm_switch_record *record = &trace.records[i];
		CHECK(record->ns >= before_ns);
		CHECK(i == 0 || is_on == (record->tag == LL_RM_SWITCH_END));
		CHECK(record->pid == (uint32_t)getpid() ? record->context == cid : record->pid == (uint32_t)stranger);
		has_own |= record->pid == (uint32_t)getpid();
		is_on = record->tag == LL_RM_SWITCH_START;
		before_ns = record->ns;
	}
	CHECK(has_own);
	/* The oldest are kept, and the others counted. */
	WAIT_FOR(trace.header->dropped > 0);
	CHECK_EQUAL(unread(&trace), TRACE_RECORDS - 1);
	kill(stranger, SIGKILL);
	struct ll_rm_update_get get = {.get = trace.header->put};
	tell(&trace, trace.buffer, LL_RM_CONTROL_UPDATE_GET, &get, sizeof get);
	CHECK_EQUAL(unread(&trace), 0);
	tell(&trace, trace.buffer, LL_RM_CONTROL_FLUSH, NULL, 0);
	CHECK(trace.header->get == get.get);
	CHECK_EQUAL(count_memories(), 2);
	struct ll_rm_free freed = {.root = trace.client, .object = trace.client};
	CHECK_EQUAL(ioctl(trace.fd, LL_RM_REQUEST(LL_RM_ESC_FREE, struct ll_rm_free), &freed), 0);
	CHECK_EQUAL(freed.status, 0);
	CHECK_EQUAL(count_memories(), 0);
}

TEST(test_a_trace_is_read_in_memory)
{
	in_world(NULL, read_a_trace);
}

static void read_others(void)
{
	struct trace trace;
	CHECK_EQUAL(setenv("LOADLINE_SIM_UID", "4242", 1), 0);
	open_trace(&trace, true);
	CHECK_EQUAL(setenv("LOADLINE_SIM_UID", "4343", 1), 0);
	spawn_ready(be_a_stranger);
	spawn_ready(be_a_stranger);
	WAIT_FOR(unread(&trace) >= 8);
	for (unsigned i = 0; i < 8; i++)
		CHECK(trace.records[i].pid == 0 && trace.records[i].context == 0 && trace.records[i].ns);
}

TEST(test_other_users_have_no_names)
{
	in_world(NULL, read_others);
}

TEST(test_other_requests_go_on_to_libc)
{
	int ends[2], waiting = 0;
	char letter = 'x';
	assert_int_equal(pipe(ends), 0);
	assert_int_equal(write(ends[1], &letter, 1), 1);
	assert_int_equal(ioctl(ends[0], FIONREAD, &waiting), 0);
	assert_int_equal(waiting, 1);
	struct ll_rm_free nothing = {0};
	assert_int_equal(ioctl(ends[0], LL_RM_REQUEST(LL_RM_ESC_FREE, struct ll_rm_free), &nothing), -1);
	assert_int_equal(errno, ENOTTY);
	close(ends[0]);
	close(ends[1]);
}
