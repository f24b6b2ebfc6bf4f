#include "cli/options/elsewhere.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "cli/options/command.h"
#include "cli/options/option.h"

struct name {
	const char *theirs, *ours;
};

/* If a name has several rows, the first one whose option is in the table counts. */
static const struct name option_names[] = {
    {"gpu", "cards"},  {"gpus", "cards"},        {"device", "cards"}, {"devices", "cards"},
    {"memory", "mem"}, {"memory", "max-memory"}, {"name", "tenant"},  {"duration", "for"},
    {"time", "for"},   {"v", "version"},         {"V", "version"},
};

static const struct name command_names[] = {
    {"ps", "clients"},  {"list", "clients"}, {"ls", "clients"},         {"ps", "status"},
    {"list", "status"}, {"ls", "status"},    {"top", "status --watch"},
};

static bool has_option(const struct ll_option *option, const char *name)
{
	for (; option->name; option++) {
		if (strcmp(option->name, name) == 0)
			return true;
	}
	return false;
}

const char *ll_elsewhere_option(const struct ll_option *options, const char *name, size_t length)
{
	for (size_t i = 0; i < sizeof option_names / sizeof *option_names; i++) {
		const struct name *row = &option_names[i];
		if (strlen(row->theirs) == length && strncmp(row->theirs, name, length) == 0 &&
		    has_option(options, row->ours))
			return row->ours;
	}
	return NULL;
}

const char *ll_elsewhere_letter(const struct ll_option *options, char letter)
{
	return ll_elsewhere_option(options, &letter, 1);
}

const char *ll_elsewhere_command(const struct ll_command *const *list, const char *name)
{
	for (size_t i = 0; i < sizeof command_names / sizeof *command_names; i++) {
		const struct name *row = &command_names[i];
		char command[32];
		snprintf(command, sizeof command, "%.*s", (int)strcspn(row->ours, " "), row->ours);
		if (strcmp(row->theirs, name) == 0 && ll_command_find_in(list, command))
			return row->ours;
	}
	return NULL;
}
