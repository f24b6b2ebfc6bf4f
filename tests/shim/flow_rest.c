/* When an idle program stops wanting a card that tenants are given in turn: the flow on the card of card_model.h. The
 * test stands in for loadlined (shim/link/port.h) and for the agent's thread. */

#include "base/clock.h"
#include "card_model.h"
#include "shim/time/agent.h"
#include "shim/time/flow_state.h"
#include "test.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS
#define LAUNCH_NS 2600       /* the call, doc/facts.md */
#define VISIT_NS (60 * US)   /* of an idle program that launches ahead: loadlined and the agent wake */
#define NOTICED_NS (20 * US) /* until the agent has woken */

enum { KERNEL = 1, BATCH = 200 };

static struct ll_cu_context *const context = (struct ll_cu_context *)0x100;
static const struct ll_timing_stream stream = {.handle = (struct ll_cu_stream *)0x1000};

/* ---- loadlined ---- */

struct ll_claim {
	_Atomic uint32_t gate, word;
	struct ll_turn_look look; /* the orders */
	bool is_wanting;
	uint64_t charged_ns;
	enum ll_launch_mode launch_mode;
};

static uint64_t next_ns; /* when the agent looks again */

void ll_port_want(struct ll_claim *claim, uint64_t now_ns)
{
	(void)now_ns;
	claim->is_wanting = true;
}

void ll_port_rest(struct ll_claim *claim, uint64_t now_ns)
{
	(void)now_ns;
	claim->is_wanting = false;
}

void ll_port_look(struct ll_claim *claim, struct ll_turn *turn, uint64_t now_ns, uint64_t queued_ns,
		  struct ll_turn_look *ret_look, struct ll_gang *ret_gang)
{
	(void)turn, (void)now_ns, (void)queued_ns, (void)ret_gang;
	*ret_look = claim->look;
}

uint64_t ll_port_traced_ns(const struct ll_claim *claim)
{
	(void)claim;
	return 0;
}

void ll_port_note_end(struct ll_claim *claim, uint64_t end_ns)
{
	(void)claim;
	(void)end_ns;
}

uint64_t ll_port_off_ns(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns)
{
	(void)claim;
	(void)start_ns;
	(void)end_ns;
	return 0;
}

void ll_port_charge(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	(void)fresh_ns;
	claim->charged_ns += end_ns - start_ns;
}

void ll_port_note_work(struct ll_claim *claim, uint64_t start_ns, uint64_t end_ns, uint64_t fresh_ns)
{
	(void)claim;
	(void)start_ns;
	(void)end_ns;
	(void)fresh_ns;
}

void ll_port_set_launch_mode(struct ll_claim *claim, enum ll_launch_mode launch_mode)
{
	claim->launch_mode = launch_mode;
}

_Atomic uint32_t *ll_port_gate(struct ll_claim *claim)
{
	return &claim->gate;
}

_Atomic uint32_t *ll_port_card_word(const struct ll_claim *claim)
{
	return (_Atomic uint32_t *)(uintptr_t)&claim->word;
}

bool ll_port_open_gate(struct ll_claim *claim, enum ll_gate how)
{
	atomic_store(&claim->gate, how);
	return true;
}

void ll_port_shut_gate(struct ll_claim *claim)
{
	atomic_store(&claim->gate, LL_GATE_SHUT);
}

bool ll_port_is_off(struct ll_claim *claim)
{
	(void)claim;
	return false;
}

bool ll_port_is_in_turn(const struct ll_claim *claim)
{
	return claim->look.is_holder;
}

bool ll_port_is_fresh(uint64_t at_ns, uint64_t now_ns)
{
	(void)at_ns, (void)now_ns;
	return false;
}

void ll_port_set_waits_on_card(struct ll_claim *claim, bool waits)
{
	(void)claim, (void)waits;
}

void ll_port_note_launch(struct ll_claim *claim)
{
	(void)claim;
}

void ll_port_note_wait(struct ll_claim *claim, enum ll_wait cause, uint64_t ns)
{
	(void)claim, (void)cause, (void)ns;
}

uint32_t ll_port_wake_count(const struct ll_claim *claim)
{
	(void)claim;
	return 0;
}

void ll_port_sleep(struct ll_claim *claim, uint32_t wake_count, uint64_t until_ns)
{
	(void)claim, (void)wake_count;
	uint64_t now_ns = ll_now_ns();
	if (until_ns > now_ns)
		model_spend(until_ns - now_ns);
}

void ll_port_wake(struct ll_claim *claim)
{
	(void)claim;
	next_ns = 0;
}

/* ---- the rest of the library ---- */

int ll_agent_start(struct ll_flow *flow)
{
	(void)flow;
	return 0;
}

void ll_agent_stop(struct ll_flow *flow)
{
	(void)flow;
}

void ll_sleep_until_ns(uint64_t deadline_ns)
{
	(void)deadline_ns;
}

bool ll_card_gate_prepare(struct ll_card_gate *gate, _Atomic uint32_t *word)
{
	(void)word;
	gate->state = LL_CARD_GATE_READY;
	return true;
}

bool ll_card_gate_wait(const struct ll_card_gate *gate, struct ll_cu_stream *waits)
{
	(void)gate, (void)waits;
	return true;
}

void ll_card_gate_leave(struct ll_card_gate *gate)
{
	(void)gate;
}

/* ---- the program ---- */

static struct ll_claim claim;
static struct ll_gate_count count;
static struct ll_flow *flow;
static void look_as_agent(void)
{
	ll_flow_lock(flow);
	uint64_t now_ns = ll_now_ns();
	ll_flow_close_tails(flow);
	next_ns = ll_flow_tick(flow, now_ns);
	pthread_mutex_unlock(&flow->lock.mutex);
}

