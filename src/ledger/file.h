/*
 * file.h - the ledger's file and the folder that it is in; its descriptors in this process and in forked children.
 */
#ifndef LOADLINE_LEDGER_FILE_H
#define LOADLINE_LEDGER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "ledger/words.h"

struct ll_err;

/*
 * The ledger's file: made, found, checked. Private to src/ledger.
 */

/*
 * Opens `UUID.ledger` in folder_fd for reading and writing, making it where it is missing and is_created says so, and
 * checks all that never changes. path is for messages. Any number of processes may do this at once, and be killed doing
 * it. Errors as ll_ledger_open.
 */
int ll_ledger_file_open(int folder_fd, const char *path, const char *uuid, bool is_created, int *ret_fd,
			struct ll_err *err);

/*
 * Where the ledgers are.
 *
 * In this order: the folder of the simulated world when the driver is simulated; for root /run/loadline, unless /run
 * cannot be written; $XDG_RUNTIME_DIR/loadline; /tmp/loadline-UID.
 *
 * A ledger is trusted because its folder is: it must be a real directory (no symlink), belong to this user, and nobody
 * else may write it. What we make ourselves is 0700.
 */

/* sim_folder: from ll_driver_sim_folder, NULL on a real driver. The path only; nothing is made or checked. */
int ll_ledger_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err);

/* Makes it if it is not there, checks it, opens it (O_DIRECTORY). -EPERM when it cannot be trusted. *ret_fd is the
 * caller's to close. */
int ll_ledger_folder_open(const char *path, int *ret_fd, struct ll_err *err);

#endif
