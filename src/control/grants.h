/*
 * grants.h - how much memory each process of a job may use on a card, so that all together never pass the job's limit.
 *
 * Pure. Each process (a member) has a grant. Within its grant a member uses memory without a request. loadlined sees
 * all members and changes their grants: it describes the members, gets the next step, tries the step on the memory
 * words of the members (protocol/page.h), and gets the next one. Meanwhile a member may use more or less within its
 * grant, so a step may fail, and the sums are made anew after each step.
 *
 *   1. The sum of all grants, and of the memory of ended members that the driver has not freed yet, stays within the
 *      limit. If the driver allocated more than was expected, a member uses more than its grant. Then its use counts.
 *   2. If the sum is above the limit, because the limit was lowered, unused grants are reduced.
 *   3. A single member gets all of the limit. There is no other member to share with.
 *   4. A member that wants more gets it if there is room. What others do not use is taken from them first, except for
 *      what they have just been promised. It gets half of what is left beside, so that it need not ask each time;
 * others can have that back.
 *   5. If there is no room for it now, but will be when what ended members had is given back, or what was promised is
 *      not taken, it waits.
 *   6. Else the other members are asked for what their pools keep in reserve, and it waits for their answers.
 *   7. Else it is refused: only when what is used and what it wants are more than the limit.
 *
 * Units are those of the words.
 */
#ifndef LOADLINE_CONTROL_GRANTS_H
#define LOADLINE_CONTROL_GRANTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LL_GRANTS_MAX UINT32_MAX

struct ll_grants_member {
	uint32_t granted, used;
	uint32_t promised;    /* a grant of that size was promised a moment ago; 0: none was, or it is over */
	uint32_t want;        /* beyond what it uses, and waits for it; 0: it wants nothing */
	uint64_t want_number; /* a want that came earlier has a smaller one */
	bool has_asked;       /* for this want the others were asked for their reserves */
};

struct ll_grants {
	const struct ll_grants_member *members;
	size_t count;
	uint64_t limit;   /* 0: none */
	uint64_t leaving; /* what ended members have not given back yet */
	bool is_asking;   /* some members have not answered yet, and may */
};

enum ll_grants_action {
	LL_GRANTS_REST,  /* do nothing until something changes */
	LL_GRANTS_SET,   /* the grant of `who` becomes `granted`, or what it uses if that is more by now */
	LL_GRANTS_SERVE, /* the grant of `who` holds what it wants: reply to `who`; `granted` is promised to it */
	LL_GRANTS_REQUEST_RESERVES, /* the others are asked for `who`, if they are not just being asked */
	LL_GRANTS_REFUSE,           /* `who` cannot get what it wants */
};

struct ll_grants_step {
	enum ll_grants_action kind;
	size_t who;
	uint32_t granted;
};

struct ll_grants_step ll_grants_next(const struct ll_grants *grants);

#endif
