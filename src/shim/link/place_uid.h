/*
 * place_uid.h - checks whether the user who serves a place may serve it.
 *
 * The name of a place contains the user of the job (protocol/place.h), and any user may take a name. A program of the
 * job may have changed its user, for example by gosu or su. So loadlined is trusted if it runs as the user of the name
 * or as the user of this process. For the system's place see ll_place_check_system.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_LINK_PLACE_UID_H
#define LOADLINE_SHIM_LINK_PLACE_UID_H

#include <sys/types.h>

/* Checks the other side of the connected socket. Returns -EPERM if it belongs to another user; *ret_uid: that user, as
 * seen by this process. */
int ll_place_uid_check(const char *place, int fd, uid_t *ret_uid);

#endif
