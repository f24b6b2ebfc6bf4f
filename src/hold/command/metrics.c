#include "hold/command/internal.h"

#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/scope.h"
#include "hold/command/words.h"
#include "serve/http.h"
#include "serve/prometheus.h"

/* ---- metrics text ---- */

#ifndef LOADLINE_VERSION
#define LOADLINE_VERSION "unknown"
#endif

#define STALE_AFTER_NS (5 * LL_NS_PER_S)

static void add_labels(struct ll_strbuf *labels, const void *row)
{
	const struct ll_metrics_card *card = row;
	ll_prometheus_label(labels, "gpu", card->card->label);
	ll_prometheus_label(labels, "uuid", card->card->uuid);
	ll_prometheus_label(labels, "name", card->card->name);
	if (card->is_simulated)
		ll_prometheus_label(labels, "simulated", "true");
}

static void add_states(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count)
{
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	ll_prometheus_head(text, "loadline_state", "gauge", "1 for the present state of the hold, 0 for the others.");
	for (size_t i = 0; i < count; i++) {
		for (int state = LL_HOLD_RELEASED; state <= LL_HOLD_ENDED; state++) {
			bool is_it =
			    cards[i].has_event ? (int)cards[i].status.state == state : state == LL_HOLD_RELEASED;
			ll_strbuf_reset(&labels);
			add_labels(&labels, &cards[i]);
			ll_prometheus_label(&labels, "state", ll_hold_state_name((enum ll_hold_state)state));
			ll_prometheus_sample(text, "loadline_state", labels.buf, is_it);
		}
	}
}

#define FAMILY(name, type, help, value)                                                                                \
	LL_PROMETHEUS_FAMILY(text, &rows, struct ll_metrics_card, name, type, help, row->has_event ? (value) : NAN)

void ll_metrics_text(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count)
{
	const struct ll_prometheus_rows rows = {cards, count, add_labels};
	ll_prometheus_head(text, "loadline_build_info", "gauge", "1; the labels name the running build.");
	ll_strbuf_adds(text, "loadline_build_info{version=\"" LOADLINE_VERSION "\"} 1\n");
	FAMILY("loadline_util_ratio", "gauge", "NVML utilisation: share of time in which any kernel ran.",
	       row->status.util);
	FAMILY("loadline_own_util_ratio", "gauge", "Share of the same time in which the synthetic load ran.",
	       row->status.own_util);
	FAMILY("loadline_target_ratio", "gauge", "Target level of the held metric.",
	       row->metric == LL_METRIC_POWER ? NAN : row->status.target);
	FAMILY("loadline_target_watts", "gauge", "Target power.",
	       row->metric == LL_METRIC_POWER ? row->status.target : NAN);
	FAMILY("loadline_sm_ratio", "gauge", "GPM: share of SMs with work, over time.", row->status.sm);
	FAMILY("loadline_occupancy_ratio", "gauge", "GPM: share of warp slots in use, over SMs and time.",
	       row->status.occupancy);
	FAMILY("loadline_tensor_ratio", "gauge", "GPM: share of time in which the tensor pipes were active.",
	       row->status.tensor);
	FAMILY("loadline_dram_ratio", "gauge", "GPM: share of the memory bandwidth in use.", row->status.dram);
	FAMILY("loadline_power_watts", "gauge", "Power draw of the card.", row->status.power_watts);
	FAMILY("loadline_temperature_celsius", "gauge", "Temperature of the card.", row->status.temperature_c);
	FAMILY("loadline_memory_bytes", "gauge", "GPU memory of the synthetic load.", (double)row->status.memory_bytes);
	FAMILY("loadline_holding", "gauge", "1 while the synthetic load runs, 0 while it does not.",
	       row->status.state == LL_HOLD_HOLDING ? 1 : 0);
	FAMILY("loadline_synthetic_busy_seconds_total", "counter", "Time in which kernels of the synthetic load ran.",
	       (double)row->status.synthetic_busy_ns / 1e9);
	FAMILY("loadline_synthetic_joules_total", "counter", "Energy of the card while the synthetic load held it.",
	       row->status.synthetic_joules);
	FAMILY("loadline_energy_joules_total", "counter", "Energy of the card since the start of the hold.",
	       row->status.energy_joules);
	FAMILY("loadline_yielded_seconds_total", "counter",
	       "Time without load since the first load, and before it while other programs worked.",
	       row->status.yielded_seconds);
	FAMILY("loadline_yields_total", "counter", "Number of times that the synthetic load yielded to other work.",
	       (double)row->status.yields);
	add_states(text, cards, count);
}

bool ll_metrics_health(struct ll_strbuf *text, const struct ll_metrics_card *cards, size_t count, uint64_t now_ns)
{
	bool is_ok = true;
	for (size_t i = 0; i < count; i++) {
		const struct ll_metrics_card *card = &cards[i];
		uint64_t age_ns = now_ns > card->event_ns ? now_ns - card->event_ns : 0;
		const char *label = card->card->label;
		if (card->code < 0)
			ll_strbuf_addf(text, "card %s: ended: %s\n", label, strerror(-card->code));
		else if (age_ns >= STALE_AFTER_NS)
			ll_strbuf_addf(text, "card %s: no report for %.0f s\n", label, (double)age_ns / 1e9);
		is_ok = is_ok && card->code >= 0 && age_ns < STALE_AFTER_NS;
	}
	if (is_ok)
		ll_strbuf_adds(text, "ok\n");
	return is_ok;
}

/* ---- metrics ---- */

enum { MAX_CONNECTIONS = 32 };

struct ll_metrics {
	struct ll_http *http;
	size_t count;
	pthread_mutex_t lock;
	struct ll_metrics_card cards[]; /* guarded by the lock */
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
		ll_metrics_text(text, cards, metrics->count);
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
	struct ll_metrics *metrics = calloc(1, sizeof *metrics + count * sizeof metrics->cards[0]);
	if (!metrics)
		return ll_err_set(err, -ENOMEM, "metrics: out of memory");
	for (size_t i = 0; i < count; i++)
		metrics->cards[i] = (struct ll_metrics_card){.card = cards[i],
							     .metric = metric,
							     .is_simulated = ll_hold_is_simulated(cards[i]),
							     .event_ns = ll_now_ns()};
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
	free(metrics);
}
