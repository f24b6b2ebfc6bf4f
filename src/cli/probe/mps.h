/*
 * mps.h - the probe's own MPS daemon, in a temporary folder, for one card: nobody else's clients find it, and it
 * needs neither root nor another compute mode.
 */
#ifndef LOADLINE_CLI_PROBE_MPS_H
#define LOADLINE_CLI_PROBE_MPS_H

#include "driver/cards.h"

struct ll_err;
struct ll_probe_keeper;
struct ll_probe_mps;

/* Short: the driver's sockets are in it (mps/place.h). */
enum { LL_PROBE_MPS_FOLDER_SIZE = 80 };

/*
 * Starts it, and tells the keeper, which lives longer. -EOPNOTSUPP where the machine has none, or it does not start:
 * the text says why.
 */
int ll_probe_mps_start(const struct ll_driver *driver, const struct ll_card *card, struct ll_probe_keeper *keeper,
		       struct ll_probe_mps **ret_mps, struct ll_err *err);

/* Its pipe folder: CUDA_MPS_PIPE_DIRECTORY for its clients. */
const char *ll_probe_mps_pipe(const struct ll_probe_mps *mps);

/* Ends it, by force where it must, and removes its folder. NULL is fine. */
int ll_probe_mps_stop(struct ll_probe_mps *mps, struct ll_err *err);

/* The same for the one in this folder, which another process has started. */
void ll_probe_mps_clear(const struct ll_driver *driver, const char *folder);

#endif
