/*
 * All states of the protocol between the mover and programs (mover/protocol.h), breadth-first: each order in which
 * packets arrive and copies end, deaths, broken connections, a full card, a small pool. The code is the product's own
 * (mover_protocol.h).
 *
 * In each state a program's bytes are on the card, on its neighbour or in the pool, and the accounts are right. From
 * each state one can be reached, without luck, where every living program has all its memory on the card, and nothing
 * is in the pool or on the neighbour.
 */
#include "test.h"

#include <limits.h>

#include "base/log.h"
#include "mover/pool.h"
#include "mover_protocol.h"
#include "skipped.h"

/* A sanitizer takes ten times as long, and looks at other things: at the first states alone. */
#ifdef LL_HAS_SANITIZER
enum { MOST_STATES = 20000 };
#else
enum { MOST_STATES = INT_MAX };
#endif

/* ---- the states ---- */

enum { LINE = 64, LINES = sizeof(struct world) / LINE, TABLE = 1 << 22 };
_Static_assert(sizeof(struct world) % LINE == 0, "whole lines");

struct known {
	uint64_t hash;
	unsigned parent;
	struct world_event event; /* that led here */
	bool is_goal;
	unsigned char *saved; /* until it was looked at */
	uint32_t saved_lines;
};

struct edge {
	unsigned from, to;
};

static struct explorer {
	struct known *states;
	unsigned count, capacity;
	struct edge *edges; /* of sure events */
	size_t edge_count, edge_capacity;
	size_t steps;
	unsigned *table; /* the state's number + 1 */
} explorer;

static bool is_zero(const unsigned char *line)
{
	uint64_t words[LINE / 8], all = 0;
	memcpy(words, line, LINE);
	for (size_t i = 0; i < LINE / 8; i++)
		all |= words[i];
	return !all;
}

static uint64_t hash_world(uint32_t *ret_lines)
{
	uint64_t hash = UINT64_C(0xcbf29ce484222325);
	*ret_lines = 0;
	for (uint32_t line = 0; line < LINES; line++) {
		const unsigned char *bytes = (const unsigned char *)&world + line * LINE;
		if (is_zero(bytes))
			continue;
		uint64_t words[LINE / 8];
		memcpy(words, bytes, LINE);
		hash = (hash ^ line) * UINT64_C(0x9e3779b97f4a7c15);
		for (size_t i = 0; i < LINE / 8; i++) {
			hash = (hash ^ words[i]) * UINT64_C(0xff51afd7ed558ccd);
			hash ^= hash >> 32;
		}
		++*ret_lines;
	}
	return hash;
}

/* Each line that is not zero, with its number before it. */
static void save_world(struct known *state, uint32_t lines)
{
	state->saved = malloc(lines * (LINE + sizeof(uint32_t)) + 1);
	state->saved_lines = lines;
	unsigned char *at = state->saved;
	for (uint32_t line = 0; line < LINES; line++) {
		const unsigned char *bytes = (const unsigned char *)&world + line * LINE;
		if (is_zero(bytes))
			continue;
		memcpy(at, &line, sizeof line);
		memcpy(at + sizeof line, bytes, LINE);
		at += sizeof line + LINE;
	}
}

static void load_world(const struct known *state)
{
	memset(&world, 0, sizeof world);
	const unsigned char *at = state->saved;
	for (uint32_t i = 0; i < state->saved_lines; i++) {
		uint32_t line;
		memcpy(&line, at, sizeof line);
		memcpy((unsigned char *)&world + line * LINE, at + sizeof line, LINE);
		at += sizeof line + LINE;
	}
}

static void print_way(unsigned state, struct world_event last)
{
	struct world_event way[1000];
	unsigned count = 0;
	way[count++] = last;
	for (; state && count < 1000; state = explorer.states[state].parent)
		way[count++] = explorer.states[state].event;
	while (count--) {
		print_message("  %u %s\n", way[count].who, world_event_name(way[count].kind));
	}
}

/* Returns the number of the world's state. */
static unsigned find_state(unsigned parent, struct world_event event)
{
	uint32_t lines;
	uint64_t hash = hash_world(&lines);
	unsigned slot = (unsigned)(hash & (TABLE - 1));
	for (; explorer.table[slot]; slot = (slot + 1) & (TABLE - 1)) {
		if (explorer.states[explorer.table[slot] - 1].hash == hash)
			return explorer.table[slot] - 1;
	}
	if (explorer.count == explorer.capacity) {
		explorer.capacity = explorer.capacity ? 2 * explorer.capacity : 1024;
		explorer.states = realloc(explorer.states, explorer.capacity * sizeof *explorer.states);
		assert_non_null(explorer.states);
	}
	assert_true(explorer.count < TABLE / 2);
	struct known *state = &explorer.states[explorer.count];
	*state = (struct known){.hash = hash, .parent = parent, .event = event, .is_goal = world_is_at_rest()};
	save_world(state, lines);
	explorer.table[slot] = ++explorer.count;
	return explorer.count - 1;
}

