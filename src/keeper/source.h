/*
 * source.h - whether a process may leave its control group for the group of a job.
 *
 * A process that moves leaves the limits of its old group, and no longer ends with it. So only these may move:
 *
 *   - a process in the root group;
 *   - a process in a scope of its own user's slice: a session of a login, or a terminal's scope;
 *   - a process in the group of a job of the same uid (`loadline run` inside a job).
 *
 * and of these, only where no group above limits memory, CPU time or CPUs. A service, a container and a job of Slurm
 * stay where they are. loadlined then knows their job by its token.
 */
#ifndef LOADLINE_KEEPER_SOURCE_H
#define LOADLINE_KEEPER_SOURCE_H

#include <stdint.h>

#include "keeper/hierarchy.h"

/* Returns NULL, or why a process of that uid in that group may not leave it. */
const char *ll_source_refuses(const struct ll_hierarchy *hierarchy, const char *group, uint32_t uid);

/* The unit of the system's systemd whose end ends that group: "session-5.scope", "user@1000.service". Returns its
 * length, 0: the group is in no user's slice. */
size_t ll_source_unit(const char *group, uint32_t uid, char ret_unit[LL_GROUP_SIZE]);

#endif
