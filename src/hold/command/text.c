#include "base/translate.h"
#include "hold/command/internal.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/log.h"
#include "cli/common/table.h"
#include "hold/command/words.h"

struct text_card {
	bool has_event;
	bool has_started;
	bool has_ended;
	bool has_fault; /* a fault has come since the last reading */
	struct ll_hold_status status;
	struct ll_event end; /* the card's summary, valid if has_ended */
};

struct text_sink {
	struct ll_hold_sink sink;
	bool has_periodic;
	uint64_t next_ns; /* when the next periodic lines are due; 0: no tick yet */
	struct text_card cards[];
};

/* ---- the log ---- */

/* Errors from src/driver name their card already. */
static void log_card(enum ll_log_level level, const struct ll_card *card, const char *text, const char *hint)
{
	char prefix[32];
	int length = snprintf(prefix, sizeof prefix, _("card %s: "), card->label);
	bool has_prefix = strncmp(text, prefix, (size_t)length) == 0;
	ll_log(level, "%s%s%s%s", has_prefix ? "" : prefix, text, hint[0] ? "; " : "", hint);
}

static const char *mode_words(enum ll_hold_mode mode)
{
	static const char *const words[] = {
	    [LL_HOLD_MODE_YIELD] = "",
	    [LL_HOLD_MODE_FILL] = N_(", adding to the load of other programs"),
	    [LL_HOLD_MODE_IGNORE] = N_(", also while other programs work"),
	};
	return _(words[mode]);
}

static const char *simulated_words(const struct ll_card *card)
{
	return ll_hold_is_simulated(card) ? _(" (simulated)") : "";
}

static void say_started(const struct text_sink *self, const struct ll_event *event)
{
	const struct ll_hold_config *hold = self->sink.config->hold;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_hold_add_goal(&text, hold);
	ll_strbuf_addf(&text, _(" with a synthetic load%s (payload %s"), mode_words(hold->mode), event->status.payload);
	if (event->status.memory_bytes) {
		ll_strbuf_adds(&text, ", ");
		ll_hold_add_bytes(&text, event->status.memory_bytes);
		ll_strbuf_adds(&text, _(" of GPU memory"));
	}
	ll_info("card %s %s%s: holding %s)", event->card->label, event->card->name, simulated_words(event->card),
		text.buf);
}

static void say_periodic(const struct text_sink *self, const struct ll_card *card, const struct ll_hold_status *status)
{
	enum ll_metric metric = self->sink.config->hold->metric;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_addf(&text, "%s ", ll_metric_name(metric));
	ll_hold_add_level(&text, metric, status->level);
	ll_strbuf_adds(&text, _(" (target "));
	ll_hold_add_level(&text, metric, status->target);
	ll_strbuf_addc(&text, ')');
	if (metric != LL_METRIC_UTIL && isfinite(status->util))
		ll_strbuf_addf(&text, _(", util %.0f %%"), status->util * 100);
	if (isfinite(status->own_util))
		ll_strbuf_addf(&text, _(", own load %.0f %%"), status->own_util * 100);
	if (metric != LL_METRIC_POWER && isfinite(status->power_watts))
		ll_strbuf_addf(&text, ", %.0f W", status->power_watts);
	if (isfinite(status->temperature_c))
		ll_strbuf_addf(&text, ", %.0f C", status->temperature_c);
	ll_strbuf_adds(&text, ", ");
	ll_hold_add_state(&text, status);
	ll_strbuf_addf(&text, ll_translate_count(", %llu yield", ", %llu yields", status->yields),
		       (unsigned long long)status->yields);
	log_card(LL_LOG_INFO, card, text.buf, "");
}

/* A state change has no reading (status.level is NAN), so the last reading stays. After a fault no reading is valid
 * until the next sample.
 */