static void add_edge(unsigned from, unsigned to)
{
	if (explorer.edge_count == explorer.edge_capacity) {
		explorer.edge_capacity = explorer.edge_capacity ? 2 * explorer.edge_capacity : 4096;
		explorer.edges = realloc(explorer.edges, explorer.edge_capacity * sizeof *explorer.edges);
		assert_non_null(explorer.edges);
	}
	explorer.edges[explorer.edge_count++] = (struct edge){from, to};
}

/* The world is in the state `from`, and is so again. */
static void try_event(unsigned from, struct world_event event)
{
	struct world_budget budget = world.budget;
	if (!world_happen(event)) {
		world.budget = budget;
		return;
	}
	explorer.steps++;
	if (!world_fault)
		world_check();
	if (world_fault) {
		print_way(from, event);
		fail_msg("%s", world_fault);
	}
	unsigned to = find_state(from, event);
	/* A hostile program is killed in the end. */
	bool is_end = event.kind == WORLD_KILL_PROGRAM && world.programs[event.who].is_hostile;
	if (to != from && (world_is_sure(event.kind) || is_end))
		add_edge(from, to);
	load_world(&explorer.states[from]);
}

/* From each state a goal is reached by sure events. */
static void check_ends(void)
{
	unsigned *first = calloc(explorer.count + 1, sizeof *first),
		 *from = calloc(explorer.edge_count + 1, sizeof *from);
	unsigned *list = calloc(explorer.count + 1, sizeof *list), count = 0;
	bool *is_good = calloc(explorer.count + 1, sizeof *is_good);
	assert_true(first && from && list && is_good);
	for (size_t i = 0; i < explorer.edge_count; i++)
		first[explorer.edges[i].to + 1]++;
	for (unsigned i = 0; i < explorer.count; i++) {
		first[i + 1] += first[i];
		if (explorer.states[i].is_goal)
			is_good[list[count++] = i] = true;
	}
	unsigned *next = calloc(explorer.count + 1, sizeof *next);
	assert_non_null(next);
	for (size_t i = 0; i < explorer.edge_count; i++) {
		unsigned to = explorer.edges[i].to;
		from[first[to] + next[to]++] = explorer.edges[i].from;
	}
	for (unsigned at = 0; at < count; at++) {
		for (unsigned i = first[list[at]]; i < first[list[at] + 1]; i++) {
			if (!is_good[from[i]])
				is_good[list[count++] = from[i]] = true;
		}
	}
	for (unsigned i = 0; i < explorer.count; i++) {
		if (is_good[i])
			continue;
		print_way(explorer.states[i].parent, explorer.states[i].event);
		fail_msg("from here no program comes back (%u of %u states)", explorer.count - count, explorer.count);
	}
	free(first);
	free(from);
	free(list);
	free(is_good);
	free(next);
}

static void forget_states(void)
{
	for (unsigned i = 0; i < explorer.count; i++)
		free(explorer.states[i].saved);
	free(explorer.states);
	free(explorer.edges);
	free(explorer.table);
}

static void explore_scene(const char *test, const char *name, unsigned least)
{
	explorer = (struct explorer){.table = calloc(TABLE, sizeof *explorer.table)};
	assert_non_null(explorer.table);
	world_fault = NULL;
	world_check();
	find_state(0, (struct world_event){0});
	for (unsigned from = 0; from < explorer.count; from++) {
		if (from == MOST_STATES) {
			forget_states();
			SKIP_TEST_OF(test, "too many states with this sanitizer");
		}
		load_world(&explorer.states[from]);
		for (unsigned kind = 0; kind < WORLD_EVENTS; kind++) {
			for (unsigned who = 0; who < CONNECTIONS; who++)
				try_event(from, (struct world_event){(unsigned char)kind, (unsigned char)who});
		}
		free(explorer.states[from].saved);
		explorer.states[from].saved = NULL;
	}
	print_message("%s: %u states, %zu steps\n", name, explorer.count, explorer.steps);
	check_ends();
	if (explorer.count < least)
		fail_msg("%u states are too few: at least %u are expected", explorer.count, least);
	forget_states();
}

/* In a test function. */
#define explore(name, least) explore_scene(__func__, name, least)

/* ---- scenes ---- */

static void make_world(unsigned card_bytes, unsigned pool_bytes)
{
	memset(&world, 0, sizeof world);
	world.card_bytes = card_bytes;
	mover_start(pool_bytes);
	for (int i = 0; i < PROGRAMS; i++)
		world.programs[i].connection = -1;
}

