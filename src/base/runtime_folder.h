/*
 * runtime_folder.h - the user's runtime folder: files about memory that programs share are there.
 *
 * It is the first of these that there is: the folder of the simulated world, if the driver is simulated; /run/loadline
 * for root, unless /run cannot be written; $XDG_RUNTIME_DIR/loadline; /tmp/loadline-UID.
 *
 * What is in it is trusted because the folder is trusted. The folder is a directory and no symlink, it belongs to this
 * user, and no other user may write it. A folder that we make has mode 0700; /run/loadline has 0755, because the socket
 * of the system's loadlined is in it (protocol/place.h).
 */
#ifndef LOADLINE_BASE_RUNTIME_FOLDER_H
#define LOADLINE_BASE_RUNTIME_FOLDER_H

enum { LL_FOLDER_SIZE = 256 };

struct ll_err;

/* Gives the path; makes and checks nothing. sim_folder: from ll_driver_sim_folder; NULL: a real driver. */
int ll_runtime_folder(const char *sim_folder, char ret_path[LL_FOLDER_SIZE], struct ll_err *err);

/* Makes the folder if it is missing, checks it, and opens it (O_DIRECTORY). The caller closes *ret_fd. -EPERM: the
 * folder cannot be trusted. */
int ll_runtime_folder_open(const char *path, int *ret_fd, struct ll_err *err);

#endif
