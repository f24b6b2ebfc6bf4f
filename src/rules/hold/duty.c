#include "rules/hold/duty.h"

static double clamp_between(double x, double low, double high)
{
	return x < low ? low : x > high ? high : x;
}

void ll_duty_restart(struct ll_duty *duty, uint64_t now_ns)
{
	duty->credit_ns = 0;
	duty->last_ns = now_ns;
}

uint64_t ll_duty_next_ns(struct ll_duty *duty, uint64_t now_ns, double ratio, uint64_t longest_ns)
{
	if (now_ns > duty->last_ns) {
		duty->credit_ns += clamp_between(ratio, 0, 1) * (double)(now_ns - duty->last_ns);
		duty->last_ns = now_ns;
	}
	duty->credit_ns = clamp_between(duty->credit_ns, 0, (double)LL_DUTY_CREDIT_MAX_NS);
	if (duty->credit_ns < (double)LL_DUTY_KERNEL_MIN_NS)
		return 0;
	uint64_t length_ns = (uint64_t)clamp_between(duty->credit_ns, 0, (double)longest_ns);
	duty->credit_ns -= (double)length_ns;
	return length_ns;
}

void ll_duty_refund(struct ll_duty *duty, uint64_t unused_ns)
{
	duty->credit_ns = clamp_between(duty->credit_ns + (double)unused_ns, 0, (double)LL_DUTY_CREDIT_MAX_NS);
}

uint64_t ll_duty_fill_longest_ns(double ratio)
{
	return (uint64_t)clamp_between(1.5 * ratio * (double)LL_DUTY_FILL_PERIOD_NS, (double)LL_DUTY_KERNEL_MIN_NS,
				       (double)LL_DUTY_FILL_PERIOD_NS);
}
