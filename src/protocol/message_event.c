#include "protocol/message_event.h"

#include "protocol/message.h"

bool ll_event_is_valid(const struct ll_message_event *event)
{
	return event->name[0] && event->slice >= -1 && ll_message_text_is_valid(event->name, sizeof event->name) &&
	       ll_message_text_is_valid(event->tenant, sizeof event->tenant) &&
	       ll_message_text_is_valid(event->command, sizeof event->command) &&
	       ll_message_text_is_valid(event->uuid, sizeof event->uuid) &&
	       ll_message_text_is_valid(event->hook, sizeof event->hook) &&
	       ll_message_text_is_valid(event->text, sizeof event->text);
}
