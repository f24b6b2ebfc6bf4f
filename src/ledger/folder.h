/*
 * folder.h - where the ledgers are.
 *
 * In this order: the folder of the simulated world when the driver is simulated; for root /run/loadline, unless /run
 * cannot be written; $XDG_RUNTIME_DIR/loadline; /tmp/loadline-UID.
 *
 * A ledger is trusted because its folder is: it must be a real directory (no symlink), belong to this user, and nobody
 * else may write it. What we make ourselves is 0700.
 */
#ifndef LOADLINE_LEDGER_FOLDER_H
#define LOADLINE_LEDGER_FOLDER_H

#include <stddef.h>

struct ll_err;

enum { LL_FOLDER_SIZE = 256 };

/* sim_folder: from ll_driver_sim_folder, NULL on a real driver. The path only; nothing is made or checked. */
int ll_ledger_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err);

/* Makes it if it is not there, checks it, opens it (O_DIRECTORY). -EPERM when it cannot be trusted. *ret_fd is the
 * caller's to close. */
int ll_ledger_folder_open(const char *path, int *ret_fd, struct ll_err *err);

#endif
