/* One word for how parties shared a card: timelines as cards make them, and timelines made to mislead. */
#include "test.h"

#include "probe/probe.h"
#include "probe_world.h"

enum { MANY = 128 };

static struct ll_verdict judge(const struct ll_probe_kernel *kernels, size_t count, size_t parties)
{
	struct ll_verdict verdict;
	assert_int_equal(ll_verdict_make(kernels, count, parties, &verdict), 0);
	return verdict;
}

static void assert_near(double value, double wanted, double within)
{
	if (value < wanted - within || value > wanted + within)
		fail_msg("%g is not within %g of %g", value, within, wanted);
}

/* Two rows of 1 ms kernels, the second `late_us` after the first. */
static size_t rows(struct ll_probe_kernel *kernels, size_t each, uint64_t late_us)
{
	for (size_t i = 0; i < each; i++) {
		kernels[i] = kernel_of(0, i * 1002, i * 1002 + 1000);
		kernels[each + i] = kernel_of(1, late_us + i * 1002, late_us + i * 1002 + 1000);
	}
	return 2 * each;
}

TEST(kernels_side_by_side_are_concurrent_and_a_late_start_counts)
{
	struct ll_probe_kernel *k = calloc(MANY, sizeof *k);
	struct ll_verdict verdict = judge(k, rows(k, 8, 0), 2);
	assert_int_equal(verdict.word, LL_PROBE_CONCURRENT_WORD);
	assert_near(verdict.overlap, 1, 0.001);
	verdict = judge(k, rows(k, 8, 400), 2);
	assert_int_equal(verdict.word, LL_PROBE_CONCURRENT_WORD);
	assert_near(verdict.overlap, 0.95, 0.001);
	assert_near(verdict.share, 7614. / (7614 + 7614 - 400), 0.03);
	free(k);
}

TEST(kernels_that_take_turns_without_a_hole_are_serialised)
{
	struct ll_probe_kernel k[MANY];
	for (uint32_t i = 0; i < 16; i++)
		k[i] = kernel_of(i % 2, i * 1001, i * 1001 + 1000);
	struct ll_verdict verdict = judge(k, 16, 2);
	assert_int_equal(verdict.word, LL_PROBE_SERIALISED);
	assert_near(verdict.overlap, 0, 0);
	assert_int_equal(verdict.handovers, 15);
	assert_int_equal(verdict.cuts, 0);
	assert_near(verdict.switch_ns.median, 1000, 1);
	assert_near(verdict.share, 0.53, 0.01);
}

TEST(the_end_of_one_row_beside_the_beginning_of_the_next_is_still_serialised)
{
	struct ll_probe_kernel k[MANY]; /* one hardware queue: depth first */
	for (uint32_t i = 0; i < 8; i++) {
		k[i] = kernel_of(0, i * 1001, i * 1001 + 1000);
		k[8 + i] = kernel_of(1, 7007 + i * 1001, 7007 + i * 1001 + 1000);
	}
	struct ll_verdict verdict = judge(k, 16, 2);
	assert_int_equal(verdict.word, LL_PROBE_SERIALISED);
	assert_near(verdict.overlap, 0.125, 0.001);
}

/* Two parties with long kernels, cut each slice_us; a switch takes switch_us. Each gets `turns`. */
static size_t slices(struct ll_probe_kernel *k, unsigned turns, uint64_t slice_us, uint64_t switch_us)
{
	uint64_t round_us = 2 * (slice_us + switch_us);
	for (uint32_t p = 0; p < 2; p++) {
		uint64_t start_us = p * (slice_us + switch_us);
		k[p] = kernel_of(p, start_us, start_us + (turns - 1) * round_us + slice_us);
		for (unsigned t = 0; t + 1 < turns; t++)
			interrupt(&k[p], start_us + t * round_us + slice_us, slice_us + 2 * switch_us);
	}
	return 2;
}

TEST(cut_kernels_are_time_sliced_with_slice_and_switch)
{
	struct ll_probe_kernel *k = calloc(2, sizeof *k);
	struct ll_verdict verdict = judge(k, slices(k, 6, 2090, 140), 2);
	assert_int_equal(verdict.word, LL_PROBE_TIME_SLICED);
	assert_near(verdict.slice_ns.median, 2090e3, 1);
	assert_near(verdict.switch_ns.median, 140e3, 1);
	/* The first span began without a switch and the last ends by itself: they are no slices. */
	assert_int_equal(verdict.slice_ns.count, 9);
	assert_int_equal(verdict.handovers, 11);
	assert_near(1 - (double)verdict.busy_ns / (double)verdict.window_ns, 11 * 140. / (12 * 2090 + 11 * 140), 1e-6);
	assert_int_equal(verdict.idle_ns, 140000);
	free(k);
}

TEST(one_short_kernel_each_is_time_sliced_by_the_hole_between_them)
{
	struct ll_probe_kernel k[] = {kernel_of(0, 0, 1000), kernel_of(1, 1130, 2130)};
	struct ll_verdict verdict = judge(k, 2, 2);
	assert_int_equal(verdict.word, LL_PROBE_TIME_SLICED);
	assert_int_equal(verdict.slice_ns.count, 0);
	assert_near(verdict.switch_ns.median, 130e3, 1);
	k[1] = kernel_of(1, 1002, 2002);
	assert_int_equal(judge(k, 2, 2).word, LL_PROBE_SERIALISED);
}

