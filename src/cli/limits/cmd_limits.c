#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/scope.h"
#include "base/translate.h"
#include "cli/common/sensed_cards.h"
#include "cli/limits/library.h"
#include "cli/limits/limits.h"
#include "cli/options/command.h"

struct limits_args {
	bool is_json;
};

static const struct ll_option limits_options[] = {
    LL_OPTION_JSON(struct limits_args, is_json),
    LL_OPTION_END,
};

static int print_text(const struct ll_limits_view *view, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf text = LL_STRBUF_INIT;
	unsigned columns, rows;
	ll_status_terminal(&columns, &rows);
	ll_limits_add_text(&text, view, columns);
	if (text.failed)
		return ll_err_set(err, -ENOMEM, "limits: %s", strerror(ENOMEM));
	fwrite(text.buf, 1, text.length, stdout);
	return 0;
}

/* Shows what the cards tell also if loadlined does not answer, and then fails, as status does. */
static int show(const struct ll_driver *driver, bool is_json, struct ll_err *err)
{
	struct ll_limits_view view;
	int rc = ll_limits_view_init(&view, driver, err);
	if (!rc)
		rc = is_json ? ll_limits_print_json(&view, err) : print_text(&view, err);
	if (!rc && view.daemon.answer == LL_DAEMON_SILENT) {
		rc = ll_err_set(err, -ETIMEDOUT, "loadlined, pid %d, does not answer", (int)view.daemon.pid);
		ll_err_hint(err, "`loadline doctor` tells more");
	}
	ll_limits_view_fini(&view);
	return rc;
}

static int run_limits(void *words, const struct ll_operands *operands, struct ll_err *err)
{
	const struct limits_args *args = words;
	struct ll_driver *driver = NULL;
	(void)operands;
	ll_limits_leave_library();
	int rc = ll_cards_open(-EACCES, &driver, err);
	if (!rc)
		rc = show(driver, args->is_json, err);
	ll_driver_close(driver);
	return rc;
}

static const struct ll_example limits_examples[] = {
    {"loadline limits", N_("What this user's jobs may have and have, and what is left on each card.")},
    {"loadline run --mem 8G -- loadline limits", N_("The limits of the job in which it runs.")},
    {NULL, NULL},
};

const struct ll_command ll_command_limits = {
    .name = "limits",
    .summary = N_("tell what I may have, have, and find left"),
    .description = N_(
	"Prints the limits of this user's jobs as they are in force now, what each job has on each card, and what is "
	"left "
	"there: the memory that is free, and the memory that --mem-request can promise yet. Inside a job, such as "
	"in a script under `loadline run`, it tells that job's limits and its cards alone.\n\n"
	"A job has the limits of its `loadline run`, and those of `loadline set` since. On a machine with a "
	"configuration the user's tenants are told too: what each user may have there and this user has, the classes, "
	"and what the tenant is guaranteed in each group of cards; admins and operators get all tenants. Without one "
	"there are no limits of users: that is said, and user_limits is null.\n\n"
	"\"left\" of a job is the rest of its limit, or what the card has free if that is less. Another program may "
	"take "
	"it first, unless it was promised. In a container whose /etc/ld.so.preload names the library, NVML tells the "
	"job's limit in place of the card's memory; there what is left is unknown.\n\n"
	"With --json there is one object for the user ({\"user\":\"ann\",…}), each job ({\"job\":…}), each card "
	"({\"card\":0,…}), and each job's use of that card ({\"use\":…}), which follows the card. A value that is not "
	"known, and a limit that there is not, is null. as_it_began says that loadlined did not tell the limits of "
	"this "
	"job, which are then those with which it began."),
    .examples = limits_examples,
    .options = limits_options,
    .args_size = sizeof(struct limits_args),
    .run = run_limits,
};
