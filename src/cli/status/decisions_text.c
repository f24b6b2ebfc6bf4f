#include <math.h>
#include <time.h>

#include "base/clock.h"
#include "base/translate.h"
#include "cli/status/decisions.h"
#include "rules/share/lever.h"
#include "rules/share/regime.h"

/* A measurement has four blocks, or eight if these leave a doubt. */
enum { BLOCKS = 4 };

/* The time of this machine: "2026-01-31 12:00:00.250". */
static void add_time(struct ll_strbuf *text, uint64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / LL_NS_PER_S);
	struct tm tm;
	char words[32];
	localtime_r(&seconds, &tm);
	strftime(words, sizeof words, "%Y-%m-%d %H:%M:%S", &tm);
	ll_strbuf_addf(text, "%s.%03u", words, (unsigned)(wall_ns % LL_NS_PER_S / LL_NS_PER_MS));
}

static const char *state_words(const struct ll_message_decision *decision)
{
	if (decision->flags & LL_DECISION_IS_RULED)
		return _("a rule serves these programs (classes, MPS, several cards): nothing is measured");
	switch ((enum ll_regime_why)decision->why) {
	case LL_REGIME_NO_REASON:
		return _("no reason for visits");
	case LL_REGIME_NOT_MEASURED:
		return _("not measured yet");
	case LL_REGIME_MEASURES:
		return _("measures");
	case LL_REGIME_PAYS:
		return _("as measured before: visits pay");
	case LL_REGIME_PAYS_NOT:
		return _("as measured before: visits do not pay");
	case LL_REGIME_TOO_DEEP:
		return _("too much is queued to measure visits");
	case LL_REGIME_TOO_MANY:
		return _("too many tenants to measure");
	}
	return _("a reason that this version does not know");
}

static void add_part(struct ll_strbuf *text, size_t begin, const char *words)
{
	ll_strbuf_addf(text, "%s%s", text->length > begin ? ", " : "", words);
}

static void add_moves(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	size_t begin = text->length;
	uint32_t moves = decision->moves;
	if (moves & LL_REGIME_MOVE_GIVES_UP)
		add_part(text, begin, _("the measurement is given up"));
	if (moves & LL_REGIME_MOVE_MIX)
		add_part(text, begin, _("another mix of programs"));
	if (moves & LL_REGIME_MOVE_BEGINS)
		add_part(text, begin, _("a measurement begins"));
	if (moves & LL_REGIME_MOVE_DRAINED)
		add_part(text, begin, _("what was queued is done"));
	if (moves & LL_REGIME_MOVE_MEASURES)
		ll_strbuf_addf(text, _("%sblock %u of %d is measured"), text->length > begin ? ", " : "",
			       decision->block + 1, decision->block < BLOCKS ? BLOCKS : 2 * BLOCKS);
	if (moves & LL_REGIME_MOVE_VERDICT)
		add_part(text, begin,
			 decision->why == LL_REGIME_PAYS ? _("verdict: visits pay") : _("verdict: visits do not pay"));
	else if (moves & LL_REGIME_MOVE_BLOCK)
		ll_strbuf_addf(text, _("%sblock %u is over"), text->length > begin ? ", " : "", decision->block);
	if (!(moves & (LL_REGIME_MOVE_BEGINS | LL_REGIME_MOVE_VERDICT)) && decision->why != LL_REGIME_MEASURES)
		add_part(text, begin, state_words(decision));
	if (moves & LL_REGIME_MOVE_VERDICT)
		ll_strbuf_addf(text, _(", %.2f times the progress by slices"), exp(decision->gain));
}

static void add_rate(struct ll_strbuf *text, double rate, double alone, const char *way)
{
	ll_strbuf_addf(text, _("%.1f launches/s %s"), rate, way);
	if (alone > 0)
		ll_strbuf_addf(text, _(" (%.2f of its speed)"), rate / alone);
}

static void add_job(struct ll_strbuf *text, const struct ll_message_decision_job *job)
{
	ll_strbuf_addf(text, "    %s: ", job->tenant[0] ? job->tenant : _("a tenant"));
	add_rate(text, job->slices, job->alone, _("by slices"));
	ll_strbuf_adds(text, ", ");
	add_rate(text, job->visits, job->alone, _("by visits"));
	ll_strbuf_addc(text, '\n');
}

