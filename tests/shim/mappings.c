/*
 * What the library knows of mappings of physical memory: enough to map the same memory at the same address again.
 * The library is linked in, so that the test can read its map of extents.
 */
#include "governed.h"

#include "shim/interpose/real.h"
#include "shim/memory/memory.h"

#define READ LL_CU_MEM_ACCESS_FLAGS_PROT_READ
#define READ_WRITE LL_CU_MEM_ACCESS_FLAGS_PROT_READWRITE
#define NO_ACCESS LL_CU_MEM_ACCESS_FLAGS_PROT_NONE
#define AREA (2 * MIB)

static ll_cu_deviceptr range;
static ll_cu_mem_handle handles[2];
static struct ll_real driver; /* the simulated one, but for what is replaced */

static struct ll_cu_mem_access_desc on_card(ll_cu_device device, enum ll_cu_mem_access_flags flags)
{
	return (struct ll_cu_mem_access_desc){.location = {LL_CU_MEM_LOCATION_TYPE_DEVICE, device}, .flags = flags};
}

static struct ll_extent mapping_at(ll_cu_deviceptr address)
{
	struct ll_extent mapping;
	CHECK(ll_extents_find(LL_EXTENT_MAPPING, address, &mapping));
	return mapping;
}

/* Two allocations, mapped one behind the other. */
static void prepare(void)
{
	struct ll_cu_mem_allocation_prop prop = {.type = LL_CU_MEM_ALLOCATION_TYPE_PINNED,
						 .location = {.type = LL_CU_MEM_LOCATION_TYPE_DEVICE}};
	govern(GIB);
	open_context(0);
	CHECK_EQUAL(cu.cuMemAddressReserve(&range, 64 * MIB, 0, 0, 0), 0);
	for (unsigned i = 0; i < 2; i++) {
		CHECK_EQUAL(cu.cuMemCreate(&handles[i], AREA, &prop, 0), 0);
		CHECK_EQUAL(cu.cuMemMap(range + i * AREA, AREA, 0, handles[i], 0), 0);
	}
}

TEST_IN_WORLD(NULL, a_mapping_s_access_is_what_was_last_allowed)
{
	prepare();
	for (unsigned i = 0; i < 2; i++) {
		struct ll_extent mapping = mapping_at(range + i * AREA);
		CHECK_EQUAL(mapping.bytes, AREA);
		CHECK_EQUAL(mapping.handle, handles[i]);
		CHECK_EQUAL(mapping.offset, 0);
		CHECK_EQUAL(mapping.access, 0);
	}
	struct ll_cu_mem_access_desc both = on_card(0, READ_WRITE), first = on_card(0, READ);
	CHECK_EQUAL(cu.cuMemSetAccess(range, 2 * AREA, &both, 1), 0);
	CHECK_EQUAL(cu.cuMemSetAccess(range, AREA, &first, 1), 0);
	struct ll_extent before[] = {mapping_at(range), mapping_at(range + AREA)};
	CHECK_EQUAL(ll_physical_access(&before[0], 0), READ);
	CHECK_EQUAL(ll_physical_access(&before[1], 0), READ_WRITE);
	/* What the driver refuses changes nothing. */
	struct ll_cu_mem_access_desc nowhere = on_card(5, READ_WRITE);
	CHECK(cu.cuMemSetAccess(range, AREA, &nowhere, 1) != 0);
	CHECK(cu.cuMemSetAccess(range, AREA, &both, 0) != 0);
	CHECK_EQUAL(mapping_at(range).access, before[0].access);
	/* Mapped anew it begins without access. */
	CHECK_EQUAL(cu.cuMemUnmap(range, 2 * AREA), 0);
	CHECK_EQUAL(cu.cuMemMap(range, AREA, 0, handles[1], 0), 0);
	CHECK_EQUAL(mapping_at(range).access, 0);
	CHECK_EQUAL(mapping_at(range).handle, handles[1]);
}

