/*
 * residency_units.h - which processes of a job are evicted and resumed together, as one program of residency.h.
 *
 * Pure. A member is a process on a card. The members of a job are one unit, on all cards of the job: they are evicted
 * together, and they are resumed on all cards or on none. The unit works if one member works. The unit is idle if all
 * members are idle, and within its request if all are. The unit wants to resume if one member does. Exceptions:
 *
 *   - A member that was evicted or suspended by hand is a unit of its own until it is resumed.
 *   - A member that is on the card while others of the job are away is a unit of its own until they are back. (It has
 *     started since, or it was resumed by hand.) Neither of the two units is evicted for the other.
 *   - If a job needs more memory on a card than the card has, each process is a unit of its own, with all of its cards.
 *     These units take turns as the units of several jobs do.
 */
#ifndef LOADLINE_RULES_RESIDENCY_RESIDENCY_UNITS_H
#define LOADLINE_RULES_RESIDENCY_RESIDENCY_UNITS_H

#include "rules/residency/residency.h"

/* A job must seem too large for this long. A process reports its memory up to 100 ms late, so the sum for a card may be
 * wrong for a moment. */
#define LL_RESIDENCY_LARGE_NS UINT64_C(300000000)

struct ll_residency_member {
	struct ll_residency_program rule; /* of this member alone; residency.h explains card and job */
	unsigned process;                 /* the members of one process have the same number */
	bool is_held;                     /* RESUMING: it waits for the others of its unit when its memory is back */
	bool is_loose; /* its job is too large for a card: its processes are units of their own. The caller sets
			  the former value, ll_residency_units_join the new one */
	uint64_t large_since_ns; /* since when the job seems too large for a card; 0: it does not. Set as is_loose is */
	/* ll_residency_units_join sets: */
	bool is_unsure; /* it is not known whether the job is too large */
	unsigned unit;
	int side; /* private */
};

/*
 * Gives each member the number of its unit, from 1, and makes one program of all members of a unit on a card. members
 * are in the order of their cards, and so are the programs. ret_programs has room for count. free_bytes: of each card.
 * is_settled: the free memory of the cards is known, and was measured just now. While it is not, or while memory moves,
 * is_loose of a job does not change. A job becomes loose when it has seemed too large for LL_RESIDENCY_LARGE_NS.
 * Returns the number of programs.
 */
size_t ll_residency_units_join(struct ll_residency_member *members, size_t count, const uint64_t *free_bytes,
			       bool is_settled, uint64_t now_ns, struct ll_residency_program *ret_programs);

/*
 * Returns what a member has to do because of the other members of its unit. Call ll_residency_units_join before. STAY:
 * another member stays away. RESUME: another member is already resuming. GO_ON: the memory of all members is back. who:
 * the index of the member.
 */
struct ll_residency_decision ll_residency_units_follow(const struct ll_residency_member *members, size_t count);

/* Returns the index of the member whose allocation a GRANT or REFUSE for the unit's program on the card means. count:
 * none. */
size_t ll_residency_units_short(const struct ll_residency_member *members, size_t count, unsigned unit, unsigned card);

#endif
