/*
 * Physical memory that an evictable program makes itself. It can leave the card and return, and looks to the program as
 * the driver's own. The library is linked in, so that the test can move pieces by itself.
 */
#include "governed.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/packet.h"
#include "protocol/message.h"
#include "shim/interpose/real.h"
#include "shim/memory/memory.h"

#define READ LL_CU_MEM_ACCESS_FLAGS_PROT_READ
#define READ_WRITE LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define AREA (2 * MIB)
#define SHAREABLE LL_CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

static ll_cu_deviceptr range;
static struct ll_real driver; /* the simulated one, but for what is replaced */
static ll_cu_mem_handle bound;

static void prepare(void)
{
	govern_evictable(0);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0), 0);
}

static struct ll_cu_mem_allocation_prop on_card(enum ll_cu_mem_handle_type types)
{
	return (struct ll_cu_mem_allocation_prop){.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						  .handle_types = types,
						  .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
}

static ll_cu_mem_handle create(uint64_t bytes, enum ll_cu_mem_handle_type types)
{
	ll_cu_mem_handle handle;
	struct ll_cu_mem_allocation_prop prop = on_card(types);
	CHECK_EQUAL(cu.cuMemCreate(&handle, bytes, &prop, 0), 0);
	return handle;
}

static void map(ll_cu_deviceptr address, ll_cu_mem_handle handle, uint64_t bytes, enum ll_cu_mem_access_flags flags)
{
	struct ll_cu_mem_access_desc access = {.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0}, .flags = flags};
	CHECK_EQUAL(cu.cuMemMap(address, bytes, 0, handle, 0), 0);
	CHECK_EQUAL(cu.cuMemSetAccess(address, bytes, &access, 1), 0);
}

static unsigned char byte_at(ll_cu_deviceptr address)
{
	unsigned char byte = 0;
	CHECK_EQUAL(cu.cuMemcpyDtoH(&byte, address, 1), 0);
	return byte;
}

static const struct ll_device_state *card_state(void)
{
	return ll_device_state_of(0);
}

enum { PIECES = 8 };

/* Returns how many pieces can be moved, and what they are. */
static unsigned list_pieces(struct ll_chunk pieces[PIECES])
{
	unsigned count = 0;
	struct ll_extent at = {.kind = LL_CHUNKS_FIRST};
	while (ll_chunks_next(card_state(), &at, &pieces[count]))
		CHECK(++count < PIECES);
	return count;
}

/* Copies bytes into a chunk. The program may have mapped the memory read-only or not at all. */
static ll_cu_result fill(const struct ll_chunk *chunk, uint64_t offset, ll_cu_deviceptr from, uint64_t bytes)
{
	ll_cu_deviceptr address;
	ll_cu_result status = ll_chunk_map_aside(card_state(), chunk->handle, chunk->bytes, &address);
	if (status != LL_CUDA_SUCCESS)
		return status;
	status = ll_real()->cuMemcpy(address + offset, from, bytes);
	ll_chunk_unmap_aside(address, chunk->bytes);
	return status;
}

/* Takes all pieces off the card, with the bytes of each in memory of the host, and puts them back. */
static void move_all(void)
{
	struct ll_chunk pieces[PIECES];
	char *bytes[PIECES];
	unsigned count = list_pieces(pieces);
	uint64_t used = card_used(), moved = ll_chunks_bytes(card_state());
	for (unsigned i = 0; i < count; i++) {
		struct ll_extent mapping = {0};
		bytes[i] = calloc(1, pieces[i].bytes);
		CHECK(bytes[i] != NULL);
		while (ll_extents_next(&mapping) && mapping.kind <= LL_EXTENT_MAPPING) {
			if (mapping.kind == LL_EXTENT_MAPPING && mapping.handle == pieces[i].address)
				CHECK_EQUAL(cu.cuMemcpyDtoH(bytes[i], mapping.address, pieces[i].bytes), 0);
		}
		ll_chunk_unmake(&pieces[i]);
	}
	CHECK_EQUAL(card_used(), used - moved);
	for (unsigned i = 0; i < count; i++) {
		CHECK_EQUAL(ll_chunk_make(card_state(), &pieces[i]), 0);
		CHECK_EQUAL(fill(&pieces[i], 0, (uintptr_t)bytes[i], MIB), 0);
		CHECK_EQUAL(fill(&pieces[i], MIB, (uintptr_t)bytes[i] + MIB, pieces[i].bytes - MIB), 0);
		ll_chunk_note(&pieces[i]);
		free(bytes[i]);
	}
	CHECK_EQUAL(card_used(), used);
}