static void keep_status(struct text_card *card, const struct ll_event *event)
{
	double level = card->has_event ? card->status.level : NAN;
	card->status = event->status;
	if (event->kind != LL_EVENT_SAMPLE && !isfinite(event->status.level))
		card->status.level = level;
	card->has_fault = event->kind == LL_EVENT_FAULT || (card->has_fault && event->kind != LL_EVENT_SAMPLE);
	if (card->has_fault) {
		struct ll_hold_status *status = &card->status;
		status->level = status->util = status->own_util = status->power_watts = status->temperature_c = NAN;
	}
	card->has_event = true;
}

static void text_event(struct ll_hold_sink *sink, const struct ll_event *event, size_t slot)
{
	struct text_sink *self = (struct text_sink *)sink;
	struct text_card *card = &self->cards[slot];
	const char *text = event->text[0] ? event->text : ll_event_name(event->kind);
	keep_status(card, event);
	switch (event->kind) {
	case LL_EVENT_SAMPLE:
		break;
	case LL_EVENT_STATE:
		if (!card->has_started && event->status.state == LL_HOLD_HOLDING) {
			card->has_started = true;
			say_started(self, event);
			break;
		}
		log_card(LL_LOG_INFO, event->card, text, event->hint);
		break;
	case LL_EVENT_SETTLE:
	case LL_EVENT_LEAVE:
	case LL_EVENT_YIELD:
	case LL_EVENT_RESUME:
	case LL_EVENT_RELEASE:
		log_card(LL_LOG_INFO, event->card, text, event->hint);
		break;
	case LL_EVENT_FAULT:
		log_card(LL_LOG_WARN, event->card, text, event->hint);
		break;
	case LL_EVENT_SUMMARY:
		card->has_ended = true;
		card->end = *event;
		/* With a single card its error is the command's, and main prints it. With several cards the other cards
		 * go on, so the log has the error. */
		if (event->code < 0 && sink->config->count > 1)
			log_card(LL_LOG_ERROR, event->card, text, event->hint);
		break;
	}
}

static uint64_t text_tick(struct ll_hold_sink *sink, uint64_t now_ns)
{
	struct text_sink *self = (struct text_sink *)sink;
	uint64_t every_ns = sink->config->log_every_ns;
	if (!self->has_periodic)
		return UINT64_MAX;
	if (self->next_ns == 0)
		self->next_ns = now_ns + every_ns;
	if (now_ns < self->next_ns)
		return self->next_ns;
	self->next_ns += every_ns;
	if (self->next_ns <= now_ns) /* ticks come less often than lines are due, or the machine was suspended */
		self->next_ns = now_ns + every_ns;
	for (size_t i = 0; i < sink->config->count; i++) {
		const struct text_card *card = &self->cards[i];
		if (card->has_event && !card->has_ended)
			say_periodic(self, sink->config->cards[i], &card->status);
	}
	return self->next_ns;
}

/* ---- the summary ---- */

static void add_level(struct ll_strbuf *text, enum ll_metric metric, const char *name,
		      const struct ll_summary_level *level)
{
	const char *points = metric == LL_METRIC_POWER ? "W" : _("points");
	double scale = ll_metric_scale(metric);
	ll_strbuf_addf(text,
		       ll_translate_count("  %-15smean %.2f %s, largest error %.2f %s, over %llu reading",
					  "  %-15smean %.2f %s, largest error %.2f %s, over %llu readings",
					  level->sample_count),
		       name, level->mean_value * scale, ll_metric_unit(metric), level->max_abs_error * scale, points,
		       (unsigned long long)level->sample_count);
}

/* If there were readings before the hold settled, the summary has two lines: all readings, and the readings since then.
 * The first shows how far off the level was. */
static void add_readings(struct ll_strbuf *text, enum ll_metric metric, const struct ll_summary_result *result)
{
	if (result->of_all.sample_count == 0) {
		ll_strbuf_addf(text, _("  %-15sno reading while it held\n"), ll_metric_name(metric));
		return;
	}
	add_level(text, metric, ll_metric_name(metric), &result->of_all);
	ll_strbuf_adds(text, "\n");
	if (!result->has_settled || result->level.sample_count == result->of_all.sample_count)
		return;
	add_level(text, metric, _("once settled"), &result->level);
	ll_strbuf_adds(text, "\n");
}

