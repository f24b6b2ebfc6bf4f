/*
 * place_uid.h - whether who serves a place may do so.
 *
 * A place is named after the user of the job (protocol/place.h), and anybody may take a name. A program of the job may
 * have another user by now: gosu and su change it. So loadlined is believed if it has the user of the name, or the
 * user that this process has. For the system's place see ll_place_check_system.
 *
 * Private to this folder.
 */
#ifndef LOADLINE_SHIM_LINK_PLACE_UID_H
#define LOADLINE_SHIM_LINK_PLACE_UID_H

#include <sys/types.h>

/* Looks at the other side of the connected socket. -EPERM: it is another user's, *ret_uid, as seen here. */
int ll_place_uid_check(const char *place, int fd, uid_t *ret_uid);

#endif
