/*
 * keeper.h - what the probe owes to the machine is paid when it is killed, too.
 *
 * A private MPS daemon with its folder, and a compute mode, outlive a probe that dies by SIGKILL. So a process of its
 * own, the keeper, waits for the end of the probe, which it sees at the end of a pipe, and then does what the probe has
 * not done any more. It knows by what the probe writes into that pipe before each change.
 */
#ifndef LOADLINE_CLI_PROBE_KEEPER_H
#define LOADLINE_CLI_PROBE_KEEPER_H

#include <sys/types.h>

#include "cli/probe/mps.h"
#include "driver/cards.h"

struct ll_err;

/* What has to be undone: empty texts are nothing. */
struct ll_probe_debt {
	char folder[LL_PROBE_MPS_FOLDER_SIZE]; /* of a private MPS daemon: to be ended, and the folder removed */
	char exclusive_uuid[LL_UUID_SIZE];     /* of a card: to be put back into the default mode */
};

struct ll_probe_keeper {
	pid_t pid; /* 0: there is none, and the other calls do nothing */
	int fd;
	struct ll_probe_debt debt;
};

/* Forks: before the driver is opened, which has threads. Signals that the caller blocks are blocked in it, too. */
int ll_probe_keeper_start(struct ll_probe_keeper *keeper, struct ll_err *err);

/* Before the change; NULL: after it is undone. */
void ll_probe_keeper_owe_folder(struct ll_probe_keeper *keeper, const char *folder);
void ll_probe_keeper_owe_mode(struct ll_probe_keeper *keeper, const char *uuid);

/* Lets it go, and waits for its end where nothing is owed. What is owed still it tries once more by itself. */
void ll_probe_keeper_end(struct ll_probe_keeper *keeper);

#endif
