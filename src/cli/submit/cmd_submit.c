#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/table.h"
#include "cli/options/help_text.h"
#include "cli/run/run.h"
#include "cli/submit/submit.h"
#include "protocol/inherited.h"

enum { OPTIONS_MAX = 64 };

/* The options of `run` fill the first member. */
struct submit_args {
	struct ll_run_args run;
	const char *output;
};

static const struct ll_option own_options[] = {
    {.name = "output",
     .letter = 'o',
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct submit_args, output),
     .fallback = "loadline-%j.out",
     .complete = LL_COMPLETE_FILE,
     .help = N_("The file that gets what the command prints, on both of its outputs. It is made anew, and what "
		"lies there must be a plain file of yours, or /dev/null. %j stands for the "
		"job's number, %% for a percent sign.")},
    LL_OPTION_END,
};

/* The options of `run`, and then its own. The table of `run` is in one place, and C has no way to join constant arrays,
 * so they are joined before main. */
static struct ll_option submit_options[OPTIONS_MAX + 1];

__attribute__((constructor)) static void join_options(void)
{
	size_t count = 0;
	for (const struct ll_option *option = own_options; option->name; option++)
		submit_options[count++] = *option;
	for (const struct ll_option *option = ll_run_options; option->name && count < OPTIONS_MAX; option++)
		submit_options[count++] = *option;
	submit_options[count] = (struct ll_option)LL_OPTION_END;
}

/* A job of its own cannot begin in another one: its processes are of that job, by their control group. */
static int refuse_nested(struct ll_err *err)
{
	struct ll_run_settings settings;
	if (ll_run_settings_find(&settings))
		return 0;
	ll_err_set(err, -EPERM, "submit: this program belongs to a job already, of tenant %s", settings.tenant);
	return ll_err_hint(err, "submit from outside of the job");
}

static int print_started(const struct ll_submit_started *started, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	ll_strbuf_addf(&text, "%" PRIu64 "\n", started->number);
	ll_log(LL_LOG_INFO, "job %" PRIu64 ": its output goes to %s", started->number, started->log);
	if (ll_submit_dies_at_logout())
		ll_log(LL_LOG_WARN, "this machine ends the processes of a session at logout (KillUserProcesses of "
				    "logind.conf), and so the job; `systemd-run --user --scope loadline submit` with "
				    "`loginctl enable-linger` avoids it");
	return ll_print_text(&text, err);
}

static int run_submit(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct submit_args *args = data;
	char folder[PATH_MAX];
	struct ll_submit_started started;
	struct ll_submit_job job = {.args = &args->run, .operands = operands, .folder = folder, .output = args->output};
	char unused[PATH_MAX];
	if (!operands->count)
		return ll_err_set(err, -EINVAL, "submit: no command to run");
	if (ll_submit_log_path(args->output, 1, "/", unused) == -EINVAL)
		return ll_err_set(err, -EINVAL, "--output: '%.100s': only %%j and %%%% may follow a percent sign",
				  args->output);
	int rc = refuse_nested(err);
	if (!rc)
		rc = ll_submit_folder(getenv("LOADLINE_SIM_DIR"), folder, err);
	if (!rc)
		ll_submit_prune(folder);
	if (!rc)
		rc = ll_submit_start(&job, &started, err);
	if (rc)
		return rc;
	return started.number ? print_started(&started, err) : started.status;
}

static const struct ll_command *const subcommands[] = {
    &ll_submit_list, &ll_submit_wait, &ll_submit_stop, &ll_submit_log, NULL,
};

static const struct ll_help_status statuses[] = {
    {LL_EXIT_OK, N_("The job waits or runs; its number was printed.")},
    {LL_EXIT_FAILED, N_("Failed.")},
    {LL_EXIT_USAGE, N_("Bad usage.")},
    {LL_EXIT_NO_CARD, N_("No usable card or driver.")},
    {LL_EXIT_REFUSED, N_("The configuration of the machine refuses the job, or --no-wait found no place.")},
    {LL_RUN_NOT_EXECUTABLE, N_("COMMAND was found but could not be run.")},
    {LL_RUN_NOT_FOUND, N_("COMMAND was not found.")},
    {0, NULL},
};

static const struct ll_example examples[] = {
    {"loadline submit --mem 20G --time 4h -- python train.py", N_("The job starts when it has its place.")},
    {"loadline submit --after-ok 12 -o eval-%j.log -- python eval.py",
     N_("After job 12, if that ended with status 0.")},
    {"loadline submit wait 12", N_("Wait for the end of job 12; the exit status is the job's.")},
    {"loadline submit log -f 12", N_("Show what job 12 prints.")},
    {NULL, NULL},
};

const struct ll_command ll_command_submit = {
    .name = "submit",
    .subcommands = subcommands,
    .summary = N_("run a CUDA program under limits later, without a terminal"),
    .operands = "[--] COMMAND [ARG]...",
    .description = N_(
	"As `loadline run`, but the job leaves the terminal at once, and goes on after a logout where the system lets "
	"it. "
	"It waits in the queue of the machine, if there is one. submit prints the job's number as soon as the job "
	"waits or "
	"runs.\n\n"
	"The job has the working directory, the environment, the umask and the resource limits of submit. Its standard "
	"input is empty. It is a process of the user from the start; no service starts it. So it does not survive a "
	"restart of the machine: `loadline submit list` shows it as lost then. What is known of the jobs is in "
	"$XDG_STATE_HOME/loadline/jobs (~/.local/state/loadline/jobs), for 30 days after their end.\n\n"
	"Where the configuration of the machine says so, a job that is stopped because its room was lent is started "
	"again; LOADLINE_RESTART_COUNT in its environment says how often.\n\n"
	"If COMMAND has the name of a command below, write -- before it. `loadline queue cancel` and `loadline set "
	"--time` "
	"take the job's number too, if the machine has a queue."),
    .examples = examples,
    .options = submit_options,
    .args_size = sizeof(struct submit_args),
    .takes_command = true,
    .statuses = statuses,
    .run = run_submit,
};
