/*
 * Lending in model time: what is lent, who gives it back, and that nothing else happens.
 *
 * The model looks at its queue as loadlined does (src/daemon/queue/lend.c): what has left is away, due jobs claim their
 * room, sleepers come back, waiting jobs borrow. A borrower takes a step of time to leave.
 */
#include "rules/queue/lend.h"
#include "rules_queue.h"

TEST_EACH(set_up, tear_down);

enum { EVICTS = 1U << LL_LEND_EVICT, STOPS = 1U << LL_LEND_STOP };
#define STEP_NS UINT64_C(1000000000)

struct model {
	struct scene *scene;
	struct ll_lend lend;
	struct ll_lend_job jobs[JOBS]; /* of the running ones, made for each look */
	struct ll_lend_job kept[JOBS]; /* by number - 1: state and is_pooled */
	uint64_t asleep_ns[JOBS];      /* since when */
	unsigned recalls[JOBS];
	uint64_t now_ns;
	unsigned reclaims, victims, loans, requeues;
};

static void read_running(struct model *model)
{
	const struct ll_queue *queue = &model->scene->queue;
	for (size_t i = 0; i < queue->running_count; i++) {
		model->jobs[i] = model->kept[queue->jobs[i]->number - 1];
		model->jobs[i].job = queue->jobs[i];
	}
	model->lend.queue = queue;
	model->lend.jobs = model->jobs;
	model->lend.count = queue->running_count;
	model->lend.now_ns = model->now_ns;
}

static struct ll_lend_job *kept_of(struct model *model, const struct ll_queue_job *job)
{
	return &model->kept[job->number - 1];
}

static struct ll_queue_job *job_of(struct model *model, const struct ll_queue_job *job)
{
	return &model->scene->jobs[job->number - 1];
}

/* ---- what must hold ---- */

static uint64_t bytes_of(const struct scene *scene, const struct ll_queue_job *job, uint32_t card)
{
	return scene->groups[scene->cards[card].group].is_whole ? scene->cards[card].memory_bytes : job->memory_bytes;
}

static uint64_t lent_on_cards(const struct model *model)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < model->lend.count; i++) {
		const struct ll_lend_job *its = &model->lend.jobs[i];
		for (uint32_t card = 0; its->job->is_lent && its->state == LL_LEND_RUNS && card < CARDS; card++)
			bytes += its->job->planned.cards >> card & 1 ? bytes_of(model->scene, its->job, card) : 0;
	}
	return bytes;
}

/* No card has more on it, or promised, than it has; nothing is lent that cannot come back; limits count what is lent.
 */
static void check_cards(struct model *model)
{
	const struct scene *scene = model->scene;
	uint64_t pooled[CARDS] = {0};
	read_running(model);
	for (uint32_t card = 0; card < CARDS; card++) {
		uint64_t present = 0, promised = 0;
		for (size_t i = 0; i < model->lend.count; i++) {
			const struct ll_lend_job *its = &model->lend.jobs[i];
			uint64_t bytes = its->job->planned.cards >> card & 1 ? bytes_of(scene, its->job, card) : 0;
			present += its->state == LL_LEND_RUNS || its->state == LL_LEND_LEAVING ? bytes : 0;
			promised += its->state == LL_LEND_RUNS || its->state == LL_LEND_RESERVED ? bytes : 0;
			pooled[scene->cards[card].numa_node] += its->is_pooled ? bytes : 0;
			bool is_lent = its->job->is_lent && bytes;
			if (is_lent)
				assert_true(its->is_pooled ? model->lend.steps & EVICTS : model->lend.steps & STOPS);
		}
		assert_true(present <= scene->cards[card].memory_bytes);
		assert_true(promised <= scene->cards[card].memory_bytes);
	}
	for (unsigned node = 0; node < CARDS / 2; node++)
		assert_true(pooled[node] <= model->lend.pool_bytes / (CARDS / 2));
	for (uint32_t tenant = 0; tenant < TENANTS; tenant++) {
		uint64_t used = 0;
		for (size_t i = 0; i < model->lend.count; i++) {
			const struct ll_lend_job *its = &model->lend.jobs[i];
			if (its->job->tenant == tenant && its->state <= LL_LEND_RESERVED &&
			    !(its->job->planned.cards & 0x0f))
				used += its->job->memory_bytes * its->job->card_count;
		}
		assert_true(used <= scene->limits[tenant][PARTS].memory_bytes);
	}
}

