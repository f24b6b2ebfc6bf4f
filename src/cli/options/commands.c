#include "cli/options/command.h"

const struct ll_command *const ll_commands[] = {
#define LL_COMMAND_PART(title)
#define LL_COMMAND(name) &ll_command_##name,
#include "cli/options/commands.def"
#undef LL_COMMAND
#undef LL_COMMAND_PART
    NULL,
};

const struct ll_command_part ll_command_parts[] = {
#define LL_COMMAND_PART(text) {.title = (text)},
#define LL_COMMAND(name) {.command = &ll_command_##name},
#include "cli/options/commands.def"
#undef LL_COMMAND
#undef LL_COMMAND_PART
    {.title = NULL},
};

const struct ll_command *ll_command_find(const char *name)
{
	return ll_command_find_in(ll_commands, name);
}
