/*
 * file.h - the file of what earlier runs did (records.h), one for each user: "earlier" in ${XDG_STATE_HOME}/loadline,
 * where XDG_STATE_HOME is ~/.local/state if it is not set; for simulated cards in the folder of their world.
 *
 * The monitors of the user's jobs write it, one at a time, and it is replaced as a whole. A damaged one is put aside
 * ("earlier.damaged"), which `loadline doctor` tells, and another is begun.
 */
#ifndef LOADLINE_EARLIER_FILE_H
#define LOADLINE_EARLIER_FILE_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#include "earlier/records.h"

struct ll_err;

#define LL_EARLIER_FILE "earlier"
#define LL_EARLIER_DAMAGED LL_EARLIER_FILE ".damaged"

/* The folder. sim_folder: of the simulated world; NULL or empty: real cards. -ENOENT: there is neither XDG_STATE_HOME
 * nor HOME. -ENAMETOOLONG. */
int ll_earlier_folder(const char *sim_folder, char ret_path[PATH_MAX], struct ll_err *err);

/* Makes the folder, with those above it, which only the user may enter. -EPERM: it is another user's, or the home is.
 * Other errors: it cannot be made. */
int ll_earlier_folder_open(const char *path, int *ret_fd, struct ll_err *err);

/* Reads what is there. No file or no folder is no record. -EBADMSG: the file is damaged. */
int ll_earlier_read(const char *folder, struct ll_earlier *ret_earlier, struct ll_err *err);

/* Adds the records to those in the file, if there are any. */
int ll_earlier_note(const char *folder, const struct ll_earlier_record *records, size_t count, struct ll_err *err);

/* Whether a damaged file was put aside. */
bool ll_earlier_has_damaged(const char *folder);

#endif