TEST_IN_WORLD(NULL, a_program_s_own_memory_leaves_and_returns)
{
	struct ll_cu_mem_location location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, 0};
	unsigned long long flags;
	prepare();
	uint64_t before = charged();
	ll_cu_mem_handle first = create(2 * AREA, LL_CU_MEM_HANDLE_TYPE_NONE), second = create(AREA, SHAREABLE);
	map(range, first, 2 * AREA, READ_WRITE);
	map(range + 2 * AREA, second, AREA, READ_WRITE);
	map(range + 8 * AREA, first, 2 * AREA, READ); /* the same memory again */
	CHECK_EQUAL(cu.cuMemsetD8(range, 7, 2 * AREA), 0);
	CHECK_EQUAL(cu.cuMemsetD8(range + 2 * AREA, 9, AREA), 0);
	CHECK_EQUAL(cu.cuMemRelease(first), 0); /* its mappings hold it */
	CHECK_EQUAL(ll_chunks_bytes(card_state()), 3 * AREA);
	for (int round = 0; round < 3; round++)
		move_all();
	CHECK_EQUAL(byte_at(range), 7);
	CHECK_EQUAL(byte_at(range + 2 * AREA - 1), 7);
	CHECK_EQUAL(byte_at(range + 3 * AREA - 1), 9);
	CHECK_EQUAL(cu.cuMemsetD8(range + 5, 8, 1), 0);
	CHECK_EQUAL(byte_at(range + 8 * AREA + 5), 8);
	CHECK_EQUAL(cu.cuMemGetAccess(&flags, &location, range + 8 * AREA), 0);
	CHECK_EQUAL(flags, READ);
	CHECK_EQUAL(cu.cuMemUnmap(range, 3 * AREA), 0);
	CHECK_EQUAL(charged(), before + 3 * AREA);
	CHECK_EQUAL(cu.cuMemUnmap(range + 8 * AREA, 2 * AREA), 0);
	CHECK_EQUAL(charged(), before + AREA);
	uint64_t used = card_used();
	CHECK_EQUAL(cu.cuMemRelease(second), 0);
	CHECK_EQUAL(charged(), before);
	CHECK_EQUAL(card_used(), used - AREA);
	CHECK_EQUAL(ll_chunks_bytes(card_state()), 0);
}

/* Memory that is mapped nowhere has bytes too. */
TEST_IN_WORLD(NULL, memory_that_is_mapped_nowhere_leaves_and_returns)
{
	prepare();
	ll_cu_mem_handle handle = create(AREA, LL_CU_MEM_HANDLE_TYPE_NONE);
	struct ll_chunk pieces[PIECES];
	CHECK_EQUAL(list_pieces(pieces), 1);
	ll_chunk_unmake(&pieces[0]);
	char *bytes = malloc(AREA);
	CHECK(bytes != NULL);
	memset(bytes, 5, AREA);
	CHECK_EQUAL(ll_chunk_make(card_state(), &pieces[0]), 0);
	CHECK_EQUAL(fill(&pieces[0], 0, (uintptr_t)bytes, AREA), 0);
	free(bytes);
	map(range, handle, AREA, READ);
	CHECK_EQUAL(byte_at(range + AREA - 1), 5);
}

