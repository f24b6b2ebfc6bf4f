/*
 * trial_daemon.h - a loadlined for doctor's trial of limits alone, so that the trial does not appear in the user's one.
 *
 * It has a place of its own, named after the trial's folder as that of a simulated world is. This process registers the
 * trial as its job, as a monitor does, and the daemon ends with the trial.
 */
#ifndef LOADLINE_CLI_DOCTOR_TRIAL_DAEMON_H
#define LOADLINE_CLI_DOCTOR_TRIAL_DAEMON_H

#include <stdbool.h>

#include "driver/cards.h"
#include "protocol/client.h"
#include "protocol/run_settings.h"

struct ll_trial_daemon {
	struct ll_client client; /* as the job's monitor */
	int lifeline[2];
	struct ll_place place;
};

/* Starts it, registers the job of the settings, binds it to the card, and writes the place into the settings. The
 * folder is the settings'. The caller calls end in each case. */
int ll_trial_daemon_start(struct ll_trial_daemon *daemon, struct ll_run_settings *settings, const struct ll_card *card,
			  struct ll_err *err);

/* Whether the job has had GPU time, which it has only if a library charged it. */
bool ll_trial_daemon_has_charged(const struct ll_trial_daemon *daemon);

void ll_trial_daemon_end(struct ll_trial_daemon *daemon);

#endif
