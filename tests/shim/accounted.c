/* For the accounts: the shortest samples of kernels, and the moments at which the card worked for a job. And whether a
 * card is believed to take a program off. */
#include <string.h>

#include "shim/link/link.h"
#include "shim/link/port.h"
#include "shim/time/kernel_estimates.h"
#include "test.h"

#define MS UINT64_C(1000000)

TEST(the_second_shortest_sample_counts_and_each_kernel_has_its_own)
{
	static struct ll_shortest shortest;
	assert_int_equal(ll_shortest_ns(&shortest, 7), 0);
	ll_shortest_note(&shortest, 7, 500);
	assert_int_equal(ll_shortest_ns(&shortest, 7), 0);
	ll_shortest_note(&shortest, 7, 300);
	assert_int_equal(ll_shortest_ns(&shortest, 7), 500);
	ll_shortest_note(&shortest, 7, 400);
	ll_shortest_note(&shortest, 7, 900);
	ll_shortest_note(&shortest, 7, 0);
	assert_int_equal(ll_shortest_ns(&shortest, 7), 400);
	ll_shortest_note(&shortest, 8, 1000);
	ll_shortest_note(&shortest, 8, 1000);
	assert_int_equal(ll_shortest_ns(&shortest, 8), 1000);
	assert_int_equal(ll_shortest_ns(&shortest, 7), 400);
}

static unsigned count_bits(const struct ll_work_samples *samples)
{
	unsigned bits = 0;
	for (unsigned i = 0; i < LL_WORK_WORDS; i++)
		bits += (unsigned)__builtin_popcountll(samples->words[i] & LL_WORK_BITS);
	return bits;
}

TEST(time_that_another_process_of_the_job_has_noted_is_not_new)
{
	static struct ll_work_samples samples;
	assert_int_equal(ll_work_samples_add(&samples, 1000 * MS, 1010 * MS), 10 * MS);
	assert_int_equal(count_bits(&samples), 40);
	assert_int_equal(ll_work_samples_add(&samples, 1000 * MS, 1010 * MS), 0);
	assert_int_equal(ll_work_samples_add(&samples, 1005 * MS, 1025 * MS), 15 * MS);
	assert_int_equal(count_bits(&samples), 100);
	assert_int_equal(ll_work_samples_add(&samples, 1025 * MS, 1025 * MS), 0);
}

TEST(time_without_a_sample_and_time_before_the_reach_counts)
{
	static struct ll_work_samples samples;
	assert_int_equal(ll_work_samples_add(&samples, 1000 * MS, 1000 * MS + 1000), 1000);
	assert_int_equal(count_bits(&samples), 0);
	assert_int_equal(ll_work_samples_add(&samples, 1000 * MS, 9000 * MS), 8000 * MS);
	assert_in_range(count_bits(&samples), (LL_WORK_WORDS - 1) * LL_WORK_SAMPLES, LL_WORK_WORDS * LL_WORK_SAMPLES);
}

/* The number of a word is kept in 16 bits. */
TEST(a_word_of_an_earlier_time_is_begun_anew_and_one_of_a_later_time_is_left)
{
	static struct ll_work_samples samples;
	const uint64_t later_ns = 1000 * MS + LL_WORK_WORDS * LL_WORK_WORD_NS, around_ns = LL_WORK_WORD_NS << 16;
	ll_work_samples_add(&samples, 1000 * MS, 1001 * MS);
	ll_work_samples_add(&samples, later_ns, later_ns + MS);
	assert_int_equal(count_bits(&samples), 4);
	assert_int_equal(ll_work_samples_add(&samples, 1000 * MS, 1001 * MS), MS);
	assert_int_equal(ll_work_samples_add(&samples, later_ns, later_ns + MS), 0);
	assert_int_equal(ll_work_samples_add(&samples, later_ns + around_ns, later_ns + around_ns + MS), MS);
}

/* Off for 20 ms of each 40; the calls that let it on again last so long. Then a kernel ends, so long after the
 * beginning. */
static bool obeys_after(unsigned times, uint64_t call_ns, uint64_t (*end_ns)(unsigned i))
{
	static struct ll_claim claim;
	claim = (struct ll_claim){.off_lock = PTHREAD_MUTEX_INITIALIZER};
	for (unsigned i = 0; i < times && ll_port_obeys_off(&claim); i++) {
		uint64_t start_ns = (1000 + i * 40) * MS;
		ll_port_note_off(&claim, true, false, start_ns, start_ns);
		ll_port_note_off(&claim, false, false, start_ns + 20 * MS - call_ns, start_ns + 20 * MS);
		ll_port_note_end(&claim, start_ns + end_ns(i));
	}
	return ll_port_obeys_off(&claim);
}

static uint64_t ends_after(unsigned i)
{
	(void)i;
	return 30 * MS;
}

static uint64_t ends_amid(unsigned i)
{
	(void)i;
	return 10 * MS;
}

static uint64_t ends_amid_each_tenth(unsigned i)
{
	return i % 10 ? 30 * MS : 10 * MS;
}

TEST(a_card_that_takes_nothing_off_is_noticed_and_a_late_host_is_not_a_card_s_fault)
{
	assert_true(obeys_after(10000, 0, ends_after));
	assert_false(obeys_after(5, 0, ends_amid));
	assert_true(obeys_after(10000, 0, ends_amid_each_tenth));
	assert_true(obeys_after(10000, 12 * MS, ends_amid));
}
