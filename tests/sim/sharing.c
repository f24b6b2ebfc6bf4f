/* Memory that one process makes and another uses: who is charged, when it goes back, and that the bytes are the same.
 */
#include "descriptors.h"
#include "memory.h"

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* What the two processes tell each other; and descriptors through the sockets. */
static struct letter {
	struct ll_cu_ipc_mem_handle ipc;
	struct ll_cu_mem_pool_pointer pointer;
	struct ll_cu_ipc_event_handle event;
	volatile int is_done;
} * letter;
static int sockets[2];

static void open_post(void)
{
	letter = mmap(NULL, sizeof *letter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(letter != MAP_FAILED);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) == 0);
}

static void send_fd(int fd)
{
	send_fd_on(sockets[1], fd);
	close(fd);
}

static int receive_fd(void)
{
	return receive_fd_on(sockets[0]);
}

static _Noreturn void live_on(void)
{
	ready();
	for (;;)
		sleep_ms(1000);
}

static void kill_and_wait(pid_t pid)
{
	int status;
	CHECK(kill(pid, SIGKILL) == 0);
	CHECK(waitpid(pid, &status, 0) == pid);
	CHECK(WIFSIGNALED(status));
}

static void lend_plain_memory(void)
{
	ll_cu_deviceptr a;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&a, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuIpcGetMemHandle(&letter->ipc, a + 4096), 0);
	ll_cu_deviceptr own;
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&own, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		    LL_CUDA_ERROR_INVALID_CONTEXT);
	ready();
	WAIT_FOR(letter->is_done);
	unsigned char seen;
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 50 * MIB, 1), 0);
	CHECK_EQUAL(seen, 43);
}

TEST_IN_WORLD(NULL, an_allocation_can_be_used_by_another_process_and_is_charged_once)
{
	unsigned char seen = 0;
	ll_cu_deviceptr a;
	open_post();
	pid_t lender = spawn_ready(lend_plain_memory);
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&a, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 100 * MIB - 1, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 100 * MIB, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemsetD8(a + 50 * MIB, 43, 1), 0);
	CHECK_EQUAL(cu.cuMemFree(a), LL_CUDA_ERROR_INVALID_VALUE);
	ll_cu_deviceptr again;
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&again, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	CHECK_EQUAL(again, a);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(a), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a, 1), 0);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(a), 0);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(a), LL_CUDA_ERROR_INVALID_VALUE);
	letter->is_done = 1;
	join(lender);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&a, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		    LL_CUDA_ERROR_INVALID_VALUE);
}

static void lend_and_free(void)
{
	ll_cu_deviceptr a;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&a, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuIpcGetMemHandle(&letter->ipc, a), 0);
	ready();
	WAIT_FOR(letter->is_done == 1);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	letter->is_done = 2;
	WAIT_FOR(letter->is_done == 3);
}

TEST_IN_WORLD(NULL, an_allocation_that_its_maker_frees_first_stays_until_it_is_closed)
{
	unsigned char seen = 0;
	ll_cu_deviceptr a, late;
	open_post();
	pid_t lender = spawn_ready(lend_and_free);
	open_context(0);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&a, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	uint64_t with_it = used_bytes();
	letter->is_done = 1;
	WAIT_FOR(letter->is_done == 2);
	CHECK_EQUAL(used_bytes(), with_it);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 99 * MIB, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(a), 0);
	CHECK_EQUAL(with_it - used_bytes(), 100 * MIB);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&late, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
		    LL_CUDA_ERROR_INVALID_VALUE);
	letter->is_done = 3;
	join(lender);
}

TEST_IN_WORLD(NULL, an_allocation_outlives_its_killed_maker_where_it_is_open)
{
	ll_cu_deviceptr a;
	open_post();
	pid_t lender = spawn_ready(lend_and_free);
	open_context(0);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&a, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	uint64_t with_both = used_bytes();
	kill_and_wait(lender);
	WAIT_FOR(with_both - used_bytes() > 500 * MIB); /* its context */
	uint64_t alone = used_bytes();
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(a), 0);
	CHECK_EQUAL(alone - used_bytes(), 100 * MIB);
}

