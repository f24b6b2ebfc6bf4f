/*
 * limit_words.h - reads limits as users write them, for `run` and `set`.
 *
 * Each function writes its result on success only. Otherwise it returns -EINVAL, and the error's text begins with the
 * option's name. "none" is read as 0, which is no limit.
 */
#ifndef LOADLINE_CLI_OPTIONS_LIMIT_WORDS_H
#define LOADLINE_CLI_OPTIONS_LIMIT_WORDS_H

#include <stdint.h>

#include "base/translate.h"
#include "protocol/words.h"

struct ll_err;

/* Reads --mem, such as "20G". A size of 0 is an error. */
int ll_limit_read_memory(const char *text, uint64_t *ret_bytes, struct ll_err *err);

/* Reads --mem-request, such as "10G". */
int ll_limit_read_request(const char *text, uint64_t *ret_bytes, struct ll_err *err);

/* Checks that a request is no more than the limit. limit_bytes 0: there is no limit. */
int ll_limit_check_request(uint64_t request_bytes, uint64_t limit_bytes, struct ll_err *err);

/* Reads --compute, such as "25%", from 0.1 to 100 %. */
int ll_limit_read_compute(const char *text, unsigned *ret_permille, struct ll_err *err);

/* Reads --weight, such as "2" or "0.5", from 0.01 to 100. "none" is an error. */
int ll_limit_read_weight(const char *text, unsigned *ret_permille, struct ll_err *err);

/* What to say to who gives a weight to a client of MPS. */
#define LL_LIMIT_WEIGHT_BY_SPACE                                                                                       \
	N_("--weight is not in force between clients of MPS, because their kernels run at the same time; "             \
	   "--compute gives a client its part of the SMs")

/* Reads --slowdown, such as "1.3", from 1 to 10. "none" is an error. */
int ll_limit_read_slowdown(const char *text, unsigned *ret_permille, struct ll_err *err);

/* Reads --class, one of the words in ll_limit_classes, which is NULL-ended. */
extern const char *const ll_limit_classes[];
int ll_limit_read_class(const char *text, enum ll_priority *ret_priority, struct ll_err *err);

/* Help texts that options of both commands share. */
#define LL_LIMIT_MEMORY_HELP                                                                                           \
	N_("Device memory that all processes of the tenant together may have on each card, such as 20G, or "           \
	   "'none'.")
#define LL_LIMIT_REQUEST_HELP                                                                                          \
	N_("Device memory that the tenant is promised on each card, such as 10G, or 'none'. While all its processes "  \
	   "together have no more, their memory is not moved for the sake of others.")
#define LL_LIMIT_COMPUTE_HELP                                                                                          \
	N_("Largest share of each card's time that the tenant's kernels may take, such as 25%, even "                  \
	   "if no other program wants the card, or 'none'.")
#define LL_LIMIT_WEIGHT_HELP                                                                                           \
	N_("The tenant's part of the card's time beside others, from 0.01 to 100: a tenant of weight 2 gets twice "    \
	   "the "                                                                                                      \
	   "time of a tenant of weight 1 while both want all of it. Programs that leave the card idle by themselves "  \
	   "are "                                                                                                      \
	   "not held for others' weights. `loadline status --long` says how the card is shared.")
#define LL_LIMIT_CLASS_HELP                                                                                            \
	N_("The tenant's class, high, normal or low. Beside a higher class on the card a program queues at most 0.3 "  \
	   "ms "                                                                                                       \
	   "of work, or two launches, and is held for a part of the time in which that class has work, as far as it "  \
	   "needs that to keep to its slowdown.")
#define LL_LIMIT_SLOWDOWN_HELP                                                                                         \
	N_("How many times as slow as alone the tenant may become because of lower classes, from 1 to 10. Lower "      \
	   "classes get what that leaves them.")

/* Of commands that change the job of another user. */
#define LL_REASON_HELP                                                                                                 \
	N_("Why, for the log of the machine. It is logged if the job is another user's, which admins and operators "   \
	   "of a "                                                                                                     \
	   "configuration may change. The default is none.")

#endif
