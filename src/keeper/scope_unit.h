/*
 * scope_unit.h - asks systemd for a transient scope (org.freedesktop.systemd1, StartTransientUnit).
 *
 * The scope of a job is in loadline-UID.slice of loadline.slice. If logind stops the login session from which the job
 * was started (KillUserProcesses=yes), systemd stops the scope too, as it would have ended the job in the session's
 * scope.
 */
#ifndef LOADLINE_KEEPER_SCOPE_UNIT_H
#define LOADLINE_KEEPER_SCOPE_UNIT_H

#include <stdint.h>
#include <sys/types.h>

#include "protocol/keeper.h"

struct sd_bus;
struct ll_err;

/* Connects to the bus of the system. -errno: there is none, or systemd is not on it. */
int ll_scope_bus_open(struct sd_bus **ret_bus);
void ll_scope_bus_close(struct sd_bus *bus);

struct ll_scope_request {
	const char *group; /* path of the scope (ll_group_path) */
	uint32_t uid;
	pid_t pid;
	const char *part_of; /* unit whose stop stops the scope; empty: none */
};

/* Requests the scope with the process in it. systemd moves the process some milliseconds later. The function connects
 * again if the bus was restarted. -errno. */
int ll_scope_start(struct sd_bus **bus, const struct ll_scope_request *request, struct ll_err *err);

#endif