/* ---- what loadlined does ---- */

static void recall_victims(struct model *model)
{
	for (size_t i = 0; i < model->lend.count; i++) {
		struct ll_lend_job *its = &model->lend.jobs[i];
		if (!its->step)
			continue;
		assert_true(its->job->is_lent && its->state == LL_LEND_RUNS);
		kept_of(model, its->job)->state = LL_LEND_LEAVING;
		model->recalls[its->job->number - 1]++;
		model->victims++;
	}
}

/* A claim lowers what is lent on the cards, or finds its room; each of its victims is needed. */
static void claim_room(struct model *model, struct ll_queue_job *job)
{
	read_running(model);
	uint64_t before = lent_on_cards(model);
	/* All that is lent can come back, so a start by the plan always gets its room. */
	assert_true(ll_lend_claim(&model->lend, job));
	unsigned victims = 0;
	for (size_t i = 0; i < model->lend.count; i++)
		victims += model->lend.jobs[i].step != LL_LEND_STAY;
	struct ll_lend_job chosen[JOBS];
	struct ll_queue_job there = *job;
	there.allowed = job->planned.cards;
	memcpy(chosen, model->jobs, sizeof chosen);
	for (size_t i = 0; i < model->lend.count; i++) {
		if (!chosen[i].step)
			continue;
		for (size_t k = 0; k < model->lend.count; k++)
			model->jobs[k].state = chosen[k].step && k != i ? LL_LEND_LEAVING : chosen[k].state;
		bool fits = (ll_lend_free_cards(&model->lend, &there) & job->planned.cards) == job->planned.cards;
		assert_true(!fits || model->jobs[i].job->tenant == job->tenant); /* or its tenant's limit is kept */
		memcpy(model->jobs, chosen, sizeof chosen);
	}
	recall_victims(model);
	read_running(model);
	model->reclaims += victims != 0;
	if (victims)
		assert_true(lent_on_cards(model) < before);
}

static void start_due(struct model *model)
{
	struct ll_queue *queue = &model->scene->queue;
	struct ll_queue_job *due;
	assert_int_equal(ll_queue_plan(queue, model->now_ns), 0);
	while ((due = ll_queue_due(queue, model->now_ns))) {
		read_running(model);
		uint64_t cards = ll_queue_start_among(queue, due, ll_lend_free_cards(&model->lend, due), model->now_ns);
		due->planned.cards = cards ? cards : due->planned.cards;
		claim_room(model, due);
		bool is_there = ll_lend_is_there(&model->lend, due);
		ll_queue_start(queue, due, model->now_ns);
		kept_of(model, due)->state = is_there ? LL_LEND_RUNS : LL_LEND_RESERVED;
	}
}

/* A borrower for whom the plan has room is one no more. If it sleeps, it claims that room. */
static void make_rightful(struct model *model)
{
	struct ll_queue *queue = &model->scene->queue;
	for (size_t i = 0; i < queue->running_count; i++) {
		struct ll_queue_job *job = queue->jobs[i], wanted = *job;
		struct ll_lend_job *its = kept_of(model, job);
		wanted.overtook = LL_QUEUE_NONE;
		if (!job->is_lent || its->state == LL_LEND_LEAVING ||
		    !ll_queue_may_change(queue, job, &wanted, model->now_ns))
			continue;
		if (its->state == LL_LEND_ASLEEP) {
			claim_room(model, job);
			its->state = ll_lend_is_there(&model->lend, job) ? LL_LEND_RUNS : LL_LEND_RESERVED;
		}
		job->is_lent = job->is_asleep = its->is_pooled = false;
		ll_queue_changed(queue);
	}
}

