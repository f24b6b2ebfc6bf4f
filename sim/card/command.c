#include "card/command.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "card/defaults.h"
#include "card/fault.h"
#include "card/status.h"

static int split(const char *line, struct sim_words *words, struct ll_err *err)
{
	*words = (struct sim_words){0};
	if (strlen(line) >= sizeof words->line)
		return ll_err_set(err, -EINVAL, "line longer than %zu characters", sizeof words->line - 1);
	snprintf(words->line, sizeof words->line, "%s", line);
	snprintf(words->text, sizeof words->text, "%s", line);
	/* A trailing blank or carriage return is no part of a name. */
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

static const char *word_at(const struct sim_words *words, int i)
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
	return ll_parse_uint(word_at(words, i), min, max, ret, err);
}

int sim_word_duration(const struct sim_words *words, int i, uint64_t *ret_ns, struct ll_err *err)
{
	return ll_parse_duration(word_at(words, i), ret_ns, err);
}

int sim_word_bytes(const struct sim_words *words, int i, uint64_t *ret_bytes, struct ll_err *err)
{
	return ll_parse_bytes(word_at(words, i), ret_bytes, err);
}

int sim_word_number(const struct sim_words *words, int i, double min, double max, double *ret, struct ll_err *err)
{
	const char *text = word_at(words, i);
	char *end;
	double value = strtod(text, &end);
	if (!*text || *end || !isfinite(value))
		return ll_err_set(err, -EINVAL, "'%s': not a number", text);
	if (value < min || value > max)
		return ll_err_set(err, -EINVAL, "'%s': not between %g and %g", text, min, max);
	*ret = value;
	return 0;
}

static int run_cards(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		     struct ll_err *err)
{
	uint64_t count;
	int rc = sim_word_uint(words, 1, 0, 16, &count, err);
	if (rc == 0)
		rc = sim_words_end(words, 2, err);
	if (rc == 0 && phase != SIM_COMMAND_START)
		rc = ll_err_set(err, -EINVAL, "cards: only in a scenario, not while programs run");
	if (rc < 0)
		return rc;
	w->card_count = (uint32_t)count;
	w->slot_count = (uint32_t)count;
	for (uint32_t i = 0; i < count; i++)
		sim_card_init(w, i);
	return 0;
}

static int run_driver(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		      struct ll_err *err)
{
	const char *version = word_at(words, 1);
	unsigned major = 13, minor = 0;
	char rest;
	if (!*version || strlen(version) >= sizeof w->driver_version)
		return ll_err_set(err, -EINVAL, "driver: no version");
	if (words->count > 2 &&
	    (strcmp(words->word[2], "cuda") != 0 || sscanf(word_at(words, 3), "%u.%u%c", &major, &minor, &rest) != 2 ||
	     major > 99 || minor > 9))
		return ll_err_set(err, -EINVAL, "driver: after the version comes 'cuda X.Y'");
	int rc = words->count > 2 ? sim_words_end(words, 4, err) : 0;
	if (rc == 0 && phase != SIM_COMMAND_START)
		rc = ll_err_set(err, -EINVAL, "driver: only in a scenario, not while programs run");
	if (rc < 0)
		return rc;
	snprintf(w->driver_version, sizeof w->driver_version, "%s", version);
	w->cuda_version = major * 1000 + minor * 10;
	return 0;
}

static int run_cuda_order(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			  struct ll_err *err)
{
	if (phase != SIM_COMMAND_START)
		return ll_err_set(err, -EINVAL, "cuda-order: only in a scenario, not while programs run");
	if ((uint32_t)words->count != w->card_count + 1)
		return ll_err_set(err, -EINVAL, "cuda-order: name each of the %u cards once", w->card_count);
	uint32_t order[SIM_CARDS];
	uint64_t seen = 0;
	for (uint32_t i = 0; i < w->card_count; i++) {
		uint64_t card;
		int rc = sim_word_uint(words, (int)i + 1, 0, w->card_count - 1, &card, err);
		if (rc < 0)
			return rc;
		seen |= UINT64_C(1) << card;
		order[i] = (uint32_t)card;
	}
	if (seen != (UINT64_C(1) << w->card_count) - 1)
		return ll_err_set(err, -EINVAL, "cuda-order: name each of the %u cards once", w->card_count);
	memcpy(w->cuda_order, order, w->card_count * sizeof order[0]);
	return 0;
}

