/* Limits as users write them. */
#include <errno.h>

#include "cli/options/limit_words.h"
#include "test.h"

TEST(memory_is_a_size_or_none)
{
	uint64_t bytes = 1;
	struct ll_err err = {0};
	assert_int_equal(ll_limit_read_memory("20G", &bytes, &err), 0);
	assert_int_equal(bytes, UINT64_C(20) << 30);
	assert_int_equal(ll_limit_read_memory("1B", &bytes, &err), 0);
	assert_int_equal(bytes, 1);
	assert_int_equal(ll_limit_read_memory("none", &bytes, &err), 0);
	assert_int_equal(bytes, 0);
	bytes = 7;
	assert_fails(ll_limit_read_memory("0", &bytes, &err), -EINVAL, "--mem: '0': ");
	assert_string_not_equal(err.hint, "");
	assert_fails(ll_limit_read_memory("20", &bytes, &err), -EINVAL, "--mem: '20': no unit: 20G or 20M?");
	assert_fails(ll_limit_read_request("16000", &bytes, &err), -EINVAL, "--mem-request: '16000': no unit: ");
	assert_fails(ll_limit_read_memory("-5", &bytes, &err), -EINVAL, "--mem: '-5': ");
	assert_fails(ll_limit_read_memory("", &bytes, &err), -EINVAL, "--mem");
	assert_fails(ll_limit_read_memory("None", &bytes, &err), -EINVAL, "--mem");
	assert_int_equal(bytes, 7);
}

TEST(compute_is_a_share_in_permille_or_none)
{
	unsigned permille = 1;
	struct ll_err err = {0};
	assert_int_equal(ll_limit_read_compute("25%", &permille, &err), 0);
	assert_int_equal(permille, 250);
	assert_int_equal(ll_limit_read_compute("0.1%", &permille, &err), 0);
	assert_int_equal(permille, 1);
	assert_int_equal(ll_limit_read_compute("33.3%", &permille, &err), 0);
	assert_int_equal(permille, 333);
	assert_int_equal(ll_limit_read_compute("100%", &permille, &err), 0);
	assert_int_equal(permille, 1000);
	assert_int_equal(ll_limit_read_compute("none", &permille, &err), 0);
	assert_int_equal(permille, 0);
	permille = 7;
	static const char *const bad[] = {"0", "0.05%", "100.1%", "101", "-5", "abc", "", "5W", "nan"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_fails(ll_limit_read_compute(bad[i], &permille, &err), -EINVAL, "--compute: ");
	assert_int_equal(permille, 7);
}

TEST(weight_is_a_number_in_permille)
{
	unsigned permille = 1;
	struct ll_err err = {0};
	assert_int_equal(ll_limit_read_weight("2", &permille, &err), 0);
	assert_int_equal(permille, 2000);
	assert_int_equal(ll_limit_read_weight("0.01", &permille, &err), 0);
	assert_int_equal(permille, 10);
	assert_int_equal(ll_limit_read_weight("100", &permille, &err), 0);
	assert_int_equal(permille, 100000);
	permille = 7;
	static const char *const bad[] = {"0", "0.001", "100.1", "-1", "abc", "", "2%", "none", "inf"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_fails(ll_limit_read_weight(bad[i], &permille, &err), -EINVAL, "--weight: ");
	assert_int_equal(permille, 7);
}

TEST(slowdown_is_a_number_of_times_in_permille)
{
	unsigned permille = 1;
	struct ll_err err = {0};
	assert_int_equal(ll_limit_read_slowdown("1.3", &permille, &err), 0);
	assert_int_equal(permille, 1300);
	assert_int_equal(ll_limit_read_slowdown("1", &permille, &err), 0);
	assert_int_equal(permille, 1000);
	assert_int_equal(ll_limit_read_slowdown("10", &permille, &err), 0);
	assert_int_equal(permille, 10000);
	permille = 7;
	static const char *const bad[] = {"0", "0.99", "10.1", "-1", "abc", "", "130%", "none", "inf", "nan"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_fails(ll_limit_read_slowdown(bad[i], &permille, &err), -EINVAL, "--slowdown: ");
	assert_int_equal(permille, 7);
}