/* By what the map alone says, as whoever takes the memory off the card would. */
TEST_IN_WORLD(NULL, a_mapping_can_be_undone_and_made_again)
{
	struct ll_cu_mem_access_desc allowed[] = {on_card(0, READ_WRITE)};
	unsigned long long flags;
	prepare();
	CHECK_EQUAL(cu.cuMemSetAccess(range, 2 * AREA, allowed, 1), 0);
	CHECK_EQUAL(cu.cuMemsetD8(range, 7, AREA), 0);
	struct ll_extent mapping = mapping_at(range);
	CHECK_EQUAL(ll_real()->cuMemUnmap(mapping.address, mapping.bytes), 0);
	CHECK_EQUAL(ll_real()->cuMemMap(mapping.address, mapping.bytes, mapping.offset, mapping.handle, 0), 0);
	struct ll_cu_mem_access_desc again = on_card(0, ll_physical_access(&mapping, 0));
	CHECK_EQUAL(ll_real()->cuMemSetAccess(mapping.address, mapping.bytes, &again, 1), 0);
	CHECK_EQUAL(cu.cuMemGetAccess(&flags, &again.location, range), 0);
	CHECK_EQUAL(flags, READ_WRITE);
	char byte = 0;
	CHECK_EQUAL(cu.cuMemcpyDtoH(&byte, range + AREA - 1, 1), 0);
	CHECK_EQUAL(byte, 7);
}

/* The simulated driver has no peers, and maps from the first byte alone. */
static ll_cu_result accept_map(ll_cu_deviceptr address, size_t bytes, size_t offset, ll_cu_mem_handle handle,
			       unsigned long long flags)
{
	(void)address, (void)bytes, (void)offset, (void)handle, (void)flags;
	return LL_CUDA_SUCCESS;
}

static ll_cu_result accept_access(ll_cu_deviceptr address, size_t bytes, const struct ll_cu_mem_access_desc *accesses,
				  size_t count)
{
	(void)address, (void)bytes, (void)accesses, (void)count;
	return LL_CUDA_SUCCESS;
}

static void set_access(struct ll_cu_mem_access_desc first, struct ll_cu_mem_access_desc second)
{
	struct ll_cu_mem_access_desc accesses[] = {first, second};
	CHECK_EQUAL(cu.cuMemSetAccess(range, 2 * AREA, accesses, 2), 0);
}

TEST_IN_WORLD(NULL, a_mapping_s_access_is_known_for_each_card)
{
	struct ll_cu_mem_access_desc host = {.location = {.type = LL_CU_MEM_LOCATION_TYPE_HOST}, .flags = READ_WRITE};
	prepare();
	driver = *ll_real();
	driver.cuMemMap = accept_map;
	driver.cuMemSetAccess = accept_access;
	atomic_store(&ll_real_bound[LL_REAL_CUDA], (const void *)&driver);
	CHECK_EQUAL(cu.cuMemMap(range + 8 * AREA, AREA, 3 * AREA, handles[0], 0), 0);
	CHECK_EQUAL(mapping_at(range + 8 * AREA).offset, 3 * AREA);
	set_access(on_card(0, READ_WRITE), on_card(LL_PHYSICAL_CARDS - 1, READ));
	set_access(on_card(1, READ), on_card(1, READ_WRITE)); /* the last counts */
	struct ll_extent mapping = mapping_at(range + AREA);
	CHECK_EQUAL(ll_physical_access(&mapping, 0), READ_WRITE);
	CHECK_EQUAL(ll_physical_access(&mapping, 1), READ_WRITE);
	CHECK_EQUAL(ll_physical_access(&mapping, 2), NO_ACCESS);
	CHECK_EQUAL(ll_physical_access(&mapping, LL_PHYSICAL_CARDS - 1), READ);
	CHECK(!(mapping.access & LL_PHYSICAL_ACCESS_ELSEWHERE));
	set_access(on_card(0, NO_ACCESS), host);
	mapping = mapping_at(range);
	CHECK_EQUAL(ll_physical_access(&mapping, 0), NO_ACCESS);
	CHECK_EQUAL(ll_physical_access(&mapping, 1), READ_WRITE);
	CHECK(mapping.access & LL_PHYSICAL_ACCESS_ELSEWHERE);
	set_access(on_card(LL_PHYSICAL_CARDS, READ), on_card(0, READ));
	mapping = mapping_at(range);
	CHECK_EQUAL(ll_physical_access(&mapping, 0), READ);
	CHECK_EQUAL(mapping_at(range + 8 * AREA).access, 0); /* outside of the range */
}
