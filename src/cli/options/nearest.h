/*
 * nearest.h - the name that a misspelt word was meant to be.
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
	size_t length;    /* of the word; 0: up to its end */
	const char *name; /* the nearest so far; NULL: none is near. The first of several that are equally near */
	unsigned distance;
};

/*
 * Takes a name that is at most two letters away (one more, one less or another one each), and fewer than the word has.
 * Words and names of more than 32 letters are near to nothing.
 */
void ll_nearest_offer(struct ll_nearest *nearest, const char *name);

/* All names of a table, and "help", which each command has. */
void ll_nearest_offer_options(struct ll_nearest *nearest, const struct ll_option *options);

/* All names of a NULL-ended list. */
void ll_nearest_offer_commands(struct ll_nearest *nearest, const struct ll_command *const *list);

#endif
