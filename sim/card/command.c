#include "card/command.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "card/defaults.h"
#include "card/fault.h"
#include "card/status.h"

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
	const char *version = sim_word_at(words, 1);
	unsigned major = 13, minor = 0;
	char rest;
	if (!*version || strlen(version) >= sizeof w->driver_version)
		return ll_err_set(err, -EINVAL, "driver: no version");
	if (words->count > 2 &&
	    (strcmp(words->word[2], "cuda") != 0 ||
	     sscanf(sim_word_at(words, 3), "%u.%u%c", &major, &minor, &rest) != 2 || major > 99 || minor > 9))
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

/* fail FUNCTION STATUS …  and  hang FUNCTION DURATION … */
static int run_fault(struct sim_world *w, const struct sim_words *words, enum sim_command_phase phase,
		     struct ll_err *err)
{
	struct sim_fault fault = {.is_used = 1, .until_ns = SIM_NEVER, .count = UINT64_MAX};
	const char *function = sim_word_at(words, 1);
	if (!*function || strlen(function) >= sizeof fault.function)
		return ll_err_set(err, -EINVAL, "%s: no function named", words->word[0]);
	snprintf(fault.function, sizeof fault.function, "%s", function);
	int rc = strcmp(words->word[0], "hang") == 0 ? sim_word_duration(words, 2, &fault.hang_ns, err)
						     : sim_status_parse(sim_word_at(words, 2), &fault.status, err);
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
	/* In a scenario, now is the start of the world. */
	rc = sim_command_run(w, words->rest[2], SIM_COMMAND_CHECK, err);
	return rc < 0 ? rc : sim_command_put_off(w, w->now_ns + after_ns, words->rest[2], err);
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
	int rc = sim_words_split(line, &words, err);
	if (rc < 0 || words.count == 0)
		return rc;
	for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
		if (strcmp(words.word[0], commands[i].word) == 0)
			return commands[i].run(w, &words, phase, err);
	}
	return ll_err_set(err, -EINVAL, "'%s': no such command", words.word[0]);
}
