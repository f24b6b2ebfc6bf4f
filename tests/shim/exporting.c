#include "exporting.h"

#include "../sim/descriptors.h"
#include "jobs.h"

#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

static const enum ll_cu_mem_handle_type shareable = LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;

/* ---- how memory is shared ---- */

/* What goes from the maker to the takers: bytes here, descriptors by the socket. */
static struct letter {
	struct ll_cu_ipc_mem_handle ipc;
	struct ll_cu_mem_pool_pointer pointer;
	unsigned char fabric[LL_CU_MEM_FABRIC_HANDLE_BYTES];
} * letter;
static int sockets[2];

int receive_fd(void)
{
	return receive_fd_on(sockets[0]);
}

static ll_cu_result map(struct made *made)
{
	struct ll_cu_mem_access_desc access = {{LL_CU_MEM_LOCATION_TYPE_DEVICE, 0},
					       LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
	CHECK_EQUAL(cu.cuMemAddressReserve(&made->address, SHARED_BYTES, 0, 0, 0), 0);
	ll_cu_result status = cu.cuMemMap(made->address, SHARED_BYTES, 0, made->handle, 0);
	if (status == LL_CUDA_SUCCESS)
		CHECK_EQUAL(cu.cuMemSetAccess(made->address, SHARED_BYTES, &access, 1), 0);
	return status;
}

static ll_cu_result create(struct made *made, enum ll_cu_mem_handle_type type, void *ret_handle)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .handle_types = type,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	ll_cu_result status = cu.cuMemCreate(&made->handle, SHARED_BYTES, &prop, 0);
	if (status != LL_CUDA_SUCCESS)
		return status;
	CHECK_EQUAL(map(made), 0);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(ret_handle, made->handle, type, 0), 0);
	return LL_CUDA_SUCCESS;
}

ll_cu_result make_physical(struct made *made)
{
	return create(made, shareable, &made->fd);
}

static ll_cu_result make_fabric(struct made *made)
{
	return create(made, LL_CU_MEM_HANDLE_TYPE_FABRIC, letter->fabric);
}

void free_physical(struct made *made)
{
	CHECK_EQUAL(cu.cuMemUnmap(made->address, SHARED_BYTES), 0);
	CHECK_EQUAL(cu.cuMemRelease(made->handle), 0);
}

static ll_cu_result import(struct made *made, enum ll_cu_mem_handle_type type, void *handle)
{
	ll_cu_result status = cu.cuMemImportFromShareableHandle(&made->handle, handle, type);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = map(made);
	if (status != LL_CUDA_SUCCESS)
		CHECK_EQUAL(cu.cuMemRelease(made->handle), 0);
	return status;
}

static ll_cu_result take_physical(struct made *made)
{
	return import(made, shareable, (void *)(intptr_t)made->fd);
}

static ll_cu_result take_fabric(struct made *made)
{
	return import(made, LL_CU_MEM_HANDLE_TYPE_FABRIC, letter->fabric);
}

static ll_cu_result make_plain(struct made *made)
{
	ll_cu_result status = cu.cuMemAlloc(&made->address, SHARED_BYTES);
	return status ? status : cu.cuIpcGetMemHandle(&letter->ipc, made->address + MIB);
}

static void free_plain(struct made *made)
{
	CHECK_EQUAL(cu.cuMemFree(made->address), 0);
}

