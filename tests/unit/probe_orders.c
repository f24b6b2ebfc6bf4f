/* The matrix's cells and the scripts made of them. */
#include "test.h"

#include "probe/probe.h"
#include "probe_world.h"

static struct ll_probe_choice everything(void)
{
	return (struct ll_probe_choice){
	    .parallel = {true, true, true, true, true},
	    .unders = {{LL_PROBE_DEFAULT, 0}, {LL_PROBE_MPS, 0}, {LL_PROBE_MPS, 50}, {LL_PROBE_EXCLUSIVE, 0}},
	    .under_count = 4,
	    .equal = true,
	    .different = true,
	    .tiny = true,
	    .full = true,
	    .connections = {1, 8, 32},
	    .connections_count = 3,
	};
}

TEST(the_whole_matrix_has_each_cell_once_and_groups_stand_together)
{
	struct ll_probe_choice choice = everything();
	struct ll_probe_cell cells[200];
	memset(cells, 0, sizeof cells);
	size_t count = ll_probe_cells(&choice, cells, 200);
	/* Four unders, three numbers of connections, two grids; two priorities but for default streams. */
	assert_int_equal(count, 4 * 3 * 2 * (3 * 2 + 2));
	assert_int_equal(ll_probe_cells(&choice, NULL, 0), count);
	size_t groups = 1;
	for (size_t i = 0; i < count; i++) {
		for (size_t k = 0; k < i; k++)
			assert_memory_not_equal(&cells[i], &cells[k], sizeof cells[i]);
		assert_false(cells[i].parallel == LL_PROBE_PER_THREAD && cells[i].has_priorities);
		assert_false(cells[i].parallel == LL_PROBE_LEGACY && cells[i].has_priorities);
		if (i && (!ll_probe_under_same(cells[i].under, cells[i - 1].under) ||
			  cells[i].connections != cells[i - 1].connections))
			groups++;
	}
	assert_int_equal(groups, 12);
}

TEST(a_choice_is_kept_to)
{
	struct ll_probe_choice choice = everything();
	struct ll_probe_cell cells[8];
	memset(choice.parallel, 0, sizeof choice.parallel);
	choice.parallel[LL_PROBE_PER_THREAD] = true;
	choice.under_count = choice.connections_count = 1;
	choice.equal = false;
	assert_int_equal(ll_probe_cells(&choice, cells, 8), 0);
	choice.equal = true;
	choice.tiny = false;
	assert_int_equal(ll_probe_cells(&choice, cells, 8), 1);
	assert_true(cells[0].is_full);
}

TEST(unders_have_their_names)
{
	char text[LL_PROBE_UNDER_SIZE];
	assert_string_equal(ll_probe_under_text((struct ll_probe_under){LL_PROBE_MPS, 50}, text), "mps:50%");
	assert_string_equal(ll_probe_under_text((struct ll_probe_under){LL_PROBE_MPS, 0}, text), "mps");
	assert_string_equal(ll_probe_under_text((struct ll_probe_under){LL_PROBE_EXCLUSIVE, 0}, text), "exclusive");
}

TEST(processes_have_a_worker_each_and_streams_share_one)
{
	const struct ll_probe_load load = {.parties = 3, .kernels = 2, .length_ns = 1000 * US};
	struct ll_probe_cell cell = {.parallel = LL_PROBE_PROCESSES, .has_priorities = true};
	struct ll_probe_order order;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.party_count, 3);
	assert_int_equal(order.launch_count, 6);
	assert_int_equal(order.parties[2].worker, 2);
	assert_int_equal(order.parties[0].priority, LL_PROBE_PRIORITY_HIGH);
	assert_int_equal(order.parties[1].priority, LL_PROBE_PRIORITY_LOW);
	assert_int_equal(ll_probe_order_workers(&cell, 3), 3);
	assert_int_equal(ll_probe_order_threads(&order), 3);
	cell = (struct ll_probe_cell){.parallel = LL_PROBE_STREAMS};
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.parties[2].worker, 0);
	assert_int_equal(ll_probe_order_workers(&cell, 3), 1);
	assert_int_equal(ll_probe_order_threads(&order), 1);
	/* A party's launches stand together: that is what a hardware queue with several streams in it trips over. */
	assert_int_equal(order.launches[1].party, 0);
	assert_int_equal(order.launches[2].party, 1);
}

TEST(threads_start_together_each_on_its_own)
{
	const struct ll_probe_load load = {.parties = 4, .kernels = 1, .length_ns = 1000};
	struct ll_probe_cell cell = {.parallel = LL_PROBE_PER_THREAD};
	struct ll_probe_order order;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(ll_probe_order_threads(&order), 4);
	assert_int_equal(order.parties[3].stream, LL_PROBE_DEFAULT_STREAM);
	cell.parallel = LL_PROBE_LEGACY;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.parties[3].stream, LL_PROBE_LEGACY_STREAM);
	assert_int_equal(ll_probe_order_threads(&order), 4);
	cell.parallel = LL_PROBE_THREADS;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.parties[3].stream, LL_PROBE_OWN_STREAM);
}

TEST(a_full_kernel_needs_as_long_as_a_tiny_one)
{
	const struct ll_probe_load load = {.parties = 2, .kernels = 1, .length_ns = 1000 * US};
	struct ll_probe_cell cell = {.is_full = true};
	struct ll_probe_order order;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.launches[0].size, LL_PROBE_SIZE_FULL);
	assert_int_equal(order.launches[0].rounds * order.launches[0].length_ns, load.length_ns);
	cell.is_full = false;
	ll_probe_order_cell(&cell, &load, &order);
	assert_int_equal(order.launches[0].rounds, 1);
	assert_int_equal(order.launches[0].length_ns, load.length_ns);
}

TEST(an_arrival_is_counted_from_the_moment_it_was_ready)
{
	struct ll_probe_order order;
	ll_probe_order_arrival(true, &order);
	assert_int_equal(order.launch_count, LL_PROBE_ARRIVAL_LAUNCHES);
	assert_int_equal(order.parties[0].priority, LL_PROBE_PRIORITY_HIGH);
	struct ll_probe_kernel kernels[] = {kernel_of(0, 0, 500), kernel_of(1, 5, 4005), kernel_of(0, 1006, 1106)};
	assert_int_equal(ll_probe_arrival_wait_ns(kernels), 506 * US);
	assert_int_equal(ll_probe_arrival_round_ns(kernels), 505 * US);
	kernels[1] = kernel_of(1, 600, 4600); /* it had not begun when the other was ready */
	assert_int_equal(ll_probe_arrival_round_ns(kernels), 1100 * US);
	kernels[2].start_ns = kernels[0].start_ns;
	assert_int_equal(ll_probe_arrival_wait_ns(kernels), 0);
}