/* Time passes, and the agent looks when it is due. */
static void pass(uint64_t ns)
{
	uint64_t until_ns = ll_now_ns() + ns;
	for (uint64_t now_ns; (now_ns = ll_now_ns()) < until_ns;) {
		uint64_t to_ns = next_ns < until_ns ? next_ns : until_ns;
		if (to_ns > now_ns)
			model_spend(to_ns - now_ns);
		if (next_ns <= ll_now_ns())
			look_as_agent();
	}
}

/* The card is given to this program, or to another one. Each time the agent is woken. */
static void give_visit(bool is_ours)
{
	claim.look = (struct ll_turn_look){
	    .may_launch = is_ours,
	    .is_holder = is_ours,
	    .is_exclusive = true,
	    .waiting_claims = 1,
	    .turn_since_ns = ll_now_ns(),
	    .tokens_ns = INT64_MAX,
	    .tokens_most_ns = INT64_MAX,
	};
	if ((atomic_load(&claim.word) & LL_VISIT_WORD_OPEN) != (is_ours ? LL_VISIT_WORD_OPEN : 0))
		atomic_fetch_add(&claim.word, 1);
	model_spend(NOTICED_NS);
	look_as_agent();
}

static void launch(uint64_t kernel_ns)
{
	if (ll_flow_count(flow, context, stream, KERNEL)) {
		model_launch(stream.handle, kernel_ns, LAUNCH_NS);
		return;
	}
	ll_flow_enter(flow, context, stream, KERNEL);
	model_launch(stream.handle, kernel_ns, LAUNCH_NS);
	ll_flow_leave(flow, context, stream, KERNEL, ll_now_ns());
}

static void work(uint64_t ns)
{
	for (unsigned i = 0; i < BATCH; i++) {
		launch(ns / BATCH);
		if (next_ns <= ll_now_ns())
			look_as_agent();
	}
	pass(ns - MS);
	model_wait(stream.handle);
}

static void wait_idle(void)
{
	for (unsigned i = 0; !flow->idle_since_ns; i++) {
		assert_in_range(i, 0, 100);
		pass(10 * US);
	}
}

/* The program launches ahead, has a visit, and all of its work is done. */
static void begin(void)
{
	static const struct ll_flow_owner owner;
	model_reset(0);
	claim = (struct ll_claim){.word = LL_VISIT_WORD_OPEN};
	next_ns = UINT64_MAX;
	assert_int_equal(ll_flow_new(&claim, &count, &owner, &flow), 0);
	give_visit(true);
	for (unsigned i = 0; i < 4; i++)
		work(20 * MS);
	assert_int_equal(claim.launch_mode, LL_LAUNCH_MODE_ASYNC);
	assert_true(claim.is_wanting);
}

static void end(void)
{
	ll_flow_forget_context(flow, context);
	ll_timing_lock_fini(&flow->lock);
	free(flow);
}

/* Its visits end as soon as it has said that it has no work, and so do those of another idle program. Until ns have
 * passed, or it rests. */
static void alternate(uint64_t ns)
{
	uint64_t until_ns = ll_now_ns() + ns;
	while (claim.is_wanting && ll_now_ns() < until_ns) {
		give_visit(true);
		pass(VISIT_NS - NOTICED_NS);
		give_visit(false);
		pass(VISIT_NS - NOTICED_NS);
	}
}

TEST(an_idle_program_rests_though_each_of_its_visits_ends_at_once)
{
	begin();
	uint64_t before_ns = claim.charged_ns;
	alternate(1000 * MS);
	assert_false(claim.is_wanting);
	assert_in_range(claim.charged_ns - before_ns, 1 * MS, 20 * MS);
	before_ns = claim.charged_ns;
	pass(3000 * MS);
	assert_int_equal(claim.charged_ns, before_ns);
	end();
}

/* Beside a program that works it is visited seldom, and may not even notice a visit. */
TEST(an_idle_program_rests_while_another_one_is_visited)
{
	begin();
	wait_idle();
	give_visit(false);
	pass(15 * MS);
	assert_true(claim.is_wanting);
	pass(15 * MS);
	assert_false(claim.is_wanting);
	end();
}

TEST(an_idle_program_that_keeps_the_card_rests_at_once)
{
	begin();
	pass(2 * MS);
	assert_false(claim.is_wanting);
	end();
}

TEST(a_pause_between_two_steps_is_no_rest)
{
	begin();
	for (unsigned i = 0; i < 10; i++) {
		alternate(15 * MS);
		assert_true(claim.is_wanting);
		give_visit(true);
		work(20 * MS);
	}
	end();
}

TEST(a_launch_that_waits_on_the_card_keeps_its_program_from_resting)
{
	begin();
	wait_idle();
	give_visit(false);
	launch(100 * US);
	pass(1000 * MS);
	assert_true(claim.is_wanting);
	end();
}

/* The program was alone, and its gate open. The launches are counted when it is visited. */
TEST(launches_that_passed_an_open_gate_keep_their_program_from_resting)
{
	begin();
	wait_idle();
	atomic_store(&count.launches, 3);
	give_visit(false);
	pass(1000 * MS);
	assert_true(claim.is_wanting);
	end();
}

TEST(a_timed_launch_through_an_open_gate_keeps_its_program_from_resting)
{
	begin();
	wait_idle();
	atomic_store(&claim.gate, LL_GATE_OPEN);
	launch(100 * US);
	atomic_store(&claim.gate, LL_GATE_SHUT);
	give_visit(false);
	pass(1000 * MS);
	assert_true(claim.is_wanting);
	end();
}
