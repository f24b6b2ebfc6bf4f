#include "base/nearest.h"

#include <string.h>

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