static void lend_room(struct model *model)
{
	struct ll_queue *queue = &model->scene->queue;
	for (size_t i = 0; i < queue->running_count; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		read_running(model);
		uint64_t pause_ns = ll_lend_pause_ns(model->recalls[job->number - 1]);
		if (kept_of(model, job)->state == LL_LEND_ASLEEP &&
		    model->now_ns - model->asleep_ns[job->number - 1] >= pause_ns &&
		    ll_lend_may_return(&model->lend, job)) {
			kept_of(model, job)->state = LL_LEND_RUNS;
			job->is_asleep = false;
		}
	}
	for (size_t i = queue->running_count; i < queue->count; i++) {
		struct ll_queue_job *job = queue->jobs[i];
		bool is_pooled = false;
		read_running(model);
		if (model->now_ns - model->asleep_ns[job->number - 1] <
		    ll_lend_pause_ns(model->recalls[job->number - 1]))
			continue;
		uint64_t cards = ll_lend_borrow(&model->lend, job, &is_pooled);
		if (!cards)
			continue;
		job->planned = (struct ll_queue_slot){model->now_ns, cards};
		job->is_lent = true;
		ll_queue_start(queue, job, model->now_ns);
		ll_queue_changed(queue);
		kept_of(model, job)->state = LL_LEND_RUNS;
		kept_of(model, job)->is_pooled = is_pooled;
		model->loans++;
	}
}

static void look(struct model *model)
{
	static const struct ll_queue_rules rules = {3, {LL_QUEUE_BY_GUARANTEE, LL_QUEUE_BY_FAIRSHARE, LL_QUEUE_BY_AGE}};
	struct ll_queue *queue = &model->scene->queue;
	for (size_t i = 0; i < queue->running_count;) {
		struct ll_queue_job *job = queue->jobs[i];
		struct ll_lend_job *its = kept_of(model, job);
		bool is_over = ll_queue_end_ns(job) <= model->now_ns && its->state == LL_LEND_RUNS;
		bool is_stopped = its->state == LL_LEND_LEAVING && !its->is_pooled;
		if (its->state == LL_LEND_LEAVING) {
			its->state = LL_LEND_ASLEEP;
			model->asleep_ns[job->number - 1] = model->now_ns;
			job->is_asleep = true;
		}
		if (is_over || is_stopped)
			ll_queue_remove(queue, job, model->now_ns);
		else
			i++;
		if (is_stopped) { /* it goes back into the queue */
			struct ll_queue_job *again = job_of(model, job);
			again->planned = (struct ll_queue_slot){0};
			again->is_lent = again->is_asleep = false;
			*kept_of(model, again) = (struct ll_lend_job){0};
			assert_int_equal(ll_queue_add(queue, again), 0);
			model->requeues++;
		}
	}
	for (size_t i = 0; i < queue->running_count; i++) {
		read_running(model);
		if (model->jobs[i].state == LL_LEND_RESERVED && ll_lend_is_there(&model->lend, queue->jobs[i]))
			kept_of(model, queue->jobs[i])->state = LL_LEND_RUNS;
	}
	ll_queue_charge(queue, model->now_ns, LL_QUEUE_NONE);
	ll_queue_arrange(queue, &rules, model->now_ns);
	assert_int_equal(ll_queue_plan(queue, model->now_ns), 0);
	make_rightful(model);
	start_due(model);
	lend_room(model);
	check_cards(model);
	model->now_ns += STEP_NS;
}

static struct model *model_of(struct scene *scene, uint32_t steps, uint64_t pool_gib)
{
	static struct model model;
	model = (struct model){.scene = scene, .lend = {.steps = steps, .pool_bytes = pool_gib * GIB}};
	return &model;
}

static enum ll_lend_state state_of(struct model *model, const struct ll_queue_job *job)
{
	return kept_of(model, job)->state;
}

/* ---- single rules ---- */

