/*
 * check.h - what is wrong with a configuration that was read: names that nothing has, guarantees that do not fit, cards
 * in two groups.
 */
#ifndef LOADLINE_CONFIG_CHECK_H
#define LOADLINE_CONFIG_CHECK_H

#include "config/config.h"

struct ll_strbuf;

/* The cards of a machine, as its driver lists them. */
struct ll_config_machine_card {
	unsigned index;
	int slice;             /* -1: the whole card */
	bool has_slices;       /* a card in MIG mode: its slices are given, not itself */
	uint64_t memory_bytes; /* 0: unknown */
};

struct ll_config_machine {
	size_t count;
	const struct ll_config_machine_card *cards;
};

/* Adds the faults and warnings that the policy itself has. now_s: seconds since 1970. ll_config_load does not call it.
 */
void ll_config_check(const struct ll_config_policy *policy, int64_t now_s, struct ll_config_findings *findings);

/* Adds those of this policy on this machine: cards that it does not have, cards in no group, memory that does not fit.
 */
void ll_config_check_machine(const struct ll_config_policy *policy, const struct ll_config_machine *machine,
			     struct ll_config_findings *findings);

/* Warns, once for the file, of its keys that are not in force in this version. root: what was read of one file. */
void ll_config_check_force(const struct ll_config_value *root, struct ll_config_findings *findings);

/* Adds the names of the keys that are in a file, and not in force, with ", " between: of the root, and of maps of the
 * root ("tenants.budget"). Returns their number. */
size_t ll_config_add_idle_keys(const struct ll_config_value *root, struct ll_strbuf *out);

/* Returns the group of cards with that name, or NULL. */
const struct ll_config_group *ll_config_group_find(const struct ll_config_policy *policy, const char *name);

#endif