/* Pieces of one byte share a batch; one of two bytes is a batch of its own. */
static void add_program(unsigned number, const char *sizes)
{
	program_start(number);
	for (unsigned i = 0; sizes[i]; i++)
		assert_true(world_add_piece(number, i, (unsigned)(sizes[i] - '0')));
	assert_true(program_connect(number));
	program_tell(number);
}

/* The pool need not wait for the host. */
static void pin_all(void)
{
	ll_mover_pool_want(world.mover_pool, POOL_BYTES);
	while (mover_is_pinning())
		mover_pin();
}

static void test_moves_of_one_program_of_three_batches(void **state)
{
	(void)state;
	make_world(10, 8);
	add_program(0, "2112");
	world.budget = (struct world_budget){.busy = 1, .hog = 1, .halt = 1};
	explore("three batches", 5000);
}

static void test_wishes_that_cross_moves(void **state)
{
	(void)state;
	make_world(10, 4);
	add_program(0, "22");
	world.budget = (struct world_budget){.halt = 1, .resume = 2, .want = 1, .host_short = 1};
	explore("wishes", 5000);
}

static void test_the_mover_is_killed_or_the_program(void **state)
{
	(void)state;
	make_world(10, 8);
	add_program(0, "222");
	world.budget = (struct world_budget){.kill_mover = 1, .kill_program = 1, .hog = 1};
	explore("deaths", 2000);
}

static void test_connections_break(void **state)
{
	(void)state;
	make_world(10, 4);
	add_program(0, "22");
	pin_all();
	world.budget = (struct world_budget){.cut = 2, .hog = 1, .kill_program = 1, .export_fails = 1};
	explore("broken connections", 5000);
}

static void test_copies_fail_and_programs_are_silent(void **state)
{
	(void)state;
	make_world(10, 4);
	add_program(0, "22");
	pin_all();
	world.budget = (struct world_budget){.transfer_fails = 1, .copy_fails = 1, .silence = 1, .halt = 1, .busy = 1};
	explore("failures", 5000);
}

static void test_a_program_grows_and_the_pool_is_too_small(void **state)
{
	(void)state;
	make_world(10, 4);
	add_program(0, "21");
	world.budget = (struct world_budget){.grow = 2, .host_short = 1, .halt = 1, .resume = 1, .kill_mover = 1};
	explore("growth", 5000);
}

static void test_two_programs_exchange(void **state)
{
	(void)state;
	make_world(6, 4);
	add_program(0, "2");
	add_program(1, "2");
	pin_all();
	world.has_few_moves = true;
	world.budget = (struct world_budget){.leave = 3};
	explore("two programs", 5000);
}

static void make_two_programs(void)
{
	make_world(4, 4);
	add_program(0, "2");
	add_program(1, "2");
	pin_all();
	world.has_few_moves = true;
}

static void test_two_programs_and_a_connection_breaks(void **state)
{
	(void)state;
	make_two_programs();
	world.budget = (struct world_budget){.cut = 1, .leave = 2};
	explore("two programs, broken connection", 5000);
}

static void test_two_programs_and_the_mover_is_killed(void **state)
{
	(void)state;
	make_two_programs();
	world.budget = (struct world_budget){.kill_mover = 1, .leave = 3};
	explore("two programs, mover killed", 5000);
}

/* The first event of the kind that can happen. */
static bool let_happen(enum world_event_kind kind)
{
	for (unsigned who = 0; who < CONNECTIONS; who++) {
		struct world_budget budget = world.budget;
		if (world_happen((struct world_event){(unsigned char)kind, (unsigned char)who}))
			return true;
		world.budget = budget;
	}
	return false;
}

/* The card has room for one of them, and a byte more. The second is on the card, the first away. */
static void make_tight_world(void)
{
	make_world(12, 12);
	add_program(0, "222");
	pin_all();
	while (let_happen(WORLD_TO_MOVER))
		;
	assert_true(mover_step(0, STEP_LEAVE));
	while (let_happen(WORLD_TO_PROGRAM) || let_happen(WORLD_TO_MOVER) || let_happen(WORLD_COPY_ENDS))
		;
	assert_true(program_is_away(0));
	add_program(1, "222");
	world.card_bytes = 7;
	world.has_few_moves = world.is_tight = true;
}

static void test_two_programs_exchange_while_one_is_on_its_way(void **state)
{
	(void)state;
	make_tight_world();
	world.budget = (struct world_budget){.leave = 1, .busy = 1, .export_fails = 1};
	explore("exchange", 5000);
}

static void test_a_program_that_returns_stays_away(void **state)
{
	(void)state;
	make_tight_world();
	world.budget = (struct world_budget){.leave = 1, .stay = 2};
	explore("staying away", 5000);
}

