/*
 * parse.h - reads values that users write. The whole text must be the value.
 *
 * Every function writes its result only on success. Otherwise it returns -EINVAL with "'abc': why", and the caller adds
 * the name of the option.
 */
#ifndef LOADLINE_BASE_PARSE_H
#define LOADLINE_BASE_PARSE_H

#include <stdint.h>

struct ll_err;

/* "8G" = "8g" = "8Gi" = "8GiB" = 2^33. K M G T with or without i or iB, in either case; B is bytes. Fractions ("1.5G")
 * are allowed. "8GB" may mean 10^9, and "8" is seldom 8 bytes, so these are refused, and the error says what to write
 * instead. "0" needs no unit. */
int ll_parse_bytes(const char *text, uint64_t *ret_bytes, struct ll_err *err);

/* "500us" "300ms" "5s" "10m" "2h" "1d", also "1.5s"; a bare number is seconds. As Slurm's users write it: days-hours,
 * days-hours:minutes, days-hours:minutes:seconds, hours:minutes:seconds. */
int ll_parse_duration(const char *text, uint64_t *ret_ns, struct ll_err *err);

/*
 * "2026-12-12 22:00", with a blank or a T, in the machine's time zone, as seconds since 1970. A day that is in no
 * calendar and a time that the clocks leave out are errors.
 */
int ll_parse_moment(const char *text, int64_t *ret_s, struct ll_err *err);

/* The same, or "2026-12-12" for the beginning of that day. */
int ll_parse_moment_or_day(const char *text, int64_t *ret_s, struct ll_err *err);

/* "22:00": minutes after midnight. */
int ll_parse_time_of_day(const char *text, int *ret_minutes, struct ll_err *err);

/* "25%" or "25" or "12.5%": percent, any finite number >= 0; the caller checks the range. */
int ll_parse_percent(const char *text, double *ret_percent, struct ll_err *err);

/*
 * The same for a share, where 0.25 may mean a quarter. A number above 0 and below 1 needs the percent sign. Without it
 * the result is -EINVAL, and the error names both readings.
 */
int ll_parse_share(const char *text, double *ret_percent, struct ll_err *err);

/* "200W" or "200": watts. */
int ll_parse_watts(const char *text, double *ret_watts, struct ll_err *err);

/* "85C" or "85": degrees Celsius. */
int ll_parse_celsius(const char *text, double *ret_celsius, struct ll_err *err);

/* Decimal, min..max. */
int ll_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct ll_err *err);

#endif
