/*
 * profile.h - how much of each card, tenant and user is taken at each time: the plan of the queue as steps of time.
 *
 * A profile is a list of steps. A step begins where the one before ends; the last has no end. Each has one row of
 * numbers: for each card its memory, its compute and what it is kept for; for each tenant and group, cards, memory and
 * compute; for each user cards, memory, compute and jobs.
 */
#ifndef LOADLINE_RULES_QUEUE_PROFILE_H
#define LOADLINE_RULES_QUEUE_PROFILE_H

#include "rules/queue/queue.h"

struct ll_queue_step {
	uint64_t begin_ns;
	uint64_t *row;
};

struct ll_queue_profile {
	const struct ll_queue_machine *machine;
	size_t user_count, width;
	struct ll_queue_step *steps;
	size_t count, room;
	bool has_failed; /* out of memory: the contents are not complete */
};

/* What a card is kept for in a step. A higher number than LL_QUEUE_KEPT_FOR + tenant does not occur. */
enum { LL_QUEUE_KEPT_FOR_ALL, LL_QUEUE_OUT_OF_USE, LL_QUEUE_KEPT_FOR };

/* Empties the profile: one step from now on, and those of the machine's intervals. */
void ll_queue_profile_start(struct ll_queue_profile *profile, const struct ll_queue_machine *machine, size_t user_count,
			    uint64_t now_ns);
void ll_queue_profile_fini(struct ll_queue_profile *profile);

/* Adds the job in the slot until end_ns, or takes it out again. */
void ll_queue_profile_add(struct ll_queue_profile *profile, const struct ll_queue_job *job,
			  const struct ll_queue_slot *slot, uint64_t end_ns);
void ll_queue_profile_take(struct ll_queue_profile *profile, const struct ll_queue_job *job,
			   const struct ll_queue_slot *slot, uint64_t end_ns);

/*
 * Finds the earliest start of the job from from_ns on and before before_ns, with its cards: in a group where its
 * tenant's guarantee has room for it if that is as early; shared cards with the least memory left, whole cards of one
 * NUMA node. Returns false if there is none.
 */
bool ll_queue_profile_find(const struct ll_queue_profile *profile, const struct ll_queue_job *job, uint64_t from_ns,
			   uint64_t before_ns, struct ll_queue_slot *ret_slot);

/* ---- rows ---- */

enum { LL_QUEUE_CARD_FIELDS = 3, LL_QUEUE_TENANT_FIELDS = 3, LL_QUEUE_USER_FIELDS = 4 };
enum { LL_QUEUE_AT_CARDS, LL_QUEUE_AT_MEMORY, LL_QUEUE_AT_COMPUTE, LL_QUEUE_AT_RUNNING };
enum { LL_QUEUE_AT_CARD_MEMORY, LL_QUEUE_AT_CARD_COMPUTE, LL_QUEUE_AT_CARD_KEPT };

static inline size_t ll_queue_at_card(size_t card)
{
	return card * LL_QUEUE_CARD_FIELDS;
}

static inline size_t ll_queue_at_tenant(const struct ll_queue_machine *machine, size_t tenant, size_t group)
{
	return machine->card_count * LL_QUEUE_CARD_FIELDS +
	       (tenant * machine->group_count + group) * LL_QUEUE_TENANT_FIELDS;
}

static inline size_t ll_queue_at_user(const struct ll_queue_machine *machine, size_t user)
{
	return ll_queue_at_tenant(machine, machine->tenant_count, 0) + user * LL_QUEUE_USER_FIELDS;
}

/* Adds what the job has of the cards to the row; sign UINT64_MAX (-1) takes it out. Of a lent job only its user's part.
 */
void ll_queue_row_add(const struct ll_queue_machine *machine, uint64_t *row, const struct ll_queue_job *job,
		      uint64_t cards, uint64_t sign);

/* What the job has of one card of the group. */
struct ll_queue_amount ll_queue_need(const struct ll_queue_machine *machine, const struct ll_queue_job *job,
				     uint32_t group);

/* The limit or guarantee by which the row refuses the job in the group (a lent job: the limit alone);
 * LL_QUEUE_RULE_NONE: it permits the job. why: its figures are filled in; NULL: nobody asks. */
enum ll_queue_rule ll_queue_refusal(const struct ll_queue_machine *machine, const uint64_t *row,
				    const struct ll_queue_job *job, uint32_t group, struct ll_queue_why *why);

/* Whether the job and what its tenant has of the group in the row are within the tenant's guarantee. */
bool ll_queue_is_guaranteed(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			    uint32_t group);

/* When the step ends; LL_QUEUE_NONE: never. */
uint64_t ll_queue_step_end_ns(const struct ll_queue_profile *profile, size_t at);

/* Whether the card has room for the job in the row. */
bool ll_queue_card_has_room(const struct ll_queue_machine *machine, const uint64_t *row, const struct ll_queue_job *job,
			    uint32_t card);

/* Chooses card_count of the candidates, which are of one group. left_bytes: for each card, the memory that the step
 * with the least has left. */
uint64_t ll_queue_choose(const struct ll_queue_machine *machine, const struct ll_queue_job *job, uint64_t candidates,
			 const uint64_t left_bytes[LL_QUEUE_CARDS_MAX]);

#endif
