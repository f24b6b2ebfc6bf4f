/*
 * allowance.h - what a job of a tenant may have by the configuration: defaults, classes, the limits of each user and of
 * the tenant, and the guarantee.
 *
 * The functions are arithmetic on the policy and on sums; policy_of_jobs.h makes the sums of the books.
 */
#ifndef LOADLINE_DAEMON_POLICY_ALLOWANCE_H
#define LOADLINE_DAEMON_POLICY_ALLOWANCE_H

#include <stdbool.h>
#include <stdint.h>

#include "config/config.h"
#include "protocol/limits.h"

struct ll_err;

/* What jobs have together. A job of N cards that are given by memory has N times its memory limit and its compute. */
struct ll_use {
	uint64_t jobs;
	uint64_t memory_bytes, compute_permille; /* on cards that are given by memory, or whose group is unknown */
	uint64_t cards;                          /* whole cards */
	uint64_t request_bytes;                  /* of the memory: promised (--mem-request) */
};

/*
 * Fills the limits that the job did not say (`said`: enum ll_set_field, enum ll_said). memory, class and evictable come
 * from `defaults`. Without a default, memory and compute become what is left of the user's limit. A default class that
 * the tenant may not use becomes the first of normal, low and high that it may. user: of the user's other jobs in the
 * tenant.
 */
void ll_allowance_complete(const struct ll_config_policy *policy, const struct ll_config_tenant *tenant,
			   const struct ll_use *user, uint64_t said, struct ll_limits *limits);

/* Checks complete limits of a job: its class, and each-user's running, memory and compute. cards: how many cards given
 * by memory the job has, at least 1. -EACCES: err says what was asked for, what is allowed, and what is in use. */
int ll_allowance_check(const struct ll_config_tenant *tenant, const struct ll_use *user, uint64_t cards,
		       const struct ll_limits *limits, struct ll_err *err);

/* What a job would have in one group of cards. */
struct ll_allowance_group {
	const struct ll_config_group *group;
	struct ll_use user;   /* of the user's other jobs, in all groups */
	struct ll_use tenant; /* of the tenant's other jobs in this group */
	struct ll_use high;   /* of these: jobs of class high */
	struct ll_use job;    /* of the job in this group, with the card that it is to get */
	bool is_high;
};

/* Checks that a job may have a card of the group: each-user's cards, the tenant's limit, and for class high the
 * guarantee; promised memory is within the guarantee too. -EACCES as above. */
int ll_allowance_check_group(const struct ll_config_tenant *tenant, const struct ll_allowance_group *ask,
			     struct ll_err *err);

/* Whether the tenant may use the class: enum ll_limit_class. -EACCES. */
int ll_allowance_check_class(const struct ll_config_tenant *tenant, uint32_t priority, struct ll_err *err);

/* Returns the part of that group; NULL: there is none. */
const struct ll_config_part *ll_allowance_part(const struct ll_config_parts *parts, const char *group);

/* The configuration's word for a class of limits. */
enum ll_config_class ll_allowance_class(uint32_t limit_class);

bool ll_allowance_has_class(const struct ll_config_tenant *tenant, enum ll_config_class class);

#endif
