#include "base/parse.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

#include "test.h"

static struct ll_err err;

static uint64_t bytes(const char *text)
{
	uint64_t value = 0;
	assert_int_equal(ll_parse_bytes(text, &value, &err), 0);
	return value;
}

static uint64_t duration(const char *text)
{
	uint64_t value = 0;
	assert_int_equal(ll_parse_duration(text, &value, &err), 0);
	return value;
}

TEST(sizes_are_binary_with_or_without_ib)
{
	assert_int_equal(bytes("8G"), UINT64_C(1) << 33);
	assert_int_equal(bytes("8GiB"), UINT64_C(1) << 33);
	assert_int_equal(bytes("1K"), 1024);
	assert_int_equal(bytes("3MiB"), 3 << 20);
	assert_int_equal(bytes("2T"), UINT64_C(1) << 41);
	assert_int_equal(bytes("1.5G"), UINT64_C(3) << 29);
	assert_int_equal(bytes(".5K"), 512);
	assert_int_equal(bytes("0"), 0);
	assert_int_equal(bytes("20Gi"), UINT64_C(20) << 30);
	assert_int_equal(bytes("512mi"), 512 << 20);
	assert_int_equal(bytes("18446744073709551615B"), UINT64_MAX);
}

TEST(units_of_sizes_are_taken_in_either_case)
{
	assert_int_equal(bytes("2g"), UINT64_C(1) << 31);
	assert_int_equal(bytes("512m"), 512 << 20);
	assert_int_equal(bytes("1t"), UINT64_C(1) << 40);
	assert_int_equal(bytes("4k"), 4096);
	assert_int_equal(bytes("7b"), 7);
	assert_int_equal(bytes("1.5gib"), UINT64_C(3) << 29);
	assert_int_equal(bytes("3MIB"), 3 << 20);
}

TEST(a_unit_that_has_two_meanings_is_refused_with_what_to_write)
{
	static const struct {
		const char *text, *refusal;
	} rows[] = {
	    {"2GB", "'2GB': GB: write G or GiB"},     {"2gb", "'2gb': GB: write G or GiB"},
	    {"1.5Gb", "'1.5Gb': GB: write G or GiB"}, {"512MB", "'512MB': MB: write M or MiB"},
	    {"9kb", "'9kb': KB: write K or KiB"},     {"1TB", "'1TB': TB: write T or TiB"},
	    {"20", "'20': no unit: 20G or 20M?"},     {"16000", "'16000': no unit: 16000G or 16000M?"},
	    {"1.5", "'1.5': no unit: 1.5G or 1.5M?"},
	};
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		uint64_t value = 77;
		assert_int_equal(ll_parse_bytes(rows[i].text, &value, &err), -EINVAL);
		assert_string_equal(err.text, rows[i].refusal);
		assert_int_equal(value, 77);
	}
}

TEST(durations_take_every_unit_and_default_to_seconds)
{
	assert_int_equal(duration("500us"), 500000);
	assert_int_equal(duration("300ms"), 300000000);
	assert_int_equal(duration("5s"), UINT64_C(5000000000));
	assert_int_equal(duration("5"), UINT64_C(5000000000));
	assert_int_equal(duration("10m"), UINT64_C(600000000000));
	assert_int_equal(duration("2h"), UINT64_C(7200000000000));
	assert_int_equal(duration("1d"), UINT64_C(86400000000000));
	assert_int_equal(duration("1.5s"), UINT64_C(1500000000));
	assert_int_equal(duration("1."), UINT64_C(1000000000));
	assert_int_equal(duration("7ns"), 7);
}

TEST(durations_are_read_as_slurm_writes_them)
{
	static const char *const bad[] = {"1-",          "-1",    "1-24",      "1-12:60",
					  "1-12:00:60",  "12:00", "1:2:3:4",   "1-2:3:4:5",
					  "1-12:",       "1-12h", "12:00:00s", "99999999999999999999-0",
					  "4294967294-0"};
	assert_int_equal(duration("1-12:00:00"), UINT64_C(129600) * 1000000000);
	assert_int_equal(duration("1-12"), UINT64_C(129600) * 1000000000);
	assert_int_equal(duration("2-0:30"), UINT64_C(174600) * 1000000000);
	assert_int_equal(duration("36:00:05"), UINT64_C(129605) * 1000000000);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint64_t value = 77;
		assert_fails(ll_parse_duration(bad[i], &value, &err), -EINVAL, "not a time");
		assert_int_equal(value, 77);
	}
}

