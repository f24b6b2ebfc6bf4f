#include "protocol/message_queue.h"

#include "protocol/message.h"

enum { CARD_MAX = 1024, SIGNAL_END = 65 };

bool ll_admit_is_valid(const struct ll_message_admit *admit)
{
	return admit->job && ll_limits_are_valid(&admit->limits) && admit->card_count <= CARD_MAX &&
	       admit->signal < SIGNAL_END && ll_message_text_is_valid(admit->tenant, sizeof admit->tenant) &&
	       ll_message_text_is_valid(admit->command, sizeof admit->command) &&
	       ll_message_text_is_valid(admit->name, sizeof admit->name);
}

bool ll_admitted_is_valid(const struct ll_message_admitted *admitted)
{
	bool is_valid = admitted->card_count <= LL_QUEUE_CARDS_OF_JOB && ll_limits_are_valid(&admitted->limits) &&
			ll_message_text_is_valid(admitted->tenant, sizeof admitted->tenant);
	for (uint32_t i = 0; is_valid && i < admitted->card_count; i++)
		is_valid =
		    admitted->uuids[i][0] && ll_message_text_is_valid(admitted->uuids[i], sizeof admitted->uuids[i]);
	return is_valid;
}

static bool is_why_valid(const struct ll_queue_why_told *why)
{
	return ll_message_text_is_valid(why->of, sizeof why->of) &&
	       ll_message_text_is_valid(why->cards, sizeof why->cards);
}

bool ll_queued_is_valid(const struct ll_message_queued *queued)
{
	return is_why_valid(&queued->why);
}

bool ll_queue_row_is_valid(const struct ll_message_queue_row *row)
{
	return row->number && row->place_count <= LL_QUEUE_CARDS_OF_JOB &&
	       ll_message_text_is_valid(row->tenant, sizeof row->tenant) &&
	       ll_message_text_is_valid(row->command, sizeof row->command) && is_why_valid(&row->why) &&
	       ll_message_text_is_valid(row->name, sizeof row->name);
}
