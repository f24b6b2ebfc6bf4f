/*
 * message_policy.h - the rows of the reply to LL_MESSAGE_POLICY (message.h).
 */
#ifndef LOADLINE_PROTOCOL_MESSAGE_POLICY_H
#define LOADLINE_PROTOCOL_MESSAGE_POLICY_H

#include "protocol/message_header.h"

enum ll_policy_flag {
	LL_POLICY_IS_MINE = 1,  /* the other side's user is in the tenant */
	LL_POLICY_IS_FIRST = 2, /* and gets it without --tenant */
};

/* In these two rows UINT64_MAX means that there is no such limit. used_: what jobs have asked for together. */
struct ll_message_policy_tenant {
	struct ll_message_header header;
	uint64_t weight;
	uint64_t user_cards, user_memory_bytes, user_compute_permille, user_running; /* limits of each user */
	uint64_t used_cards, used_memory_bytes, used_compute_permille, used_jobs;    /* by the other side's user */
	uint64_t jobs;                                                               /* of all users */
	uint32_t flags;                                                              /* enum ll_policy_flag */
	uint32_t classes; /* bit N: enum ll_limit_class N is allowed */
	uint32_t parts, unused;
	char name[LL_NAME_SIZE];
};

struct ll_message_policy_part {
	struct ll_message_header header;
	uint64_t guaranteed_cards, guaranteed_memory_bytes, guaranteed_compute_permille;
	uint64_t limit_cards, limit_memory_bytes, limit_compute_permille;
	uint64_t used_cards, used_memory_bytes, used_compute_permille; /* by all users of the tenant */
	uint32_t is_known; /* 0: the daemon does not know which cards are in the group, and used_ are 0 */
	uint32_t gives_cards;
	char tenant[LL_NAME_SIZE], group[LL_NAME_SIZE];
};

/* The budget of a tenant. */
struct ll_message_policy_budget {
	struct ll_message_header header;
	double gpu_hours, granted_hours; /* granted in the present period */
	uint64_t end_s;                  /* seconds since 1970: when the next period begins */
	uint32_t per;                    /* enum ll_policy_period */
	uint32_t is_known;               /* 0: granted_hours and end_s are not known yet */
	uint32_t borrow_only, unused;    /* then: borrow-only, which acts as refuse */
	char tenant[LL_NAME_SIZE];
};

/* In the order of the words of the configuration. */
enum ll_policy_period { LL_POLICY_DAY, LL_POLICY_WEEK, LL_POLICY_MONTH };

#endif