static void make_and_send(void)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	ll_cu_deviceptr a;
	int fd;
	open_context(0);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 100 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&a, 100 * MIB, 0, 0, 0), 0);
	map_at(a, 100 * MIB, handle);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	send_fd(fd);
	live_on();
}

TEST_IN_WORLD(NULL, exported_physical_memory_stays_until_its_last_holder_lets_go)
{
	unsigned char seen = 0;
	ll_cu_mem_handle handle;
	ll_cu_deviceptr a;
	open_post();
	pid_t maker = spawn_ready(make_and_send);
	open_context(0);
	uint64_t with_both = used_bytes();
	int fd = receive_fd();
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    0);
	close(fd);
	CHECK_EQUAL(cu.cuMemAddressReserve(&a, 100 * MIB, 0, 0, 0), 0);
	map_at(a, 100 * MIB, handle);
	CHECK_EQUAL(used_bytes(), with_both);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 7, 1), 0);
	CHECK_EQUAL(seen, 42);
	/* Its maker is killed: its context goes, the memory stays with who still holds it. */
	kill_and_wait(maker);
	uint64_t context_bytes = (uint64_t)(526.8 * MIB) - 3407872;
	WAIT_FOR(with_both - used_bytes() > context_bytes - MIB);
	CHECK(with_both - used_bytes() < context_bytes + 2 * MIB);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 100 * MIB - 1, 1), 0);
	CHECK_EQUAL(seen, 42);
	uint64_t alone = used_bytes();
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(used_bytes(), alone);
	CHECK_EQUAL(cu.cuMemUnmap(a, 100 * MIB), 0);
	CHECK_EQUAL(alone - used_bytes(), 100 * MIB);
}

/* How much of this machine's memory another process's memory on the card takes. */
static uint64_t bytes_of_this_machine(pid_t pid)
{
	char path[64], target[64];
	struct stat st;
	for (int fd = 3; fd < 256; fd++) {
		snprintf(path, sizeof path, "/proc/%d/fd/%d", pid, fd);
		ssize_t length = readlink(path, target, sizeof target - 1);
		target[length > 0 ? length : 0] = '\0';
		if (strncmp(target, "/memfd:sim-cuda ", 16) == 0 && stat(path, &st) == 0)
			return (uint64_t)st.st_blocks * 512;
	}
	return UINT64_MAX;
}

static void make_send_and_free(void)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	ll_cu_deviceptr a;
	int fd;
	open_context(0);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 10 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&a, 10 * MIB, 0, 0, 0), 0);
	map_at(a, 10 * MIB, handle);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	send_fd(fd);
	ready();
	WAIT_FOR(letter->is_done);
	CHECK_EQUAL(cu.cuMemUnmap(a, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	letter->is_done = 2;
	WAIT_FOR(letter->is_done == 3);
}

TEST_IN_WORLD(NULL, the_bytes_of_exported_memory_go_with_its_last_holder)
{
	unsigned char seen = 0;
	ll_cu_mem_handle handle;
	ll_cu_deviceptr a;
	open_post();
	pid_t maker = spawn_ready(make_send_and_free);
	open_context(0);
	int fd = receive_fd();
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd,
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    0);
	close(fd);
	CHECK_EQUAL(cu.cuMemAddressReserve(&a, 10 * MIB, 0, 0, 0), 0);
	map_at(a, 10 * MIB, handle);
	letter->is_done = 1;
	WAIT_FOR(letter->is_done == 2);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 10 * MIB - 1, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK(bytes_of_this_machine(maker) >= 10 * MIB);
	CHECK_EQUAL(cu.cuMemUnmap(a, 10 * MIB), 0);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK(bytes_of_this_machine(maker) < MIB);
	letter->is_done = 3;
	join(maker);
}

