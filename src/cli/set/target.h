/*
 * target.h - finds the job that an operand of `loadline set` names.
 */
#ifndef LOADLINE_CLI_SET_TARGET_H
#define LOADLINE_CLI_SET_TARGET_H

#include "driver/cards.h"
#include "protocol/client.h"

struct ll_set_target {
	const struct ll_message_job_row *job; /* of the list */
	const struct ll_card **cards;         /* that it uses, in the driver's order */
	size_t card_count;
};

/*
 * Finds the target in the list. "0/17": the job of that claim. "train": the job whose tenant has that name, or the job
 * of that id, of this user first; "ann/train": of that user. The caller calls fini afterwards, also after a failure.
 * -ENOENT: there is no such claim or tenant. -EBUSY: it is a synthetic load. -EEXIST: several jobs have that name.
 * -EPERM: it is another user's.
 */
int ll_set_target_find(struct ll_set_target *target, const struct ll_list *list, const struct ll_driver *driver,
		       const char *word, struct ll_err *err);
void ll_set_target_fini(struct ll_set_target *target);

/* -EPERM: the system's loadlined did not tell the token of the job, which is another user's. word: as the user named
 * it.
 */
int ll_set_job_check(const struct ll_message_job_row *job, const char *word, struct ll_err *err);

/* Reads "0/17". False: the word is no number of a claim, or there is no such card. */
bool ll_set_claim_read(const struct ll_driver *driver, const char *word, const struct ll_card **ret_card,
		       unsigned *ret_index);

#endif
