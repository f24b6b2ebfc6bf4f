#include "cli/hold/metrics.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "cli/hold/metrics_text.h"
#include "cli/hold/words.h"
#include "serve/http.h"

enum { MAX_CONNECTIONS = 32 };

struct ll_metrics {
	struct ll_http *http;
	enum ll_metric metric;
	size_t count;
	pthread_mutex_t lock;
	struct ll_metrics_card *cards; /* guarded by the lock */
};

/* ---- what is known ---- */

void ll_metrics_event(struct ll_metrics *metrics, const struct ll_event *event, size_t slot)
{
	LL_SCOPE_LOCK(&metrics->lock);
	struct ll_metrics_card *card = &metrics->cards[slot];
	card->status = event->status;
	card->has_event = true;
	card->event_ns = ll_now_ns();
	if (event->kind == LL_EVENT_SUMMARY)
		card->code = event->code;
}

/* ---- answers; in the server's thread ---- */

/* Copies the cards, so that events need not wait while the text is made. NULL: out of memory. */
static struct ll_metrics_card *copy_cards(struct ll_metrics *metrics)
{
	struct ll_metrics_card *cards = calloc(metrics->count ? metrics->count : 1, sizeof *cards);
	if (!cards)
		return NULL;
	LL_SCOPE_LOCK(&metrics->lock);
	for (size_t i = 0; i < metrics->count; i++)
		cards[i] = metrics->cards[i];
	return cards;
}

static bool write_metrics(void *data, struct ll_strbuf *text)
{
	struct ll_metrics *metrics = data;
	LL_SCOPE_FREE struct ll_metrics_card *cards = copy_cards(metrics);
	if (cards)
		ll_metrics_text(text, metrics->metric, cards, metrics->count);
	return cards;
}

static bool write_health(void *data, struct ll_strbuf *text)
{
	struct ll_metrics *metrics = data;
	LL_SCOPE_FREE struct ll_metrics_card *cards = copy_cards(metrics);
	if (cards)
		return ll_metrics_health(text, cards, metrics->count, ll_now_ns());
	ll_strbuf_adds(text, "out of memory\n");
	return false;
}

/* ---- coming and going ---- */

int ll_metrics_new(const char *address, enum ll_metric metric, const struct ll_card *const *cards, size_t count,
		   struct ll_metrics **ret_metrics, struct ll_err *err)
{
	struct ll_metrics *metrics = calloc(1, sizeof *metrics);
	struct ll_metrics_card *states = calloc(count ? count : 1, sizeof *states);
	if (!metrics || !states) {
		free(metrics);
		free(states);
		return ll_err_set(err, -ENOMEM, "metrics: out of memory");
	}
	for (size_t i = 0; i < count; i++)
		states[i] = (struct ll_metrics_card){
		    .card = cards[i], .is_simulated = ll_hold_is_simulated(cards[i]), .event_ns = ll_now_ns()};
	metrics->metric = metric;
	metrics->cards = states;
	metrics->count = count;
	pthread_mutex_init(&metrics->lock, NULL);
	struct ll_http_config config = {.address = address,
					.metrics = write_metrics,
					.health = write_health,
					.data = metrics,
					.most_connections = MAX_CONNECTIONS};
	int rc = ll_http_new(&config, &metrics->http, err);
	if (rc < 0) {
		ll_metrics_free(metrics);
		return rc;
	}
	*ret_metrics = metrics;
	return 0;
}

unsigned ll_metrics_port(const struct ll_metrics *metrics)
{
	return ll_http_port(metrics->http);
}

void ll_metrics_free(struct ll_metrics *metrics)
{
	if (!metrics)
		return;
	ll_http_free(metrics->http);
	pthread_mutex_destroy(&metrics->lock);
	free(metrics->cards);
	free(metrics);
}
