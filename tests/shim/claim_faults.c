/* A program of `loadline run` that gets no claim: where limits were asked for it gets no context and says why, else it
 * goes on without, and never falls over it. */
#include "governed.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "hearing.h"
#include "jobs.h"
#include "skipped.h"
#include "wait_for.h"

#define MS UINT64_C(1000000)

static struct ll_place place;

/* ---- what is said ---- */

/* How many lines were written to the standard error stream since; all of them say why contexts are refused. */
static unsigned count_refusals(void)
{
	char line[1024];
	unsigned count = 0;
	FILE *said = end_hearing();
	for (rewind(said); fgets(line, sizeof line, said); count++) {
		CHECK(strncmp(line, "loadline: no contexts on card 0 under the limits", 48) == 0);
		print_message("%s", line);
	}
	fclose(said);
	return count;
}

/* ---- programs that get none ---- */

static void check_refused(void)
{
	struct ll_cu_context *context;
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	ll_cu_mem_handle handle;
	open_cuda();
	CHECK_EQUAL(cu.cuInit(0), 0);
	begin_hearing();
	uint64_t began_ns = ll_now_ns();
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), LL_CUDA_ERROR_NOT_PERMITTED);
	CHECK(is_in_time(began_ns, 10000 * MS));
	CHECK_EQUAL(cu.cuDevicePrimaryCtxRetain(&context, 0), LL_CUDA_ERROR_NOT_PERMITTED);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(count_refusals(), 1);
}

static void govern_at_place(uint64_t limit_bytes)
{
	jobs_set_environment(
	    (struct ll_run_settings){
		.id = 7, .tenant = "test", .memory_limit_bytes = limit_bytes, .counts_context = true},
	    &place);
	CHECK_EQUAL(unsetenv("LD_PRELOAD"), 0);
}

static void use_refused(void)
{
	govern_at_place(600 * MIB);
	check_refused();
}

/* Everything works as it does without limits. */
static void use_ungoverned(void)
{
	pid_t limited = spawn(use_refused);
	ll_cu_deviceptr address;
	size_t free_bytes, total_bytes;
	unsigned count = 8;
	struct ll_nvml_process list[8];
	struct ll_nvml_memory memory;
	struct ll_nvml_device *card = open_card(0);
	govern_at_place(0);
	open_context(0);
	struct ll_cu_stream *stream = new_stream();
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), 0);
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	CHECK_EQUAL(cu.cuMemAllocAsync(&address, GIB, stream), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(address, stream), 0);
	for (int i = 0; i < 10; i++)
		launch_timed(get_kernel("work_ns"), stream, 10000, 1, 32);
	CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
	CHECK_EQUAL(cu.cuMemGetInfo(&free_bytes, &total_bytes), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetMemoryInfo(card, &memory), 0);
	CHECK_EQUAL(nv.nvmlDeviceGetComputeRunningProcesses(card, &count, list), 0);
	join(limited);
}

static void find_place(void)
{
	CHECK_EQUAL(ll_place_find(getenv("LOADLINE_SIM_DIR"), &place, NULL), 0);
}

TEST_IN_WORLD(NULL, where_nobody_serves_it_is_done_without)
{
	find_place();
	use_ungoverned();
}

TEST_IN_WORLD(NULL, settings_that_name_no_place_are_done_without)
{
	place.name[0] = '\0';
	use_ungoverned();
}

/* Whoever serves there, and what it does with each packet that it gets. */
static void (*answer)(int fd, unsigned packets);
static union {
	union ll_message message;
	char bytes[LL_MESSAGE_MAX];
} packet;

static void serve(void)
{
	int listen_fd;
	CHECK_EQUAL(ll_place_listen(&place, &listen_fd), 0);
	ready();
	CHECK_EQUAL(fcntl(listen_fd, F_SETFL, 0), 0);
	for (;;) {
		int fd = accept(listen_fd, NULL, NULL);
		if (fd < 0)
			exit(0);
		for (unsigned packets = 0; recv(fd, packet.bytes, sizeof packet.bytes, 0) > 0; packets++)
			answer(fd, packets);
		close(fd);
	}
}