TEST_IN_WORLD(NULL, sigkill_frees_what_nobody_imported_and_no_descriptor_holds)
{
	open_post();
	uint64_t before = used_bytes_before();
	pid_t maker = spawn_ready(make_and_send);
	CHECK(nvml_used_bytes() - before > 100 * MIB);
	kill_and_wait(maker);
	/* Its descriptor is on the way still. */
	WAIT_FOR(nvml_used_bytes() - before < 101 * MIB);
	CHECK(nvml_used_bytes() - before >= 100 * MIB);
	int fd = receive_fd(), second = dup(fd);
	close(fd);
	CHECK(nvml_used_bytes() - before >= 100 * MIB);
	close(second);
	WAIT_FOR(nvml_used_bytes() == before);
}

TEST_IN_WORLD(NULL, a_descriptor_holds_what_its_maker_released)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0();
	ll_cu_mem_handle handle;
	int fds[2];
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMemCreate(&handle, 10 * MIB, &prop, 0), 0);
	for (int i = 0; i < 2; i++)
		CHECK_EQUAL(
		    cu.cuMemExportToShareableHandle(&fds[i], handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		    0);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(used_bytes() - before, 10 * MIB);
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fds[1],
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    0);
	close(fds[0]);
	close(fds[1]);
	CHECK_EQUAL(used_bytes() - before, 10 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(used_bytes(), before);
}

TEST_IN_WORLD(NULL, only_what_asked_for_it_can_be_exported)
{
	struct ll_cu_mem_allocation_prop prop = on_card_0(), private = on_card_0();
	ll_cu_mem_handle handle, same;
	int fd;
	open_context(0);
	uint64_t before = used_bytes();
	private.handle_types = LL_CU_MEM_HANDLE_TYPE_NONE;
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &private, 0), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		    LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(cu.cuMemCreate(&handle, 2 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	CHECK_EQUAL(
	    cu.cuMemImportFromShareableHandle(&same, (void *)(intptr_t)fd, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
	    0);
	CHECK(same != handle);
	close(fd);
	CHECK_EQUAL(used_bytes() - before, 2 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(used_bytes() - before, 2 * MIB);
	CHECK_EQUAL(cu.cuMemRelease(same), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&same, (void *)(intptr_t)sockets[0],
						      LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
		    LL_CUDA_ERROR_INVALID_VALUE);
}

static struct ll_cu_mem_pool *new_shareable_pool(void)
{
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .handle_types = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR,
					     .location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}};
	struct ll_cu_mem_pool *pool;
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	return pool;
}

static void lend_a_pool(void)
{
	ll_cu_deviceptr first, a;
	int fd;
	open_context(0);
	struct ll_cu_mem_pool *pool = new_shareable_pool();
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&first, 1000, pool, NULL), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&a, MIB, pool, NULL), 0);
	CHECK_EQUAL(cu.cuMemsetD8(first, 41, 1000), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, MIB), 0);
	CHECK_EQUAL(cu.cuMemPoolExportToShareableHandle(&fd, pool, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolExportPointer(&letter->pointer, a), 0);
	struct ll_cu_ipc_mem_handle ipc;
	CHECK_EQUAL(cu.cuIpcGetMemHandle(&ipc, a), LL_CUDA_ERROR_INVALID_VALUE);
	send_fd(fd);
	live_on();
}

TEST_IN_WORLD(NULL, a_pool_can_be_used_by_another_process)
{
	unsigned char seen = 0;
	struct ll_cu_mem_pool *pool;
	ll_cu_deviceptr a;
	open_post();
	pid_t lender = spawn_ready(lend_a_pool);
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)receive_fd(),
							  LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		    0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&a, 1, pool, NULL), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPoolImportPointer(&a, pool, &letter->pointer), 0);
	CHECK_EQUAL(used_bytes(), before);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + MIB - 1, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + MIB, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	kill_and_wait(lender);
}

