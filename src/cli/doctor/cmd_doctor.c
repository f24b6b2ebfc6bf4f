#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/env_sim.h"
#include "cli/common/json_line.h"
#include "cli/doctor/doctor.h"
#include "cli/options/command.h"

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

static void say_driver(struct ll_doctor *doctor, const struct ll_driver *driver)
{
	const struct ll_card *cards;
	const char *sim_folder = ll_driver_sim_folder(driver);
	size_t count = ll_driver_cards(driver, &cards);
	size_t slices = 0;
	char cards_text[64];
	for (size_t i = 0; i < count; i++)
		slices += cards[i].is_mig;
	snprintf(cards_text, sizeof cards_text, ll_translate_count("%zu card", "%zu cards", count - slices),
		 count - slices);
	ll_doctor_say(doctor, LL_FINDING_OK, NULL, "driver", NULL, "%s %s, %s%s%s",
		      sim_folder ? _("simulated") : "NVIDIA", ll_driver_nvml(driver)->driver_version, cards_text,
		      sim_folder ? _(", world ") : "", sim_folder ? sim_folder : "");
}

static void check_card(struct ll_doctor *doctor, const struct ll_card *card)
{
	ll_doctor_check_card(doctor, card);
	if (doctor->tries_limits) {
		ll_doctor_check_limits(doctor, card);
		ll_doctor_check_slices(doctor, card);
	}
}

/* Without a list from the user it checks all cards, also those that do not answer. */
static int check_cards(struct ll_doctor *doctor, const struct ll_driver *driver, const char *text, struct ll_err *err)
{
	const struct ll_card *all;
	LL_SCOPE_FREE const struct ll_card **chosen = NULL;
	size_t count = text ? 0 : ll_driver_cards(driver, &all);
	int rc = text ? ll_cards_select(driver, text, &chosen, &count, err) : 0;
	if (!text && !(chosen = calloc(count + 1, sizeof *chosen))) {
		ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
		return -ENOMEM;
	}
	for (size_t i = 0; !text && !rc && i < count; i++)
		chosen[i] = &all[i];
	if (!rc)
		ll_doctor_fold(doctor, chosen, count);
	for (size_t i = 0; !rc && i < count; i++)
		check_card(doctor, chosen[i]);
	ll_doctor_say_well(doctor);
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
	ll_doctor_say_err(doctor, LL_FINDING_FAIL, NULL, "driver", driver_err);
	ll_doctor_check_system(doctor, NULL);
	if (doctor->tries_limits)
		ll_doctor_say(doctor, LL_FINDING_OK, NULL, "limits", NULL, "skipped: no driver");
	ll_daemon_view_fini(&doctor->view);
	int rc = print_summary(doctor, err);
	/* The finding has the driver's error already, so main must not print it again. */
	return rc < 0 ? rc : ll_err_exit_code(driver_err->code);
}

/* The ways out of a tenant that nothing closes. */
static void say_open_ways(struct ll_doctor *doctor)
{
	ll_doctor_say(
	    doctor, LL_FINDING_OK, NULL, "open ways", NULL,
	    "not held to limits are a program that is started without LD_PRELOAD, as by `env -i` (`loadline "
	    "status` shows it as ungoverned), a library that a program opens by dlmopen or with RTLD_DEEPBIND, "
	    "driver functions that a program finds without the loader, and variants of functions that this "
	    "version does not know");
}

static int run_doctor(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct doctor_args *args = words;
	struct ll_doctor doctor = {
	    .is_json = args->json, .tries_limits = !args->no_trial, .is_simulated = ll_sim_is_entered(), .err = err};
	struct ll_driver *driver = NULL;
	struct ll_err driver_err = {0};
	(void)operands;
	if (ll_driver_open(&driver, &driver_err))
		return check_without_driver(&doctor, &driver_err, err);
	doctor.is_simulated = ll_driver_sim_folder(driver) != NULL;
	say_driver(&doctor, driver);
	ll_doctor_check_system(&doctor, driver);
	ll_doctor_check_libraries(&doctor, driver);
	int rc = check_cards(&doctor, driver, args->cards, err);
	if (doctor.tries_limits)
		say_open_ways(&doctor);
	ll_daemon_view_fini(&doctor.view);
	ll_driver_close(driver);
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
