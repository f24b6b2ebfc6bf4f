/* What is known of kinds of launches: how often one is timed, and what is made of it. */
#include "test.h"

#include "base/clock.h"
#include "shim/time/kernel_estimates.h"

#define US LL_NS_PER_US

static struct ll_kernel_estimates estimates;

static unsigned count_timed(struct ll_kernel_estimate *estimate, unsigned launches, uint64_t ns)
{
	unsigned timed = 0;
	for (unsigned i = 0; i < launches; i++, estimate->seen++) {
		if (!ll_kernel_estimate_wants_sample(&estimates, estimate))
			continue;
		ll_kernel_estimate_note_sample(&estimates, estimate);
		ll_kernel_estimate_learn_sample(estimate, ns);
		timed++;
	}
	return timed;
}

TEST(test_a_kind_is_timed_at_first_and_then_for_a_part_of_its_time)
{
	assert_in_range(count_timed(ll_kernel_estimates_find(&estimates, 1), 12800, 5 * US), 12800 / 400,
			8 + 12800 / 400 + 1);
	assert_in_range(count_timed(ll_kernel_estimates_find(&estimates, 2), 1200, 100 * US), 1200 / 20,
			8 + 1200 / 20 + 1);
	assert_int_equal(count_timed(ll_kernel_estimates_find(&estimates, 4), 100, 2000 * US), 100);
	assert_int_equal(ll_kernel_estimates_find(&estimates, 1)->ns, 5 * US);
	assert_int_equal(ll_kernel_estimates_find(&estimates, 4)->ns, 2000 * US);
}

TEST(test_a_doubt_has_each_kind_timed_once_more)
{
	struct ll_kernel_estimate *one = ll_kernel_estimates_find(&estimates, 5),
				  *other = ll_kernel_estimates_find(&estimates, 6);
	count_timed(one, 20, 3 * US);
	count_timed(other, 20, 3 * US);
	assert_false(ll_kernel_estimate_wants_sample(&estimates, one));
	ll_kernel_estimates_doubt(&estimates, other, 70 * US);
	assert_int_equal(other->ns, 70 * US);
	assert_int_equal(one->ns, 3 * US);
	assert_int_equal(count_timed(one, 5, 3 * US), 1);
	assert_int_equal(count_timed(other, 5, 70 * US), 5);
	ll_kernel_estimates_doubt(&estimates, other, 400 * US); /* a stranger was there */
	assert_int_equal(other->ns, 400 * US);
	assert_int_equal(count_timed(other, 1, 70 * US), 1);
	assert_int_equal(other->ns, 70 * US);
	ll_kernel_estimates_doubt(&estimates, NULL, 500 * US);
	assert_int_equal(one->ns, 3 * US);
	assert_true(ll_kernel_estimate_wants_sample(&estimates, one));
}

TEST(test_one_of_changing_length_counts_for_its_mean)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 9);
	ll_kernel_estimate_learn_sample(estimate, 100 * US);
	for (int i = 0; i < 200; i++)
		ll_kernel_estimate_learn_sample(estimate, 1000 * US);
	assert_in_range(estimate->ns, 980 * US, 1000 * US);
	for (int i = 0; i < 60; i++)
		ll_kernel_estimate_learn_queued(estimate, (i % 2 ? 100 : 300) * US);
	assert_in_range(estimate->ns, 150 * US, 250 * US);
}

TEST(test_rough_samples_count_until_there_is_a_better_one)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 11);
	for (int i = 0; i < 8; i++) {
		assert_true(ll_kernel_estimate_wants_sample(&estimates, estimate));
		ll_kernel_estimate_note_sample(&estimates, estimate);
		ll_kernel_estimate_learn_rough(estimate, (i % 2 ? 5 : 6) * US);
	}
	assert_false(ll_kernel_estimate_wants_sample(&estimates, estimate));
	assert_int_equal(estimate->ns, 11 * US / 2);
	ll_kernel_estimate_learn_sample(estimate, 4 * US);
	assert_int_equal(estimate->ns, 4 * US);
	ll_kernel_estimate_learn_rough(estimate, 6 * US);
	assert_int_equal(estimate->ns, 4 * US);
	ll_kernel_estimates_doubt(&estimates, estimate, 5 * US); /* then anything is better than what was known */
	ll_kernel_estimate_learn_rough(estimate, 6 * US);
	assert_int_equal(estimate->ns, 6 * US);
}

TEST(test_a_kind_of_which_no_sample_tells_anything_is_not_timed_each_time)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 31);
	unsigned timed = 0;
	for (unsigned i = 0; i < 10000; i++, estimate->seen++) {
		if (ll_kernel_estimate_wants_sample(&estimates, estimate)) {
			ll_kernel_estimate_note_sample(&estimates, estimate);
			timed++;
		}
	}
	assert_in_range(timed, 32, 60);
	ll_kernel_estimates_forget(&estimates); /* what comes now may tell more */
	assert_true(ll_kernel_estimate_wants_sample(&estimates, estimate));
}

/* A short kernel is seldom still at work when the event behind it comes. */
TEST(test_rough_samples_that_do_not_count_are_samples_all_the_same)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 30);
	unsigned timed = 0;
	for (unsigned i = 0; i < 10000; i++, estimate->seen++) {
		if (!ll_kernel_estimate_wants_sample(&estimates, estimate))
			continue;
		ll_kernel_estimate_note_sample(&estimates, estimate);
		if (timed++ < 3)
			ll_kernel_estimate_learn_sample(estimate, 3 * US);
		else
			ll_kernel_estimate_learn_rough(estimate, 9 * US);
	}
	assert_int_equal(estimate->ns, 3 * US);
	assert_in_range(timed, 15, 40); /* one in some 500 */
}

