#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/scope.h"
#include "cli/command.h"
#include "cli/help_text.h"
#include "cli/run_args.h"
#include "cli/run_cards.h"
#include "cli/run_environment.h"
#include "cli/run_find.h"

enum { OWN_FAILURE = 125 };

/* Inside a governed program its settings are the command's too. */
static int make_settings(const struct ll_run_args *args, const char *command, struct ll_run_settings *ret_settings,
			 struct ll_err *err)
{
	const char *outer = getenv(LL_RUN_VARIABLE);
	if (!outer)
		return ll_run_args_settings(args, command, ret_settings, err);
	if (ll_run_settings_read(outer, ret_settings) < 0) {
		ll_err_set(err, -EINVAL, LL_RUN_VARIABLE ": garbled");
		return ll_err_hint(err, "only `loadline run` sets it: unset it");
	}
	return ll_run_args_check_nested(args, ret_settings, err);
}

static int find_program(const struct ll_run_args *args, const char *command, char path[PATH_MAX], char shim[PATH_MAX],
			struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_run_find(command, path, err);
	if (!rc)
		rc = ll_run_find_shim(shim, err);
	if (rc)
		return rc;
	rc = ll_run_check_program(path, shim, &why);
	if (rc && args->allow_ungoverned)
		ll_log(LL_LOG_WARN, "%s", why.text);
	else if (rc && err)
		*err = why;
	return args->allow_ungoverned ? 0 : rc;
}

/* The descriptor stays open: whoever inherits it keeps the tenant. */
static int join(const struct ll_run_settings *settings, const struct ll_card *card, struct ll_err *err)
{
	struct ll_tenant_wish wish = ll_run_settings_wish(settings);
	struct ll_ledger *ledger;
	unsigned row;
	int fd;
	int rc = ll_ledger_open(settings->folder, card->uuid, true, &ledger, err);
	if (rc)
		return rc;
	rc = ll_tenant_join(ledger, &wish, &row, err);
	if (!rc)
		rc = ll_tenant_keep(ledger, row, &fd, err);
	ll_ledger_close(ledger);
	return rc;
}

/* Takes the tenant's place on every card; visible becomes their UUIDs. */
static int take_cards(const struct ll_run_args *args, const struct ll_driver *driver, struct ll_run_settings *settings,
		      struct ll_strbuf *visible, struct ll_err *err)
{
	LL_SCOPE_FREE const struct ll_card **cards = NULL;
	size_t count = 0;
	int rc = ll_run_cards_choose(driver, args->cards, &cards, &count, err);
	if (!rc && !settings->folder[0])
		rc = ll_ledger_folder(ll_driver_sim_folder(driver), settings->folder, err);
	if (!rc && count > 1 && !settings->first_card[0])
		snprintf(settings->first_card, sizeof settings->first_card, "%s", cards[0]->uuid);
	for (size_t i = 0; !rc && i < count; i++)
		rc = ll_run_args_check_card(settings, cards[i], err);
	for (size_t i = 0; !rc && i < count; i++)
		rc = join(settings, cards[i], err);
	if (!rc)
		ll_run_cards_add_uuids(visible, cards, count);
	return rc;
}

static int become(const char *path, char **words, const struct ll_run_settings *settings, const char *shim,
		  const char *visible, struct ll_err *err)
{
	char **environment;
	int rc = ll_run_environment_make(settings, shim, visible, &environment, err);
	if (rc < 0)
		return rc;
	execvpe(path, words, environment);
	int code = errno;
	ll_run_environment_free(environment);
	ll_err_set(err, -code, "%.200s: %s", path, strerror(code));
	if (err)
		err->status = code == ENOENT ? LL_RUN_NOT_FOUND : LL_RUN_NOT_EXECUTABLE;
	return -code;
}

static int run(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct ll_run_args *args = data;
	struct ll_run_settings settings;
	struct ll_driver *driver = NULL;
	LL_SCOPE_STRBUF struct ll_strbuf visible = LL_STRBUF_INIT;
	char path[PATH_MAX];
	char shim[PATH_MAX];
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "run: no command to run");
	int rc = make_settings(args, operands->words[0], &settings, err);
	if (!rc)
		rc = find_program(args, operands->words[0], path, shim, err);
	if (!rc)
		rc = ll_driver_open(&driver, err);
	if (!rc)
		rc = take_cards(args, driver, &settings, &visible, err);
	ll_driver_close(driver);
	if (!rc && visible.failed)
		rc = ll_err_set(err, -ENOMEM, "cards: %s", strerror(ENOMEM));
	return rc ? rc : become(path, operands->words, &settings, shim, visible.buf, err);
}

static const struct ll_help_status statuses[] = {
    {OWN_FAILURE, "loadline itself failed: bad usage, no card, no driver, limits that cannot be put in force."},
    {LL_RUN_NOT_EXECUTABLE, "COMMAND was found but could not be run."},
    {LL_RUN_NOT_FOUND, "COMMAND was not found."},
    {0, NULL},
};

static const struct ll_example examples[] = {
    {"loadline run --mem 20G --compute 25% -- python train.py", "A quarter of the card's time, 20 GiB of its memory."},
    {"loadline run -i 1 --priority low --tenant night -- ./render", "Card 1, whenever nobody else wants it."},
    {"loadline run --weight 2 -- sh -c './a & ./b; wait'", "Twice the time of others, shared by the two programs."},
    {NULL, NULL},
};

const struct ll_command ll_command_run = {
    .name = "run",
    .summary = "run a CUDA program under limits",
    .operands = "[--] COMMAND [ARG]...",
    .description =
	"Becomes COMMAND, so its exit status and signals are the command's, and puts a library in front of the CUDA "
	"driver in it and in all that it starts. These together are a tenant: they share the limits, on each card "
	"anew. Limits may be changed while it runs (`loadline set`); `loadline status` shows them beside what is "
	"used.\n\n"
	"An allocation that would pass the memory limit fails with CUDA's own error for that, and the program "
	"goes on. Launches wait, in the program's own threads, for their turn and for their share of time.\n\n"
	"The command sees the chosen cards only (CUDA_VISIBLE_DEVICES); what that variable hides already "
	"stays hidden. Inside a governed program run may choose cards but no limits: what it starts belongs to the "
	"same tenant.\n\n"
	"A program that nothing can be preloaded into is refused. One that drops the library later on is not "
	"held back; status shows it as ungoverned.",
    .examples = examples,
    .options = ll_run_options,
    .args_size = sizeof(struct ll_run_args),
    .takes_command = true,
    .failure_status = OWN_FAILURE,
    .statuses = statuses,
    .run = run,
};
