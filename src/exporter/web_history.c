#include <math.h>
#include <stdio.h>
#include <string.h>

#include "exporter/web.h"

enum { STEP_S = 60 };
static const char *const names[LL_WEB_SERIES] = {"util", "synthetic", "memory"};

static struct ll_web_day *day_of(struct ll_web_history *history, const char *uuid)
{
	for (size_t i = 0; i < history->count; i++) {
		if (strcmp(history->days[i].uuid, uuid) == 0)
			return &history->days[i];
	}
	if (history->count == LL_WEB_CARDS)
		return NULL;
	struct ll_web_day *day = &history->days[history->count++];
	memset(day->percent, LL_WEB_UNKNOWN, sizeof day->percent);
	snprintf(day->uuid, sizeof day->uuid, "%s", uuid);
	return day;
}

/* Minutes without a reading are not known. A clock that was set back begins anew. */
static void go_on(struct ll_web_history *history, int64_t minute)
{
	int64_t passed = minute - history->minute;
	if (passed < 0 || passed > LL_WEB_MINUTES)
		passed = LL_WEB_MINUTES;
	for (size_t i = 0; i < history->count; i++) {
		struct ll_web_day *day = &history->days[i];
		for (int s = 0; s < LL_WEB_SERIES; s++) {
			for (int64_t back = 1; back <= passed; back++)
				day->percent[s][(minute - back) % LL_WEB_MINUTES] = LL_WEB_UNKNOWN;
			if (day->counts[s] && minute > history->minute && minute - history->minute <= LL_WEB_MINUTES)
				day->percent[s][history->minute % LL_WEB_MINUTES] =
				    (uint8_t)lround(day->sums[s] / day->counts[s]);
			day->sums[s] = day->counts[s] = 0;
		}
	}
	history->minute = minute;
}

void ll_web_history_add(struct ll_web_history *history, int64_t at_s, const char *uuid,
			const double percent[LL_WEB_SERIES])
{
	if (at_s / STEP_S != history->minute)
		go_on(history, at_s / STEP_S);
	struct ll_web_day *day = day_of(history, uuid);
	for (int s = 0; day && s < LL_WEB_SERIES; s++) {
		if (isnan(percent[s]))
			continue;
		day->sums[s] += fmin(fmax(percent[s], 0), 100);
		day->counts[s]++;
	}
}

static json_t *values_of(const struct ll_web_history *history, const uint8_t *percent)
{
	json_t *values = json_array();
	for (int64_t minute = history->minute - LL_WEB_MINUTES; minute < history->minute; minute++) {
		uint8_t value = minute < 0 ? LL_WEB_UNKNOWN : percent[minute % LL_WEB_MINUTES];
		if (value != LL_WEB_UNKNOWN)
			json_array_append_new(values, json_integer(value));
		else if (json_array_size(values)) /* it begins with what is known */
			json_array_append_new(values, json_null());
	}
	return values;
}

json_t *ll_web_history_json(const struct ll_web_history *history)
{
	json_t *cards = json_object();
	for (size_t i = 0; i < history->count; i++) {
		json_t *card = json_object();
		for (int s = 0; s < LL_WEB_SERIES; s++)
			json_object_set_new(card, names[s], values_of(history, history->days[i].percent[s]));
		json_object_set_new(cards, history->days[i].uuid, card);
	}
	return json_pack("{s:I, s:i, s:o}", "end", (json_int_t)history->minute * STEP_S, "step", STEP_S, "cards",
			 cards);
}

void ll_web_history_read(struct ll_web_history *history, const json_t *json, int64_t now_s)
{
	int64_t end = json_integer_value(json_object_get(json, "end")) / STEP_S, now = now_s / STEP_S;
	const char *uuid;
	json_t *card;
	if (json_integer_value(json_object_get(json, "step")) != STEP_S || end > now || end <= now - LL_WEB_MINUTES)
		return;
	history->minute = end;
	json_object_foreach(json_object_get(json, "cards"), uuid, card)
	{
		struct ll_web_day *day = strlen(uuid) < sizeof day->uuid ? day_of(history, uuid) : NULL;
		for (int s = 0; day && s < LL_WEB_SERIES; s++) {
			const json_t *values = json_object_get(card, names[s]);
			size_t count = json_array_size(values);
			for (size_t i = 0; i < count && count <= LL_WEB_MINUTES; i++) {
				const json_t *value = json_array_get(values, i);
				json_int_t percent = json_integer_value(value);
				if (json_is_integer(value) && percent >= 0 && percent <= 100)
					day->percent[s][(end - (int64_t)(count - i)) % LL_WEB_MINUTES] =
					    (uint8_t)percent;
			}
		}
	}
}