TEST(moments_are_those_of_the_calendar_and_the_clock)
{
	static const char *const bad[] = {
	    "2026-02-31 10:00", "2026-13-01 10:00",  "2026-12-00 10:00", "2026-12-12 24:00",
	    "2026-12-12 10:60", "2026-03-29 02:30",  "2026-12-12",       "22:00",
	    "2026-12-12 9:00",  "2026-12-12 10:00 ", " 2026-12-12 10:00"};
	int64_t at_s = 77;
	int minutes = 77;
	setenv("TZ", "CET-1CEST,M3.5.0,M10.5.0/3", 1);
	tzset();
	assert_int_equal(ll_parse_moment("2026-12-12 22:00", &at_s, &err), 0);
	assert_int_equal(at_s, 1797109200);
	assert_int_equal(ll_parse_moment("2026-07-12T22:00", &at_s, &err), 0);
	assert_int_equal(at_s, 1783886400);
	assert_int_equal(ll_parse_moment_or_day("2026-12-12", &at_s, &err), 0);
	assert_int_equal(at_s, 1797030000);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
		assert_int_equal(ll_parse_moment(bad[i], &at_s, &err), -EINVAL);
	assert_fails(ll_parse_moment_or_day("2026-02-29", &at_s, &err), -EINVAL, "there is no such moment");
	assert_int_equal(at_s, 1797030000);
	assert_int_equal(ll_parse_time_of_day("09:05", &minutes, &err), 0);
	assert_int_equal(minutes, 545);
	assert_fails(ll_parse_time_of_day("24:00", &minutes, &err), -EINVAL, "not a time of day");
	assert_fails(ll_parse_time_of_day("9:05", &minutes, &err), -EINVAL, "not a time of day");
	unsetenv("TZ");
}

TEST(readings_take_their_own_unit_only)
{
	double value = -1;
	assert_int_equal(ll_parse_percent("12.5%", &value, &err), 0);
	assert_true(value == 12.5);
	assert_int_equal(ll_parse_percent("25", &value, &err), 0);
	assert_true(value == 25);
	/* A share without its sign may be meant either way. */
	assert_fails(ll_parse_share("0.25", &value, &err), -EINVAL, "'0.25': 0.25 % or 25 %?");
	assert_string_equal(err.hint, "say 0.25% or 25%");
	assert_true(value == 25);
	assert_int_equal(ll_parse_share("0.25%", &value, &err), 0);
	assert_true(value == 0.25);
	assert_int_equal(ll_parse_share("0", &value, &err), 0);
	assert_int_equal(ll_parse_share("1.5", &value, &err), 0);
	assert_true(value == 1.5);
	assert_int_equal(ll_parse_watts("200W", &value, &err), 0);
	assert_true(value == 200);
	assert_int_equal(ll_parse_celsius("85C", &value, &err), 0);
	assert_true(value == 85);
	assert_fails(ll_parse_percent("25W", &value, &err), -EINVAL, "'25W': not a percentage");
	assert_fails(ll_parse_watts("200%", &value, &err), -EINVAL, "'200%': not a power");
	assert_fails(ll_parse_celsius("85F", &value, &err), -EINVAL, "'85F': not a temperature");
	assert_true(value == 85);
}

TEST(whole_numbers_respect_their_range)
{
	uint64_t value = 9;
	assert_int_equal(ll_parse_uint("0", 0, 3, &value, &err), 0);
	assert_int_equal(value, 0);
	assert_int_equal(ll_parse_uint("18446744073709551615", 0, UINT64_MAX, &value, &err), 0);
	assert_true(value == UINT64_MAX);
	assert_fails(ll_parse_uint("4", 0, 3, &value, &err), -EINVAL, "'4': not between 0 and 3");
	assert_fails(ll_parse_uint("18446744073709551616", 0, UINT64_MAX, &value, &err), -EINVAL, "not between");
	assert_fails(ll_parse_uint("1.0", 0, 3, &value, &err), -EINVAL, "not a whole number");
	assert_true(value == UINT64_MAX);
}

TEST(garbage_is_refused_and_nothing_is_written)
{
	static const char *const bad[] = {"",    "abc", "-5",  "+5",    " 5", "5 ",  "0x10", "1e3", "inf", "nan",
					  "5 s", "5G5", "..5", "1.2.3", ".",  "8gg", "8GBi", "1,5", "%",   "5%%"};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		uint64_t whole = 77;
		double real = 77;
		assert_fails(ll_parse_bytes(bad[i], &whole, &err), -EINVAL, "not a size");
		assert_fails(ll_parse_duration(bad[i], &whole, &err), -EINVAL, "not a time");
		assert_fails(ll_parse_percent(bad[i], &real, &err), -EINVAL, "not a percentage");
		assert_fails(ll_parse_uint(bad[i], 0, 100, &whole, &err), -EINVAL, "not a whole number");
		assert_int_equal(whole, 77);
		assert_true(real == 77);
	}
}

TEST(overflow_is_an_error_not_a_wrap)
{
	uint64_t value = 77;
	double real = 77;
	char digits[400];
	memset(digits, '9', sizeof digits - 1);
	digits[sizeof digits - 1] = '\0';
	assert_fails(ll_parse_bytes("16777216T", &value, &err), -EINVAL, "too large");
	assert_fails(ll_parse_bytes("18446744073709551616B", &value, &err), -EINVAL, "too large");
	assert_fails(ll_parse_duration("999999d999", &value, &err), -EINVAL, "not a time");
	assert_fails(ll_parse_duration("300000d", &value, &err), -EINVAL, "too large");
	assert_fails(ll_parse_percent(digits, &real, &err), -EINVAL, "too large");
	assert_int_equal(value, 77);
}
