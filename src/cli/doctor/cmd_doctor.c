#include "cli/doctor/doctor.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/advice.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/table.h"
#include "cli/options/command.h"

/* ---- doctor ---- */

static const char *const names[] = {"ok", "warn", "fail"};

static int print_json(const struct ll_doctor *doctor, enum ll_finding finding, const char *todo, const char *detail)
{
	const struct ll_card *card = doctor->card;
	json_t *object = json_pack("{s:s, s:o, s:s, s:s, s:o}", "check", doctor->check, "card",
				   card ? json_integer(card->index) : json_null(), "finding", names[finding], "detail",
				   detail, "advice", todo ? json_string(todo) : json_null());
	if (object && card && card->is_mig)
		json_object_set_new(object, "slice", json_integer(card->slice));
	return ll_json_line(object, doctor->err);
}

static void print_text(const struct ll_doctor *doctor, enum ll_finding finding, const char *todo, const char *detail)
{
	printf("%s: ", names[finding]);
	if (doctor->card)
		printf(_("card %s: "), doctor->card->label);
	printf("%s: %s%s%s\n", doctor->check, detail, todo ? "; " : "", todo ? todo : "");
	fflush(stdout);
}

/* ---- what is well with several cards ---- */

static const char *const folded_checks[LL_DOCTOR_FOLDED_CHECKS] = {
    "card",    "compute mode", "persistence",  "gpm",           "slowdown",
    "payload", "claims",       "memory limit", "compute limit", "time slices"};

/* Keeps good findings of these cards back until say_well, which tells them together. For one card, many cards and JSON
 * it does nothing. */
static void fold_cards(struct ll_doctor *doctor, const struct ll_card *const *cards, size_t count)
{
	if (doctor->is_json || count < 2 || count > LL_DOCTOR_FOLDED_CARDS)
		return;
	memcpy(doctor->folded, cards, count * sizeof *cards);
	doctor->folded_count = count;
}

/* Returns false if the finding is not kept back. */
static bool keep_back(struct ll_doctor *doctor)
{
	size_t at = 0, place = 0;
	while (at < LL_DOCTOR_FOLDED_CHECKS && strcmp(folded_checks[at], doctor->check) != 0)
		at++;
	while (place < doctor->folded_count && doctor->folded[place] != doctor->card)
		place++;
	if (!doctor->card || at == LL_DOCTOR_FOLDED_CHECKS || place == doctor->folded_count)
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

static void say_well(struct ll_doctor *doctor)
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

void ll_doctor_say(struct ll_doctor *doctor, enum ll_finding finding, const char *todo, const char *fmt, ...)
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
		doctor->rc = print_json(doctor, finding, todo, detail);
	else if (!doctor->is_json && (finding != LL_FINDING_OK || todo || !keep_back(doctor)))
		print_text(doctor, finding, todo, detail);
}

const char *ll_doctor_advice(const struct ll_card *card, const char *real, const char *simulated)
{
	return ll_driver_sim_folder(card->driver) ? simulated : real;
}

void ll_doctor_say_err(struct ll_doctor *doctor, enum ll_finding finding, const struct ll_err *err)
{
	char label[40] = "";
	if (doctor->card)
		snprintf(label, sizeof label, _("card %s: "), doctor->card->label);
	size_t length = strlen(label);
	const char *text = strncmp(err->text, label, length) == 0 ? err->text + length : err->text;
	/* The finding names the card, so the text need not. The reader runs doctor already, so the advice to run it is
	 * dropped. */
	bool has_advice = err->hint[0] && strcmp(err->hint, _("see `loadline doctor`")) != 0;
	ll_doctor_say(doctor, finding, has_advice ? err->hint : NULL, "%s", text);
}

/* ---- cmd doctor ---- */

struct doctor_args {
	char *cards;
	bool json;
	bool no_trial;
};

static const struct ll_option doctor_options[] = {
    LL_OPTION_CARDS(struct doctor_args, cards),
    LL_OPTION_JSON(struct doctor_args, json),
    {.name = "no-trial",
     LL_OPTION_FLAG(struct doctor_args, no_trial),
     .help = N_("Leave out the trial of limits; no context is made on any card.")},
    LL_OPTION_END,
};

static void say_driver(struct ll_doctor *doctor)
{
	const struct ll_card *cards;
	const char *sim_folder = doctor->sim_folder;
	size_t count = ll_driver_cards(doctor->driver, &cards);
	size_t slices = 0;
	char cards_text[64];
	for (size_t i = 0; i < count; i++)
		slices += cards[i].is_mig;
	snprintf(cards_text, sizeof cards_text, ll_translate_count("%zu card", "%zu cards", count - slices),
		 count - slices);
	ll_doctor_ok(doctor, "%s %s, %s%s%s", sim_folder ? _("simulated") : "NVIDIA",
		     ll_driver_nvml(doctor->driver)->driver_version, cards_text, sim_folder ? _(", world ") : "",
		     sim_folder ? sim_folder : "");
}

enum when { ALWAYS, DRIVER, SYSTEM, CARD, ANSWERS, MIG, WHOLE, TRIAL };

static bool is_due(const struct ll_doctor *doctor, enum when when)
{
	const struct ll_card *card = doctor->card;
	bool is_system = doctor->view.answer == LL_DAEMON_SERVES && ll_place_is_system(&doctor->view.place);
	if (!card)
		return when == ALWAYS || (when == DRIVER && doctor->driver) || (when == SYSTEM && is_system);
	bool is_whole = !card->fault && !card->has_slices;
	return when == CARD || (when == ANSWERS && !card->fault) || (when == MIG && !card->fault && card->has_slices) ||
	       (when == WHOLE && is_whole) || (when == TRIAL && is_whole && doctor->tries_limits);
}