/* As which kinds of handle the driver says that the memory at the address can be exported. */
static uint64_t types_at(ll_cu_deviceptr address)
{
	uint64_t one = 77, of_many = 77;
	enum ll_cu_pointer_attribute attribute = LL_CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES;
	void *place = &of_many;
	CHECK_EQUAL(cu.cuPointerGetAttribute(&one, attribute, address), 0);
	CHECK_EQUAL(cu.cuPointerGetAttributes(1, &attribute, &place, address), 0);
	CHECK_EQUAL(of_many, one);
	return one;
}

TEST_IN_WORLD(NULL, a_program_s_own_memory_looks_as_without_us)
{
	int fd;
	ll_cu_mem_handle again;
	struct ll_cu_mem_allocation_prop prop = on_card(LL_CU_MEM_HANDLE_TYPE_NONE);
	prepare();
	ll_cu_mem_handle handle = create(AREA, LL_CU_MEM_HANDLE_TYPE_NONE);
	memset(&prop, 0xff, sizeof prop);
	CHECK_EQUAL(cu.cuMemGetAllocationPropertiesFromHandle(&prop, handle), 0);
	struct ll_cu_mem_allocation_prop asked = on_card(LL_CU_MEM_HANDLE_TYPE_NONE);
	CHECK(memcmp(&prop, &asked, sizeof prop) == 0);
	/* It was not made to be exported. */
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handle, SHAREABLE, 0), LL_CUDA_ERROR_INVALID_VALUE);
	map(range, handle, AREA, READ_WRITE);
	CHECK_EQUAL(types_at(range + 1), LL_CU_MEM_HANDLE_TYPE_NONE);
	move_all();
	CHECK_EQUAL(types_at(range + 1), LL_CU_MEM_HANDLE_TYPE_NONE);
	ll_cu_mem_handle shareable = create(AREA, SHAREABLE);
	map(range + AREA, shareable, AREA, READ_WRITE);
	CHECK_EQUAL(types_at(range + AREA), SHAREABLE);
	CHECK_EQUAL(cu.cuMemUnmap(range + AREA, AREA), 0);
	CHECK_EQUAL(cu.cuMemRelease(shareable), 0);
	CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)(range + AREA / 2)), 0);
	CHECK_EQUAL(again, handle);
	CHECK_EQUAL(cu.cuMemRelease(handle), 0);
	CHECK_EQUAL(cu.cuMemRelease(again), 0);
	/* The program has no handle any more; the mapping holds the memory. */
	CHECK_EQUAL(cu.cuMemRelease(handle), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemMap(range + AREA, AREA, 0, handle, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemGetAllocationPropertiesFromHandle(&prop, handle), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range), 0);
	CHECK_EQUAL(cu.cuMemUnmap(range, AREA), 0);
	map(range + AREA, again, AREA, READ_WRITE);
	CHECK_EQUAL(cu.cuMemUnmap(range + AREA, AREA), 0);
	CHECK_EQUAL(cu.cuMemRelease(again), 0);
	CHECK_EQUAL(cu.cuMemRelease(again), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMemRetainAllocationHandle(&again, (void *)(uintptr_t)range), LL_CUDA_ERROR_INVALID_VALUE);
}

static ll_cu_result bind_memory(ll_cu_mem_handle handle, size_t offset, ll_cu_mem_handle memory, size_t memory_offset,
				size_t bytes, unsigned long long flags)
{
	(void)handle, (void)offset, (void)memory_offset, (void)bytes, (void)flags;
	bound = memory;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result bind_memory_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset, ll_cu_mem_handle memory,
				   size_t memory_offset, size_t bytes, unsigned long long flags)
{
	(void)device;
	return bind_memory(handle, offset, memory, memory_offset, bytes, flags);
}

