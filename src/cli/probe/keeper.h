/*
 * keeper.h - what the probe changes on the machine, and the process that puts it back if the probe is killed.
 *
 * The probe starts a private MPS daemon in a temporary folder, for one card. No other program's clients find it, and it
 * needs neither root nor another compute mode. The probe may also change a card's compute mode. Daemon, folder and mode
 * would outlive a probe that dies by SIGKILL. So a separate process, the keeper, waits for the end of the probe, and
 * then undoes what the probe has not undone. A pipe connects the two: before each change the probe writes into it what
 * must be undone, and the pipe closes when the probe ends.
 */
#ifndef LOADLINE_CLI_PROBE_KEEPER_H
#define LOADLINE_CLI_PROBE_KEEPER_H

#include <sys/types.h>

#include "driver/cards.h"

struct ll_err;
struct ll_probe_mps;

/* Short, because the folder has the driver's sockets (mps/place.h). */
enum { LL_PROBE_MPS_FOLDER_SIZE = 80 };

/* What must be undone. An empty text: nothing. */
struct ll_probe_debt {
	char folder[LL_PROBE_MPS_FOLDER_SIZE]; /* of the private MPS daemon: end the daemon and remove the folder */
	char exclusive_uuid[LL_UUID_SIZE];     /* of a card: restore its default mode */
};

struct ll_probe_keeper {
	pid_t pid; /* 0: there is no keeper, and the other calls do nothing */
	int fd;
	struct ll_probe_debt debt;
};

/* Starts the keeper by fork. Call it before the driver is opened, because the driver has threads. Signals that the
 * caller blocks are blocked in the keeper too. */
int ll_probe_keeper_start(struct ll_probe_keeper *keeper, struct ll_err *err);

/* Call before the card's mode is changed. uuid NULL: the mode is put back. */
void ll_probe_keeper_owe_mode(struct ll_probe_keeper *keeper, const char *uuid);

/* Ends the keeper. Waits for its end if nothing is to be undone; otherwise the keeper tries once more by itself. */
void ll_probe_keeper_end(struct ll_probe_keeper *keeper);

/*
 * Starts the private daemon, and tells the keeper, which must outlive it. The caller ends it with ll_probe_mps_stop.
 * -EOPNOTSUPP: the machine has no MPS, or it does not start; err says why.
 */
int ll_probe_mps_start(const struct ll_driver *driver, const struct ll_card *card, struct ll_probe_keeper *keeper,
		       struct ll_probe_mps **ret_mps, struct ll_err *err);

/* Returns its pipe folder: CUDA_MPS_PIPE_DIRECTORY for its clients. */
const char *ll_probe_mps_pipe(const struct ll_probe_mps *mps);

/* Ends the daemon, by force if it must, removes its folder and frees. NULL is fine. */
int ll_probe_mps_stop(struct ll_probe_mps *mps, struct ll_err *err);

#endif