static int run_missing(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		       struct ll_err *err)
{
	if (words->count < 2)
		return ll_err_set(err, -EINVAL, "missing: no symbol named");
	for (int i = 1; i < words->count; i++) {
		if (strlen(words->word[i]) >= sizeof w->hidden[0])
			return ll_err_set(err, -EINVAL, "missing: '%s': too long", words->word[i]);
		unsigned slot = 0;
		while (slot < SIM_HIDDEN && w->hidden[slot][0])
			slot++;
		if (slot == SIM_HIDDEN)
			return ll_err_set(err, -EINVAL, "missing: more than %d symbols", SIM_HIDDEN);
		if (phase != SIM_COMMAND_CHECK)
			snprintf(*SIM_EDIT(w, &w->hidden[slot]), sizeof w->hidden[0], "%s", words->word[i]);
	}
	return 0;
}

static int run_kernel(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		      struct ll_err *err)
{
	struct sim_kernel_rule rule = {0};
	int rc = sim_word_duration(words, 2, &rule.length_ns, err);
	if (rc == 0)
		rc = sim_words_end(words, 3, err);
	if (rc < 0)
		return rc;
	if (strlen(words->word[1]) >= sizeof rule.name)
		return ll_err_set(err, -EINVAL, "kernel: '%s': too long", words->word[1]);
	snprintf(rule.name, sizeof rule.name, "%s", words->word[1]);
	unsigned slot = 0;
	while (slot < SIM_KERNEL_RULES && w->kernel_rules[slot].name[0] &&
	       strcmp(w->kernel_rules[slot].name, rule.name) != 0)
		slot++;
	if (slot == SIM_KERNEL_RULES)
		return ll_err_set(err, -EINVAL, "kernel: more than %d rules", SIM_KERNEL_RULES);
	if (phase != SIM_COMMAND_CHECK)
		*SIM_EDIT(w, &w->kernel_rules[slot]) = rule;
	return 0;
}

int sim_fault_parse_limits(const struct sim_world *w, const struct sim_words *words, int i, struct sim_fault *fault,
			   struct ll_err *err)
{
	for (; i < words->count; i += 2) {
		const char *key = words->word[i];
		uint64_t duration_ns;
		int rc;
		if (strcmp(key, "for") == 0) {
			rc = sim_word_duration(words, i + 1, &duration_ns, err);
			if (rc == 0)
				fault->until_ns = w->now_ns + duration_ns;
		} else if (strcmp(key, "after") == 0) {
			rc = sim_word_uint(words, i + 1, 0, UINT64_MAX, &fault->pass, err);
		} else if (strcmp(key, "count") == 0) {
			rc = sim_word_uint(words, i + 1, 1, UINT64_MAX, &fault->count, err);
		} else {
			rc = ll_err_set(err, -EINVAL, "'%s': not one of for, after, count", key);
		}
		if (rc < 0)
			return rc;
	}
	return 0;
}

int sim_fault_add(struct sim_world *w, const struct sim_fault *fault, struct ll_err *err)
{
	for (unsigned slot = 0; slot < SIM_FAULTS; slot++) {
		if (w->faults[slot].is_used)
			continue;
		*SIM_EDIT(w, &w->faults[slot]) = *fault;
		sim_faults_announce(w);
		return 0;
	}
	return ll_err_set(err, -ENOSPC, "%s: more than %d faults at once", fault->function, SIM_FAULTS);
}