static void serve_as_nobody(void)
{
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	serve();
}

static void say_nothing(int fd, unsigned packets)
{
	(void)fd;
	(void)packets;
}

static void say_garbage(int fd, unsigned packets)
{
	char garbage[300];
	memset(garbage, 0xa5, sizeof garbage);
	send(fd, garbage, 1 + packets * 100, MSG_NOSIGNAL);
}

/* It is polite, and gives descriptors that are no pages. */
static void give_nothing(int fd, unsigned packets)
{
	union ll_message message;
	int fds[2] = {STDIN_FILENO, STDERR_FILENO};
	ll_message_init(&message, packets ? LL_MESSAGE_CLAIMED : LL_MESSAGE_WELCOME);
	message.header.serial = packets + 1;
	message.welcome.protocol = packets ? message.welcome.protocol : 1;
	if (!packets)
		message.welcome.instance = 1;
	else
		message.claimed.slot_token = 1;
	ll_message_send(fd, &message, fds, packets ? 2 : 0);
}

static void welcome(int fd)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_WELCOME);
	message.header.serial = packet.message.header.serial;
	message.welcome.protocol = LL_PROTOCOL_VERSION;
	message.welcome.instance = 1;
	ll_message_send(fd, &message, NULL, 0);
}

/* The first slot, of the card that is asked for, with as much memory as it wants. */
static void write_pages(int ret_fds[2])
{
	struct ll_page *page;
	struct ll_orders *orders;
	const uint64_t token[2] = {7, 7};
	CHECK_EQUAL(ll_page_make(&ret_fds[0]), 0);
	CHECK_EQUAL(ll_orders_make(token, &ret_fds[1]), 0);
	CHECK_EQUAL(ll_page_map(ret_fds[0], true, &page), 0);
	CHECK_EQUAL(ll_orders_map(ret_fds[1], true, &orders), 0);
	memcpy(orders->cards[0].uuid, packet.message.claim.uuid, sizeof orders->cards[0].uuid);
	orders->instance = 1;
	orders->slot_end = page->slot_end = 1;
	page->slots[0].memory = LL_MEMORY_WORD(LL_MEMORY_UNITS_MAX, 0);
	page->slots[0].pid = packet.message.claim.pid;
	page->slots[0].token = 1;
	ll_page_unmap(page);
	ll_orders_unmap(orders);
}

/* It gives a claim, and never decides about it: it was killed, or stopped, just then. */
static void give_and_forget(int fd, unsigned packets)
{
	union ll_message message;
	int fds[2];
	if (packets == 0)
		welcome(fd);
	if (packets != 1)
		return;
	write_pages(fds);
	ll_message_init(&message, LL_MESSAGE_CLAIMED);
	message.header.serial = packet.message.header.serial;
	message.claimed.slot_token = 1;
	ll_message_send(fd, &message, fds, 2);
	ll_message_close_fds(fds, 2);
}

static void hang_up(int fd, unsigned packets)
{
	if (packets)
		shutdown(fd, SHUT_RDWR);
	else
		say_garbage(fd, packets);
}

static void use_beside(void (*server)(void), void (*how)(int fd, unsigned packets))
{
	find_place();
	answer = how;
	pid_t pid = spawn_ready(server);
	use_ungoverned();
	CHECK_EQUAL(kill(pid, SIGKILL), 0);
	CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
}

TEST_IN_WORLD(NULL, who_says_nothing_is_done_without)
{
	use_beside(serve, say_nothing);
}

TEST_IN_WORLD(NULL, who_says_garbage_is_done_without)
{
	use_beside(serve, say_garbage);
}

TEST_IN_WORLD(NULL, who_gives_no_pages_is_done_without)
{
	use_beside(serve, give_nothing);
}

TEST_IN_WORLD(NULL, who_hangs_up_is_done_without)
{
	use_beside(serve, hang_up);
}

static void body_other_users_name(void)
{
	use_beside(serve_as_nobody, say_nothing);
}

TEST(another_user_who_has_the_name_is_done_without)
{
	if (geteuid() != 0)
		SKIP_TEST("only root may become another user");
	in_world(NULL, body_other_users_name);
}

