/* How MPS clients and hardware queues share the card model, on a clock of the test's own: every number is exact. */
#include "card/context.h"
#include "card/defaults.h"
#include "card/mps.h"
#include "card/mps_limits.h"
#include "card/process.h"
#include "card/queue.h"
#include "model_world.h"

#define LAUNCH (5 * US)

enum { SMS = 132 };

static uint32_t last_proc;

static void go_on(uint64_t length_ns)
{
	go_to(now_ns + length_ns);
}

/* Processes that all live as long as this one. */
static uint32_t new_proc(void)
{
	uint32_t own = sim_proc_join(w);
	last_proc++;
	*SIM_EDIT(w, &w->procs[last_proc]) = w->procs[own];
	sim_commit(w);
	return last_proc;
}

static uint32_t new_server(void)
{
	struct sim_mps_server wanted = {.permille = 1000, .card_count = 1};
	uint32_t server = sim_mps_server_new(w, new_proc(), &wanted);
	assert_int_equal(sim_mps_server_open(w, server, new_proc()), 0);
	SIM_EDIT(w, &w->mps_servers[server])->state = SIM_MPS_ACTIVE;
	sim_commit(w);
	return server;
}

static uint32_t new_context(uint32_t proc, uint32_t connections)
{
	uint32_t context;
	assert_int_equal(sim_context_new(w, 0, proc, connections, &context), 0);
	return context;
}

static uint32_t new_client(uint32_t server, uint32_t permille, int32_t priority)
{
	struct sim_mps_client wishes = {.permille = permille, .priority = priority};
	uint32_t proc = new_proc();
	assert_int_equal(sim_mps_join(w, server, w->mps_servers[server].generation, proc, &wishes), 0);
	return new_context(proc, 0);
}

static uint32_t new_stream(uint32_t context, int priority)
{
	uint32_t stream;
	assert_int_equal(sim_stream_new(w, context, priority, false, &stream), 0);
	return stream;
}

static const struct sim_op *submit(uint32_t stream, uint64_t length_ns, bool is_timed, uint32_t blocks,
				   uint32_t threads)
{
	uint64_t position;
	struct sim_op op = {
	    .kind = SIM_OP_KERNEL,
	    .length_ns = length_ns,
	    .is_timed = is_timed,
	    .blocks = blocks,
	    .threads = threads,
	    .module = SIM_NONE,
	};
	assert_int_equal(sim_submit(w, stream, &op, &position), 0);
	return sim_op_at(w, stream, position);
}

static int new_world_of_clients(void **state)
{
	last_proc = 0;
	if (new_world(state))
		return -1;
	go_on(0);
	return 0;
}

TEST_EACH(new_world_of_clients, free_world);

TEST(clients_of_one_server_run_at_the_same_time)
{
	uint32_t server = new_server();
	uint32_t a = new_stream(new_client(server, 0, 0), 0), b = new_stream(new_client(server, 0, 0), 0);
	const struct sim_op *first = submit(a, MS, false, SMS, 1024), *second = submit(b, MS, false, SMS, 1024);
	uint64_t begun_ns = now_ns;
	go_on(10 * MS);
	assert_int_equal(first->start_ns, begun_ns + LAUNCH);
	assert_int_equal(second->start_ns, begun_ns + LAUNCH);
	assert_int_equal(first->end_ns, begun_ns + LAUNCH + MS);
	assert_int_equal(second->end_ns, begun_ns + LAUNCH + MS);
}

TEST(clients_wait_for_each_other_when_the_sms_are_full)
{
	uint32_t server = new_server();
	uint32_t a = new_stream(new_client(server, 0, 0), 0), b = new_stream(new_client(server, 0, 0), 0);
	const struct sim_op *first = submit(a, MS, false, 2 * SMS, 1024), *second = submit(b, MS, false, SMS, 1024);
	go_on(10 * MS);
	assert_int_equal(second->start_ns, first->end_ns);
}

TEST(the_clients_take_one_turn_together_against_an_outsider)
{
	uint32_t server = new_server();
	uint32_t a = new_stream(new_client(server, 0, 0), 0), b = new_stream(new_client(server, 0, 0), 0);
	uint32_t outside = new_stream(new_context(new_proc(), 0), 0);
	const struct sim_op *first = submit(a, 5 * MS, false, 1, 32), *second = submit(b, 5 * MS, false, 1, 32);
	const struct sim_op *third = submit(outside, 5 * MS, false, 1, 32);
	uint64_t begun_ns = now_ns + LAUNCH;
	go_on(50 * MS);
	assert_int_equal(first->start_ns, begun_ns);
	assert_int_equal(second->start_ns, begun_ns);
	assert_int_equal(third->start_ns, begun_ns + SLICE + SWITCH);
	assert_int_equal(first->gap_ns, SLICE + 2 * SWITCH);
	assert_int_equal(second->gap_ns, SLICE + 2 * SWITCH);
	assert_int_equal(first->end_ns, begun_ns + 2 * (2 * SLICE + 2 * SWITCH) + MS);
	assert_int_equal(second->end_ns, first->end_ns);
	assert_int_equal(third->end_ns, first->end_ns + SWITCH + MS);
}

