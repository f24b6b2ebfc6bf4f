#include "protocol/message_metrics.h"

#include <math.h>

#include "protocol/message.h"

static bool is_amount(double value)
{
	return isfinite(value) && value >= 0;
}

bool ll_metrics_tenant_is_valid(const struct ll_message_metrics_tenant *row)
{
	return is_amount(row->granted_s) && is_amount(row->used_s) && is_amount(row->idle_held_s) &&
	       is_amount(row->memory_byte_s) && ll_message_text_is_valid(row->name, sizeof row->name);
}

bool ll_metrics_end_is_valid(const struct ll_message_metrics_end *end)
{
	return end->accounts <= LL_METRICS_ACCOUNTS_OFF && ll_message_text_is_valid(end->address, sizeof end->address);
}