TEST(one_late_launch_among_many_hand_overs_is_not_a_switch)
{
	struct ll_probe_kernel k[MANY];
	uint64_t at_us = 0;
	for (uint32_t i = 0; i < 16; i++) {
		at_us += i == 5 ? 700 : 1; /* the host lost its core for a moment */
		k[i] = kernel_of(i % 2, at_us, at_us + 1000);
		at_us += 1000;
	}
	struct ll_verdict verdict = judge(k, 16, 2);
	assert_int_equal(verdict.word, LL_PROBE_SERIALISED);
	assert_int_equal(verdict.idle_ns, 700000);
}

TEST(a_stranger_that_interrupts_both_at_once_does_not_make_them_time_sliced)
{
	struct ll_probe_kernel *k = calloc(MANY, sizeof *k);
	size_t count = rows(k, 8, 0);
	for (size_t i = 0; i < count; i++)
		k[i].end_ns += i % 8 == 7 ? 3000 * US : 0;
	interrupt(&k[7], 7100, 3000);
	interrupt(&k[15], 7100, 3000);
	struct ll_verdict verdict = judge(k, count, 2);
	assert_int_equal(verdict.word, LL_PROBE_CONCURRENT_WORD);
	assert_int_equal(verdict.idle_ns, 3000 * US);
	free(k);
}

TEST(a_low_priority_kernel_that_waits_between_rounds_is_serialised)
{
	struct ll_probe_kernel *k = calloc(2, sizeof *k);
	k[0] = kernel_of(0, 252, 1252);
	k[1] = kernel_of(1, 0, 2005);
	interrupt(&k[1], 250, 1004);
	k[1].holes[0].is_cut = false;
	struct ll_verdict verdict = judge(k, 2, 2);
	assert_int_equal(verdict.word, LL_PROBE_SERIALISED);
	assert_int_equal(verdict.cuts, 0);
	assert_near(verdict.share, 1000. / 1250, 0.01);
	free(k);
}

TEST(sixteen_parties_are_told_apart)
{
	struct ll_probe_kernel *k = calloc(MANY, sizeof *k);
	for (uint32_t i = 0; i < 16; i++)
		k[i] = kernel_of(i, i, 1000 + i);
	struct ll_verdict verdict = judge(k, 16, 16);
	assert_int_equal(verdict.word, LL_PROBE_CONCURRENT_WORD);
	assert_near(verdict.overlap, (16000. - 1015) / 15000, 1e-6);
	for (uint32_t i = 0; i < 16; i++) /* in reverse: order of the records must not matter */
		k[15 - i] = kernel_of(i, 1140 * i, 1140 * i + 1000);
	verdict = judge(k, 16, 16);
	assert_int_equal(verdict.word, LL_PROBE_TIME_SLICED);
	assert_int_equal(verdict.handovers, 15);
	free(k);
}

TEST(nothing_and_one_party_alone_are_no_trouble)
{
	struct ll_probe_kernel k[] = {kernel_of(0, 0, 1000)};
	struct ll_verdict verdict = judge(k, 0, 2);
	assert_int_equal(verdict.window_ns, 0);
	assert_near(verdict.share, 0, 0);
	verdict = judge(k, 1, 1);
	assert_near(verdict.overlap, 0, 0);
	assert_int_equal(verdict.window_ns, 1000 * US);
	assert_int_equal(verdict.busy_ns, 1000 * US);
}

TEST(beyond_the_listed_holes_a_kernel_counts_for_nothing)
{
	struct ll_probe_kernel *k = calloc(2, sizeof *k);
	k[0] = kernel_of(0, 0, 1000000);
	for (uint32_t i = 0; i < LL_PROBE_GAPS; i++)
		interrupt(&k[0], 1000 + i * 2000, 1000);
	k[0].hole_count += 100;
	k[1] = kernel_of(1, 900000, 1000000);
	struct ll_verdict verdict = judge(k, 2, 2);
	assert_near(verdict.overlap, 0, 0);
	free(k);
}

TEST(the_word_of_a_cell_is_what_most_runs_say)
{
	struct ll_verdict runs[] = {
	    {.word = LL_PROBE_TIME_SLICED},
	    {.word = LL_PROBE_SERIALISED},
	    {.word = LL_PROBE_TIME_SLICED},
	};
	size_t agreeing;
	assert_int_equal(ll_verdicts_word(runs, 3, &agreeing), LL_PROBE_TIME_SLICED);
	assert_int_equal(agreeing, 2);
	assert_int_equal(ll_verdicts_word(runs, 2, &agreeing), LL_PROBE_SERIALISED);
	assert_int_equal(agreeing, 1);
	assert_string_equal(ll_probe_word_text(LL_PROBE_CONCURRENT_WORD), "concurrent");
	assert_string_equal(ll_probe_word_text(LL_PROBE_REFUSED), "refused");
}

TEST(a_spread_is_median_and_percentiles_between_samples)
{
	struct ll_samples samples = {0};
	assert_int_equal(ll_spread_of(&samples).count, 0);
	for (int i = 200; i >= 0; i--)
		ll_samples_add(&samples, i);
	struct ll_spread spread = ll_spread_of(&samples);
	assert_int_equal(spread.count, 201);
	assert_near(spread.median, 100, 1e-9);
	assert_near(spread.low, 10, 1e-9);
	assert_near(spread.high, 190, 1e-9);
	assert_near(spread.min, 0, 0);
	assert_near(spread.max, 200, 0);
	ll_samples_add(&samples, 1);
	ll_samples_add(&samples, 2);
	spread = ll_spread_of(&samples);
	assert_near(spread.median, 1.5, 1e-9);
}