static ll_cu_result take_plain(struct made *made)
{
	return cu.cuIpcOpenMemHandle(&made->address, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static ll_cu_result take_plain_old(struct made *made)
{
	return cu.cuIpcOpenMemHandle_v1(&made->address, letter->ipc, LL_CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
}

static void close_plain(struct made *made)
{
	CHECK_EQUAL(cu.cuIpcCloseMemHandle(made->address), 0);
}

static ll_cu_result make_block(struct made *made)
{
	struct ll_cu_mem_pool_props props = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
					     .handle_types = shareable,
					     .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	CHECK_EQUAL(cu.cuMemPoolCreate(&made->pool, &props), 0);
	ll_cu_result status = cu.cuMemAllocFromPoolAsync(&made->address, SHARED_BYTES, made->pool, NULL);
	if (status != LL_CUDA_SUCCESS)
		return status;
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
	CHECK_EQUAL(cu.cuMemPoolExportToShareableHandle(&made->fd, made->pool, shareable, 0), 0);
	return cu.cuMemPoolExportPointer(&letter->pointer, made->address);
}

static ll_cu_result take_block(struct made *made)
{
	CHECK_EQUAL(cu.cuMemPoolImportFromShareableHandle(&made->pool, (void *)(intptr_t)made->fd, shareable, 0), 0);
	return cu.cuMemPoolImportPointer(&made->address, made->pool, &letter->pointer);
}

static void free_block_in_order(struct made *made)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(made->address, NULL), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
}

static void free_block_now(struct made *made)
{
	CHECK_EQUAL(cu.cuMemFree(made->address), 0);
	CHECK_EQUAL(cu.cuMemPoolTrimTo(made->pool, 0), 0);
}

static void free_pool(struct made *made)
{
	CHECK_EQUAL(cu.cuMemFreeAsync(made->address, NULL), 0);
	CHECK_EQUAL(cu.cuMemPoolDestroy(made->pool), 0);
	CHECK_EQUAL(cu.cuStreamSynchronize(NULL), 0);
}

static void free_taken_block(struct made *made)
{
	CHECK_EQUAL(cu.cuMemFree(made->address), 0);
}

const struct way ways[] = {
    {"physical memory", true, false, 0, make_physical, free_physical, take_physical, free_physical,
     "cuMemImportFromShareableHandle"},
    {"physical memory of an evictable program", true, true, 0, make_physical, free_physical, take_physical,
     free_physical, "cuMemImportFromShareableHandle"},
    {"physical memory by a fabric handle", false, false, 0, make_fabric, free_physical, take_fabric, free_physical,
     "cuMemImportFromShareableHandle"},
    {"legacy IPC", false, false, 0, make_plain, free_plain, take_plain, close_plain, "cuIpcOpenMemHandle*"},
    {"legacy IPC, old entry", false, false, 0, make_plain, free_plain, take_plain_old, close_plain,
     "cuIpcOpenMemHandle*"},
    {"a pool's block, freed in order", true, false, 128 * MIB, make_block, free_block_in_order, take_block,
     free_taken_block, "cuMemPoolImportPointer"},
    {"a pool's block, freed at once", true, false, 128 * MIB, make_block, free_block_now, take_block,
     free_block_in_order, "cuMemPoolImportPointer"},
    {"a pool's block, and the pool ends", true, false, 128 * MIB, make_block, free_pool, take_block, free_taken_block,
     "cuMemPoolImportPointer"},
};

const struct way *way;

uint64_t made_bytes(void)
{
	return way->pool_bytes ? way->pool_bytes : SHARED_BYTES;
}

/* ---- processes that do what they are told ---- */

static struct desk {
	_Atomic int step;
	uint64_t argument, answer;
} * desks, *own_desk;
pid_t pids[PROCESSES];
static void (*own_govern)(void);

static uint64_t do_step(enum step step, uint64_t argument, struct made *made)
{
	ll_cu_deviceptr address;
	int fd;
	switch (step) {
	case MAKE:
		return way->make(made);
	case UNMAKE:
		way->unmake(made);
		return 0;
	case TAKE:
		return way->take(&made[argument]);
	case LET_GO:
		way->let_go(&made[argument]);
		return 0;
	case SEND:
		send_fd_on(sockets[1], made->fd);
		return 0;
	case CLOSE:
		return (uint64_t)close(made->fd);
	case ALLOCATE:
		return cu.cuMemAlloc(&address, argument);
	case CHARGED:
		return charged();
	case CONNECT:
		fd = jobs_connect();
		send_fd_on(sockets[1], fd);
		return (uint64_t)close(fd);
	default:
		return 0;
	}
}

static void follow_steps(void)
{
	struct made made[2] = {{.fd = -1}, {.fd = -1}};
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (own_govern)
		own_govern();
	open_context(0);
	ready();
	for (int step = 0; step != END;) {
		WAIT_FOR((step = own_desk->step));
		struct made *taken = step == TAKE && way->has_fd ? &made[own_desk->argument] : NULL;
		if (taken)
			taken->fd = receive_fd();
		own_desk->answer = do_step((enum step)step, own_desk->argument, made);
		if (taken)
			close(taken->fd);
		own_desk->step = NOTHING;
	}
}

void open_office(void)
{
	letter = mmap(NULL, sizeof *letter, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	desks = mmap(NULL, PROCESSES * sizeof *desks, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(letter != MAP_FAILED && desks != MAP_FAILED);
	CHECK(socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0, sockets) == 0);
}

void start(unsigned who, void (*govern_otherwise)(void))
{
	own_desk = &desks[who];
	own_govern = govern_otherwise;
	pids[who] = spawn_ready(follow_steps);
}

uint64_t tell(unsigned who, enum step step, uint64_t argument)
{
	desks[who].argument = argument;
	desks[who].step = step;
	WAIT_FOR(desks[who].step == NOTHING);
	return desks[who].answer;
}

void kill_it(unsigned who)
{
	CHECK(kill(pids[who], SIGKILL) == 0);
	CHECK_EQUAL(waitpid(pids[who], NULL, 0), pids[who]);
}

uint64_t charged_beyond(unsigned contexts)
{
	return charged() - contexts * CONTEXT_BYTES;
}

/* The simulated driver keeps addresses for four times the card in each pool, and the thread sanitizer leaves a program
 * some 3 TiB of them: so the card is small. */
void each_way(void (*body)(void))
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way = &ways[i];
		printf("  %s\n", way->name);
		in_world("card all fabric on\ncard all memory 16G\n", body);
	}
}

/* A maker, 0, and takers from 1 on. */
void start_tenant(uint64_t limit_bytes, unsigned takers)
{
	open_office();
	(way->is_evictable ? govern_evictable : govern)(limit_bytes);
	for (unsigned i = 0; i <= takers; i++)
		start(i, NULL);
}

void make(void)
{
	CHECK_EQUAL(tell(0, MAKE, 0), 0);
}

/* place: of two that a taker has. */
uint64_t take_as(unsigned taker, unsigned place)
{
	if (way->has_fd)
		tell(0, SEND, 0);
	return tell(taker, TAKE, place);
}

void take(unsigned taker)
{
	CHECK_EQUAL(take_as(taker, 0), 0);
}

void close_descriptor(void)
{
	if (way->has_fd)
		CHECK_EQUAL(tell(0, CLOSE, 0), 0);
}

void look(unsigned who)
{
	charged(); /* loadlined has seen who has ended */
	CHECK_EQUAL(tell(who, ALLOCATE, 64 * GIB), LL_CUDA_ERROR_OUT_OF_MEMORY);
}

void stop_without_claim(unsigned who)
{
	char uuid[96];
	find_uuid(0, uuid);
	tell(who, CONNECT, 0);
	int fd = receive_fd();
	stop_outside_the_driver(pids[who]);
	jobs_lose_claim(fd, pids[who], governed_id(), uuid);
}
