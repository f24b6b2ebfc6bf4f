#include "cli/options/nearest.h"

#include <string.h>

#include "cli/options/command.h"
#include "cli/options/elsewhere.h"
#include "cli/options/option.h"

enum { FAR = 3, LETTERS_MAX = 32 };

static unsigned find_smallest(unsigned a, unsigned b, unsigned c)
{
	unsigned least = a < b ? a : b;
	return least < c ? least : c;
}

/* Returns the Levenshtein distance. It keeps one row of the table. */
static unsigned find_distance(const char *word, size_t word_length, const char *name, size_t name_length)
{
	unsigned row[LETTERS_MAX + 1];
	for (size_t j = 0; j <= name_length; j++)
		row[j] = (unsigned)j;
	for (size_t i = 1; i <= word_length; i++) {
		unsigned diagonal = row[0];
		row[0] = (unsigned)i;
		for (size_t j = 1; j <= name_length; j++) {
			unsigned above = row[j];
			row[j] = find_smallest(above + 1, row[j - 1] + 1, diagonal + (word[i - 1] != name[j - 1]));
			diagonal = above;
		}
	}
	return row[name_length];
}

void ll_nearest_offer(struct ll_nearest *nearest, const char *name)
{
	size_t word_length = nearest->length ? nearest->length : strlen(nearest->word);
	size_t name_length = strlen(name);
	if (word_length > LETTERS_MAX || name_length > LETTERS_MAX)
		return;
	unsigned found = find_distance(nearest->word, word_length, name, name_length);
	if (found >= FAR || found >= word_length || (nearest->name && found >= nearest->distance))
		return;
	nearest->name = name;
	nearest->distance = found;
}

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
