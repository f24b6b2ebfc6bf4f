/*
 * attach.h - how a process joins a world: where the world's folder is, and which process makes the world.
 *
 * The folder is LOADLINE_SIM_DIR, else $XDG_RUNTIME_DIR/loadline-sim, else /tmp/loadline-sim-UID. It belongs to one
 * user and has mode 0700. If it belongs to root and has mode 0777, all users share one world.
 *
 * LOADLINE_SIM_SCENARIO names a scenario file.
 */
#ifndef LOADLINE_SIM_CARD_ATTACH_H
#define LOADLINE_SIM_CARD_ATTACH_H

#include "card/world.h"

/*
 * Joins the world that the environment names, or makes one if there is none. A world without processes is made anew if
 * its scenario, its boot or its version differs. Without LOADLINE_SIM_SCENARIO the world is joined unchanged.
 *
 * A process joins once; later calls return the same world. The world stays mapped until the process ends.
 *
 * -EBUSY: a process is in a world of another scenario. -EINVAL: the scenario file is wrong. -EPERM: other users may use
 * the folder. Any other negative errno: the file or the folder cannot be used.
 */
int sim_world_attach(struct sim_world **ret_world, struct ll_err *err);

/* Makes the world anew, even if it is in use, and joins it. Tests and loadline-simctl call it. Errors are those of
 * sim_world_attach, without -EBUSY. */
int sim_world_reset(struct ll_err *err);

/* Returns the descriptor of the world's file, which only this module reads or closes. -1: this process is in no world,
 * or it has closed the descriptor. */
int sim_world_fd(void);

/* Joins the world, and returns the reason if that fails; *ret_hint: what the user can do, or empty. NULL: it has
 * joined, and *ret_hint is unchanged. The texts live as long as the process. */
const char *sim_world_trouble(const char **ret_hint);

/* Returns the world's folder, as an absolute path. It may be called before sim_world_attach. NULL: there can be no
 * folder. The text lives as long as the process. */
const char *sim_world_folder(void);

/* Opens a file of the world, closed on exec. A new file can be opened by all users of the world. Returns -1 with errno
 * on failure. */
int sim_world_open_file(const char *path, int flags);

#endif
