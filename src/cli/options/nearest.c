#include "cli/options/nearest.h"

#include "base/nearest.h"
#include "cli/options/command.h"
#include "cli/options/elsewhere.h"
#include "cli/options/option.h"

const char *ll_nearest_option(const struct ll_option *options, const char *name, size_t length)
{
	struct ll_nearest nearest = {.word = name, .length = length};
	const char *ours = ll_elsewhere_option(options, name, length);
	if (ours)
		return ours;
	for (; options->name; options++)
		ll_nearest_offer(&nearest, options->name);
	ll_nearest_offer(&nearest, "help");
	return nearest.name;
}

const char *ll_nearest_command(const struct ll_command *const *list, const char *word)
{
	struct ll_nearest nearest = {.word = word};
	const char *ours = ll_elsewhere_command(list, word);
	if (ours)
		return ours;
	for (; *list; list++)
		ll_nearest_offer(&nearest, (*list)->name);
	return nearest.name;
}
