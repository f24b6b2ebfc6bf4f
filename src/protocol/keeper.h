/*
 * keeper.h - the requests of loadlined to loadline-keeper, the control groups of jobs, and the state of the fence.
 *
 * loadlined has no rights. loadline-keeper has the few that it needs (CAP_KILL, and root's control groups), and a fixed
 * list of requests. Each request is one packet of fixed size on a SOCK_SEQPACKET socket, with a pidfd if it is about a
 * process; each has one reply. The keeper checks each request itself, and does not trust a pid or a path.
 *
 * A job has a control group of its own, which root owns, so a process of the job cannot leave it. The name of the group
 * is made of the job's uid and number. Neither is secret.
 */
#ifndef LOADLINE_PROTOCOL_KEEPER_H
#define LOADLINE_PROTOCOL_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "protocol/place.h"

enum {
	LL_KEEPER_VERSION = 1,
	LL_GROUP_SIZE = 256,       /* path of a group, with its NUL */
	LL_GROUP_TEXT_SIZE = 4096, /* of /proc/PID/cgroup */
	LL_KEEPER_TEXT_SIZE = 256,
};

/* Where jobs have their groups, of version 2. */
enum ll_group_kind {
	LL_GROUPS_NONE,   /* not known yet; of the keeper: no control groups of version 2 are mounted */
	LL_GROUPS_SCOPE,  /* transient scopes of systemd in loadline.slice */
	LL_GROUPS_FOLDER, /* folders below `base` */
};

struct ll_groups {
	enum ll_group_kind kind;
	char base[LL_GROUP_SIZE]; /* absolute, without a slash at its end; empty: the root */
};

enum ll_keeper_call {
	/* Reply: the kind of the groups, and their base. No descriptor. -ENOTSUP, as for every request: no control
	 * groups of version 2 are mounted */
	LL_KEEPER_HELLO = 1,
	/* Puts the process `pid` into the group of the job, and makes the group if there is none. Descriptor: a pidfd
	 * of the process. All uids of the process must be `uid`, and it must be in a place that it may leave
	 * (keeper/keeper.h). A process that is in the group already is success. */
	LL_KEEPER_PLACE = 2,
	/* Removes the group of an ended job. -EBUSY: there are processes in it. A group that is gone is success. */
	LL_KEEPER_REMOVE = 6,
	/* Sends `signal` (TERM or KILL) to the process `pid`, which uses a card and is in the group of no job
	 * (`ungoverned` of the configuration). Descriptor: a pidfd of the process. All its uids must be `uid`, which is
	 * not loadlined's, and root's in a PID namespace of its own alone (a container); and it must have a device file
	 * of a card open. job is 0 */
	LL_KEEPER_SIGNAL_OUTSIDE = 7,
	/* The processes in the group of the job get at most `bytes` of the memory of each device that the kernel's
	 * controller dmem knows (Linux 6.14). 0: no limit. -ENOTSUP: the kernel has no such controller here, or no
	 * driver has told it of a device */
	LL_KEEPER_DEVICE_MEMORY = 8,
	/* Sends `signal` to each process in the group of the job, whoever started it. Allowed: TERM, INT, USR1, USR2,
	 * KILL, STOP, CONT. KILL ends also what a process of the group starts meanwhile, and thaws the group. -ENOENT:
	 * the job has no group */
	LL_KEEPER_SIGNAL_GROUP = 9,
	LL_KEEPER_CALLS
};

struct ll_keeper_request {
	uint32_t version; /* LL_KEEPER_VERSION */
	uint32_t call;    /* enum ll_keeper_call */
	uint32_t serial;  /* the reply repeats it */
	uint32_t uid;     /* of the job */
	uint64_t job;     /* number of the job's group; not 0, but for SIGNAL_OUTSIDE */
	int32_t pid;
	int32_t signal;
	uint64_t bytes;
};
_Static_assert(sizeof(struct ll_keeper_request) == 40, "a packet");

struct ll_keeper_reply {
	uint32_t version, call, serial;
	int32_t code; /* 0, or a negative errno */
	uint32_t groups, unused;
	char text[LL_KEEPER_TEXT_SIZE]; /* of HELLO: the base; of a refusal: the reason */
};
_Static_assert(sizeof(struct ll_keeper_reply) == 24 + LL_KEEPER_TEXT_SIZE, "a packet");

/* The keeper's socket, beside the socket of the system's loadlined. -ENAMETOOLONG. */
int ll_keeper_place(const struct ll_place *system, struct ll_place *ret_place);

/* The path of the group of a job in its hierarchy. -ENAMETOOLONG. */
int ll_group_path(const struct ll_groups *groups, uint32_t uid, uint64_t job, char ret_path[LL_GROUP_SIZE]);

/* Whether a path is the group of a job, or in it; then its uid and number. A path that no call of ll_group_path makes
 * is none. */
bool ll_group_find_job(const struct ll_groups *groups, const char *path, uint32_t *ret_uid, uint64_t *ret_job);

/* Whether the path is the group, or in it. */
bool ll_group_contains(const char *group, const char *path);

/* Finds the path of version 2 in the text of /proc/PID/cgroup. -ENOENT: it is not there. -ENAMETOOLONG: it does not
 * fit. */
int ll_group_in_text(const char *text, char ret_path[LL_GROUP_SIZE]);

/* The same for a process. -errno: its file in /proc cannot be read. */
int ll_group_of_process(int pid, char ret_path[LL_GROUP_SIZE]);

/*
 * The file in which the keeper's fence says what it is, for `loadline doctor`, which may not ask the kernel. Everybody
 * may read it. It stays if the keeper is killed, as the fence does. It is gone after the fence was opened, and after a
 * boot. Its lines:
 *
 *     majors 195 511             the device numbers that are fenced
 *     open /GROUP, /GROUP        with all below
 *     partly /GROUP, /GROUP      those whose own processes stay open, for an open group below
 *     root 3                     processes of the root group, which are not fenced
 */
enum { LL_FENCE_STATE_SIZE = 4096 };
void ll_fence_state_path(char ret_path[LL_FENCE_STATE_SIZE]);

/* Whether files of the cards open for processes of the group itself, by the text of that file. */
bool ll_fence_opens(const char *state, const char *group);

/* How the name of a job's group begins. A text of /proc/self/cgroup without it has no path of a job. */
#define LL_GROUP_NAME_BEGIN "/loadline-job-"

#endif
