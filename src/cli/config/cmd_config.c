#include "base/translate.h"
#include "cli/config/parts.h"

static const struct ll_command *const subcommands[] = {
    &ll_config_check_command, &ll_config_show_command, &ll_config_diff_command, &ll_config_schema_command, NULL,
};

static const struct ll_option group_options[] = {LL_OPTION_END};

static const struct ll_example group_examples[] = {
    {"loadline config check new.yaml", N_("Every fault of a file, with its line and column.")},
    {"loadline config diff new.yaml", N_("What the file would change.")},
    {"loadline config show --origin", N_("What holds, and which line says so.")},
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
	   "In this version loadlined reads no configuration: these commands read, check and show it, and nothing "
	   "acts on it yet. `config check` names the keys that are not in force."),
    .examples = group_examples,
    .options = group_options,
};