static void test_an_exchange_and_a_connection_breaks_or_the_mover_is_killed(void **state)
{
	(void)state;
	make_tight_world();
	world.budget = (struct world_budget){.leave = 1, .stay = 1, .kill_mover = 1, .cut = 1};
	explore("exchange, mover killed", 5000);
}

/* ---- with a neighbour ---- */

static void test_a_neighbour_takes_the_memory_and_is_wanted(void **state)
{
	(void)state;
	make_world(10, 4);
	world.has_neighbour = true;
	add_program(0, "22");
	world.budget = (struct world_budget){.wanted = 1, .hog = 1, .block_fails = 1, .resume = 1};
	explore("neighbour", 5000);
}

static void test_a_neighbour_and_the_mover_is_killed_or_the_program(void **state)
{
	(void)state;
	make_world(10, 4);
	world.has_neighbour = true;
	add_program(0, "22");
	world.budget = (struct world_budget){.wanted = 1, .kill_mover = 1, .kill_program = 1, .hog = 1};
	explore("neighbour, deaths", 5000);
}

static void test_a_neighbour_and_connections_break(void **state)
{
	(void)state;
	make_world(10, 4);
	world.has_neighbour = true;
	add_program(0, "22");
	pin_all();
	world.budget = (struct world_budget){.wanted = 1, .cut = 1, .export_fails = 1};
	explore("neighbour, broken connections", 5000);
}

static void test_a_neighbour_and_copies_fail(void **state)
{
	(void)state;
	make_world(10, 4);
	world.has_neighbour = true;
	add_program(0, "22");
	world.budget = (struct world_budget){
	    .wanted = 1, .transfer_fails = 1, .copy_fails = 1, .block_fails = 1, .grow = 1, .host_short = 1};
	explore("neighbour, failures", 5000);
}

static void test_a_neighbour_and_a_program_that_stays_away(void **state)
{
	(void)state;
	make_world(10, 4);
	world.has_neighbour = world.has_few_moves = true;
	add_program(0, "22");
	pin_all();
	world.budget = (struct world_budget){.wanted = 1, .leave = 1, .stay = 2, .hog = 1};
	explore("neighbour, staying away", 5000);
}

static void add_hostile(void)
{
	world.programs[1] = (struct world_program){.is_alive = true, .is_hostile = true, .connection = -1};
	assert_true(program_connect(1));
	world.has_few_moves = true;
	pin_all();
}

static void test_a_program_that_does_not_keep_to_the_protocol_harms_nobody_else(void **state)
{
	(void)state;
	make_world(8, 4);
	add_program(0, "2");
	add_hostile();
	world.budget = (struct world_budget){.leave = 2, .hostile = 2};
	explore("a hostile program", 5000);
}

static void test_a_program_that_does_not_keep_to_the_protocol_harms_no_accounts(void **state)
{
	(void)state;
	make_world(8, 4);
	add_hostile();
	world.budget = (struct world_budget){.leave = 2, .hostile = 5};
	explore("a hostile program alone", 5000);
}

int main(int argc, char **argv)
{
	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	const struct CMUnitTest tests[] = {
	    cmocka_unit_test(test_moves_of_one_program_of_three_batches),
	    cmocka_unit_test(test_wishes_that_cross_moves),
	    cmocka_unit_test(test_the_mover_is_killed_or_the_program),
	    cmocka_unit_test(test_connections_break),
	    cmocka_unit_test(test_copies_fail_and_programs_are_silent),
	    cmocka_unit_test(test_a_program_grows_and_the_pool_is_too_small),
	    cmocka_unit_test(test_two_programs_exchange),
	    cmocka_unit_test(test_two_programs_and_a_connection_breaks),
	    cmocka_unit_test(test_two_programs_and_the_mover_is_killed),
	    cmocka_unit_test(test_two_programs_exchange_while_one_is_on_its_way),
	    cmocka_unit_test(test_a_program_that_returns_stays_away),
	    cmocka_unit_test(test_an_exchange_and_a_connection_breaks_or_the_mover_is_killed),
	    cmocka_unit_test(test_a_neighbour_takes_the_memory_and_is_wanted),
	    cmocka_unit_test(test_a_neighbour_and_the_mover_is_killed_or_the_program),
	    cmocka_unit_test(test_a_neighbour_and_connections_break),
	    cmocka_unit_test(test_a_neighbour_and_copies_fail),
	    cmocka_unit_test(test_a_neighbour_and_a_program_that_stays_away),
	    cmocka_unit_test(test_a_program_that_does_not_keep_to_the_protocol_harms_nobody_else),
	    cmocka_unit_test(test_a_program_that_does_not_keep_to_the_protocol_harms_no_accounts),
	};
	ll_log_set_level(LL_LOG_ERROR);
	setvbuf(stdout, NULL, _IOLBF, 0);
	return cmocka_run_group_tests_name("mover_protocol", tests, NULL, NULL);
}