TEST(a_share_of_sms_is_whole_pairs_and_never_fewer_than_eight)
{
	/* Measured: doc/facts.md, "MPS". */
	static const uint32_t rows[][2] = {{1000, 132}, {990, 130}, {750, 98}, {500, 66}, {330, 42},
					   {250, 32},   {100, 12},  {50, 8},   {30, 8},   {10, 8}};
	struct sim_card card = {.sm_count = 132}, small = {.sm_count = 6};
	for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
		assert_int_equal(sim_mps_sms(&card, rows[i][0]), rows[i][1]);
	assert_int_equal(sim_mps_sms(&small, 10), 6);
}

TEST(a_client_stays_within_its_share_of_sms)
{
	uint32_t server = new_server(), half = new_client(server, 500, 0), whole = new_client(server, 0, 0);
	uint32_t a = new_stream(half, 0), b = new_stream(half, 0), c = new_stream(whole, 0);
	/* A full grid of work goes over half of the SMs in two turns; what ends by the clock does not. */
	const struct sim_op *work = submit(a, MS, false, SMS, 1024), *next = submit(b, MS, true, SMS, 1024);
	const struct sim_op *other = submit(c, MS, false, SMS, 1024);
	uint64_t begun_ns = now_ns + LAUNCH;
	assert_int_equal(w->contexts[half].sm_limit, 66);
	go_on(20 * MS);
	assert_int_equal(work->end_ns, begun_ns + 2 * MS);
	assert_int_equal(next->start_ns, work->end_ns);
	assert_int_equal(other->start_ns, begun_ns);
	assert_int_equal(other->end_ns, begun_ns + MS);
}

TEST(two_halves_with_full_grids_run_at_the_same_time)
{
	uint32_t server = new_server();
	uint32_t a = new_stream(new_client(server, 500, 0), 0), b = new_stream(new_client(server, 500, 0), 0);
	const struct sim_op *first = submit(a, MS, false, SMS, 1024), *second = submit(b, MS, false, SMS, 1024);
	uint64_t begun_ns = now_ns + LAUNCH;
	go_on(10 * MS);
	assert_int_equal(first->start_ns, begun_ns);
	assert_int_equal(second->start_ns, begun_ns);
	assert_int_equal(first->end_ns, begun_ns + 2 * MS);
	assert_int_equal(second->end_ns, begun_ns + 2 * MS);
}

TEST(a_client_of_normal_priority_goes_before_one_below)
{
	uint32_t server = new_server();
	uint32_t below = new_client(server, 0, 1), normal = new_client(server, 0, 0);
	uint32_t a = new_stream(below, 0), b = new_stream(below, -5), c = new_stream(normal, 0);
	const struct sim_op *running = submit(a, MS, false, 2 * SMS, 1024);
	go_on(500 * US);
	const struct sim_op *second = submit(b, MS, false, 2 * SMS, 1024);
	const struct sim_op *third = submit(c, MS, false, 2 * SMS, 1024);
	go_on(10 * MS);
	assert_int_equal(third->start_ns, running->end_ns);
	assert_int_equal(second->start_ns, third->end_ns);
}

TEST(what_is_gone_of_a_server_gives_its_turn_to_others)
{
	uint32_t server = new_server(), client = new_client(server, 0, 0);
	uint32_t a = new_stream(client, 0), outside = new_stream(new_context(new_proc(), 0), 0);
	submit(a, 100 * MS, false, 1, 32);
	const struct sim_op *other = submit(outside, MS, false, 1, 32);
	go_on(MS);
	sim_proc_leave(w, w->contexts[client].proc);
	sim_proc_leave(w, w->mps_servers[server].proc);
	assert_int_equal(w->mps_servers[server].is_used, 0);
	uint64_t left_ns = now_ns;
	go_on(10 * MS);
	assert_int_equal(other->start_ns, left_ns);
	assert_int_equal(sim_context_count(w, 0, SIM_NONE), 1);
}

TEST(streams_beyond_the_connections_share_a_queue_in_order)
{
	for (uint32_t connections = 1; connections <= 2; connections++) {
		uint32_t context = new_context(new_proc(), connections);
		uint32_t a = new_stream(context, 0), b = new_stream(context, 0);
		const struct sim_op *first = submit(a, MS, false, 1, 32), *second = submit(a, MS, false, 1, 32);
		const struct sim_op *third = submit(b, MS, false, 1, 32);
		go_on(20 * MS);
		/* With one queue the third stands behind the second, which cannot begin before the first has ended. */
		if (connections == 1)
			assert_int_equal(third->start_ns, second->start_ns);
		else
			assert_int_equal(third->start_ns, first->start_ns);
		assert_int_equal(second->start_ns, first->end_ns + US);
		sim_proc_leave(w, w->contexts[context].proc);
	}
}
