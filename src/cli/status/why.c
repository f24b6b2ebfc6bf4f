/* How a tenant is shared, and why, in words. */
#include <time.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/status/status.h"

const char *ll_status_shared_name(enum ll_shared shared)
{
	switch (shared) {
	case LL_SHARED_ALONE:
		return N_("alone");
	case LL_SHARED_SLICES:
		return N_("slices");
	case LL_SHARED_VISITS:
		return N_("visits");
	case LL_SHARED_SPACE:
		return N_("space");
	case LL_SHARED_WINDOWS:
		return N_("windows");
	case LL_SHARED_UNKNOWN:
		break;
	}
	return NULL;
}

/* The time of this machine: "12:01". */
static void add_measured_at(struct ll_strbuf *text, const struct ll_status_how *how)
{
	time_t seconds = (time_t)(how->measured_wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[8];
	if (!how->measured_wall_ns)
		return;
	localtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%H:%M", &tm);
	ll_strbuf_addf(text, _("; measured at %s"), words);
}

static void add_visits_pay(struct ll_strbuf *text, const struct ll_status_how *how)
{
	double slices = how->slices_permille / 1000.0, visits = how->visits_permille / 1000.0;
	if (!how->measured_wall_ns || !how->visits_permille)
		ll_strbuf_adds(text, _("visited in turn: visits were measured to pay"));
	else if (slices <= visits)
		ll_strbuf_addf(text, _("visited in turn: sharing by slices gave it %.2f of its speed, visits %.2f"),
			       slices, visits);
	else
		ll_strbuf_addf(text,
			       _("visited in turn: sharing by slices gave it %.2f of its speed and others too little, "
				 "visits give it %.2f"),
			       slices, visits);
	add_measured_at(text, how);
}

static void add_slowdown(struct ll_strbuf *text, const struct ll_status_how *how)
{
	ll_strbuf_addf(text, _("target %.2f"), how->target_permille / 1000.0);
	if (how->seen_permille)
		ll_strbuf_addf(text, _(", now %.2f"), how->seen_permille / 1000.0);
}

/* Between classes. */
static void add_held(struct ll_strbuf *text, const struct ll_status_how *how)
{
	double percent = how->held_permille / 10.0;
	if (how->held_for)
		ll_strbuf_addf(text, _("held %.0f %% of the time: %s is of a higher class, "), percent, how->held_for);
	else
		ll_strbuf_addf(text, _("gates open: lower classes are held %.0f %% of the time, "), percent);
	add_slowdown(text, how);
}

static void add_by_card(struct ll_strbuf *text, const struct ll_status_how *how)
{
	bool is_visited = how->shared == LL_SHARED_VISITS;
	const char *way = is_visited ? _("visited in turn") : _("gates open");
	switch (how->sharing) {
	case LL_SHARING_VISITS_PAY:
		add_visits_pay(text, how);
		break;
	case LL_SHARING_SLICES_PAY:
		ll_strbuf_adds(text, _("gates open: visits were measured not to pay"));
		add_measured_at(text, how);
		break;
	case LL_SHARING_MEASURED:
		ll_strbuf_adds(text, _("shared by slices and by visits in turn, to measure which is better"));
		break;
	case LL_SHARING_SLICES_YET:
		ll_strbuf_addf(text, _("%s: whether visits are better is measured soon"), way);
		break;
	case LL_SHARING_TOO_DEEP:
		ll_strbuf_addf(text, _("%s: too much is queued to measure visits"), way);
		break;
	case LL_SHARING_VISITS_RULE:
		ll_strbuf_addf(text, _("%s: a program works on several cards, or there are very many"), way);
		break;
	case LL_SHARING_CLASSES:
		ll_strbuf_addf(text, _("%s: lower classes need not be held"), way);
		break;
	case LL_SHARING_WINDOWS:
		ll_strbuf_adds(text, _("on the card for its part of each period"));
		break;
	case LL_SHARING_SLICES:
	case LL_SHARING_UNKNOWN:
		ll_strbuf_adds(text, is_visited ? _("visited in turn while a program is new")
						: _("gates open: there is no reason for visits"));
		break;
	}
}

void ll_status_add_why(struct ll_strbuf *text, const struct ll_status_how *how)
{
	if (how->is_capped)
		ll_strbuf_addf(text, _("held to %g %% by its cap"), how->cap_permille / 10.0);
	else if (how->held_permille)
		add_held(text, how);
	else if (how->is_beneath && how->is_held)
		ll_strbuf_adds(text, _("waits for a higher class"));
	else if (how->is_beneath)
		ll_strbuf_adds(text, _("beneath a higher class: little of it is queued at a time"));
	else if (how->shared == LL_SHARED_ALONE)
		ll_strbuf_adds(text, _("nobody else uses the card"));
	else if (how->shared == LL_SHARED_SPACE)
		ll_strbuf_adds(text, _("runs at the same time as the other clients of MPS"));
	else if (how->is_forced)
		ll_strbuf_addf(text, _("%s: decided by hand (`loadline set --sharing`)"),
			       how->shared == LL_SHARED_VISITS ? _("visited in turn") : _("gates open"));
	else
		add_by_card(text, how);
}
