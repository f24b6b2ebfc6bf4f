#include "exporter/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"

/* loadlined may look up the groups of this user for 2 s. */
#define REPLY_NS (4 * LL_NS_PER_S)

static int read_replies(struct ll_figures *figures, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err)
{
	int rc = ll_metrics_sums_read(&figures->sums, client, deadline_ns, err);
	if (!rc)
		rc = ll_sensed_read(&figures->sensed, client, deadline_ns, err);
	if (!rc && !figures->sums.end.hides_others)
		rc = ll_client_list(client, &figures->list, deadline_ns, err);
	return rc;
}

static int read_for_page(struct ll_figures *figures, struct ll_client *client, uint64_t deadline_ns, struct ll_err *err)
{
	const struct ll_reply_rows queue[] = {{LL_MESSAGE_QUEUE_END, NULL, NULL},
					      {LL_MESSAGE_QUEUE_ROW, &figures->queued, &figures->queued_count},
					      {LL_MESSAGE_QUEUE_WINDOW, &figures->windows, &figures->window_count}};
	union ll_message request;
	struct ll_err why = {0};
	ll_message_init(&request, LL_MESSAGE_QUEUE);
	int rc = ll_client_ask(client, &request, queue, sizeof queue / sizeof *queue, deadline_ns, &why);
	if (rc && rc != -ENOENT) { /* ENOENT: there is no queue */
		*err = why;
		return rc;
	}
	figures->decisions = calloc(figures->sensed.card_count + 1, sizeof *figures->decisions);
	if (!figures->decisions)
		return ll_err_set(err, -ENOMEM, "loadlined: %s", strerror(ENOMEM));
	rc = 0;
	/* Where others are hidden, decisions are too. */
	for (size_t i = 0; i < figures->sensed.card_count && !rc && !figures->sums.end.hides_others; i++) {
		struct ll_figures_decisions *of_card = &figures->decisions[i];
		const struct ll_reply_rows rows[] = {{LL_MESSAGE_DECISIONS_END, NULL, NULL},
						     {LL_MESSAGE_DECISION, &of_card->rows, &of_card->count}};
		ll_message_init(&request, LL_MESSAGE_DECISIONS);
		memcpy(request.decisions.uuid, figures->sensed.cards[i].uuid, sizeof request.decisions.uuid);
		rc = ll_client_ask(client, &request, rows, sizeof rows / sizeof *rows, deadline_ns, err);
	}
	return rc;
}

int ll_figures_read(struct ll_figures *figures, const struct ll_place *place, bool for_page, struct ll_err *err)
{
	struct ll_client client = {.fd = -1};
	uint64_t begin_ns = ll_now_ns(), deadline_ns = begin_ns + REPLY_NS;
	*figures = (struct ll_figures){.sensed.end.silent_ns = UINT64_MAX};
	int rc = ll_client_open(&client, place, LL_CLIENT_COMMAND(LOADLINE_VERSION), deadline_ns, err);
	if (!rc)
		rc = read_replies(figures, &client, deadline_ns, err);
	if (!rc && for_page)
		rc = read_for_page(figures, &client, deadline_ns, err);
	figures->welcome = client.welcome;
	figures->is_up = !rc;
	figures->asked_ns = ll_now_ns() - begin_ns;
	ll_client_close(&client);
	return rc;
}

void ll_figures_fini(struct ll_figures *figures)
{
	for (size_t i = 0; figures->decisions && i < figures->sensed.card_count; i++)
		free(figures->decisions[i].rows);
	free(figures->decisions);
	free(figures->queued);
	free(figures->windows);
	ll_list_fini(&figures->list);
	ll_sensed_fini(&figures->sensed);
	ll_metrics_sums_fini(&figures->sums);
}

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
