#include "cli/doctor/doctor.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/advice.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/json_line.h"

static const char *const names[] = {"ok", "warn", "fail"};

static int print_json(const struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card,
		      const char *check, const char *todo, const char *detail)
{
	json_t *object = json_pack("{s:s, s:o, s:s, s:s, s:o}", "check", check, "card",
				   card ? json_integer(card->index) : json_null(), "finding", names[finding], "detail",
				   detail, "advice", todo ? json_string(todo) : json_null());
	if (object && card && card->is_mig)
		json_object_set_new(object, "slice", json_integer(card->slice));
	return ll_json_line(object, doctor->err);
}

static void print_text(enum ll_finding finding, const struct ll_card *card, const char *check, const char *todo,
		       const char *detail)
{
	printf("%s: ", names[finding]);
	if (card)
		printf(_("card %s: "), card->label);
	printf("%s: %s%s%s\n", check, detail, todo ? "; " : "", todo ? todo : "");
	fflush(stdout);
}

/* ---- what is well with several cards ---- */

static const char *const folded_checks[LL_DOCTOR_FOLDED_CHECKS] = {
    "card",    "compute mode", "persistence",  "gpm",           "slowdown",
    "payload", "claims",       "memory limit", "compute limit", "time slices"};

void ll_doctor_fold(struct ll_doctor *doctor, const struct ll_card *const *cards, size_t count)
{
	if (doctor->is_json || count < 2 || count > LL_DOCTOR_FOLDED_CARDS)
		return;
	memcpy(doctor->folded, cards, count * sizeof *cards);
	doctor->folded_count = count;
}

/* Returns false if the finding is not kept back. */
static bool keep_back(struct ll_doctor *doctor, const struct ll_card *card, const char *check)
{
	size_t at = 0, place = 0;
	while (at < LL_DOCTOR_FOLDED_CHECKS && strcmp(folded_checks[at], check) != 0)
		at++;
	while (place < doctor->folded_count && doctor->folded[place] != card)
		place++;
	if (!card || at == LL_DOCTOR_FOLDED_CHECKS || place == doctor->folded_count)
		return false;
	doctor->well[at] |= UINT64_C(1) << place;
	return true;
}

/* Adds "0-3,5,7:0". */
static void add_labels(struct ll_strbuf *text, const struct ll_doctor *doctor, uint64_t set)
{
	for (size_t first = 0, last; first < doctor->folded_count; first = last + 1) {
		last = first;
		if (!(set >> first & 1))
			continue;
		const struct ll_card *card = doctor->folded[first];
		while (!card->is_mig && last + 1 < doctor->folded_count && set >> (last + 1) & 1 &&
		       !doctor->folded[last + 1]->is_mig &&
		       doctor->folded[last + 1]->index == doctor->folded[last]->index + 1)
			last++;
		ll_strbuf_addf(text, "%s%s", text->length ? "," : "", card->label);
		if (last > first)
			ll_strbuf_addf(text, "-%s", doctor->folded[last]->label);
	}
}

void ll_doctor_say_well(struct ll_doctor *doctor)
{
	bool is_told[LL_DOCTOR_FOLDED_CHECKS] = {false};
	for (size_t i = 0; i < LL_DOCTOR_FOLDED_CHECKS; i++) {
		LL_SCOPE_STRBUF struct ll_strbuf labels = LL_STRBUF_INIT, checks = LL_STRBUF_INIT;
		for (size_t k = i; k < LL_DOCTOR_FOLDED_CHECKS; k++) {
			if (is_told[k] || !doctor->well[k] || doctor->well[k] != doctor->well[i])
				continue;
			ll_strbuf_addf(&checks, "%s%s", checks.length ? ", " : "", folded_checks[k]);
			is_told[k] = true;
		}
		if (!checks.length)
			continue;
		add_labels(&labels, doctor, doctor->well[i]);
		printf("%s: ", names[LL_FINDING_OK]);
		printf(_("cards %s: "), labels.buf);
		printf("%s\n", checks.buf);
	}
	fflush(stdout);
	doctor->folded_count = 0;
}

void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		   const char *todo, const char *fmt, ...)
{
	char text[500], detail[sizeof text + 200];
	LL_SCOPE_STRBUF struct ll_strbuf advice = LL_STRBUF_INIT;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, ll_translate(fmt), ap);
	va_end(ap);
	ll_advice_copy(detail, sizeof detail, text);
	if (todo) {
		ll_sim_add_advice(&advice, _(todo));
		todo = advice.buf;
	}
	doctor->counts[finding]++;
	if (doctor->is_json && !doctor->rc)
		doctor->rc = print_json(doctor, finding, card, check, todo, detail);
	else if (!doctor->is_json && (finding != LL_FINDING_OK || todo || !keep_back(doctor, card, check)))
		print_text(finding, card, check, todo, detail);
}

const char *ll_doctor_advice(const struct ll_card *card, const char *real, const char *simulated)
{
	return ll_driver_sim_folder(card->driver) ? simulated : real;
}

void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		       const struct ll_err *err)
{
	char label[40] = "";
	if (card)
		snprintf(label, sizeof label, _("card %s: "), card->label);
	size_t length = strlen(label);
	const char *text = strncmp(err->text, label, length) == 0 ? err->text + length : err->text;
	/* The finding names the card, so the text need not. The reader runs doctor already, so the advice to run it is
	 * dropped. */
	bool has_advice = err->hint[0] && strcmp(err->hint, _("see `loadline doctor`")) != 0;
	ll_doctor_say(doctor, finding, card, check, has_advice ? err->hint : NULL, "%s", text);
}
