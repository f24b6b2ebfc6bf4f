#include "cli/run/start.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/scope.h"
#include "cli/mover/start.h"
#include "cli/options/limit_words.h"
#include "cli/run/bequeath.h"
#include "cli/run/cards.h"
#include "cli/run/environment.h"
#include "cli/run/job.h"
#include "cli/run/launchers.h"
#include "cli/run/program.h"
#include "cli/run/space.h"
#include "ledger/claim.h"
#include "ledger/file.h"
#include "ledger/ledger.h"
#include "ledger/proc.h"
#include "ledger/tenant.h"
#include "protocol/inherited.h"

/* Inside a governed program the command gets that program's settings, also if its environment lost them. */
static int make_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 bool *ret_is_nested, struct ll_err *err)
{
	int rc = ll_run_settings_find(ret_settings);
	*ret_is_nested = rc == 0;
	if (rc == -ENOENT)
		return ll_run_args_settings(args, command, ret_settings, err);
	if (rc < 0) {
		ll_err_set(err, -EINVAL, LL_RUN_VARIABLE ": garbled");
		return ll_err_hint(err, "only `loadline run` sets it: unset it");
	}
	return ll_run_args_check_nested(args, ret_settings, err);
}

/*
 * Checks that limits can be put in force in the command, and reach what it starts. shim becomes empty if the program
 * has another C library. What cannot be governed is run with --allow-ungoverned. A command that has its work started by
 * somebody else is run unless the tenant is strict. Each is said in a line.
 */
static int check_command(const struct ll_run_args *args, char *const *words, bool is_strict, const char *path,
			 char shim[PATH_MAX], struct ll_err *err)
{
	struct ll_err why = {0}, elsewhere = {0};
	int rc = ll_run_check_program(path, shim, &why);
	if (why.status) {
		if (err)
			*err = why;
		return rc;
	}
	if (rc)
		ll_err_wrap(&why, "limits cannot be put in force");
	if (rc == -EPERM || rc == -ELIBBAD)
		ll_err_hint(&why, "--allow-ungoverned runs it nevertheless, without limits");
	if (rc == -ELIBBAD)
		shim[0] = '\0';
	bool is_elsewhere = ll_launchers_check(words, &elsewhere) < 0;
	bool is_refused = (rc || (is_elsewhere && is_strict)) && !args->allow_ungoverned;
	if (is_refused) {
		if (err)
			*err = is_elsewhere ? elsewhere : why;
		return is_elsewhere ? elsewhere.code : rc;
	}
	if (is_elsewhere)
		ll_log(LL_LOG_WARN, "%s; %s", elsewhere.text, elsewhere.hint);
	else if (rc)
		ll_log(LL_LOG_WARN, "%s", why.text);
	return 0;
}

/* Finds the program and the library, and checks them. */
static int find_program(const struct ll_run_args *args, char *const *words, bool is_strict, char path[PATH_MAX],
			char shim[PATH_MAX], struct ll_err *err)
{
	int rc = ll_run_find(words[0], path, err);
	if (!rc)
		rc = ll_run_find_shim(shim, err);
	return rc ? rc : check_command(args, words, is_strict, path, shim, err);
}

int ll_run_join(const struct ll_run_settings *settings, const struct ll_card *card, uint64_t promisable_bytes,
		int *ret_fd, struct ll_err *err)
{
	struct ll_ledger *ledger;
	struct ll_claim *claim = NULL;
	struct ll_tenant_wish wish = ll_run_settings_wish(settings);
	unsigned row = 0;
	wish.promisable_bytes = promisable_bytes;
	int rc = ll_ledger_open(settings->folder, card->uuid, true, &ledger, err);
	if (rc)
		return rc;
	ll_ledger_sweep_below(ledger);
	rc = ll_tenant_join(ledger, &wish, &row, err);
	/* Checks that there is room for the claim that the command will take. Without a claim it is not governed. */
	if (!rc)
		rc = ll_run_settings_claim(settings, ledger, card->label, &row, &claim, err);
	ll_claim_release(claim);
	if (!rc)
		rc = ll_tenant_keep(ledger, row, ret_fd, err);
	ll_ledger_close(ledger);
	return rc;
}

/* Joins the tenant on one card. The descriptor stays open, and the command inherits it. */
static int join_card(const struct ll_run_args *args, const struct ll_run_settings *settings, const struct ll_card *card,
		     struct ll_err *err)
{
	struct ll_err why = {0};
	int fd;
	int rc = ll_run_join(settings, card, args->overcommit ? 0 : card->usable_bytes, &fd, &why);
	if (rc == -EDQUOT) {
		ll_err_wrap(&why, "--mem-request: card %s", card->label);
		ll_err_hint(&why, "--overcommit starts it nevertheless, and then no request on the card is certain");
		ll_err_exit_with(&why, LL_EXIT_REFUSED);
	}
	if (rc && err)
		*err = why;
	return rc;
}

/* Returns why `--by auto` shares by time, as far as the options decide it. NULL: the daemon decides. */
static const char *why_by_time(const struct ll_run_settings *settings)
{
	if (settings->compute_cap_permille)
		return "--compute is a share of the time";
	if (settings->kills_at_max_kernel)
		return "a client of MPS must not be killed while its kernel runs";
	return NULL;
}