/* Makes the checks of the card, or with NULL those of the machine. */
static void run_checks(struct ll_doctor *doctor, const struct ll_card *card)
{
	static const struct {
		const char *name;
		enum when when;
		void (*run)(struct ll_doctor *doctor);
	} checks[] = {
#define LL_CHECK(name, when, function) {name, when, ll_doctor_check_##function},
#include "cli/doctor/checks.def"
#undef LL_CHECK
	};
	for (size_t i = 0; i < sizeof checks / sizeof *checks; i++) {
		doctor->card = card;
		doctor->check = checks[i].name;
		if (is_due(doctor, checks[i].when))
			checks[i].run(doctor);
	}
	doctor->card = NULL;
}

static int check_cards(struct ll_doctor *doctor, const char *text, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = 0;
	int rc = ll_cards_list(doctor->driver, text, &chosen, &count, err);
	fold_cards(doctor, chosen, count);
	for (size_t i = 0; i < count; i++)
		run_checks(doctor, chosen[i]);
	say_well(doctor);
	return rc;
}

static int print_summary(const struct ll_doctor *doctor, struct ll_err *err)
{
	unsigned fails = doctor->counts[LL_FINDING_FAIL];
	unsigned hold_fails = fails - doctor->limit_fails;
	unsigned warns = doctor->counts[LL_FINDING_WARN];
	bool can_limit = !doctor->limit_fails && !doctor->is_refusing;
	if (doctor->rc)
		return doctor->rc;
	if (doctor->is_json) {
		int rc =
		    ll_json_line(json_pack("{s:s, s:b, s:b, s:i, s:i}", "event", "summary", "can_hold", !hold_fails,
					   "can_limit", can_limit, "fails", (int)fails, "warnings", (int)warns),
				 err);
		return rc || !fails ? rc : LL_EXIT_FAILED;
	}
	if (hold_fails)
		printf(ll_translate_count("%u of the findings prevents a hold\n", "%u of the findings prevent a hold\n",
					  hold_fails),
		       hold_fails);
	else
		puts(warns ? _("holds can run here, with the warnings above") : _("holds can run here"));
	bool is_unknown = doctor->limit_fails == doctor->untried && !doctor->is_refusing;
	if (!can_limit)
		puts(is_unknown ? _("it is not known whether limits hold here") : _("limits do not hold here"));
	return fails ? LL_EXIT_FAILED : 0;
}

/* Without a driver it still checks the system, which may show why there is none. */
static int check_without_driver(struct ll_doctor *doctor, const struct ll_err *driver_err, struct ll_err *err)
{
	ll_doctor_say_err(doctor, LL_FINDING_FAIL, driver_err);
	run_checks(doctor, NULL);
	doctor->check = "limits";
	if (doctor->tries_limits)
		ll_doctor_ok(doctor, "skipped: no driver");
	ll_daemon_view_fini(&doctor->view);
	int rc = print_summary(doctor, err);
	/* The finding has the driver's error already, so main must not print it again. */
	return rc < 0 ? rc : ll_err_exit_code(driver_err->code);
}

/* The ways out of a tenant that nothing closes. */
static void say_open_ways(struct ll_doctor *doctor)
{
	doctor->check = "open ways";
	ll_doctor_ok(
	    doctor, "not held to limits are a program that is started without LD_PRELOAD, as by `env -i` (`loadline "
		    "status` shows it as ungoverned), a library that a program opens by dlmopen or with RTLD_DEEPBIND, "
		    "driver functions that a program finds without the loader, and variants of functions that this "
		    "version does not know");
}

static int run_doctor(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct doctor_args *args = words;
	struct ll_doctor doctor = {.check = "driver",
				   .is_json = args->json,
				   .tries_limits = !args->no_trial,
				   .is_simulated = ll_sim_is_entered(),
				   .err = err};
	struct ll_err driver_err = {0};
	(void)operands;
	if (ll_driver_open(&doctor.driver, &driver_err))
		return check_without_driver(&doctor, &driver_err, err);
	doctor.sim_folder = ll_driver_sim_folder(doctor.driver);
	doctor.is_simulated = doctor.sim_folder;
	say_driver(&doctor);
	run_checks(&doctor, NULL);
	int rc = check_cards(&doctor, args->cards, err);
	if (doctor.tries_limits)
		say_open_ways(&doctor);
	ll_daemon_view_fini(&doctor.view);
	ll_driver_close(doctor.driver);
	return rc ? rc : print_summary(&doctor, err);
}

static const struct ll_example doctor_examples[] = {
    {"loadline doctor", N_("Check everything.")},
    {"loadline doctor --json | jq 'select(.finding == \"fail\")'", N_("What prevents a hold, for a script.")},
    {NULL, NULL},
};

const struct ll_command ll_command_doctor = {
    .name = "doctor",
    .summary = N_("check that holds and limits work here, and what to do if not"),
    .description = N_(
	"Checks the driver, its libraries, device nodes, runtime folder, MPS and each card, without changing "
	"anything. Each finding is one line: "
	"ok, warn or fail, the thing checked, the result, and what to do about it.\n\n"
	"Then it shows that the limits of `loadline run` hold: on each card it starts a program under small "
	"limits, and the program tries to exceed them for half a second, the memory limit by every way to the "
	"driver. The trial makes a context on the card, and a hold on that card yields to it. On a card "
	"that nobody uses, two programs then try for 3 seconds whether they can set their own time on it. --no-trial "
	"leaves both out.\n\n"
	"The exit status is 0 if every checked card can be held and limits hold, 1 if something prevents "
	"that, 3 if there is no driver or no such card."),
    .examples = doctor_examples,
    .options = doctor_options,
    .args_size = sizeof(struct doctor_args),
    .run = run_doctor,
};
