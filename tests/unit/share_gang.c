/* Jobs on two cards at once, on a simulated clock: they have their turns together, and their shares all the same. */
#include "test.h"

#include "daemon/arbiter/gang.h"
#include "rules/share/visits.h"
#include "share_card.h"

enum { CARDS = 2, JOBS = 2 };

static struct card *cards[CARDS]; /* the job of the same number is the program of that number */
static struct program *members[CARDS][JOBS];
static uint64_t now_ns;

static void set_now(uint64_t ns)
{
	now_ns = cards[0]->now_ns = cards[1]->now_ns = ns;
}

static void join(unsigned card, unsigned job, unsigned weight_permille)
{
	struct program *member = add(cards[card], LL_PRIORITY_NORMAL, weight_permille, 0);
	member->job->id = 1 + job;
	members[card][job] = member;
}

static void leave(unsigned card, unsigned job)
{
	end(cards[card], members[card][job]);
	members[card][job] = NULL;
}

/* Kernels of a step that begin when they may; on the second card each job goes first when it has the first. */
static void step_all(bool is_gang)
{
	set_now(now_ns + STEP_NS);
	for (unsigned card = 0; card < CARDS; card++) {
		for (unsigned job = 0; job < JOBS; job++) {
			struct program *member = members[card][job];
			if (!member)
				continue;
			if (is_gang && card > 0 && members[0][job] && has_turn(members[0][job]))
				member->job->gang_turn_until_ns = now_ns + LL_SHARE_GANG_TURN_NS;
			if (look(cards[card], member)->may_launch)
				use(member, STEP_NS);
		}
	}
}

/* The part of ten seconds in which both cards were the same job's, in percent. */
static double together(bool is_gang)
{
	unsigned same = 0, steps = 100000;
	for (unsigned i = 0; i < steps; i++) {
		step_all(is_gang);
		same += has_turn(members[0][0]) == has_turn(members[1][0]);
	}
	return 100.0 * same / steps;
}

static void begin(unsigned weight_permille)
{
	memset(members, 0, sizeof members);
	for (unsigned card = 0; card < CARDS; card++)
		cards[card] = fresh_card();
	set_now(LL_NS_PER_S);
	join(0, 0, 1000);
	join(0, 1, weight_permille);
	for (unsigned i = 0; i < 137; i++) /* the other card is at another point of its turns */
		step_all(false);
	join(1, 1, weight_permille);
	join(1, 0, 1000);
}

static void finish(void)
{
	for (unsigned card = 0; card < CARDS; card++) {
		void *old = cards[card];
		assert_int_equal(card_teardown(&old), 0);
	}
}

static double share(unsigned card)
{
	double first = (double)members[card][0]->used_ns, second = (double)members[card][1]->used_ns;
	return 100 * first / (first + second);
}

TEST(they_have_their_turns_together)
{
	begin(1000);
	assert_true(together(true) > 95);
	for (unsigned card = 0; card < CARDS; card++)
		assert_true(share(card) > 49 && share(card) < 51);
	finish();
}

TEST(by_weight_too)
{
	begin(3000);
	assert_true(together(true) > 95);
	for (unsigned card = 0; card < CARDS; card++)
		assert_true(share(card) > 24 && share(card) < 26);
	finish();
}

/* One of them is on the second card alone: it gets its share there all the same. */
TEST(who_is_on_one_card_only_loses_nothing)
{
	begin(1000);
	leave(0, 1);
	members[1][0]->used_ns = members[1][1]->used_ns = 0;
	for (unsigned i = 0; i < 100000; i++)
		step_all(true);
	assert_true(share(1) > 49 && share(1) < 51);
	finish();
}

static struct ll_gang look_from_the_second(unsigned job, uint32_t launches)
{
	struct program *member = members[1][job];
	member->said.queued_launches = launches;
	post(cards[1], member);
	ll_share_look_first(&member->claim, members[0][job]->job, now_ns);
	return member->claim.gang;
}

