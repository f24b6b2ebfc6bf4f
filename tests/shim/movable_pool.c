/* Freed blocks that can be moved, seen from inside: the library is linked in. */
#include "movable.h"

#include "shim/device_state.h"
#include "shim/memory/memory.h"
#include "shim/memory/pools.h"

#define BLOCK_BYTES (10 * MIB)

static struct ll_device_state *dev;
static struct ll_movable_pool *pool;
static struct ll_cu_stream *stream;

static void prepare(void)
{
	govern_evictable(0);
	open_context(0);
	stream = new_stream();
	dev = ll_device_state_of(0);
	pool = ll_movable_pool_new(dev, NULL, 0);
	CHECK(dev && pool);
}

static struct ll_extent make_block(void)
{
	ll_cu_deviceptr address = 0;
	struct ll_extent block = {
	    .kind = LL_EXTENT_BLOCK, .bytes = BLOCK_BYTES, .room_bytes = BLOCK_BYTES, .dev = dev, .is_backed = true};
	CHECK(ll_movable_pool_grow(pool, &block));
	CHECK_EQUAL(ll_backing_allocate(dev, BLOCK_BYTES, NULL, &address, &block.serial), 0);
	block.address = address;
	block.movable = pool;
	return block;
}

static struct ll_cu_event *record(void)
{
	struct ll_cu_event *event;
	CHECK_EQUAL(cu.cuEventCreate(&event, LL_CU_EVENT_DISABLE_TIMING), 0);
	CHECK_EQUAL(cu.cuEventRecord(event, stream), 0);
	return event;
}

TEST_IN_WORLD(NULL, a_stream_s_blocks_are_not_those_of_a_later_one_of_its_handle)
{
	prepare();
	struct ll_stream_place place = {.handle = stream}, other = {.handle = new_stream()};
	struct ll_extent block = make_block(), taken;
	occupy(stream);
	CHECK(ll_movable_pool_put(pool, &block, &place, record()));
	CHECK(!ll_movable_pool_get_block(pool, BLOCK_BYTES, 1, &other, &taken));
	CHECK(ll_movable_pool_get_block(pool, BLOCK_BYTES, 1, &place, &taken));
	CHECK_EQUAL(taken.address, block.address);
	CHECK(taken.serial != block.serial);
	/* A later stream may have the handle. */
	CHECK(ll_movable_pool_put(pool, &taken, &place, record()));
	CHECK_EQUAL(cu.cuStreamDestroy(stream), 0);
	CHECK(!ll_movable_pool_get_block(pool, BLOCK_BYTES, 1, &place, &taken));
}

TEST_IN_WORLD(NULL, nothing_goes_back_to_the_card_while_memory_moves)
{
	prepare();
	uint64_t used = card_used();
	struct ll_extent first = make_block(), second = make_block(), third = make_block();
	occupy(stream);
	CHECK(ll_movable_pool_put(pool, &first, NULL, NULL));
	CHECK(ll_movable_pool_put(pool, &second, NULL, record()));
	/* What is done goes before the move. During the move nothing else goes. */
	ll_movable_pools_freeze(dev);
	CHECK_EQUAL(card_used(), used + 2 * BLOCK_BYTES);
	CHECK(ll_movable_pool_put(pool, &third, NULL, NULL));
	CHECK(!ll_movable_pools_release(dev));
	ll_movable_pool_trim(pool, 0);
	ll_movable_pools_waited(NULL);
	CHECK_EQUAL(card_used(), used + 2 * BLOCK_BYTES);
	ll_movable_pools_thaw(dev);
	CHECK(ll_movable_pools_release(dev));
	CHECK_EQUAL(card_used(), used + BLOCK_BYTES);
}
