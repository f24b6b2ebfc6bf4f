#include "cli/doctor.h"

#include <stdarg.h>
#include <stdio.h>

#include "cli/json_line.h"

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
		printf("card %s: ", card->label);
	printf("%s: %s%s%s\n", check, detail, todo ? "; " : "", todo ? todo : "");
	fflush(stdout);
}

void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		   const char *todo, const char *fmt, ...)
{
	char detail[500];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(detail, sizeof detail, fmt, ap);
	va_end(ap);
	doctor->counts[finding]++;
	if (doctor->is_json && !doctor->rc)
		doctor->rc = print_json(doctor, finding, card, check, todo, detail);
	else if (!doctor->is_json)
		print_text(finding, card, check, todo, detail);
}

void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_card *card, const char *check,
		       const struct ll_err *err)
{
	ll_doctor_say(doctor, finding, card, check, err->hint[0] ? err->hint : NULL, "%s", err->text);
}