static struct ll_turn_look look_on_the_first(unsigned job, uint64_t queued_ns, uint32_t launches)
{
	struct program *member = members[0][job];
	member->said.queued_launches = launches;
	member->said.queued_ns = queued_ns;
	return *look(cards[0], member);
}

/* The job that has the turn on the first card, used up; the other one waits for it. */
static unsigned find_ending(void)
{
	for (unsigned job = 0; job < JOBS; job++)
		look_from_the_second(job, 0);
	for (unsigned i = 0; i < 10000; i++) {
		step_all(false);
		set_now(now_ns + STEP_NS / 2); /* so that a quantum ends while it has work queued */
		for (unsigned job = 0; job < JOBS; job++) {
			look_on_the_first(job, LL_NS_PER_MS, 4);
			if (members[0][job]->claim.ending_since_ns)
				return job;
		}
	}
	fail();
	return 0;
}

TEST(a_turn_ends_on_all_cards_at_once)
{
	begin(1000);
	unsigned own = find_ending(), other = 1 - own;
	/* the first card has nothing left, the second has: not yet, and what that waits for may go */
	assert_true(look_from_the_second(own, 3).is_ending);
	struct ll_turn_look look = look_on_the_first(own, 0, 0);
	assert_true(look.is_holder);
	assert_false(look.may_launch);
	assert_int_equal(look.awaited.seen_ns, now_ns);
	assert_int_equal(look.awaited.launches, 3);
	/* the other way round */
	set_now(now_ns + STEP_NS);
	look_on_the_first(own, LL_NS_PER_MS, 2);
	struct ll_gang gang = look_from_the_second(own, 0);
	assert_int_equal(gang.work.seen_ns, now_ns);
	assert_int_equal(gang.work.launches, 2);
	/* nobody has anything left */
	set_now(now_ns + 2 * LL_GANG_FRESH_NS);
	look_on_the_first(other, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	assert_true(has_turn(members[0][other]));
	finish();
}

TEST(what_another_card_has_is_not_waited_for_longer_than_a_queue)
{
	begin(1000);
	unsigned own = find_ending();
	for (uint64_t waited_ns = 0; waited_ns < LL_VISIT_DRAIN_NS + STEP_NS; waited_ns += STEP_NS) {
		look_from_the_second(own, 3);
		look_on_the_first(1 - own, 0, 0);
		look_on_the_first(own, 0, 0);
		set_now(now_ns + STEP_NS);
	}
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	finish();
}

TEST(while_another_has_the_first_card_nothing_goes_where_it_works_too)
{
	begin(1000);
	unsigned holder = has_turn(members[0][1]);
	assert_false(look_from_the_second(holder, 1).yields_to_gang);
	assert_true(look_from_the_second(1 - holder, 1).yields_to_gang);
	/* it is on that card no more, but for a moment */
	rest(cards[1], members[1][holder]);
	assert_true(look_from_the_second(1 - holder, 1).yields_to_gang);
	set_now(now_ns + LL_GANG_PAUSE_NS);
	assert_false(look_from_the_second(1 - holder, 1).yields_to_gang);
	finish();
}

/* As for a claim on a card that is not its job's first. */
static void step_on_the_second(unsigned job)
{
	struct ll_gang gang = look_from_the_second(job, 0);
	struct program *member = members[1][job];
	bool may_launch = look(cards[1], member)->may_launch;
	if (may_launch && !gang.yields_to_gang && !gang.is_ending)
		use(member, STEP_NS);
}

/* It has a context on the first card, but works on the second alone: nothing of it waits for another card. */
TEST(who_rests_on_its_first_card_has_its_share_of_another)
{
	begin(1000);
	rest(cards[0], members[0][1]);
	set_now(now_ns + LL_GANG_PAUSE_NS);
	members[1][0]->used_ns = members[1][1]->used_ns = 0;
	for (unsigned i = 0; i < 100000; i++) {
		set_now(now_ns + STEP_NS);
		if (look_on_the_first(0, 0, 0).may_launch)
			use(members[0][0], STEP_NS);
		for (unsigned job = 0; job < JOBS; job++)
			step_on_the_second(job);
	}
	assert_true(share(1) > 49 && share(1) < 51);
	finish();
}

/* Nobody waits for it there: it goes on, and holds up no turn elsewhere. */
TEST(a_card_that_nobody_shares_goes_on_while_a_turn_ends_elsewhere)
{
	begin(1000);
	unsigned own = find_ending();
	leave(1, 1 - own);
	assert_false(look_from_the_second(own, 3).is_ending);
	look_on_the_first(1 - own, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	finish();
}

/* It has nothing left on the second card: nobody waits until what it said is old. */
TEST(what_was_said_of_work_is_taken_back_when_it_has_ended)
{
	begin(1000);
	unsigned own = find_ending();
	look_from_the_second(own, 3);
	set_now(now_ns + STEP_NS);
	look_from_the_second(own, 0);
	look_on_the_first(1 - own, 0, 0);
	assert_true(
	    look_on_the_first(own, 0, 0).is_holder); /* a third card may have something, and is about to say so */
	set_now(now_ns + STEP_NS);
	look_on_the_first(1 - own, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	finish();
}

TEST(what_another_card_said_since_is_not_taken_back)
{
	begin(1000);
	unsigned own = find_ending();
	look_from_the_second(own, 3);
	set_now(now_ns + STEP_NS);
	members[0][own]->job->others_busy_ns = now_ns;
	look_from_the_second(own, 0);
	set_now(now_ns + 2 * STEP_NS);
	look_on_the_first(1 - own, 0, 0);
	assert_true(look_on_the_first(own, 0, 0).is_holder);
	finish();
}

/* Else the two give the turn there to each other, again and again, until the former's call is old. */
TEST(a_turn_that_comes_to_another_comes_to_it_at_once_on_all_cards)
{
	begin(1000);
	unsigned own = find_ending(), other = 1 - own, changes = 0;
	uint64_t ahead_ns = 2 * LL_VISIT_QUANTUM_NS;
	for (unsigned job = 0; job < JOBS; job++)
		look_from_the_second(job, 0);
	use(members[1][other], ahead_ns);
	set_now(now_ns + STEP_NS);
	look_on_the_first(other, 0, 0);
	assert_false(look_on_the_first(own, 0, 0).is_holder);
	bool is_others = has_turn(members[1][other]);
	for (unsigned i = 0; i < 20; i++, set_now(now_ns + STEP_NS / 10)) {
		step_on_the_second(i % JOBS);
		changes += is_others != has_turn(members[1][other]);
		is_others = has_turn(members[1][other]);
	}
	assert_true(is_others);
	assert_true(changes <= 1);
	finish();
}

TEST(a_lower_class_leads_nobody)
{
	begin(1000);
	unsigned holder = has_turn(members[0][1]);
	look_from_the_second(holder, 0);
	assert_true(look_from_the_second(1 - holder, 0).yields_to_gang);
	for (unsigned card = 0; card < CARDS; card++)
		members[card][holder]->job->rank = LL_PRIORITY_LOW;
	assert_false(look_from_the_second(1 - holder, 0).yields_to_gang);
	finish();
}

/* Else a holder that may not launch, and so has the least, would keep the card from everybody. */
TEST(who_is_led_gives_its_turn_to_whoever_waits)
{
	begin(1000);
	unsigned holder = has_turn(members[1][1]);
	struct program *member = members[1][holder];
	assert_true(look(cards[1], member)->may_launch);
	member->claim.gang.yields_to_gang = true;
	assert_false(look(cards[1], member)->may_launch);
	assert_true(has_turn(members[1][1 - holder]));
	finish();
}

TEST(a_job_that_is_not_on_its_first_card_is_no_gang)
{
	begin(1000);
	look_from_the_second(0, 5);
	assert_false(ll_share_look_first(&members[1][0]->claim, NULL, now_ns));
	const struct ll_gang *gang = &members[1][0]->claim.gang;
	assert_false(gang->yields_to_gang || gang->is_ending || gang->work.seen_ns);
	assert_null(members[1][0]->job->first_card);
	finish();
}
