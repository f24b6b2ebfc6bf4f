#include "cli/options/command.h"

#include <stdio.h>
#include <string.h>

#include "base/strbuf.h"

const struct ll_command *ll_command_find_in(const struct ll_command *const *list, const char *name)
{
	for (; *list; list++) {
		if (strcmp((*list)->name, name) == 0)
			return *list;
	}
	return NULL;
}

const char *ll_command_name(const struct ll_command *command, char between, char text[LL_COMMAND_NAME_SIZE])
{
	if (command->group)
		snprintf(text, LL_COMMAND_NAME_SIZE, "%s%c%s", command->group->name, between, command->name);
	else
		snprintf(text, LL_COMMAND_NAME_SIZE, "%s", command->name);
	return text;
}

void ll_command_add_names(const struct ll_command *const *list, const char *separator, struct ll_strbuf *out)
{
	for (const struct ll_command *const *command = list; *command; command++)
		ll_strbuf_addf(out, "%s%s", command == list ? "" : separator, (*command)->name);
}