/* Decides for --by auto: by space if the daemon gives all that the user asked for, on all these cards. */
static void choose_way(const struct ll_driver *driver, const struct ll_run_args *args, struct ll_run_settings *settings,
		       const struct ll_card *const *cards, size_t count, struct ll_run_space *space)
{
	struct ll_err err = {0};
	struct ll_run_settings by_space = *settings;
	LL_SCOPE_FREE const struct ll_card **shown = malloc(count * sizeof *shown);
	size_t shown_count = count;
	const char *why = why_by_time(settings);
	if (!shown) {
		why = "no memory";
	} else if (!why) {
		memcpy(shown, cards, count * sizeof *shown);
		if (ll_run_space_choose(driver, args, &by_space, shown, &shown_count, space, &err) < 0)
			why = err.text;
		else if (shown_count < count)
			why = "the MPS daemon does not show all of the cards to clients";
	}
	if (why) {
		*space = (struct ll_run_space){.is_client = false};
		ll_log(LL_LOG_INFO, "shares the card by time: %s", why);
	} else {
		*settings = by_space;
		ll_log(LL_LOG_INFO, "shares the card by space, as a client of the MPS daemon at %s", space->pipe);
	}
}

static void set_place(const struct ll_driver *driver, struct ll_run_settings *settings)
{
	struct ll_place place;
	if (ll_place_find(ll_driver_sim_folder(driver), &place, NULL) == 0)
		memcpy(settings->place, place.name, sizeof settings->place);
}

/*
 * Joins the tenant on each card. visible becomes the cards' UUIDs, or stays empty if CUDA_VISIBLE_DEVICES can stay
 * unset. A client of MPS always gets the UUIDs, because limits of MPS for single cards go by their order.
 */
static int take_cards(const struct ll_run_args *args, const struct ll_driver *driver, bool is_nested,
		      struct ll_run_settings *settings, struct ll_run_space *space, struct ll_strbuf *visible,
		      struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_run_cards_choose(driver, args->cards, &cards, &count, err);
	/* Inside a governed program the variables of MPS are set already. */
	if (!rc && args->by == LL_RUN_BY_SPACE && !is_nested)
		rc = ll_run_space_choose(driver, args, settings, cards, &count, space, err);
	if (!rc && args->by == LL_RUN_BY_AUTO && !is_nested)
		choose_way(driver, args, settings, cards, count, space);
	if (!rc && !settings->folder[0])
		rc = ll_ledger_folder(ll_driver_sim_folder(driver), settings->folder, err);
	if (!rc && !is_nested)
		set_place(driver, settings);
	if (!rc && count > 1 && !settings->first_card[0])
		snprintf(settings->first_card, sizeof settings->first_card, "%s", cards[0]->uuid);
	for (size_t i = 0; !rc && i < count; i++)
		rc = ll_run_args_check_card(settings, cards[i], err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = join_card(args, settings, cards[i], err);
	for (size_t i = 0; !rc && settings->is_evictable && i < count; i++)
		rc = ll_mover_start(cards[i], settings->folder, err);
	if (!rc && (space->is_client || !ll_run_cards_are_as_found(driver, args->cards)))
		ll_run_cards_add_uuids(visible, cards, count);
	return rc;
}

/* Nothing that the user can ask for needs loadlined yet, so the command is run without it, and without a word. */
static void start_job(const struct ll_run_args *args, const struct ll_run_settings *settings, const char *command,
		      const char *sim_folder)
{
	struct ll_err why = {0};
	struct ll_run_job job = {
	    .settings = settings, .command = command, .sim_folder = sim_folder, .is_named = args->tenant};
	if (ll_run_job_start(&job, &why))
		ll_debug("not known to loadlined: %s", why.text);
}

static int exec_program(const char *path, char **words, const struct ll_run_environment *wish, struct ll_err *err)
{
	char **environment;
	int rc = ll_run_environment_make(wish, &environment, err);
	if (rc < 0)
		return rc;
	ll_run_bequeath(wish->settings);
	execvpe(path, words, environment);
	int code = errno;
	ll_run_environment_free(environment);
	ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
	if (err)
		err->status = code == ENOENT ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

int ll_run_start(const struct ll_run_args *args, const struct ll_operands *operands, struct ll_err *err)
{
	struct ll_run_settings settings;
	struct ll_run_space space = {.is_client = false};
	struct ll_driver *driver = NULL;
	LL_SCOPE_STRBUF struct ll_strbuf visible = LL_STRBUF_INIT;
	char path[PATH_MAX];
	char shim[PATH_MAX] = "";
	bool is_nested;
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "run: no command to run");
	int rc = make_settings(args, operands->words[0], &settings, &is_nested, err);
	if (!rc)
		rc = find_program(args, operands->words, settings.is_strict, path, shim, err);
	if (!rc)
		rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = take_cards(args, driver, is_nested, &settings, &space, &visible, err);
	/* What a governed program starts belongs to that program's job. */
	if (!rc && !is_nested)
		start_job(args, &settings, operands->words[0], ll_driver_sim_folder(driver));
	ll_driver_close(driver);
	if (!rc && !is_nested && settings.weight_permille != LL_DEFAULT_WEIGHT_PERMILLE)
		ll_log(LL_LOG_WARN, "%s", LL_LIMIT_WEIGHT_NOTE);
	if (!rc && visible.failed)
		rc = ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	struct ll_run_environment wish = {
	    .settings = &settings, .shim = *shim ? shim : NULL, .visible = visible.length ? visible.buf : NULL};
	if (space.is_client) {
		wish.mps_pipe = space.pipe;
		wish.mps_log = space.log;
		wish.mps_percent = *space.percent ? space.percent : NULL;
	}
	return rc ? rc : exec_program(path, operands->words, &wish, err);
}
