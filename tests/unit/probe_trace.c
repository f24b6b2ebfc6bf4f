/* What a kernel wrote on the card, read into its account. */
#include "test.h"

#include <errno.h>

#include "probe/probe.h"

#define AT(us) (UINT64_C(5000000000) + (us)*UINT64_C(1000))

struct written {
	struct ll_probe_trace traces[4];
	struct ll_probe_block blocks[8];
	struct ll_probe_records records;
	struct ll_err err;
};

static struct written *make(uint32_t traces, uint32_t blocks)
{
	struct written *w = calloc(1, sizeof *w);
	assert_non_null(w);
	w->records = (struct ll_probe_records){
	    .traces = w->traces, .blocks = w->blocks, .trace_count = traces, .block_count = blocks};
	for (uint32_t i = 0; i < traces; i++)
		w->traces[i].step_ns = 64 - i;
	return w;
}

static void set_block(struct written *w, uint32_t i, uint64_t from_us, uint64_t to_us, uint32_t sm)
{
	w->blocks[i] = (struct ll_probe_block){.start_ns = AT(from_us), .end_ns = AT(to_us), .sm = sm, .is_done = 1};
}

static void add_gap(struct written *w, uint32_t trace, uint64_t at_us, uint64_t length_us)
{
	struct ll_probe_trace *t = &w->traces[trace];
	t->gaps[t->gap_count++] = (struct ll_probe_gap){.at_ns = AT(at_us), .length_ns = length_us * 1000};
	if (length_us * 1000 > t->max_gap_ns)
		t->max_gap_ns = length_us * 1000;
}

static struct ll_probe_kernel read(struct written *w)
{
	struct ll_probe_kernel kernel;
	assert_int_equal(ll_probe_kernel_read(&w->records, 3, &kernel, &w->err), 0);
	return kernel;
}

TEST(a_kernel_lasts_from_its_first_blocks_start_to_its_last_blocks_end)
{
	struct written *w = make(1, 3);
	set_block(w, 0, 10, 100, 7);
	set_block(w, 1, 5, 90, 0);
	set_block(w, 2, 12, 130, 7);
	struct ll_probe_kernel kernel = read(w);
	assert_int_equal(kernel.start_ns, AT(5));
	assert_int_equal(kernel.end_ns, AT(130));
	assert_int_equal(kernel.party, 3);
	assert_int_equal(kernel.sm_count, 2);
	assert_int_equal(kernel.sms[0], 1U << 7 | 1U);
	assert_int_equal(kernel.hole_count, 0);
	assert_int_equal(kernel.step_ns, 64);
	free(w);
}

TEST(an_interruption_is_a_hole_and_rounds_that_saw_the_same_one_make_one)
{
	struct written *w = make(2, 4);
	for (uint32_t i = 0; i < 4; i++)
		set_block(w, i, 0, 3000, i);
	add_gap(w, 0, 1000, 900);
	add_gap(w, 1, 1001, 901); /* another SM saw it a little later */
	struct ll_probe_kernel kernel = read(w);
	assert_int_equal(kernel.hole_count, 1);
	assert_int_equal(kernel.holes[0].at_ns, AT(1000));
	assert_int_equal(kernel.holes[0].length_ns, 902000);
	assert_true(kernel.holes[0].is_cut);
	assert_int_equal(kernel.max_gap_ns, 901000);
	assert_int_equal(kernel.step_ns, 63);
	free(w);
}

TEST(time_between_rounds_is_a_hole_that_interrupted_nothing)
{
	struct written *w = make(2, 4);
	set_block(w, 0, 0, 250, 0);
	set_block(w, 1, 0, 251, 1);
	set_block(w, 2, 1260, 1510, 0);
	set_block(w, 3, 1262, 1512, 1);
	struct ll_probe_kernel kernel = read(w);
	assert_int_equal(kernel.hole_count, 1);
	assert_false(kernel.holes[0].is_cut);
	assert_int_equal(kernel.holes[0].at_ns, AT(251));
	assert_int_equal(kernel.holes[0].length_ns, 1009000);
	free(w);
}

TEST(rounds_that_follow_at_once_leave_no_hole)
{
	struct written *w = make(2, 2);
	set_block(w, 0, 0, 250, 0);
	set_block(w, 1, 252, 500, 0);
	assert_int_equal(read(w).hole_count, 0);
	free(w);
}

TEST(holes_of_both_kinds_come_in_order)
{
	struct written *w = make(3, 3);
	set_block(w, 0, 0, 1000, 0);
	set_block(w, 1, 2000, 4000, 0);
	set_block(w, 2, 4001, 5000, 0);
	add_gap(w, 0, 400, 300);
	add_gap(w, 1, 3000, 500);
	struct ll_probe_kernel kernel = read(w);
	assert_int_equal(kernel.hole_count, 3);
	assert_int_equal(kernel.holes[0].at_ns, AT(400));
	assert_int_equal(kernel.holes[1].at_ns, AT(1000));
	assert_int_equal(kernel.holes[2].at_ns, AT(3000));
	assert_true(kernel.holes[0].is_cut && !kernel.holes[1].is_cut && kernel.holes[2].is_cut);
	free(w);
}

TEST(after_more_gaps_than_are_listed_nothing_is_known)
{
	struct written *w = make(1, 1);
	set_block(w, 0, 0, 1000000, 0);
	for (uint32_t i = 0; i < LL_PROBE_GAPS; i++)
		add_gap(w, 0, 100 + i * 100, 50);
	w->traces[0].gap_count = LL_PROBE_GAPS + 500;
	struct ll_probe_kernel kernel = read(w);
	assert_int_equal(kernel.hole_count, LL_PROBE_GAPS);
	const struct ll_probe_hole *last = &kernel.holes[LL_PROBE_GAPS - 1];
	assert_int_equal(last->at_ns + last->length_ns, kernel.end_ns);
	free(w);
}

TEST(what_cannot_be_is_an_error)
{
	struct ll_probe_kernel kernel;
	struct ll_err err;
	struct written *w = make(1, 2);
	set_block(w, 0, 0, 10, 0);
	assert_fails(ll_probe_kernel_read(&w->records, 0, &kernel, &err), -EIO, "block 1 of 2 wrote nothing");
	set_block(w, 1, 10, 5, 0);
	assert_fails(ll_probe_kernel_read(&w->records, 0, &kernel, &err), -EIO, "an end before its start");
	set_block(w, 1, 5, 10, 0);
	add_gap(w, 0, 9, 5);
	assert_fails(ll_probe_kernel_read(&w->records, 0, &kernel, &err), -EIO, "a gap outside of the kernel");
	w->traces[0].gaps[0].length_ns = UINT64_MAX - 5;
	assert_fails(ll_probe_kernel_read(&w->records, 0, &kernel, &err), -EIO, "a gap outside of the kernel");
	free(w);
}
