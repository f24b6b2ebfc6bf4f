/*
 * residency_units.h - processes and cards of a job leave and return together: which of them are one for residency.h.
 *
 * Pure. A member is a process on a card. Members of a job are one unit, on all of its cards: they leave together, and
 * they return to all cards or to none. The unit works if one of them works. It is idle, and within its request, if all
 * of them are. It wants to return if one of them does. Exceptions:
 *
 *   - one that was evicted or suspended by hand is alone until it is resumed;
 *   - one that is on the card while others of the job are away (it has begun since, or another was resumed by hand) is
 *     a unit of its own until they are back. Neither leaves for the other;
 *   - processes of a job that has more memory on a card than the card could ever have for it are units of their own,
 *     each with all of its cards. They take turns as those of several jobs do.
 */
#ifndef LOADLINE_CONTROL_RESIDENCY_UNITS_H
#define LOADLINE_CONTROL_RESIDENCY_UNITS_H

#include "control/residency.h"

/* A program's memory that is told up to 100 ms late is missing in what a card seems to have. */
#define LL_RESIDENCY_LARGE_NS UINT64_C(300000000)

struct ll_residency_member {
	struct ll_residency_program rule; /* of it alone. card, job: see there */
	unsigned process;                 /* those of a process have the same number on all of its cards */
	bool is_held;                     /* RETURNING: it was told to wait for the others when its memory is back */
	bool is_loose; /* its job is too large for a card: its processes do not move together. As it was before; then
			  set by ll_residency_units_join */
	uint64_t large_since_ns; /* since when the job seems to be too large for a card; 0: it does not. Likewise */
	/* Set by it: */
	bool is_unsure; /* that is not known now */
	unsigned unit;
	int side; /* private */
};

/*
 * Gives each member its unit, from 1, and makes a program of all members of a unit on a card. members: in the order of
 * their cards; programs are so too. ret_programs: room for count. free_bytes: of each card. is_settled: what the cards
 * have is known, and was measured just now; while it is not, or memory moves, a job is as loose as before. It becomes
 * loose when it has seemed to be too large for LL_RESIDENCY_LARGE_NS. Returns the number of programs.
 */
size_t ll_residency_units_join(struct ll_residency_member *members, size_t count, const uint64_t *free_bytes,
			       bool is_settled, uint64_t now_ns, struct ll_residency_program *ret_programs);

/*
 * What a member has to do because of the others of its unit, after ll_residency_units_join. STAY: another stays away.
 * RETURN: another returns already. GO_ON: all are back. who: the member.
 */
struct ll_residency_decision ll_residency_units_follow(const struct ll_residency_member *members, size_t count);

/* The member whose allocation is meant by GRANT or REFUSE of the unit's program on the card. count: none. */
size_t ll_residency_units_short(const struct ll_residency_member *members, size_t count, unsigned unit, unsigned card);

#endif