static ll_cu_result bind_address(ll_cu_mem_handle handle, size_t offset, ll_cu_deviceptr address, size_t bytes,
				 unsigned long long flags)
{
	(void)handle, (void)offset, (void)address, (void)bytes, (void)flags;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result bind_address_v2(ll_cu_mem_handle handle, ll_cu_device device, size_t offset,
				    ll_cu_deviceptr address, size_t bytes, unsigned long long flags)
{
	(void)device;
	return bind_address(handle, offset, address, bytes, flags);
}

/* The simulated card has no multicast. */
static void accept_multicast(void)
{
	driver = *ll_real();
	driver.cuMulticastBindMem = bind_memory;
	driver.cuMulticastBindMem_v2 = bind_memory_v2;
	driver.cuMulticastBindAddr = bind_address;
	driver.cuMulticastBindAddr_v2 = bind_address_v2;
	atomic_store(&ll_real_bound[LL_REAL_CUDA], (const void *)&driver);
}

TEST_IN_WORLD(NULL, what_others_see_stays)
{
	int fd;
	struct ll_chunk pieces[PIECES];
	ll_cu_mem_handle handles[6];
	prepare();
	for (unsigned i = 0; i < 6; i++) {
		handles[i] = create(AREA, SHAREABLE);
		map(range + i * AREA, handles[i], AREA, READ_WRITE);
	}
	CHECK_EQUAL(cu.cuMemsetD8(range, 3, 6 * AREA), 0);
	CHECK_EQUAL(list_pieces(pieces), 6);
	/* What the driver refuses changes nothing. */
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handles[0], SHAREABLE, 1), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK(cu.cuMulticastBindMem(1, 0, handles[0], 0, AREA, 0) != 0);
	CHECK_EQUAL(list_pieces(pieces), 6);
	CHECK_EQUAL(cu.cuMemExportToShareableHandle(&fd, handles[0], SHAREABLE, 0), 0);
	CHECK_EQUAL(list_pieces(pieces), 5);
	accept_multicast();
	CHECK_EQUAL(cu.cuMulticastBindMem(1, 0, handles[1], 0, AREA, 0), 0);
	CHECK_EQUAL(bound, pieces[0].handle); /* the driver got its own handle */
	CHECK_EQUAL(list_pieces(pieces), 4);
	CHECK_EQUAL(cu.cuMulticastBindMem_v2(1, 0, 0, handles[2], 0, AREA, 0), 0);
	CHECK_EQUAL(bound, pieces[0].handle);
	CHECK_EQUAL(cu.cuMulticastBindAddr(1, 0, range + 3 * AREA + 512, 1024, 0), 0);
	CHECK_EQUAL(cu.cuMulticastBindAddr_v2(1, 0, 0, range + 4 * AREA, AREA, 0), 0);
	CHECK_EQUAL(list_pieces(pieces), 1);
	CHECK_EQUAL(pieces[0].address, handles[5]);
	CHECK_EQUAL(cu.cuMulticastBindMem(1, 0, handles[5] + 1, 0, AREA, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(cu.cuMulticastBindMem_v2(1, 0, 0, handles[5] + 1, 0, AREA, 0), LL_CUDA_ERROR_INVALID_VALUE);
	CHECK_EQUAL(simctl("card 0 dma-buffers on"), 0);
	CHECK_EQUAL(
	    cu.cuMemGetHandleForAddressRange(&fd, range + 5 * AREA, AREA, LL_CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0),
	    0);
	CHECK_EQUAL(list_pieces(pieces), 0);
	close(fd);
}

/* If it is not evictable the driver's own handles are given, and nothing is moved. */
TEST_IN_WORLD(NULL, a_program_that_is_not_evictable_has_the_driver_s_handles)
{
	struct ll_chunk pieces[PIECES];
	govern(GIB);
	open_context(0);
	ll_cu_mem_handle handle = create(AREA, LL_CU_MEM_HANDLE_TYPE_NONE), real;
	CHECK(ll_physical_find(handle, &real));
	CHECK_EQUAL(real, handle);
	CHECK_EQUAL(list_pieces(pieces), 0);
}