/* Its launches wait for the lease, and no longer. */
TEST_IN_WORLD(NULL, who_gives_a_claim_and_never_decides_is_done_without)
{
	find_place();
	answer = give_and_forget;
	pid_t pid = spawn_ready(serve);
	govern_at_place(0);
	open_context(0);
	struct ll_cu_stream *own_stream = new_stream();
	struct ll_cu_function *kernel = get_kernel("work_ns");
	for (int i = 0; i < 3; i++) {
		uint64_t began_ns = ll_now_ns();
		launch_timed(kernel, own_stream, MS, 1, 32);
		CHECK_EQUAL(cu.cuStreamSynchronize(own_stream), 0);
		CHECK(is_in_time(began_ns, 5000 * MS));
	}
	CHECK_EQUAL(kill(pid, SIGKILL), 0);
	CHECK_EQUAL(waitpid(pid, NULL, 0), pid);
}

/* There is a loadlined, which nobody told of the job. */
TEST_IN_WORLD(NULL, a_loadlined_that_does_not_know_the_job_is_done_without)
{
	jobs_find_place(&place);
	use_ungoverned();
}

/* ---- programs that get one later ---- */

static bool is_charged(void)
{
	ll_cu_deviceptr address;
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), 0);
	bool is_charged = charged() > 0;
	CHECK_EQUAL(cu.cuMemFree(address), 0);
	return is_charged;
}

/* From then on it is governed. */
TEST_IN_WORLD(NULL, a_program_is_governed_as_soon_as_its_job_is_known)
{
	jobs_find_place(&place);
	struct ll_run_settings settings = {
	    .id = 0x10000 + (uint64_t)getpid(), .tenant = "test", .counts_context = true};
	jobs_set_environment(settings, &place);
	open_context(0);
	govern(0);
	WAIT_FOR(is_charged());
}

TEST_IN_WORLD(NULL, a_limited_program_has_a_context_as_soon_as_its_job_is_known)
{
	struct ll_cu_context *context;
	ll_cu_deviceptr address;
	jobs_find_place(&place);
	struct ll_run_settings settings = {.id = 0x10000 + (uint64_t)getpid(),
					   .tenant = "test",
					   .memory_limit_bytes = 600 * MIB,
					   .counts_context = true};
	jobs_set_environment(settings, &place);
	check_refused();
	govern(600 * MIB);
	WAIT_FOR(cu.cuCtxCreate(&context, 0, 0) == LL_CUDA_SUCCESS);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(charged(), CONTEXT_BYTES);
}

/* ---- settings ---- */

TEST_IN_WORLD(NULL, under_garbled_settings_there_are_no_contexts)
{
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, "garbage", 1), 0);
	check_refused();
}

/* Settings of a newer loadline have keys that this library does not know: they may be limits. */
TEST_IN_WORLD(NULL, settings_with_a_key_that_is_not_known_are_refused)
{
	char text[2 * LL_RUN_TEXT_SIZE];
	govern(600 * MIB);
	snprintf(text, sizeof text, "future=7;%s", getenv(LL_RUN_VARIABLE));
	CHECK_EQUAL(setenv(LL_RUN_VARIABLE, text, 1), 0);
	check_refused();
}

/* As setpriv and gosu do it, here after cuInit: the simulated world is its owner's alone. It is the job's all the same.
 */
static void body_other_user(void)
{
	ll_cu_deviceptr address;
	struct ll_cu_context *context;
	govern(600 * MIB);
	open_cuda();
	open_card(0);
	CHECK_EQUAL(cu.cuInit(0), 0);
	CHECK(setresgid(65534, 65534, 65534) == 0 && setresuid(65534, 65534, 65534) == 0);
	CHECK_EQUAL(cu.cuCtxCreate(&context, 0, 0), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 72 * MIB), 0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, MIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
	_exit(0); /* what registered the job is another user's */
}

TEST(a_program_that_became_another_user_is_its_job_s)
{
	if (geteuid() != 0)
		SKIP_TEST("only root may become another user");
	in_world(NULL, body_other_user);
}
