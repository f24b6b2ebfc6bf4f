/*
 * parse.h - the values users write, strict: the whole text must be the value.
 *
 * Every function writes its result only on success and returns -EINVAL with "'abc': why"
 * otherwise; the caller wraps that with the option's name.
 */
#ifndef LOADLINE_BASE_PARSE_H
#define LOADLINE_BASE_PARSE_H

#include <stdint.h>

struct ll_err;

/* "8G" = "8g" = "8GiB" = 2^33; K M G T with or without iB, in either case; a bare number is bytes. Fractions ("1.5G")
 * are taken. "8GB", which may mean 10^9, is refused with what to write instead. */
int ll_parse_bytes(const char *text, uint64_t *ret_bytes, struct ll_err *err);

/* "500us" "300ms" "5s" "10m" "2h" "1d", also "1.5s"; a bare number is seconds. */
int ll_parse_duration(const char *text, uint64_t *ret_ns, struct ll_err *err);

/* "25%" or "25" or "12.5%": percent, anything finite >= 0; the caller checks the range. */
int ll_parse_percent(const char *text, double *ret_percent, struct ll_err *err);

/*
 * The same for a share of something, where 0.25 may be meant as a quarter: a number above 0 and below 1 needs its sign,
 * -EINVAL otherwise, with both readings.
 */
int ll_parse_share(const char *text, double *ret_percent, struct ll_err *err);

/* "200W" or "200": watts. */
int ll_parse_watts(const char *text, double *ret_watts, struct ll_err *err);

/* "85C" or "85": degrees Celsius. */
int ll_parse_celsius(const char *text, double *ret_celsius, struct ll_err *err);

/* Decimal, min..max. */
int ll_parse_uint(const char *text, uint64_t min, uint64_t max, uint64_t *ret_value, struct ll_err *err);

#endif
