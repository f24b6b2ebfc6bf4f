#include "notify/event_json.h"

#include <jansson.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { TIME_SIZE = 40, HOST_SIZE = 256 };

static json_t *text_or_null(const char *text)
{
	return text[0] ? json_string(text) : json_null();
}

static json_t *moment(uint64_t at_s)
{
	char text[TIME_SIZE] = "";
	time_t at = (time_t)at_s;
	struct tm parts;
	if (localtime_r(&at, &parts))
		strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S%z", &parts);
	return text_or_null(text);
}

static json_t *host_name(void)
{
	char name[HOST_SIZE] = "";
	gethostname(name, sizeof name - 1);
	return text_or_null(name);
}

static json_t *user_name(const struct ll_message_event *event)
{
	const struct passwd *user = event->flags & LL_EVENT_HAS_USER ? getpwuid(event->uid) : NULL;
	return user ? json_string(user->pw_name) : json_null();
}

static json_t *number_or_null(bool is_known, uint64_t number)
{
	return is_known ? json_integer((json_int_t)number) : json_null();
}

static json_t *make_object(const struct ll_message_event *event)
{
	bool has_card = event->flags & LL_EVENT_HAS_CARD;
	return json_pack("{s:s, s:o, s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:I}", "event", event->name,
			 "time", moment(event->at_s), "host", host_name(), "text", event->text, "job",
			 number_or_null(event->job != 0, event->job), "tenant", text_or_null(event->tenant), "uid",
			 number_or_null(event->flags & LL_EVENT_HAS_USER, event->uid), "user", user_name(event),
			 "command", text_or_null(event->command), "card",
			 number_or_null(has_card && event->card != UINT32_MAX, event->card), "slice",
			 number_or_null(has_card && event->slice >= 0, (uint64_t)event->slice), "uuid",
			 text_or_null(event->uuid), "dropped", (json_int_t)event->dropped);
}

char *ll_event_json(const struct ll_message_event *event)
{
	json_t *object = make_object(event);
	char *text = object ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	size_t length = text ? strlen(text) : 0;
	char *line = text ? realloc(text, length + 2) : NULL;
	if (!line) {
		free(text);
		return NULL;
	}
	line[length] = '\n';
	line[length + 1] = '\0';
	return line;
}