/* It waited for its code, or for others; so the first launches of a training step on a card were told as 1 ms and 29
 * us. */
TEST(test_the_first_one_does_not_count_if_it_was_far_longer)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 12);
	ll_kernel_estimate_learn_queued(estimate, 1067 * US);
	ll_kernel_estimate_learn_sample(estimate, 3 * US);
	assert_int_equal(estimate->ns, 3 * US);
	ll_kernel_estimate_learn_sample(estimate, 4 * US);
	assert_int_equal(estimate->ns, 7 * US / 2);
	assert_true(ll_kernel_estimate_is_steady(estimate));
	struct ll_kernel_estimate *rough = ll_kernel_estimates_find(&estimates, 13);
	ll_kernel_estimate_learn_rough(rough, 29 * US);
	ll_kernel_estimate_learn_rough(rough, 12 * US);
	assert_int_equal(rough->ns, 12 * US);
	struct ll_kernel_estimate *either =
	    ll_kernel_estimates_find(&estimates, 14); /* one of two lengths counts for their mean */
	ll_kernel_estimate_learn_sample(either, 15 * US);
	ll_kernel_estimate_learn_sample(either, 8 * US);
	assert_int_equal(either->ns, 23 * US / 2);
}

TEST(test_what_was_wrong_for_all_is_learned_anew)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 15);
	count_timed(estimate, 100, 6 * US);
	assert_false(ll_kernel_estimate_wants_sample(&estimates, estimate));
	ll_kernel_estimates_forget(&estimates);
	assert_int_equal(estimate->ns, 6 * US);
	count_timed(estimate, 1, 5 * US);
	assert_int_equal(estimate->ns, 5 * US);
}

/* Another program's work was in its way, for one. */
TEST(test_in_slices_the_shortest_but_one_of_the_first_tries_counts)
{
	static const uint64_t seen_ns[] = {2100 * US, 7 * US, 1 * US, 2105 * US, 6 * US};
	static const uint64_t then_ns[] = {2100 * US, 2100 * US, 7 * US, 7 * US, 6 * US};
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 21);
	for (unsigned i = 0; i < 5; i++) {
		assert_int_equal(ll_kernel_estimate_is_known(estimate), i >= 4);
		ll_kernel_estimate_learn_least(estimate, seen_ns[i]);
		assert_int_equal(estimate->ns, then_ns[i]);
	}
	for (unsigned i = 0; i < 100; i++)
		ll_kernel_estimate_learn_least(estimate, 6 * US);
	ll_kernel_estimate_learn_least(estimate, 2 * US);
	ll_kernel_estimate_learn_least(estimate, 2 * US);
	assert_int_equal(estimate->ns, 6 * US);
	ll_kernel_estimate_learn_sample(estimate, 8 * US);
	assert_int_equal(estimate->ns, 8 * US);
}

TEST(test_in_slices_little_that_was_known_before_counts_as_one_try)
{
	struct ll_kernel_estimate *little = ll_kernel_estimates_find(&estimates, 22),
				  *much = ll_kernel_estimates_find(&estimates, 23);
	ll_kernel_estimate_learn_rough(little, 2300 * US);
	assert_false(ll_kernel_estimate_is_sure(little));
	ll_kernel_estimate_learn_least(little, 6 * US);
	ll_kernel_estimate_learn_least(little, 7 * US);
	assert_int_equal(little->ns, 7 * US);
	for (unsigned i = 0; i < 8; i++)
		ll_kernel_estimate_learn_sample(much, 5 * US);
	assert_true(ll_kernel_estimate_is_sure(much) && ll_kernel_estimate_is_known(much));
}

TEST(test_a_single_long_one_counts_for_four)
{
	struct ll_kernel_estimate *estimate = ll_kernel_estimates_find(&estimates, 10);
	for (int i = 0; i < 40; i++)
		ll_kernel_estimate_learn_sample(estimate, 5 * US);
	ll_kernel_estimate_learn_sample(estimate, 600 * US);
	assert_in_range(estimate->ns, 5 * US, 5 * US + 4 * 5 * US / 32);
}

/* A training step has some hundred kinds: none may drive out another. */
TEST(test_hundreds_of_kinds_are_kept_and_beyond_them_the_newest)
{
	static const uint64_t steps[] = {1, 64, 4096, UINT64_C(0x9e3779b97f4a7c15) * 256};
	for (unsigned s = 0; s < 4; s++) {
		uint64_t first = UINT64_C(0x7f0000000000) + s * UINT64_C(1000003);
		unsigned kept = 0;
		for (unsigned i = 0; i < 300; i++)
			ll_kernel_estimate_learn_sample(ll_kernel_estimates_find(&estimates, first + i * steps[s]),
							50 * US);
		for (unsigned i = 0; i < 300; i++)
			kept += ll_kernel_estimates_find(&estimates, first + i * steps[s])->ns == 50 * US;
		assert_in_range(kept, 290, 300); /* a set of one more than its places loses all of them */
	}
	for (unsigned i = 0; i < 3 * LL_ESTIMATE_SETS * LL_ESTIMATE_WAYS; i++)
		ll_kernel_estimate_learn_sample(ll_kernel_estimates_find(&estimates, 1 + i), 50 * US);
	assert_int_equal(ll_kernel_estimates_find(&estimates, 3 * LL_ESTIMATE_SETS * LL_ESTIMATE_WAYS)->ns, 50 * US);
}
