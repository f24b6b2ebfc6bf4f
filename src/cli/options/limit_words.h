/*
 * limit_words.h - limits as users write them, the same in `run` and `set`.
 *
 * Each writes its result only on success; -EINVAL otherwise, the text beginning with the option's name. "none" is 0: no
 * limit.
 */
#ifndef LOADLINE_CLI_OPTIONS_LIMIT_WORDS_H
#define LOADLINE_CLI_OPTIONS_LIMIT_WORDS_H

#include <stdint.h>

#include "ledger/ledger.h"

struct ll_err;

/* --mem: "20G", not 0. */
int ll_limit_read_memory(const char *text, uint64_t *ret_bytes, struct ll_err *err);

/* --compute: "25%", 0.1 to 100. */
int ll_limit_read_compute(const char *text, unsigned *ret_permille, struct ll_err *err);

/* --weight: "2" or "0.5", 0.01 to 100; there is no "none". */
int ll_limit_read_weight(const char *text, unsigned *ret_permille, struct ll_err *err);

/* --priority: one of ll_limit_priorities, which is NULL-ended. */
extern const char *const ll_limit_priorities[];
int ll_limit_read_priority(const char *text, enum ll_priority *ret_priority, struct ll_err *err);

/* Texts that both commands' options share. */
#define LL_LIMIT_MEMORY_HELP                                                                                           \
	"Device memory that all processes of the tenant together may have on each card, such as 20G, or "              \
	"'none'."
#define LL_LIMIT_COMPUTE_HELP                                                                                          \
	"Largest share of each card's time that the tenant's kernels may take, such as 25%, even "                     \
	"if no other program wants the card, or 'none'."
#define LL_LIMIT_WEIGHT_HELP                                                                                           \
	"The tenant's part of the card's time while others of its class want the card too, from "                      \
	"0.01 to 100. A tenant of weight 2 gets twice the time of a tenant of weight 1."
#define LL_LIMIT_PRIORITY_HELP "The tenant's class: high gets the card before normal, normal before low."

#endif
