/*
 * nearest.h - finds the name that is nearest to a misspelt word.
 *
 *     struct ll_nearest nearest = {.word = "stauts"};
 *     ll_nearest_offer(&nearest, "status");
 *     if (nearest.name)
 *             ll_err_hint(err, "did you mean %s?", nearest.name);
 */
#ifndef LOADLINE_CLI_OPTIONS_NEAREST_H
#define LOADLINE_CLI_OPTIONS_NEAREST_H

#include <stddef.h>

struct ll_command;
struct ll_option;

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

/* Compares the word with all names of a table, and with "help", which each command has. */
void ll_nearest_offer_options(struct ll_nearest *nearest, const struct ll_option *options);

/* Compares the word with all names of a NULL-ended list. */
void ll_nearest_offer_commands(struct ll_nearest *nearest, const struct ll_command *const *list);

#endif