static void add_settled(struct ll_strbuf *text, const struct ll_summary_result *result)
{
	if (result->has_settled)
		ll_strbuf_addf(text, _("  settled        %.2f s after the first kernel\n"), result->settle_seconds);
	else
		ll_strbuf_adds(text, _("  settled        never\n"));
}

/* A kernel that found the card free for a moment is no hold that anybody would speak of. */
#define NEARLY_ALL 0.9

static bool has_yielded(const struct ll_summary_result *result)
{
	return result->yield_count > 0 && result->yielded_seconds >= NEARLY_ALL * result->seconds;
}

static void add_yielded(struct ll_strbuf *text, const struct ll_event *event)
{
	const struct ll_summary_result *result = &event->summary;
	if (result->seconds > 0)
		ll_strbuf_addf(text, _("yielded %.1f of %.1f s to "), result->yielded_seconds, result->seconds);
	else
		ll_strbuf_addf(text, _("yielded the whole %.1f s to "), result->yielded_seconds);
	ll_hold_add_stranger(text, &event->stranger);
	ll_strbuf_adds(text, _("; --mode fill adds to it\n"));
}

static void add_summary(struct ll_strbuf *text, const struct ll_hold_config *hold, const struct ll_event *event)
{
	const struct ll_summary_result *result = &event->summary;
	ll_strbuf_addf(text, _("card %s %s%s: synthetic load, "), event->card->label, event->card->name,
		       simulated_words(event->card));
	if (has_yielded(result)) {
		add_yielded(text, event);
	} else if (result->seconds > 0) {
		ll_strbuf_adds(text, _("held "));
		ll_hold_add_goal(text, hold);
		ll_strbuf_addf(text, _(" for %.1f s\n"), result->seconds);
		add_readings(text, hold->metric, result);
		add_settled(text, result);
		ll_strbuf_addf(text, _("  yields         %llu, %.1f s without load\n"),
			       (unsigned long long)result->yield_count, result->yielded_seconds);
		ll_strbuf_addf(text, _("  synthetic load busy %.1f s, %.0f J of the card's %.0f J\n"),
			       result->synthetic_busy_seconds, result->synthetic_joules, result->energy_joules);
	} else if (hold->mode == LL_HOLD_MODE_FILL && event->stranger.pid) {
		ll_strbuf_adds(text, _("added nothing: the target was no more than the load of "));
		ll_hold_add_stranger(text, &event->stranger);
		ll_strbuf_adds(text, "\n");
	} else {
		ll_strbuf_adds(text, _("no kernel ran\n"));
	}
	if (event->status.payload[0]) {
		ll_strbuf_addf(text, _("  payload        %s, "), event->status.payload);
		ll_hold_add_bytes(text, event->status.memory_bytes);
		ll_strbuf_adds(text, _(" of GPU memory\n"));
	}
	if (event->code < 0)
		ll_strbuf_adds(text, _("  ended by       an error\n"));
}

static int text_finish(struct ll_hold_sink *sink, struct ll_err *err)
{
	struct text_sink *self = (struct text_sink *)sink;
	if (sink->config->is_json)
		return 0;
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	for (size_t i = 0; i < sink->config->count; i++) {
		if (self->cards[i].has_ended)
			add_summary(&text, sink->config->hold, &self->cards[i].end);
	}
	return ll_print_text(&text, err);
}

int ll_hold_text_new(const struct ll_hold_output_config *config, bool has_periodic, struct ll_hold_sink **ret_sink,
		     struct ll_err *err)
{
	static const struct ll_hold_sink_ops ops = {
	    .event = text_event,
	    .tick = text_tick,
	    .finish = text_finish,
	};
	struct text_sink *self = ll_hold_sink_new(&ops, config, sizeof *self, sizeof self->cards[0]);
	if (!self)
		return ll_err_set(err, -ENOMEM, "log: out of memory");
	self->has_periodic = has_periodic;
	*ret_sink = &self->sink;
	return 0;
}
