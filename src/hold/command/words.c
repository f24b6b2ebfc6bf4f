#include "hold/command/words.h"

#include "base/translate.h"
#include "cli/common/user.h"

#include <math.h>

enum { USER_SIZE = 64 };

const char *ll_hold_unit_word(enum ll_metric metric)
{
	return metric == LL_METRIC_POWER ? "watts" : "percent";
}

static void add_short(struct ll_strbuf *text, double value)
{
	double tenths = round(value * 10);
	ll_strbuf_addf(text, "%.*f", fmod(tenths, 10) == 0 ? 0 : 1, tenths / 10);
}

void ll_hold_add_level(struct ll_strbuf *text, enum ll_metric metric, double value)
{
	if (!isfinite(value)) {
		ll_strbuf_adds(text, _("unknown"));
		return;
	}
	add_short(text, value * ll_metric_scale(metric));
	ll_strbuf_addf(text, " %s", ll_metric_unit(metric));
}

void ll_hold_add_goal(struct ll_strbuf *text, const struct ll_hold_config *hold)
{
	const struct ll_curve *curve = &hold->curve;
	ll_strbuf_adds(text, ll_metric_name(hold->metric));
	if (hold->metric == LL_METRIC_POWER || curve->kind == LL_CURVE_CONSTANT) {
		ll_strbuf_adds(text, _(" at "));
		ll_hold_add_level(text, hold->metric,
				  hold->metric == LL_METRIC_POWER ? hold->target_watts : curve->high);
		return;
	}
	if (curve->kind == LL_CURVE_REPLAY)
		ll_strbuf_adds(text, _(" as recorded, "));
	else
		ll_strbuf_addf(text, _(" along a %s of "), ll_curve_kind_name(curve->kind));
	add_short(text, curve->low * 100);
	ll_strbuf_adds(text, _(" to "));
	ll_hold_add_level(text, hold->metric, curve->high);
	if (curve->kind != LL_CURVE_REPLAY) {
		ll_strbuf_adds(text, _(" every "));
		add_short(text, curve->period_s);
		ll_strbuf_adds(text, " s");
	}
}

void ll_hold_add_state(struct ll_strbuf *text, const struct ll_hold_status *status)
{
	ll_strbuf_adds(text, _(ll_hold_state_name(status->state)));
	bool is_stopped = status->state == LL_HOLD_YIELDED || status->state == LL_HOLD_RELEASED;
	if (is_stopped && status->reason != LL_HOLD_REASON_START && status->reason != LL_HOLD_REASON_QUIET)
		ll_strbuf_addf(text, " (%s)", _(ll_hold_reason_text(status->reason)));
	else if (status->state == LL_HOLD_HOLDING && status->is_idle_target)
		ll_strbuf_adds(text, _(" (idle target)"));
}

void ll_hold_add_stranger(struct ll_strbuf *text, const struct ll_hold_stranger *stranger)
{
	if (!stranger->pid) {
		ll_strbuf_adds(text, _("another program"));
		return;
	}
	ll_strbuf_addf(text, _("%s (pid %d)"), stranger->name, (int)stranger->pid);
	if (stranger->others)
		ll_strbuf_addf(text, ll_translate_count(" and %u other", " and %u others", stranger->others),
			       stranger->others);
}

void ll_hold_add_sitter(struct ll_strbuf *text, const struct ll_card *card, const struct ll_hold_sitter *sitter)
{
	static const char *const formats[] = {
	    [LL_HOLD_HAS_NO_CONTEXT] = N_("card %s: pid %d of user %s has a name of its holds, and no context there"),
	    [LL_HOLD_DOES_NOT_ANSWER] =
		N_("card %s: pid %d of user %s has a name of its holds, and does not answer as one"),
	};
	char user[USER_SIZE];
	if (sitter->kind == LL_HOLD_NO_SITTER)
		return;
	if (sitter->kind == LL_HOLD_ACCEPTS_NOBODY) {
		ll_strbuf_addf(text, _("card %s: a process has a name of its holds, and accepts no connection"),
			       card->label);
		return;
	}
	ll_user_name(sitter->uid, user, sizeof user);
	ll_strbuf_addf(text, _(formats[sitter->kind]), card->label, (int)sitter->pid, user);
}

bool ll_hold_is_simulated(const struct ll_card *card)
{
	return card->driver && ll_driver_sim_folder(card->driver);
}

void ll_hold_add_bytes(struct ll_strbuf *text, uint64_t bytes)
{
	double mib = (double)bytes / 1048576;
	if (bytes && bytes < 1024)
		ll_strbuf_addf(text, "%llu B", (unsigned long long)bytes);
	else if (bytes && mib < 1)
		ll_strbuf_addf(text, "%.0f KiB", mib * 1024);
	else if (mib < 1024)
		ll_strbuf_addf(text, "%.0f MiB", mib);
	else
		ll_strbuf_addf(text, "%.1f GiB", mib / 1024);
}
