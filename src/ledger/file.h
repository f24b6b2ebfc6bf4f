/*
 * file.h - the ledger's file and the folder that it is in; its descriptors in this process and in forked children.
 */
#ifndef LOADLINE_LEDGER_FILE_H
#define LOADLINE_LEDGER_FILE_H

#include <stdbool.h>
#include <stddef.h>

#include "protocol/words.h"

struct ll_err;

/*
 * The ledger's file: made, found, checked. Private to src/ledger.
 */

/*
 * Opens `UUID.ledger` in folder_fd for reading and writing, and checks everything that never changes. With is_created,
 * a missing file is made. path is for messages. Any number of processes may call this at once, and may be killed in it.
 * Errors are those of ll_ledger_open.
 */
int ll_ledger_file_open(int folder_fd, const char *path, const char *uuid, bool is_created, int *ret_fd,
			struct ll_err *err);

/*
 * The folder of the ledgers.
 *
 * It is the first of these that there is: the folder of the simulated world, if the driver is simulated; /run/loadline
 * for root, unless /run cannot be written; $XDG_RUNTIME_DIR/loadline; /tmp/loadline-UID.
 *
 * A ledger is trusted because its folder is trusted. The folder is a directory and no symlink, it belongs to this user,
 * and no other user may write it. A folder that we make has mode 0700.
 */

/* Gives the path; makes and checks nothing. sim_folder: from ll_driver_sim_folder; NULL: a real driver. */
int ll_ledger_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err);

/* Makes the folder if it is missing, checks it, and opens it (O_DIRECTORY). The caller closes *ret_fd. -EPERM: the
 * folder cannot be trusted. */
int ll_ledger_folder_open(const char *path, int *ret_fd, struct ll_err *err);

#endif
