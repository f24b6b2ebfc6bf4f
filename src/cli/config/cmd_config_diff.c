#include <errno.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "cli/common/print.h"
#include "cli/config/parts.h"
#include "config/value.h"

struct diff_args {
	const char *from;
};

static const struct ll_option diff_options[] = {
    {.name = "from",
     .placeholder = "FILE",
     LL_OPTION_TEXT(struct diff_args, from),
     .complete = LL_COMPLETE_FILE,
     .help = N_("Compare with this file or folder, instead of /etc/loadline.")},
    LL_OPTION_END,
};

/* Reads one of the two. -EBADMSG: it has faults, which are printed. */
static int open_side(struct ll_config *config, const char *path, struct ll_err *err)
{
	struct ll_config_findings findings = {0};
	bool has_cards;
	int rc = ll_config_open(config, path, LL_CONFIG_SCOPE_FILE, &findings, &has_cards, err);
	if (rc)
		ll_err_exit_with(err, LL_EXIT_FAILED);
	if (!rc)
		rc = ll_config_refuse_faults(&findings, err);
	ll_config_findings_fini(&findings);
	return rc;
}

static int run_diff(void *data, const struct ll_operands *operands, struct ll_err *err)
{
	const struct diff_args *args = data;
	struct ll_config before = {0}, after = {0};
	LL_SCOPE_STRBUF struct ll_strbuf out = LL_STRBUF_INIT;
	if (operands->count != 1)
		return ll_err_set(err, -EINVAL, "config diff: %s",
				  operands->count ? _("one file at a time") : _("no file named"));
	int rc = open_side(&before, args->from, err);
	if (!rc)
		rc = open_side(&after, operands->words[0], err);
	if (!rc) {
		if (!ll_config_add_changes(before.root, after.root, &out))
			ll_strbuf_adds(&out, _("no difference\n"));
		rc = ll_print_text(&out, err);
	}
	ll_config_fini(&before);
	ll_config_fini(&after);
	return rc;
}

static const struct ll_example diff_examples[] = {
    {"loadline config diff new.yaml", N_("What new.yaml would change.")},
    {"loadline config diff --from old.yaml new.yaml", N_("Two files.")},
    {NULL, NULL},
};

const struct ll_command ll_config_diff_command = {
    .name = "diff",
    .group = &ll_command_config,
    .summary = N_("print what another configuration would change"),
    .operands = "FILE",
    .description =
	N_("Compares the effective configuration with that of FILE, a file or a folder, by what they mean: 1024M is "
	   "1G, a default is the same whether it is written or not, and a tenant is found by its name. One line for "
	   "each difference; + is new, - is gone. Both must be without faults."),
    .examples = diff_examples,
    .options = diff_options,
    .complete = LL_COMPLETE_FILE,
    .args_size = sizeof(struct diff_args),
    .run = run_diff,
};
