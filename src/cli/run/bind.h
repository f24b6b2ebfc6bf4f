/*
 * bind.h - tells loadlined which cards a job may use.
 */
#ifndef LOADLINE_CLI_RUN_BIND_H
#define LOADLINE_CLI_RUN_BIND_H

#include <stdbool.h>
#include <stddef.h>

#include "driver/cards.h"
#include "protocol/run_settings.h"

/*
 * Binds the job of the settings to the cards, the first one first. The job is registered. Waits at most 5 s, also for a
 * daemon that is being started again. may_overcommit: the requests of all jobs on a card may be more than it has.
 * -EDQUOT: they would be; the text says how much is left. -ETIMEDOUT: loadlined does not answer. *ret_card: on an
 * error, the card that it is about.
 */
int ll_run_bind(struct ll_run_settings *settings, const struct ll_card *const *cards, size_t count, bool may_overcommit,
		const struct ll_card **ret_card, struct ll_err *err);

#endif
