/*
 * policy.h - the configuration that loadlined has in force, as commands tell it.
 */
#ifndef LOADLINE_CLI_COMMON_POLICY_H
#define LOADLINE_CLI_COMMON_POLICY_H

#include <stdint.h>

#include "protocol/message.h"
#include "protocol/policy.h"

struct ll_strbuf;

enum { LL_MOMENT_SIZE = 32 };

/* The time of day in the machine's time zone, "2026-12-03 14:00:05". */
void ll_policy_moment(uint64_t seconds, char ret_text[LL_MOMENT_SIZE]);

/* Adds a line if the files on the disk are not what is in force. */
void ll_policy_add_state(struct ll_strbuf *text, const struct ll_message_welcome *welcome);

/* Adds a line for each tenant of the user, or of all users for an admin, that has jobs: its part of the guarantee, and
 * what its jobs asked for. One more line for each in which the user has more than each user may have. */
void ll_policy_add_tenants(struct ll_strbuf *text, const struct ll_policy *policy);

/* Adds an amount as people read it: "16 GiB", "25 %", "2". kind: 'm' bytes, 'c' permille of a card, 'n' a number. */
void ll_policy_add_amount(struct ll_strbuf *text, char kind, uint64_t amount);

/* What a row of a tenant says of one kind of amount. limit UINT64_MAX: none. */
struct ll_policy_amount {
	const char *name; /* not translated */
	char kind;        /* as in ll_policy_add_amount */
	uint64_t limit, used;
};

enum { LL_POLICY_AMOUNTS = 4 };

/* What is left of the limit; UINT64_MAX: there is no limit. */
uint64_t ll_policy_left(const struct ll_policy_amount *amount);

/* The limits of each user of the tenant, and what this user has. */
void ll_policy_user_amounts(const struct ll_message_policy_tenant *row, struct ll_policy_amount ret[LL_POLICY_AMOUNTS]);

#endif
