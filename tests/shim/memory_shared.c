/* Memory that one process of a tenant makes and another uses: charged once, to its maker while that has it, however it
 * is handed over. */
#include "../sim/descriptors.h"
#include "governed.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

static struct letter {
	struct ll_cu_ipc_mem_handle plain;
	struct ll_cu_ipc_event_handle event;
	struct ll_cu_mem_pool_pointer pointer;
} * letter;
static int sockets[2];

static void send_fd(int fd)
{
	send_fd_on(sockets[1], fd);
}

static void *handle_of(int fd)
{
	return (void *)(intptr_t)fd;
}

static const enum ll_cu_mem_handle_type shareable = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

static void lend_pool(void)
{
	int fd;
	ll_cu_deviceptr address;
	struct ll_cu_mem_pool *pool;
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .handle_types = shareable,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	CHECK_EQUAL(cu.cuMemPoolCreate(&pool, &props), 0);
	CHECK_EQUAL(cu.cuMemAllocFromPoolAsync(&address, MIB, pool, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(cu.cuMemPoolExportToShareableHandle(&fd, pool, shareable, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolExportPointer(&letter->pointer, address), 0);
	send_fd(fd);
}

static void lend_physical(void)
{
	int fd;
	ll_cu_mem_handle handle;
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .handle_types = shareable,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	CHECK_EQUAL(cu.cuMemCreate(&handle, 10 * MIB, &prop, 0), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, shareable, 0), 0);
	send_fd(fd);
}

static void lend(void)
{
	ll_cu_deviceptr address;
	struct ll_cu_event *event;
	open_context(0);
	CHECK_EQUAL(cu.cuMemAlloc(&address, 100 * MIB), 0);
	CHECK_EQUAL(cu.cuIpcGetMemHandle(&letter->plain, address), 0);
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_INTERPROCESS | LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuIpcGetEventHandle(&letter->event, event), 0);
	lend_pool();
	lend_physical();
	ready();
	pause();
}

TEST_IN_WORLD(NULL, what_is_shared_is_its_maker_s_alone)
{
	ll_cu_deviceptr plain, block;
	struct ll_cu_event *event;
	ll_cu_mem_handle physical;
	struct ll_cu_mem_pool *pool;
	letter = mmap(NULL, sizeof *letter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(letter != MAP_FAILED);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) == 0);
	govern(2 * CONTEXT_BYTES + 142 * MIB); /* full with what the lender has */
	pid_t lender = spawn_ready(lend);
	open_context(0);
	CHECK_EQUAL(charged(), 2 * CONTEXT_BYTES + 142 * MIB);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle_v1(&plain, letter->plain, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(plain), 0);
	CHECK_EQUAL(cu.cuIpcOpenMemHandle(&plain, letter->plain, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS), 0);
	CHECK_EQUAL(cu.cuIpcOpenEventHandle(&event, letter->event), 0);
	int pool_fd = receive_fd_on(sockets[0]);
	CHECK_EQUAL(cu.cuMemPoolImportFromShareableHandle(&pool, handle_of(pool_fd), shareable, 0), 0);
	CHECK_EQUAL(cu.cuMemPoolImportPointer(&block, pool, &letter->pointer), 0);
	int physical_fd = receive_fd_on(sockets[0]);
	CHECK_EQUAL(cu.cuMemImportFromShareableHandle(&physical, handle_of(physical_fd), shareable), 0);
	CHECK_EQUAL(charged(), 2 * CONTEXT_BYTES + 142 * MIB);
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(plain), 0);
	CHECK_EQUAL(cu.cuMemFreeAsync(block, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(cu.cuMemPoolDestroy(pool), 0);
	CHECK_EQUAL(cu.cuMemRelease(physical), 0);
	CHECK_EQUAL(charged(), 2 * CONTEXT_BYTES + 142 * MIB);
	kill(lender, SIGKILL);
	CHECK_EQUAL(waitpid(lender, NULL, 0), lender);
	/* loadlined sees the end a moment later. An open descriptor holds its memory, and goes on with its charge. */
	WAIT_FOR(charged() == CONTEXT_BYTES + 10 * MIB);
	CHECK_EQUAL(close(pool_fd), 0);
	CHECK_EQUAL(close(physical_fd), 0);
	WAIT_FOR(charged() == CONTEXT_BYTES);
}
