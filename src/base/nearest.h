/*
 * nearest.h - finds the name that is nearest to a misspelt word.
 *
 *     struct ll_nearest nearest = {.word = "stauts"};
 *     ll_nearest_offer(&nearest, "status");
 *     if (nearest.name)
 *             ll_err_hint(err, "did you mean %s?", nearest.name);
 */
#ifndef LOADLINE_BASE_NEAREST_H
#define LOADLINE_BASE_NEAREST_H

#include <stddef.h>

struct ll_nearest {
	const char *word;
	size_t length;    /* length of the word; 0: up to its end */
	const char *name; /* the nearest name so far, the first of several that are equally near; NULL: none is near */
	unsigned distance;
};

/*
 * Compares the word with a name. The name is near if at most two letters must be added, removed or replaced, and fewer
 * than the word has. Words and names of more than 32 letters are not near to anything.
 */
void ll_nearest_offer(struct ll_nearest *nearest, const char *name);

#endif
