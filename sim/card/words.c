#include "card/words.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/parse.h"

int sim_words_split(const char *line, struct sim_words *words, struct ll_err *err)
{
	*words = (struct sim_words){0};
	if (strlen(line) >= sizeof words->line)
		return ll_err_set(err, -EINVAL, "line longer than %zu characters", sizeof words->line - 1);
	snprintf(words->line, sizeof words->line, "%s", line);
	snprintf(words->text, sizeof words->text, "%s", line);
	/* A trailing blank or carriage return is not part of a name. */
	size_t n = strlen(words->line);
	while (n && strchr(" \t\r", words->line[n - 1]))
		words->line[--n] = '\0';
	char *save = NULL;
	for (char *word = strtok_r(words->text, " \t\r", &save); word; word = strtok_r(NULL, " \t\r", &save)) {
		if (words->count == SIM_MAX_WORDS)
			return ll_err_set(err, -EINVAL, "more than %d words", SIM_MAX_WORDS);
		words->rest[words->count] = words->line + (word - words->text);
		words->word[words->count++] = word;
	}
	return 0;
}

const char *sim_word_at(const struct sim_words *words, int i)
{
	return i < words->count ? words->word[i] : "";
}

int sim_words_end(const struct sim_words *words, int count, struct ll_err *err)
{
	if (words->count < count)
		return ll_err_set(err, -EINVAL, "'%s': a value is missing", words->line);
	if (words->count > count)
		return ll_err_set(err, -EINVAL, "'%s': not understood", words->rest[count]);
	return 0;
}

int sim_word_uint(const struct sim_words *words, int i, uint64_t min, uint64_t max, uint64_t *ret, struct ll_err *err)
{
	return ll_parse_uint(sim_word_at(words, i), min, max, ret, err);
}

int sim_word_duration(const struct sim_words *words, int i, uint64_t *ret_ns, struct ll_err *err)
{
	return ll_parse_duration(sim_word_at(words, i), ret_ns, err);
}

int sim_word_bytes(const struct sim_words *words, int i, uint64_t *ret_bytes, struct ll_err *err)
{
	return ll_parse_bytes(sim_word_at(words, i), ret_bytes, err);
}

int sim_word_number(const struct sim_words *words, int i, double min, double max, double *ret, struct ll_err *err)
{
	const char *text = sim_word_at(words, i);
	char *end;
	double value = strtod(text, &end);
	if (!*text || *end || !isfinite(value))
		return ll_err_set(err, -EINVAL, "'%s': not a number", text);
	if (value < min || value > max)
		return ll_err_set(err, -EINVAL, "'%s': not between %g and %g", text, min, max);
	*ret = value;
	return 0;
}

int sim_command_put_off(struct sim_world *w, uint64_t at_ns, const char *line, struct ll_err *err)
{
	for (unsigned slot = 0; slot < SIM_EVENTS; slot++) {
		struct sim_event *event = &w->events[slot];
		if (event->at_ns)
			continue;
		if (strlen(line) >= sizeof event->text)
			return ll_err_set(err, -EINVAL, "at: command longer than %zu characters",
					  sizeof event->text - 1);
		SIM_EDIT(w, event);
		snprintf(event->text, sizeof event->text, "%s", line);
		event->at_ns = at_ns;
		if (!w->first_event_ns || at_ns < w->first_event_ns)
			*SIM_EDIT(w, &w->first_event_ns) = at_ns;
		return 0;
	}
	return ll_err_set(err, -ENOSPC, "at: more than %d commands wait already", SIM_EVENTS);
}
