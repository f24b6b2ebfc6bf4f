/*
 * subordinate.h - which user a subordinate uid belongs to.
 *
 * A user may have many uids: /etc/subuid gives each user 65536 of them, for user namespaces. What each user may have at
 * most of the daemon's descriptors (rights.h) counts for a user and the subordinate uids together.
 *
 * The file is read again when it has changed, at most each 10 s. Lines name the user or its uid; names are looked up in
 * /etc/passwd alone. The ranges of a name that is not there belong together, and not to the user. Ranges that a
 * directory (nsswitch.conf: subid) gives are not known.
 */
#ifndef LOADLINE_DAEMON_CORE_SUBORDINATE_H
#define LOADLINE_DAEMON_CORE_SUBORDINATE_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <time.h>

struct ll_subordinate_range {
	uint64_t first, end; /* end: the first one after it */
	uint32_t owner;
};

struct ll_subordinates {
	struct ll_subordinate_range *ranges; /* by `first` */
	size_t count, room;
	uint64_t checked_ns; /* 0: never */
	struct timespec changed;
};

/* Returns the uid of the user to whom the uid belongs; of an ordinary uid itself. Reads /etc/subuid if that is due. */
uint32_t ll_subordinates_owner(struct ll_subordinates *subordinates, uint32_t uid);

void ll_subordinates_fini(struct ll_subordinates *subordinates);

/* ---- for tests ---- */

/* Adds the ranges of a file like /etc/subuid. users: like /etc/passwd; NULL: none. Bad lines are left out. */
void ll_subordinates_add(struct ll_subordinates *subordinates, FILE *file, FILE *users);

/* As ll_subordinates_owner, and reads nothing. */
uint32_t ll_subordinates_find(const struct ll_subordinates *subordinates, uint32_t uid);

#endif
