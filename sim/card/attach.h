/*
 * attach.h - how a process joins a world: where the world's folder is, and who makes the world.
 *
 * The folder is LOADLINE_SIM_DIR, else $XDG_RUNTIME_DIR/loadline-sim, else /tmp/loadline-sim-UID. It belongs to one
 * user and has mode 0700; or it is root's and has mode 0777, and then all users are in one world.
 * LOADLINE_SIM_SCENARIO names a scenario file.
 */
#ifndef LOADLINE_SIM_CARD_ATTACH_H
#define LOADLINE_SIM_CARD_ATTACH_H

#include "card/world.h"

/*
 * Joins the world that the environment names. If there is none, it makes one. A world is made anew if nobody is in it
 * and its scenario, its boot or its version is another one. Without LOADLINE_SIM_SCENARIO the world is joined as it is.
 * A process joins once; later calls return the same world. The world stays mapped until the process ends.
 *
 * -EBUSY: somebody is in a world of another scenario. -EINVAL: the scenario file is wrong. -EPERM: the folder is not
 * this user's alone. Any other negative errno: the file or the folder cannot be used.
 */
int sim_world_attach(struct sim_world **ret_world, struct ll_err *err);

/* Makes the world anew, even if it is in use, and joins it. Tests and loadline-simctl call it. Errors are those of
 * sim_world_attach, but for -EBUSY. */
int sim_world_reset(struct ll_err *err);

/* Returns the descriptor of the world's file, which only this module reads or closes. -1: this process is in no world,
 * or it has closed the descriptor. */
int sim_world_fd(void);

/* Joins the world, and returns why it cannot; *ret_hint: what to do about it, or empty. NULL: it can, and *ret_hint is
 * left alone. The texts live as long as the process. */
const char *sim_world_trouble(const char **ret_hint);

/* Returns the world's folder, absolute. It can be called before sim_world_attach. NULL: there can be no folder. The
 * text lives as long as the process. */
const char *sim_world_folder(void);

/* Opens a file of the world, closed on exec; one that is made can be opened by whoever is in the world. -1 with errno.
 */
int sim_world_open_file(const char *path, int flags);

#endif
