#include "test.h"

#include "rules/share/spans.h"

/* Sets over so many moments, each of which can be looked at. */
enum { MOMENTS = 64, ROUNDS = 3000, MOST_SPANS = 8 };

struct moments {
	bool is_in[MOMENTS];
};

static unsigned seed = 1;

static unsigned any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

/* The same set as spans, added in any order, and moment by moment. */
static void make_any(struct ll_spans *ret_spans, struct moments *ret_moments)
{
	*ret_spans = (struct ll_spans){0};
	*ret_moments = (struct moments){0};
	for (unsigned i = any(MOST_SPANS); i > 0; i--) {
		unsigned start = any(MOMENTS), end = start + any(MOMENTS + 1 - start);
		ll_spans_add(ret_spans, start, end);
		for (unsigned at = start; at < end; at++)
			ret_moments->is_in[at] = true;
	}
	ll_spans_settle(ret_spans);
}

static void assert_same(const struct ll_spans *spans, const struct moments *moments)
{
	uint64_t total = 0;
	size_t count = 0;
	for (unsigned at = 0; at < MOMENTS; at++) {
		bool begins = moments->is_in[at] && (at == 0 || !moments->is_in[at - 1]);
		total += moments->is_in[at];
		if (!begins)
			continue;
		assert_true(count < spans->count);
		assert_int_equal(spans->items[count].start_ns, at);
		unsigned end = at;
		while (end < MOMENTS && moments->is_in[end])
			end++;
		assert_int_equal(spans->items[count++].end_ns, end);
	}
	assert_int_equal(spans->count, count);
	assert_int_equal(ll_spans_total_ns(spans), total);
	assert_false(spans->failed);
}

TEST(test_a_set_is_what_was_put_in_it)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct ll_spans spans;
		struct moments moments;
		make_any(&spans, &moments);
		assert_same(&spans, &moments);
		ll_spans_fini(&spans);
	}
}

TEST(test_sets_are_joined_cut_and_taken_away_as_their_moments_are)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct ll_spans a, b, sum, both, rest;
		struct moments in_a, in_b, in_sum, in_both, in_rest;
		make_any(&a, &in_a);
		make_any(&b, &in_b);
		for (unsigned at = 0; at < MOMENTS; at++) {
			in_sum.is_in[at] = in_a.is_in[at] || in_b.is_in[at];
			in_both.is_in[at] = in_a.is_in[at] && in_b.is_in[at];
			in_rest.is_in[at] = in_a.is_in[at] && !in_b.is_in[at];
		}
		ll_spans_union(&a, &b, &sum);
		ll_spans_both(&a, &b, &both);
		ll_spans_without(&a, &b, &rest);
		assert_same(&sum, &in_sum);
		assert_same(&both, &in_both);
		assert_same(&rest, &in_rest);
		ll_spans_fini(&a);
		ll_spans_fini(&b);
		ll_spans_fini(&sum);
		ll_spans_fini(&both);
		ll_spans_fini(&rest);
	}
}

TEST(test_shared_time_is_that_of_two_sets_or_more)
{
	enum { SETS = 4 };
	for (int round = 0; round < ROUNDS; round++) {
		struct ll_spans spans[SETS];
		const struct ll_spans *sets[SETS];
		struct moments moments[SETS];
		uint64_t shared = 0;
		bool failed = true;
		for (int i = 0; i < SETS; i++) {
			make_any(&spans[i], &moments[i]);
			sets[i] = &spans[i];
		}
		for (unsigned at = 0; at < MOMENTS; at++) {
			int depth = 0;
			for (int i = 0; i < SETS; i++)
				depth += moments[i].is_in[at];
			shared += depth >= 2;
		}
		assert_int_equal(ll_spans_shared_ns(sets, SETS, &failed), shared);
		assert_false(failed);
		for (int i = 0; i < SETS; i++)
			ll_spans_fini(&spans[i]);
	}
}

/* kernels, communication, computation, copies, gate, host, io */
enum { CAUSES = 7 };

TEST(test_each_moment_of_a_window_has_one_cause)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct ll_spans spans[CAUSES];
		struct moments in[CAUSES];
		struct ll_idle_split split, wanted = {0};
		unsigned start = any(MOMENTS), end = start + any(MOMENTS + 1 - start);
		for (int i = 1; i < CAUSES; i++)
			make_any(&spans[i], &in[i]);
		ll_spans_union(&spans[1], &spans[2], &spans[0]);
		for (unsigned at = start; at < end; at++) {
			bool is_busy = in[1].is_in[at] || in[2].is_in[at];
			wanted.window_ns++;
			wanted.busy_ns += is_busy;
			wanted.communication_ns += in[1].is_in[at] && !in[2].is_in[at];
			if (is_busy)
				continue;
			uint64_t *parts[] = {&wanted.copies_ns, &wanted.gate_ns, &wanted.host_ns, &wanted.io_ns};
			int i = 3;
			while (i < CAUSES && !in[i].is_in[at])
				i++;
			*(i < CAUSES ? parts[i - 3] : &wanted.waiting_ns) += 1;
		}
		struct ll_idle_view view = {start,     end,       &spans[0], &spans[1], &spans[2],
					    &spans[3], &spans[4], &spans[5], &spans[6]};
		assert_true(ll_idle_make_split(&view, &split));
		assert_memory_equal(&split, &wanted, sizeof split);
		for (int i = 0; i < CAUSES; i++)
			ll_spans_fini(&spans[i]);
	}
}
