#include "cli/hold/metrics_text.h"

#include <math.h>
#include <string.h>

#include "base/clock.h"
#include "serve/prometheus.h"

#ifndef LOADLINE_VERSION
#define LOADLINE_VERSION "unknown"
#endif

#define STALE_AFTER_NS (5 * LL_NS_PER_S)

struct family {
	const char *name;
	const char *type;
	const char *help;
	double (*value)(enum ll_metric metric,
			const struct ll_metrics_card *card); /* returns NAN if the value is not known */
};

static double target_ratio(enum ll_metric metric, const struct ll_metrics_card *card)
{
	return metric == LL_METRIC_POWER ? NAN : card->status.target;
}

static double target_watts(enum ll_metric metric, const struct ll_metrics_card *card)
{
	return metric == LL_METRIC_POWER ? card->status.target : NAN;
}

#define FIELD(name, expression)                                                                                        \
	static double name(enum ll_metric metric, const struct ll_metrics_card *card)                                  \
	{                                                                                                              \
		(void)metric;                                                                                          \
		return expression;                                                                                     \
	}

FIELD(util, card->status.util)
FIELD(own_util, card->status.own_util)
FIELD(sm, card->status.sm)
FIELD(occupancy, card->status.occupancy)
FIELD(tensor, card->status.tensor)
FIELD(dram, card->status.dram)
FIELD(power, card->status.power_watts)
FIELD(temperature, card->status.temperature_c)
FIELD(memory, (double)card->status.memory_bytes)
FIELD(holding, card->status.state == LL_HOLD_HOLDING ? 1 : 0)
FIELD(busy, (double)card->status.synthetic_busy_ns / 1e9)
FIELD(synthetic_joules, card->status.synthetic_joules)
FIELD(energy, card->status.energy_joules)
FIELD(yielded, card->status.yielded_seconds)
FIELD(yields, (double)card->status.yields)

static const struct family families[] = {
    {"loadline_util_ratio", "gauge", "NVML utilisation: share of time in which any kernel ran.", util},
    {"loadline_own_util_ratio", "gauge", "Share of the same time in which the synthetic load ran.", own_util},
    {"loadline_target_ratio", "gauge", "Target level of the held metric.", target_ratio},
    {"loadline_target_watts", "gauge", "Target power.", target_watts},
    {"loadline_sm_ratio", "gauge", "GPM: share of SMs with work, over time.", sm},
    {"loadline_occupancy_ratio", "gauge", "GPM: share of warp slots in use, over SMs and time.", occupancy},
    {"loadline_tensor_ratio", "gauge", "GPM: share of time in which the tensor pipes were active.", tensor},
    {"loadline_dram_ratio", "gauge", "GPM: share of the memory bandwidth in use.", dram},
    {"loadline_power_watts", "gauge", "Power draw of the card.", power},
    {"loadline_temperature_celsius", "gauge", "Temperature of the card.", temperature},
    {"loadline_memory_bytes", "gauge", "GPU memory of the synthetic load.", memory},
    {"loadline_holding", "gauge", "1 while the synthetic load runs, 0 while it does not.", holding},
    {"loadline_synthetic_busy_seconds_total", "counter", "Time in which kernels of the synthetic load ran.", busy},
    {"loadline_synthetic_joules_total", "counter", "Energy of the card while the synthetic load held it.",
     synthetic_joules},
    {"loadline_energy_joules_total", "counter", "Energy of the card since the start of the hold.", energy},
    {"loadline_yielded_seconds_total", "counter",
     "Time without load since the first load, and before it while other programs worked.", yielded},
    {"loadline_yields_total", "counter", "Number of times that the synthetic load yielded to other work.", yields},
};

static void add_labels(struct ll_strbuf *labels, const struct ll_metrics_card *card)
{
	ll_prometheus_label(labels, "gpu", card->card->label);
	ll_prometheus_label(labels, "uuid", card->card->uuid);
	ll_prometheus_label(labels, "name", card->card->name);
	if (card->is_simulated)
		ll_prometheus_label(labels, "simulated", "true");
}

static void add_family(struct ll_strbuf *text, const struct family *family, enum ll_metric metric,
		       const struct ll_metrics_card *cards, size_t count)
{
	LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT;
	bool has_head = false;
	for (size_t i = 0; i < count; i++) {
		double value = cards[i].has_event ? family->value(metric, &cards[i]) : NAN;
		if (!isfinite(value))
			continue;
		if (!has_head)
			ll_prometheus_head(text, family->name, family->type, family->help);
		has_head = true;
		ll_strbuf_reset(&labels);
		add_labels(&labels, &cards[i]);
		ll_prometheus_sample(text, family->name, labels.buf, value);
	}
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

void ll_metrics_text(struct ll_strbuf *text, enum ll_metric metric, const struct ll_metrics_card *cards, size_t count)
{
	ll_prometheus_head(text, "loadline_build_info", "gauge", "1; the labels name the running build.");
	ll_strbuf_adds(text, "loadline_build_info{version=\"" LOADLINE_VERSION "\"} 1\n");
	for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
		add_family(text, &families[i], metric, cards, count);
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
