/*
 * runtime_folder.h - the user's runtime folder. It has the files about memory that programs share.
 *
 * It is the first existing one of these: the folder of the simulated world, if the driver is simulated; /run/loadline
 * for root, unless /run cannot be written; $XDG_RUNTIME_DIR/loadline; /tmp/loadline-UID.
 *
 * Its files are trusted because the folder is trusted: it is a directory and no symlink, it belongs to this user, and
 * no other user may write to it. A new folder gets mode 0700; /run/loadline gets 0755, because the socket of the
 * system's loadlined is in it (protocol/place.h).
 */
#ifndef LOADLINE_BASE_RUNTIME_FOLDER_H
#define LOADLINE_BASE_RUNTIME_FOLDER_H

enum { LL_FOLDER_SIZE = 256 };

struct ll_err;

/* Finds the path, without making or checking the folder. sim_folder: from ll_driver_sim_folder; NULL: a real driver. */
int ll_runtime_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err);

/* Makes the folder if it is missing, checks it, and opens it (O_DIRECTORY). The caller closes *ret_fd. -EPERM: the
 * folder cannot be trusted. */
int ll_runtime_folder_open(const char *path, int *ret_fd, struct ll_err *err);

#endif
