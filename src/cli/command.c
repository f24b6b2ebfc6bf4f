#include "cli/command.h"

#include <string.h>

const struct ll_command *const ll_commands[] = {
#define LL_COMMAND(name) &ll_command_##name,
#include "cli/commands.def"
#undef LL_COMMAND
    NULL,
};

const struct ll_command *ll_command_find(const char *name)
{
	for (const struct ll_command *const *command = ll_commands; *command; command++) {
		if (strcmp((*command)->name, name) == 0)
			return *command;
	}
	return NULL;
}
