/*
 * words.h - splits the line of a command into words, and stores commands until their time. Errors name the word.
 */
#ifndef LOADLINE_SIM_CARD_WORDS_H
#define LOADLINE_SIM_CARD_WORDS_H

#include "card/world.h"

struct ll_err;

enum { SIM_MAX_WORDS = 32 };

/* A line cut into words. rest[i] is the line from word i on. */
struct sim_words {
	char text[256];
	char line[256];
	int count;
	const char *word[SIM_MAX_WORDS];
	const char *rest[SIM_MAX_WORDS];
};

/* Cuts a line. -EINVAL: too long, or too many words. */
int sim_words_split(const char *line, struct sim_words *words, struct ll_err *err);

/* Returns word i; "": the line is shorter. */
const char *sim_word_at(const struct sim_words *words, int i);

/* Parse the number min..max, duration or size at word i. -EINVAL: it is missing or wrong. */
int sim_word_uint(const struct sim_words *words, int i, uint64_t min, uint64_t max, uint64_t *ret, struct ll_err *err);
int sim_word_duration(const struct sim_words *words, int i, uint64_t *ret_ns, struct ll_err *err);
int sim_word_bytes(const struct sim_words *words, int i, uint64_t *ret_bytes, struct ll_err *err);
int sim_word_number(const struct sim_words *words, int i, double min, double max, double *ret, struct ll_err *err);

/* -EINVAL: the line has not exactly `count` words. */
int sim_words_end(const struct sim_words *words, int count, struct ll_err *err);

/* Stores a command, which the world runs at at_ns. -ENOSPC: too many are stored. -EINVAL: it is too long. */
int sim_command_put_off(struct sim_world *w, uint64_t at_ns, const char *line, struct ll_err *err);

#endif
