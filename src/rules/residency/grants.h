/*
 * grants.h - decides how much memory each process of a job may use on a card, so that their sum never exceeds the job's
 * limit.
 *
 * Pure. Each process (a member) has a grant. Within its grant a member uses memory without a request. loadlined sees
 * all members and changes their grants: it describes the members, gets the next step, tries the step on the memory
 * words of the members (protocol/page.h), and gets the next one. Meanwhile a member may use more or less within its
 * grant. So a step may fail, and the sums are computed again after each step.
 *
 *   1. The sum of all grants, and of the memory of ended members that the driver has not freed yet,
 *      stays within the limit. If the driver allocated more than was expected, a member uses more
 *      than its grant. Then its used memory counts.
 *   2. If the sum is above the limit, because the limit was lowered, unused grants are reduced.
 *   3. A single member gets all of the limit. There is no other member to share with.
 *   4. A member that wants more gets it if there is room. First the unused grants of the others are
 *      reduced, except for memory that they were just promised. The member also gets half of the
 *      room that is left, so that it need not send a request each time. The others can get that
 *      half back.
 *   5. The member waits if there will be room soon: when the driver has freed the memory of ended
 *      members, or when a promise expires.
 *   6. Otherwise the other members are requested to free the reserve of their pools, and the member
 *      waits for their replies.
 *   7. Otherwise the want is refused. That happens only if the used memory and the want together
 *      exceed the limit.
 *
 * Units are those of the words.
 */
#ifndef LOADLINE_RULES_RESIDENCY_GRANTS_H
#define LOADLINE_RULES_RESIDENCY_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_GRANTS_MAX UINT32_MAX

struct ll_grants_member {
	uint32_t granted, used;
	uint32_t promised;    /* a grant of that size was just promised; 0: there is no promise, or it has expired */
	uint32_t want;        /* units that it wants beyond its used memory, and waits for; 0: none */
	uint64_t want_number; /* earlier wants have smaller numbers */
	bool has_asked;       /* the others were requested to free their reserves for this want */
};

struct ll_grants {
	const struct ll_grants_member *members;
	size_t count;
	uint64_t limit;   /* 0: none */
	uint64_t leaving; /* memory of ended members that the driver has not freed yet */
	bool is_asking;   /* some members have not replied yet, and still may */
};

enum ll_grants_action {
	LL_GRANTS_REST,  /* do nothing until something changes */
	LL_GRANTS_SET,   /* set the grant of `who` to `granted`, or to its used memory if that is larger by now */
	LL_GRANTS_SERVE, /* the grant of `who` holds what it wants: reply to `who`; `granted` is promised to it */
	LL_GRANTS_REQUEST_RESERVES, /* request the reserves of the others for `who`, unless a request is running */
	LL_GRANTS_REFUSE,           /* `who` cannot get what it wants */
};

struct ll_grants_step {
	enum ll_grants_action kind;
	size_t who;
	uint32_t granted;
};

struct ll_grants_step ll_grants_next(const struct ll_grants *grants);

#endif
