#include "cli/config/parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/scope.h"
#include "base/strbuf.h"
#include "base/translate.h"
#include "config/check.h"
#include "config/names.h"
#include "driver/cards.h"

#define NAMES_WAIT_NS (5 * LL_NS_PER_S)

/* Returns whether there is a driver; then the policy was compared with its cards. */
static bool check_cards(const struct ll_config_policy *policy, struct ll_config_findings *findings)
{
	struct ll_driver *driver = NULL;
	const struct ll_card *cards;
	if (ll_driver_open(&driver, NULL))
		return false;
	size_t count = ll_driver_cards(driver, &cards);
	LL_SCOPE_FREE struct ll_config_machine_card *list = calloc(count + 1, sizeof *list);
	for (size_t i = 0; list && i < count; i++) {
		list[i].index = cards[i].index;
		list[i].slice = cards[i].is_mig ? (int)cards[i].slice : -1;
		list[i].has_slices = cards[i].has_slices;
		list[i].memory_bytes = cards[i].usable_bytes ? cards[i].usable_bytes : cards[i].memory_bytes;
	}
	if (list)
		ll_config_check_machine(policy, &(struct ll_config_machine){count, list}, findings);
	else
		findings->failed = true;
	ll_driver_close(driver);
	return true;
}

int ll_config_open(struct ll_config *config, const char *path, enum ll_config_scope scope,
		   struct ll_config_findings *findings, bool *ret_has_cards, struct ll_err *err)
{
	int rc = ll_config_load(config, path, findings, err);
	if (rc)
		return rc;
	*ret_has_cards = false;
	if (config->root)
		ll_config_check(&config->policy, (int64_t)time(NULL), findings);
	if (config->root && scope == LL_CONFIG_SCOPE_MACHINE) {
		*ret_has_cards = check_cards(&config->policy, findings);
		ll_config_check_names(&config->policy, LL_CONFIG_GETENT, NAMES_WAIT_NS, findings);
	}
	ll_config_findings_sort(findings);
	return findings->failed ? ll_err_set(err, -ENOMEM, "out of memory") : 0;
}

void ll_config_add_findings(const struct ll_config_findings *findings, bool with_warnings, struct ll_strbuf *out)
{
	for (size_t i = 0; i < findings->count; i++) {
		const struct ll_config_finding *finding = &findings->items[i];
		bool is_fault = finding->level == LL_CONFIG_FAULT;
		if (!is_fault && !with_warnings)
			continue;
		ll_config_finding_add_place(finding, out);
		ll_strbuf_addf(out, is_fault ? _("fault: %s\n") : _("warning: %s\n"), finding->text);
	}
}

int ll_config_refuse_faults(const struct ll_config_findings *findings, struct ll_err *err)
{
	LL_SCOPE_STRBUF struct ll_strbuf lines = LL_STRBUF_INIT;
	if (!findings->fault_count)
		return 0;
	ll_config_add_findings(findings, false, &lines);
	fputs(lines.buf, stderr);
	ll_err_set(err, -EBADMSG, "the configuration has faults");
	return ll_err_exit_with(err, LL_EXIT_FAILED);
}

static const struct ll_command *const subcommands[] = {
    &ll_config_check_command, &ll_config_show_command,   &ll_config_diff_command,
    &ll_config_try_command,   &ll_config_schema_command, NULL,
};

static const struct ll_option group_options[] = {LL_OPTION_END};

static const struct ll_example group_examples[] = {
    {"loadline config check new.yaml", N_("Every fault of a file, with its line and column.")},
    {"loadline config diff new.yaml", N_("What the file would change.")},
    {"loadline config show --origin", N_("What holds, and which line says so.")},
    {"loadline config try new.yaml", N_("What the file would have done with the jobs of the last seven days.")},
    {NULL, NULL},
};

const struct ll_command ll_command_config = {
    .name = "config",
    .subcommands = subcommands,
    .summary = N_("check, show and compare the configuration of a machine"),
    .description =
	N_("The policy of a machine is /etc/loadline/loadline.yaml, and the files of /etc/loadline/loadline.d that "
	   "end in .yaml, in the order of their names. A later file's value replaces an earlier one's; an entry of a "
	   "list replaces the one of the same name. loadline.yaml(5) lists the keys.\n\n"
	   "The system's loadlined acts on it. It reads the files at its start, and again at `systemctl reload "
	   "loadlined`; files with faults change nothing. These commands read, check and show them. `config check` "
	   "names the keys that are not in force in this version."),
    .examples = group_examples,
    .options = group_options,
};