/* fail FUNCTION STATUS …  and  hang FUNCTION DURATION … */
static int run_fault(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		     struct ll_err *err)
{
	struct sim_fault fault = {.is_used = 1, .until_ns = SIM_NEVER, .count = UINT64_MAX};
	const char *function = word_at(words, 1);
	if (!*function || strlen(function) >= sizeof fault.function)
		return ll_err_set(err, -EINVAL, "%s: no function named", words->word[0]);
	snprintf(fault.function, sizeof fault.function, "%s", function);
	int rc = strcmp(words->word[0], "hang") == 0 ? sim_word_duration(words, 2, &fault.hang_ns, err)
						     : sim_status_parse(word_at(words, 2), &fault.status, err);
	if (rc == 0)
		rc = sim_fault_parse_limits(w, words, 3, &fault, err);
	return rc < 0 || phase == SIM_COMMAND_CHECK ? rc : sim_fault_add(w, &fault, err);
}

static int run_heal(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		    struct ll_err *err)
{
	if (words->count > 2)
		return sim_words_end(words, 2, err);
	for (unsigned slot = 0; slot < SIM_FAULTS && phase != SIM_COMMAND_CHECK; slot++) {
		if (!w->faults[slot].is_used ||
		    (words->count == 2 && strcmp(w->faults[slot].function, words->word[1]) != 0))
			continue;
		SIM_EDIT(w, &w->faults[slot])->is_used = 0;
	}
	return 0;
}

static int run_suspend(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		       struct ll_err *err)
{
	uint64_t length_ns;
	int rc = sim_word_duration(words, 1, &length_ns, err);
	if (rc == 0)
		rc = sim_words_end(words, 2, err);
	if (rc < 0 || phase == SIM_COMMAND_CHECK)
		return rc;
	*SIM_EDIT(w, &w->suspended_until_ns) = w->now_ns + length_ns;
	sim_faults_announce(w);
	return 0;
}

static int run_init_time(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
			 struct ll_err *err)
{
	uint64_t length_ns;
	int rc = sim_word_duration(words, 1, &length_ns, err);
	if (rc == 0)
		rc = sim_words_end(words, 2, err);
	if (rc == 0 && phase != SIM_COMMAND_CHECK)
		*SIM_EDIT(w, &w->init_ns) = length_ns;
	return rc;
}

int sim_command_schedule(struct sim_world *w, uint64_t at_ns, const char *line, struct ll_err *err)
{
	int rc = sim_command_run(w, line, SIM_COMMAND_CHECK, err);
	if (rc < 0)
		return rc;
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
		return 0;
	}
	return ll_err_set(err, -ENOSPC, "at: more than %d commands wait already", SIM_EVENTS);
}

static int run_at(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase, struct ll_err *err)
{
	uint64_t after_ns;
	int rc = sim_word_duration(words, 1, &after_ns, err);
	if (rc < 0)
		return rc;
	if (words->count < 3)
		return ll_err_set(err, -EINVAL, "at: no command to run then");
	if (strcmp(words->word[2], "at") == 0 || phase == SIM_COMMAND_CHECK)
		return ll_err_set(err, -EINVAL, "at: cannot be put off itself");
	/* Counted from the world's beginning in a scenario, from now when it comes later: then the two are the same. */
	return sim_command_schedule(w, w->now_ns + after_ns, words->rest[2], err);
}

int sim_command_run(struct sim_world *w, const char *line, enum sim_command_phase phase, struct ll_err *err)
{
	static const struct {
		const char *word;
		int (*run)(struct sim_world *, const struct sim_words *, enum sim_command_phase, struct ll_err *);
	} commands[] = {
	    {"card", sim_card_command_run},
	    {"cards", run_cards},
	    {"driver", run_driver},
	    {"cuda-order", run_cuda_order},
	    {"missing", run_missing},
	    {"kernel", run_kernel},
	    {"fail", run_fault},
	    {"hang", run_fault},
	    {"heal", run_heal},
	    {"mps", sim_mps_command_run},
	    {"suspend", run_suspend},
	    {"init-time", run_init_time},
	    {"at", run_at},
	};
	struct sim_words words;
	int rc = split(line, &words, err);
	if (rc < 0 || words.count == 0)
		return rc;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(words.word[0], commands[i].word) == 0)
			return commands[i].run(w, &words, phase, err);
	}
	return ll_err_set(err, -EINVAL, "'%s': no such command", words.word[0]);
}
