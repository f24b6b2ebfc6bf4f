/* One call that launches on several cards: each of them is waited for, and each is charged its own part. */
#include "launching.h"

#define ID 7
#define MS UINT64_C(1000000)
/* 50 ms of waiting at a cap of 10 %. */
#define DEBT (5 * MS)
enum { CARDS = 2 };

static struct ll_cu_context *contexts[CARDS];
static struct ll_cu_launch_params on_cards[CARDS];
static char uuids[CARDS][64];
static uint64_t length_ns = MS;
static void *params[] = {&length_ns};

static struct ll_page_card *page_on(int card)
{
	return &jobs_pages(ID)->page->cards[jobs_card(ID, uuids[card])];
}

static int64_t tokens_on(int card)
{
	struct ll_message_card_row row;
	CHECK(jobs_card_row(ID, uuids[card], &row));
	return row.tokens_ns;
}

static bool rests_on(int card)
{
	return !jobs_slot(ID, uuids[card])->want_since_ns;
}

static void rest(void)
{
	for (int i = 0; i < CARDS; i++) {
		CHECK_EQUAL(cu.cuCtxSetCurrent(contexts[i]), 0);
		CHECK_EQUAL(cu.cuCtxSynchronize(), 0);
		WAIT_FOR(rests_on(i));
	}
}

static void prepare(unsigned cap_permille)
{
	govern_by((struct ll_run_settings){.id = ID, .tenant = "test", .compute_cap_permille = cap_permille});
	for (int i = 0; i < CARDS; i++) {
		contexts[i] = open_context(i);
		on_cards[i] =
		    (struct ll_cu_launch_params){get_kernel("work_ns"), 1, 1, 1, 32, 1, 1, 0, new_stream(), params};
		launch_work(on_cards[i].stream, MS); /* the account begins */
		snprintf(uuids[i], sizeof uuids[i], "GPU-10ad11fe-0200-4200-8200-%012d", i + 1);
	}
	rest();
}

TEST_IN_WORLD("cards 2\n", each_card_is_charged_for_its_part)
{
	enum { COUNT = 100 };
	uint64_t before_ns[CARDS];
	prepare(0);
	for (int i = 0; i < CARDS; i++)
		before_ns[i] = page_on(i)->gpu_time_ns;
	uint64_t began_ns = ll_now_ns();
	for (int i = 0; i < COUNT; i++)
		CHECK_EQUAL(cu.cuLaunchCooperativeKernelMultiDevice(on_cards, CARDS, 0), 0);
	rest();
	uint64_t took_ns = ll_now_ns() - began_ns;
	for (int i = 0; i < CARDS; i++) {
		WAIT_FOR(page_on(i)->gpu_time_ns - before_ns[i] >= COUNT * MS * 98 / 100);
		CHECK(page_on(i)->gpu_time_ns - before_ns[i] <= took_ns);
	}
}

static void put_in_debt(int card)
{
	struct ll_limits limits;
	page_on(card)->gpu_time_ns += (uint64_t)tokens_on(card) + DEBT;
	ll_orders_read_limits(jobs_pages(ID)->orders, &limits);
	jobs_set(ID, LL_SET_COMPUTE, &limits); /* loadlined looks at the job */
	WAIT_FOR(tokens_on(card) <= 0);
}

/* The debt was paid before it came back; what it costs itself may have been charged by now. */
static void check_gate_of(int card)
{
	rest();
	for (int i = 0; i < CARDS; i++)
		WAIT_FOR(tokens_on(i) >= (int64_t)MS);
	put_in_debt(card);
	uint64_t before_ns = page_on(card)->gpu_time_ns;
	CHECK_EQUAL(cu.cuLaunchCooperativeKernelMultiDevice(on_cards, CARDS, 0), 0);
	int64_t left_ns = tokens_on(card), cost_ns = (int64_t)(page_on(card)->gpu_time_ns - before_ns);
	if (left_ns + cost_ns < -(int64_t)(DEBT / 2))
		give_up_numbers(__FILE__, __LINE__, "it waits for the card", left_ns, cost_ns);
}

TEST_IN_WORLD("cards 2\n", it_waits_for_whichever_card_owes)
{
	prepare(100);
	for (int i = 0; i < CARDS; i++)
		check_gate_of(i);
}

static bool is_open_on(int card)
{
	return jobs_slot(ID, uuids[card])->gate == LL_GATE_OPEN;
}

static void launch_on_each(int count)
{
	for (int i = 0; i < count * CARDS; i++) {
		CHECK_EQUAL(cu.cuCtxSetCurrent(contexts[i % CARDS]), 0);
		launch_timed(on_cards[i % CARDS].function, on_cards[i % CARDS].stream, MS / 1000, 1, 32);
	}
}

/* Each launch that goes the long way calls that function four times. After as many calls as half of the launches would
 * make, one call hangs. */
TEST_IN_WORLD("cards 2\n", open_gates_of_two_cards_let_launches_pass)
{
	enum { COUNT = 1000 };
	char command[80];
	prepare(0);
	uint64_t give_up_ns = ll_now_ns() + 30000 * MS;
	while (!is_open_on(0) || !is_open_on(1)) {
		CHECK(ll_now_ns() < give_up_ns);
		launch_on_each(1000); /* until it is known how long they take, each is timed */
	}
	snprintf(command, sizeof command, "hang cuThreadExchangeStreamCaptureMode 40s after %d count 1",
		 COUNT * CARDS / 2 * 4);
	CHECK_EQUAL(simctl(command), 0);
	uint64_t began_ns = ll_now_ns();
	launch_on_each(COUNT);
	uint64_t took_ns = ll_now_ns() - began_ns;
	CHECK_EQUAL(simctl("heal"), 0);
	CHECK(took_ns < 40000 * MS);
}