/* Only card 4 is there for shares: 80 GiB, of which the owners are guaranteed 60. */
static void use_one_card(struct scene *scene)
{
	for (uint32_t card = 5; card < CARDS; card++)
		add_interval(scene, card, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	scene->guarantees[OWNERS][PARTS].memory_bytes = 60 * GIB;
}

TEST_GIVEN(struct scene *scene, what_an_owner_leaves_idle_is_lent_and_comes_back_by_sleep)
{
	struct model *model = model_of(scene, EVICTS, 400);
	use_one_card(scene);
	struct ll_queue_job *guest = add_part(scene, GUESTS, 70, 1);
	look(model);
	assert_true(guest->is_running && guest->is_lent);
	struct ll_queue_job *owner = add_part(scene, OWNERS, 40, 1);
	look(model);
	assert_int_equal(state_of(model, guest), LL_LEND_LEAVING);
	assert_int_equal(state_of(model, owner), LL_LEND_RESERVED);
	struct ll_queue_job *third = add_part(scene, BORROWERS, 30, 1);
	look(model);
	assert_int_equal(state_of(model, guest), LL_LEND_ASLEEP);
	assert_int_equal(state_of(model, owner), LL_LEND_RUNS);
	assert_true(third->is_lent);
	ll_queue_remove(&scene->queue, owner, model->now_ns);
	ll_queue_remove(&scene->queue, third, model->now_ns);
	look(model);
	assert_int_equal(state_of(model, guest), LL_LEND_RUNS);
	assert_false(guest->is_asleep);
}

TEST_GIVEN(struct scene *scene, an_owner_that_finds_room_takes_nothing_back)
{
	struct model *model = model_of(scene, EVICTS, 400);
	use_one_card(scene);
	struct ll_queue_job *guest = add_part(scene, GUESTS, 40, 1);
	look(model);
	struct ll_queue_job *owner = add_part(scene, OWNERS, 40, 1);
	look(model);
	assert_int_equal(state_of(model, guest), LL_LEND_RUNS);
	assert_int_equal(state_of(model, owner), LL_LEND_RUNS);
}

TEST_GIVEN(struct scene *scene, an_owner_gets_the_card_without_borrowers)
{
	struct model *model = model_of(scene, EVICTS, 400);
	for (uint32_t card = 6; card < CARDS; card++)
		add_interval(scene, card, LL_QUEUE_NOBODY, 0, LL_QUEUE_NONE);
	scene->guarantees[OWNERS][PARTS].memory_bytes = 160 * GIB;
	struct ll_queue_job *guest = add_part(scene, GUESTS, 70, 1);
	look(model);
	struct ll_queue_job *owner = add_part(scene, OWNERS, 40, 1);
	look(model);
	assert_int_equal(state_of(model, guest), LL_LEND_RUNS);
	assert_int_equal(owner->planned.cards & guest->planned.cards, 0);
	assert_int_equal(state_of(model, owner), LL_LEND_RUNS);
}

TEST_GIVEN(struct scene *scene, memory_is_lent_only_if_it_can_come_back)
{
	bool is_pooled;
	struct model *model = model_of(scene, EVICTS, 4 * 30); /* 30 GiB for each node */
	use_one_card(scene);
	struct ll_queue_job *large = add_part(scene, GUESTS, 40, 1), *small = add_part(scene, GUESTS, 30, 1);
	read_running(model);
	assert_int_equal(ll_lend_borrow(&model->lend, large, &is_pooled), 0);
	assert_int_equal(ll_lend_borrow(&model->lend, small, &is_pooled), 1 << 4);
	assert_true(is_pooled);
	model->lend.steps |= STOPS;
	assert_int_equal(ll_lend_borrow(&model->lend, large, &is_pooled), 1 << 4);
	assert_false(is_pooled);
	model->lend.steps = 1U << LL_LEND_EVICT_IDLE;
	assert_int_equal(ll_lend_borrow(&model->lend, small, &is_pooled), 0);
}

TEST_GIVEN(struct scene *scene, a_claim_that_would_not_fit_touches_nobody)
{
	struct model *model = model_of(scene, EVICTS, 400);
	use_one_card(scene);
	add_part(scene, GUESTS, 30, 1);
	add_part(scene, BORROWERS, 40, 1);
	look(model);
	read_running(model);
	assert_int_equal(model->lend.count, 2);
	model->jobs[0].is_spared = true;
	struct ll_queue_job *owner = add_part(scene, OWNERS, 60, 1);
	owner->planned = (struct ll_queue_slot){model->now_ns, 1 << 4};
	assert_false(ll_lend_claim(&model->lend, owner));
	assert_int_equal(model->jobs[0].step | model->jobs[1].step, LL_LEND_STAY);
	model->jobs[0].is_spared = false;
	assert_true(ll_lend_claim(&model->lend, owner));
	assert_int_equal(model->jobs[0].step, LL_LEND_EVICT);
	assert_int_equal(model->jobs[1].step, LL_LEND_EVICT);
}

TEST_GIVEN(struct scene *scene, the_gentlest_step_and_no_more_borrowers_than_needed)
{
	struct model *model = model_of(scene, EVICTS | STOPS | 1U << LL_LEND_EVICT_IDLE, 400);
	use_one_card(scene);
	for (unsigned i = 0; i < 3; i++)
		add_part(scene, GUESTS, 25, 1);
	look(model);
	read_running(model);
	assert_int_equal(model->lend.count, 3);
	model->jobs[0].is_pooled = false;
	model->jobs[1].is_idle = true;
	struct ll_queue_job *owner = add_part(scene, OWNERS, 25, 1);
	owner->planned = (struct ll_queue_slot){model->now_ns, 1 << 4};
	assert_true(ll_lend_claim(&model->lend, owner));
	assert_int_equal(model->jobs[0].step, LL_LEND_STAY);
	assert_int_equal(model->jobs[1].step, LL_LEND_EVICT_IDLE);
	assert_int_equal(model->jobs[2].step, LL_LEND_STAY);
	owner->memory_bytes = 55 * GIB;
	assert_true(ll_lend_claim(&model->lend, owner));
	assert_int_equal(model->jobs[0].step, LL_LEND_STAY);
	assert_int_equal(model->jobs[2].step, LL_LEND_EVICT);
	owner->memory_bytes = 60 * GIB;
	assert_true(ll_lend_claim(&model->lend, owner));
	assert_int_equal(model->jobs[0].step, LL_LEND_STOP);
}

TEST_GIVEN(struct scene *scene, what_a_tenant_keeps_free_is_not_lent)
{
	bool is_pooled;
	const uint64_t keep_free_bytes[TENANTS] = {[OWNERS] = 20 * GIB};
	struct model *model = model_of(scene, EVICTS, 400);
	use_one_card(scene);
	model->lend.keep_free_bytes = keep_free_bytes;
	struct ll_queue_job *large = add_part(scene, GUESTS, 61, 1), *small = add_part(scene, GUESTS, 60, 1);
	read_running(model);
	assert_int_equal(ll_lend_borrow(&model->lend, large, &is_pooled), 0);
	assert_int_equal(ll_lend_borrow(&model->lend, small, &is_pooled), 1 << 4);
}

TEST_GIVEN(struct scene *scene, whole_cards_are_lent_and_a_limit_counts_what_is_borrowed)
{
	struct model *model = model_of(scene, EVICTS, 4 * 160);
	scene->limits[GUESTS][WHOLE].cards = 3;
	struct ll_queue_job *two = add_whole(scene, GUESTS, 2, 1), *more = add_whole(scene, GUESTS, 2, 1);
	look(model);
	assert_true(two->is_lent);
	assert_false(more->is_running);
	struct ll_queue_job *owner = add_whole(scene, OWNERS, 3, 1);
	look(model);
	assert_int_equal(state_of(model, two), LL_LEND_LEAVING);
	look(model);
	assert_int_equal(state_of(model, owner), LL_LEND_RUNS);
	assert_int_equal(state_of(model, two), LL_LEND_ASLEEP);
}

TEST_GIVEN(struct scene *scene, a_borrower_that_was_stopped_borrows_again_after_its_pause)
{
	struct model *model = model_of(scene, STOPS, 0);
	use_one_card(scene);
	struct ll_queue_job *guest = add_part(scene, GUESTS, 70, 1);
	look(model);
	assert_true(guest->is_lent);
	for (unsigned turn = 1; turn <= 3; turn++) {
		struct ll_queue_job *owner = add_part(scene, OWNERS, 40, 1);
		look(model);
		assert_int_equal(state_of(model, guest), LL_LEND_LEAVING);
		look(model);
		assert_true(!guest->is_running && !guest->is_lent);
		assert_int_equal(state_of(model, owner), LL_LEND_RUNS);
		ll_queue_remove(&scene->queue, owner, model->now_ns);
		for (unsigned i = 1; i < 1U << (turn - 1); i++) {
			look(model);
			assert_false(guest->is_running);
		}
		look(model);
		assert_true(guest->is_running && guest->is_lent);
	}
}

TEST(a_borrower_waits_twice_as_long_after_each_recall)
{
	assert_int_equal(ll_lend_pause_ns(0), 0);
	assert_int_equal(ll_lend_pause_ns(1), STEP_NS);
	assert_int_equal(ll_lend_pause_ns(2), 2 * STEP_NS);
	assert_int_equal(ll_lend_pause_ns(9), 256 * STEP_NS);
	assert_int_equal(ll_lend_pause_ns(1000), 256 * STEP_NS);
}

/* ---- properties ---- */

static uint64_t random_below(uint64_t *random, uint64_t below)
{
	*random = *random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (*random >> 33) % below;
}

static void make_policy(struct scene *scene, struct model *model, uint64_t *random)
{
	static const uint32_t steps[] = {EVICTS, STOPS, EVICTS | STOPS, 1U << LL_LEND_EVICT_IDLE | EVICTS};
	uint64_t left_gib = 4 * 80, whole = 4;
	for (unsigned i = 0; i < TENANTS; i++) {
		uint64_t gib = random_below(random, left_gib + 1), cards = random_below(random, whole + 1);
		left_gib -= gib;
		whole -= cards;
		scene->guarantees[i][PARTS].memory_bytes = gib * GIB;
		scene->guarantees[i][WHOLE].cards = cards;
		if (random_below(random, 3) == 0) {
			uint64_t most = gib + random_below(random, 100);
			scene->limits[i][PARTS].memory_bytes = most * GIB;
		}
	}
	model->lend.steps = steps[random_below(random, 4)];
	model->lend.pool_bytes = random_below(random, 700) * GIB;
}

TEST(a_thousand_random_policies_and_arrivals_miss_no_guarantee_and_lend_nothing_that_cannot_come_back)
{
	enum { POLICIES = 1000, LOOKS = 60 };
	unsigned reclaims = 0, loans = 0, victims = 0, requeues = 0;
	for (uint64_t seed = 1; seed <= POLICIES; seed++) {
		uint64_t random = seed;
		void *fixture;
		assert_int_equal(set_up(&fixture), 0);
		struct scene *scene = fixture;
		static struct model model;
		model = (struct model){.scene = scene};
		make_policy(scene, &model, &random);
		for (unsigned i = 0; i < LOOKS; i++) {
			while (scene->count < JOBS && random_below(&random, 2)) {
				uint32_t tenant = (uint32_t)random_below(&random, TENANTS);
				struct ll_queue_job facts = {.tenant = tenant,
							     .uid = tenant,
							     .card_count = 1 + (uint32_t)random_below(&random, 2),
							     .duration_ns = (1 + random_below(&random, 12)) * STEP_NS};
				if (random_below(&random, 4))
					facts.memory_bytes = (1 + random_below(&random, 80)) * GIB;
				add_job(scene, facts);
			}
			look(&model);
		}
		reclaims += model.reclaims;
		loans += model.loans;
		victims += model.victims;
		requeues += model.requeues;
		tear_down(&fixture);
	}
	print_message("%u loans, %u reclaims, %u borrowers recalled, %u of them started again\n", loans, reclaims,
		      victims, requeues);
	assert_true(loans > POLICIES && reclaims > POLICIES / 4 && requeues > POLICIES / 4);
}

/* Each sequence of DEPTH of these, on a card of 80 GiB with 60 guaranteed: two sizes of an owner's and of a guest's job
 * come, the first or the last running job ends, time passes. */
TEST(each_sequence_of_five_events_keeps_the_rules)
{
	enum { DEPTH = 5, EVENTS = 7 };
	unsigned sequences = 1, reclaims = 0;
	for (unsigned i = 0; i < DEPTH; i++)
		sequences *= EVENTS;
	for (unsigned sequence = 0; sequence < sequences; sequence++) {
		void *fixture;
		assert_int_equal(set_up(&fixture), 0);
		struct scene *scene = fixture;
		struct model *model = model_of(scene, EVICTS, 4 * 80);
		use_one_card(scene);
		for (unsigned i = 0, rest = sequence; i < DEPTH; i++, rest /= EVENTS) {
			const struct ll_queue *queue = &scene->queue;
			size_t at = rest % EVENTS == 4 ? 0 : queue->running_count - 1;
			if (rest % EVENTS < 4)
				add_part(scene, rest % EVENTS < 2 ? OWNERS : GUESTS, rest % 2 ? 60 : 25, 1);
			else if (rest % EVENTS < 6 && queue->running_count)
				ll_queue_remove(&scene->queue, job_of(model, queue->jobs[at]), model->now_ns);
			look(model);
		}
		reclaims += model->reclaims;
		/* Two steps later all that the plan has started runs. */
		look(model);
		look(model);
		for (size_t i = 0; i < scene->queue.count; i++) {
			const struct ll_queue_job *job = scene->queue.jobs[i];
			assert_true(job->is_running || job->planned.begin_ns >= model->now_ns);
			assert_true(!job->is_running || job->is_lent || state_of(model, job) == LL_LEND_RUNS);
		}
		tear_down(&fixture);
	}
	print_message("%u sequences, %u reclaims\n", sequences, reclaims);
	assert_true(reclaims > 0);
}

/* ---- demand that changes ---- */

enum { JOB_GIB = 8, JOBS_OF_CARD = 10 };
static const uint64_t guaranteed_gib[TENANTS] = {40, 24, 16};

/* What a tenant wants and has of the card. */
struct part {
	uint64_t wanted_gib, own_gib, borrowed_gib, asleep_gib;
};

struct demand {
	bool is_on[TENANTS], is_served[TENANTS];
	uint64_t asked_ns[TENANTS], longest_ns, used, wanted;
	struct part parts[TENANTS];
};

/* The tenant wants the whole card in jobs of 8 GiB, or nothing: then its jobs end. */
static void switch_demand(struct model *model, struct demand *demand, uint32_t tenant)
{
	struct scene *scene = model->scene;
	demand->is_on[tenant] = !demand->is_on[tenant];
	demand->is_served[tenant] = false;
	demand->asked_ns[tenant] = model->now_ns;
	for (unsigned i = 0; i < JOBS_OF_CARD; i++) {
		size_t at = tenant * JOBS_OF_CARD + i;
		struct ll_queue_job *job = &scene->jobs[at];
		if (!demand->is_on[tenant]) {
			ll_queue_remove(&scene->queue, job, model->now_ns);
			continue;
		}
		*job = (struct ll_queue_job){.number = at + 1,
					     .tenant = tenant,
					     .uid = tenant,
					     .card_count = 1,
					     .memory_bytes = JOB_GIB * GIB,
					     .duration_ns = 2 * HOUR_NS,
					     .allowed = 0xf0};
		model->kept[at] = (struct ll_lend_job){0};
		model->recalls[at] = 0;
		assert_int_equal(ll_queue_add(&scene->queue, job), 0);
	}
}

static void read_parts(struct model *model, struct demand *demand)
{
	memset(demand->parts, 0, sizeof demand->parts);
	for (uint32_t tenant = 0; tenant < TENANTS; tenant++)
		demand->parts[tenant].wanted_gib = demand->is_on[tenant] ? JOB_GIB * JOBS_OF_CARD : 0;
	read_running(model);
	for (size_t i = 0; i < model->lend.count; i++) {
		struct part *part = &demand->parts[model->jobs[i].job->tenant];
		enum ll_lend_state state = model->jobs[i].state;
		if (state == LL_LEND_LEAVING || state == LL_LEND_ASLEEP)
			part->asleep_gib += JOB_GIB;
		else if (state == LL_LEND_RUNS)
			*(model->jobs[i].job->is_lent ? &part->borrowed_gib : &part->own_gib) += JOB_GIB;
	}
}

static void judge_parts(struct demand *demand, uint64_t now_ns)
{
	uint64_t wanted = 0;
	for (uint32_t tenant = 0; tenant < TENANTS; tenant++) {
		const struct part *part = &demand->parts[tenant];
		bool has_it = !demand->is_on[tenant] || part->own_gib + part->borrowed_gib >= guaranteed_gib[tenant];
		/* Once it is served, it stays so. */
		assert_true(has_it || !demand->is_served[tenant]);
		demand->is_served[tenant] = has_it;
		uint64_t waited_ns = has_it ? 0 : now_ns - demand->asked_ns[tenant];
		demand->longest_ns = waited_ns > demand->longest_ns ? waited_ns : demand->longest_ns;
		demand->used += part->own_gib + part->borrowed_gib;
		wanted += part->wanted_gib;
	}
	demand->wanted += wanted < JOB_GIB * JOBS_OF_CARD ? wanted : JOB_GIB * JOBS_OF_CARD;
}

/* Each tenant changes its mind after so many seconds on average. record: a line for each second in which something has
 * changed; NULL: none. */
static void run_demand(unsigned mean_s, unsigned seconds, FILE *record)
{
	struct demand demand = {.used = 0};
	struct part before[TENANTS] = {{0}};
	uint64_t random = 1;
	void *fixture;
	assert_int_equal(set_up(&fixture), 0);
	struct scene *scene = fixture;
	struct model *model = model_of(scene, EVICTS, 400);
	use_one_card(scene);
	for (unsigned i = 0; i < TENANTS; i++)
		scene->guarantees[i][PARTS].memory_bytes = guaranteed_gib[i] * GIB;
	for (unsigned second = 0; second < seconds; second++) {
		for (uint32_t tenant = 0; tenant < TENANTS; tenant++) {
			if (random_below(&random, mean_s) == 0)
				switch_demand(model, &demand, tenant);
		}
		look(model);
		read_parts(model, &demand);
		judge_parts(&demand, model->now_ns);
		bool is_new = second == 0 || memcmp(before, demand.parts, sizeof before) != 0;
		for (uint32_t tenant = 0; record && is_new && tenant < TENANTS; tenant++) {
			const struct part *part = &demand.parts[tenant];
			fprintf(record, "%u,%u,%u,%u,%u,%u,%u\n", second, tenant, (unsigned)guaranteed_gib[tenant],
				(unsigned)part->wanted_gib, (unsigned)part->own_gib, (unsigned)part->borrowed_gib,
				(unsigned)part->asleep_gib);
		}
		memcpy(before, demand.parts, sizeof before);
	}
	tear_down(&fixture);
	print_message("longest wait %.0f s, used %.3f of what was wanted, %u reclaims\n",
		      (double)demand.longest_ns / 1e9, (double)demand.used / (double)demand.wanted, model->reclaims);
	assert_true(demand.longest_ns <= 2 * STEP_NS);
	assert_true((double)demand.used >= 0.95 * (double)demand.wanted);
}

TEST(three_tenants_have_their_guarantees_in_two_steps_and_the_card_is_used)
{
	run_demand(20, 600, NULL);
}

/* LEND_RECORD: the file of the record, for tools/make_lend_picture. */
TEST(an_hour_of_three_tenants)
{
	const char *path = getenv("LEND_RECORD");
	FILE *record = path ? fopen(path, "w") : NULL;
	assert_true(record || !path);
	if (record)
		fprintf(record, "second,tenant,guaranteed_gib,wanted_gib,own_gib,borrowed_gib,asleep_gib\n");
	run_demand(300, 3600, record);
	if (record)
		assert_int_equal(fclose(record), 0);
}