static void lend_a_block_and_free(void)
{
	ll_cu_deviceptr a;
	int fd;
	open_context(0);
	struct ll_cu_mem_pool *pool = new_shareable_pool();
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&a, 100 * MIB, pool, NULL), 0);
	CHECK_EQUAL(cu.cuMemsetD8(a, 42, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuMemPoolExportToShareableHandle(&fd, pool, LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolExportPointer(&letter->pointer, a), 0);
	send_fd(fd);
	ready();
	WAIT_FOR(letter->is_done == 1);
	CHECK_EQUAL(cu.cuMemFreeAsync(a, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(pool_value(pool, LL_CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT), 0);
	letter->is_done = 2;
	WAIT_FOR(letter->is_done == 3);
}

TEST_IN_WORLD(NULL, a_block_that_its_pool_gave_back_stays_where_it_is_imported)
{
	unsigned char seen = 0;
	struct ll_cu_mem_pool *pool;
	ll_cu_deviceptr a;
	open_post();
	pid_t lender = spawn_ready(lend_a_block_and_free);
	open_context(0);
	uint64_t before = used_bytes();
	CHECK_EQUAL(cu.cuMemPoolImportFromShareableHandle(&pool, (void *)(intptr_t)receive_fd(),
							  LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
		    0);
	CHECK_EQUAL(cu.cuMemPoolImportPointer(&a, pool, &letter->pointer), 0);
	CHECK_EQUAL(used_bytes(), before);
	letter->is_done = 1;
	WAIT_FOR(letter->is_done == 2);
	CHECK_EQUAL(before - used_bytes(), 28 * MIB); /* of four chunks */
	CHECK_EQUAL(cu.cuMemcpyDtoH(&seen, a + 99 * MIB, 1), 0);
	CHECK_EQUAL(seen, 42);
	CHECK_EQUAL(cu.cuMemFree(a), 0);
	CHECK_EQUAL(before - used_bytes(), 128 * MIB);
	letter->is_done = 3;
	join(lender);
}

static void work_and_record(void)
{
	struct ll_cu_event *event, *timed;
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuEventCreate(&timed, LL_CU_EVENT_DEFAULT), 0);
	CHECK_EQUAL(cu.cuIpcGetEventHandle(&letter->event, timed), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuIpcGetEventHandle(&letter->event, event), 0);
	ll_cu_deviceptr word;
	void *gate;
	CHECK_EQUAL(cu.cuMemHostAlloc(&gate, 4, LL_CU_MEMHOSTALLOC_DEVICEMAP), 0);
	CHECK_EQUAL(cu.cuMemHostGetDevicePointer(&word, gate, 0), 0);
	atomic_store((_Atomic uint32_t *)gate, 0);
	CHECK_EQUAL(cu.cuStreamWaitValue32(s, word, 1, LL_CU_STREAM_WAIT_VALUE_EQ), 0);
	CHECK_EQUAL(cu.cuEventRecord(event, s), 0);
	ready();
	WAIT_FOR(letter->is_done == 1);
	atomic_store((_Atomic uint32_t *)gate, 1);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	WAIT_FOR(letter->is_done == 2);
	CHECK_EQUAL(cu.cuEventDestroy(event), 0);
	CHECK_EQUAL(cu.cuEventDestroy(timed), 0);
}

TEST_IN_WORLD(NULL, an_event_can_be_waited_for_by_another_process)
{
	struct ll_cu_event *event;
	open_post();
	pid_t worker = spawn_ready(work_and_record);
	open_context(0);
	struct ll_cu_stream *s = new_stream();
	CHECK_EQUAL(cu.cuIpcOpenEventHandle(&event, letter->event), 0);
	CHECK_EQUAL(cu.cuEventQuery(event), LL_CUDA_ERROR_NOT_READY);
	CHECK_EQUAL(cu.cuStreamWaitEvent(s, event, 0), 0);
	CHECK_EQUAL(cu.cuStreamQuery(s), LL_CUDA_ERROR_NOT_READY);
	letter->is_done = 1;
	CHECK_EQUAL(cu.cuEventSynchronize(event), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(s), 0);
	CHECK_EQUAL(cu.cuEventQuery(event), 0);
	letter->is_done = 2;
	join(worker);
	CHECK_EQUAL(cu.cuEventDestroy(event), 0);
	CHECK_EQUAL(cu.cuIpcOpenEventHandle(&event, letter->event), LL_CUDA_ERROR_INVALID_VALUE);
}
