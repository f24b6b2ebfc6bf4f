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
	else if (!doctor->is_json)
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
