#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "exporter/text.h"

static struct ll_exporter_reading *find_reading(struct ll_exporter_history *history, const char *uuid)
{
	for (size_t i = 0; i < history->count; i++) {
		if (strcmp(history->readings[i].uuid, uuid) == 0)
			return &history->readings[i];
	}
	return NULL;
}

static struct ll_exporter_reading *append_reading(struct ll_exporter_history *history, const char *uuid)
{
	struct ll_exporter_reading reading = {.util = NAN};
	memcpy(reading.uuid, uuid, sizeof reading.uuid);
	return ll_client_add_row(&history->readings, &history->count, &reading, sizeof reading)
		   ? NULL
		   : &history->readings[history->count - 1];
}

/* A report that was read before changes nothing. Counters that have gone back are those of another sensor. */
static void read_card(struct ll_exporter_reading *reading, const struct ll_message_sense_card *card)
{
	if (card->watched_ns == reading->watched_ns)
		return;
	bool is_next =
	    reading->watched_ns && card->watched_ns > reading->watched_ns && card->busy_ns >= reading->busy_ns;
	reading->util = NAN;
	if (is_next)
		reading->util = fmin(1, (double)(card->busy_ns - reading->busy_ns) /
					    (double)(card->watched_ns - reading->watched_ns));
	reading->watched_ns = card->watched_ns;
	reading->busy_ns = card->busy_ns;
}

int ll_exporter_history_add(struct ll_exporter_history *history, const struct ll_sensed *sensed)
{
	for (size_t i = 0; i < sensed->card_count; i++) {
		const struct ll_message_sense_card *card = &sensed->cards[i];
		struct ll_exporter_reading *reading = find_reading(history, card->uuid);
		if (!reading)
			reading = append_reading(history, card->uuid);
		if (!reading)
			return -ENOMEM;
		read_card(reading, card);
	}
	return 0;
}

void ll_exporter_history_fini(struct ll_exporter_history *history)
{
	free(history->readings);
	*history = (struct ll_exporter_history){0};
}