/* ---- a step of the lever ---- */

static void add_why_held(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	switch ((enum ll_lever_move)decision->lever) {
	case LL_LEVER_MOVE_SPARSE:
		ll_strbuf_addf(text, _("it seldom has work (%.0f %% of the time)"), 100 * decision->busy);
		break;
	case LL_LEVER_MOVE_DENSE:
		ll_strbuf_addf(text, _("it has work for %.0f %% of the time, its speeds are not known yet"),
			       100 * decision->busy);
		break;
	case LL_LEVER_MOVE_UNSEEN:
		ll_strbuf_adds(text, _("its speeds are not known yet"));
		break;
	case LL_LEVER_MOVE_FOUND:
		ll_strbuf_adds(text, _("its speeds are known"));
		break;
	case LL_LEVER_MOVE_MENDED:
		ll_strbuf_adds(text, _("a step towards what it needs"));
		break;
	case LL_LEVER_MOVE_STAYS:
		ll_strbuf_adds(text, _("this is what it needs"));
		break;
	default:
		ll_strbuf_adds(text, _("for a reason that this version does not know"));
	}
}

static void add_held(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	if (decision->lever == LL_LEVER_MOVE_SLICES) {
		ll_strbuf_addf(text, _("class %s  lower classes have time slices of %.3g ms"),
			       ll_priority_name((enum ll_priority)decision->rank), decision->slice_us / 1000.0);
		return;
	}
	ll_strbuf_addf(text, _("class %s  lower classes are held for %.0f %% of its time, "),
		       ll_priority_name((enum ll_priority)decision->rank), 100 * decision->part);
	if (fabs(decision->part - decision->from_part) > 0)
		ll_strbuf_addf(text, _("before %.0f %%: "), 100 * decision->from_part);
	else
		ll_strbuf_adds(text, _("as before: "));
	add_why_held(text, decision);
}

static void add_lever_job(struct ll_strbuf *text, const struct ll_message_decision *decision,
			  const struct ll_message_decision_job *job)
{
	const struct ll_lever lever = {.part = decision->from_part};
	const struct ll_lever_gauge gauge = {.launches = {job->open_launches, job->held_launches},
					     .seconds = {job->open_s, job->held_s}};
	double slowdown = ll_lever_slowdown(&lever, &gauge);
	if (slowdown <= 0) /* not enough was seen of it */
		return;
	ll_strbuf_addf(text, _("    %s: %.2f times as slow as alone, %.2f is accepted: "),
		       job->tenant[0] ? job->tenant : _("a tenant"), slowdown, job->slowdown_permille / 1000.0);
	ll_strbuf_addf(text, _("%.1f launches/s while they are held, %.1f while not\n"),
		       job->held_launches / job->held_s, job->open_launches / job->open_s);
}

/* ---- lines ---- */

static void add_decision(struct ll_strbuf *text, const struct ll_message_decision *decision)
{
	if (decision->lever) {
		add_held(text, decision);
		return;
	}
	ll_strbuf_addf(text, "%s  ", decision->flags & LL_DECISION_GIVES_VISITS ? _("visits") : _("slices"));
	add_moves(text, decision);
}

void ll_decision_list_add_text(struct ll_strbuf *text, const struct ll_decision_list *list, const char *card,
			       uint64_t wall_ns)
{
	const struct ll_message_decision_job *job = list->jobs;
	for (size_t i = 0; i < list->decision_count; i++) {
		const struct ll_message_decision *decision = &list->decisions[i];
		add_time(text, wall_ns - decision->age_ns);
		ll_strbuf_addf(text, _("  card %s  "), card);
		add_decision(text, decision);
		ll_strbuf_addc(text, '\n');
		for (uint32_t k = 0; k < decision->jobs; k++, job++) {
			if (decision->lever >= LL_LEVER_MOVE_FOUND)
				add_lever_job(text, decision, job);
			else if (decision->moves & LL_REGIME_MOVE_VERDICT)
				add_job(text, job);
		}
	}
}
