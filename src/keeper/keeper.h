/*
 * keeper.h - what loadline-keeper is made of: the hierarchy of control groups, the processes that requests are about,
 * the fence, and the requests of loadlined.
 */
#ifndef LOADLINE_KEEPER_KEEPER_H
#define LOADLINE_KEEPER_KEEPER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/clock.h"
#include "protocol/keeper.h"

struct ll_err;
struct sd_bus;

/* ---- hierarchy ---- */

/*
 * The hierarchy of control groups in which jobs have their groups.
 *
 * Only version 2 is used. Where controllers of version 1 are mounted beside it (memory, cpu, cpuset), the groups are
 * folders: systemd would move the process in the hierarchies of version 1 too, out of the limits that it has there.
 */

struct ll_hierarchy {
	struct ll_groups groups;
	char mount[LL_GROUP_SIZE]; /* the folder in which the hierarchy is mounted */
	bool is_beside_limits;     /* controllers of version 1 are mounted too */
};

/*
 * Finds the hierarchy. The groups are folders; the caller makes scopes of them if systemd can be asked
 * (ll_hierarchy_use_scopes). The folders are below the group of this process, which is the delegated one of a service.
 * -ENOTSUP: no control groups of version 2 are mounted.
 */
int ll_hierarchy_find(struct ll_hierarchy *ret_hierarchy, struct ll_err *err);

/* Sets the error that no control groups of version 2 are mounted, and returns it. */
int ll_hierarchy_miss(struct ll_err *err);

/* Groups are scopes in loadline.slice. */
void ll_hierarchy_use_scopes(struct ll_hierarchy *hierarchy);

/* Chooses from the text of /proc/self/mounts. own: /proc/self/cgroup. -ENOENT: there are none of version 2. */
int ll_hierarchy_choose(const char *mounts, const char *own, struct ll_hierarchy *ret_hierarchy);

bool ll_hierarchy_has(const struct ll_hierarchy *hierarchy, const char *group);

/* Makes the group and the base. A group that is there is success. -errno. */
int ll_hierarchy_make(const struct ll_hierarchy *hierarchy, const char *group);

/*
 * Limits the memory of each device that the kernel knows (dmem.capacity) for the processes of the group. bytes: of each
 * device; 0: no limit. Enables the controller for the group. -ENOTSUP: no such controller, or no device. -errno.
 */
int ll_hierarchy_limit_devices(const struct ll_hierarchy *hierarchy, const char *group, uint64_t bytes);

/* Calls a function for each process in the group. -errno. */
int ll_hierarchy_each(const struct ll_hierarchy *hierarchy, const char *group, void (*call)(void *data, pid_t pid),
		      void *data);

/* Removes an empty group. -EBUSY: it has processes. A group that is gone is success. systemd removes an empty scope. */
int ll_hierarchy_remove(const struct ll_hierarchy *hierarchy, const char *group);

/* Writes a text into a file of a group that is there: moves a process (cgroup.procs), kills all, those too that they
 * start meanwhile (cgroup.kill), stops or continues them some time after the call (cgroup.freeze). -errno. */
int ll_hierarchy_write(const struct ll_hierarchy *hierarchy, const char *group, const char *file, const char *text);

/* Reads a file of a group; returns its length, or -errno. The text ends with a NUL. */
ssize_t ll_hierarchy_read(const struct ll_hierarchy *hierarchy, const char *group, const char *file, char *ret_text,
			  size_t size);

/* ---- subject ---- */

/*
 * The process that a request is about. A pidfd says which process it is; /proc says the rest. What /proc
 * says holds only if the process lives after it was read, because a later process may have the pid.
 */

struct ll_subject {
	int pidfd;
	pid_t pid;
	uint32_t uids[4]; /* real, effective, saved, of the file system */
	bool is_nested;   /* in a PID namespace of its own, as in a container */
	char group[LL_GROUP_SIZE];
};

/*
 * Reads the process. proc: "/proc"; tests have a folder of their own. -EBADF: the descriptor is not a pidfd. -ESTALE:
 * it is the pidfd of another process. -ESRCH: the process has ended. Other errors: -errno.
 */
int ll_subject_read(const char *proc, int pidfd, pid_t pid, struct ll_subject *ret_subject);

/* Reads its group again. Errors as above. */
int ll_subject_read_group(const char *proc, struct ll_subject *subject);

/* Whether all its uids are this one. */
bool ll_subject_is_of(const struct ll_subject *subject, uint32_t uid);

/* ---- device ---- */

/* Whether a process has a card open. */

enum { LL_NVIDIA_MAJOR = 195 };

/* Whether one of the process's descriptors is a device file of NVIDIA's driver (character device 195), by the number of
 * the device and not by its name, which a user can choose: 1, 0, or -errno. CAP_SYS_PTRACE is needed for processes of
 * others. proc: "/proc". */
int ll_device_is_open(const char *proc, pid_t pid);

/* ---- source ---- */

/*
 * Whether a process may leave its control group for the group of a job.
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

/* Returns NULL, or why a process of that uid in that group may not leave it. */
const char *ll_source_refuses(const struct ll_hierarchy *hierarchy, const char *group, uint32_t uid);

/* The unit of the system's systemd whose end ends that group: "session-5.scope", "user@1000.service". Returns its
 * length, 0: the group is in no user's slice. */
size_t ll_source_unit(const char *group, uint32_t uid, char ret_unit[LL_GROUP_SIZE]);

/* ---- scope unit ---- */

/*
 * Asks systemd for a transient scope (org.freedesktop.systemd1, StartTransientUnit).
 *
 * The scope of a job is in loadline-UID.slice of loadline.slice. If logind stops the login session from which the job
 * was started (KillUserProcesses=yes), systemd stops the scope too, as it would have ended the job in the session's
 * scope.
 */

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

/* ---- filter ---- */

/*
 * A BPF program at a control group of version 2, which denies to open devices of some majors.
 *
 * The program is of the type BPF_PROG_TYPE_CGROUP_DEVICE, in plain instructions, so no compiler is needed. It is
 * attached beside the programs of others (BPF_F_ALLOW_MULTI), such as those of systemd's DeviceAllow; a device opens if
 * all allow it, at the group and at all above it. It stays after this process has ended, until it is detached or the
 * group is removed. Descriptors that are open already stay so. Making a device file (mknod) is not denied.
 *
 * CAP_SYS_ADMIN is needed: to load and attach (CAP_BPF and CAP_NET_ADMIN would do from Linux 5.8 on), and to find the
 * programs of an earlier process by their ids.
 */

enum { LL_FILTER_MAJORS = 16 };

struct ll_filter {
	uint32_t majors[LL_FILTER_MAJORS]; /* the device numbers of the driver */
	size_t major_count;
	uint32_t id; /* of the program; 0: none is loaded */
	int fd;
};

/* Loads a program that denies the numbers which the driver has now. Does nothing if it is loaded. Where an earlier one
 * is attached, it stays. -ENOSYS, -EINVAL: the kernel has no such programs. -EPERM. */
int ll_filter_load(struct ll_filter *filter, struct ll_err *err);

/* Attaches the program to a group, and detaches those of this kind that were loaded before it. Does nothing if it is
 * there. group_fd: the open folder. -errno. */
int ll_filter_attach(const struct ll_filter *filter, int group_fd);

/* Detaches all programs of this kind from the group. -errno. */
int ll_filter_detach(int group_fd);

/* Whether the group itself has one: 1, 0, or -errno. */
int ll_filter_is_attached(int group_fd);

/* ---- fence ---- */

/*
 * Device files of NVIDIA's driver open inside the control groups of jobs only.
 *
 * Each child of the root group is fenced, but the groups that stay open: loadline.slice, in which jobs are, and
 * services that need the cards. If a group that stays open is below a child of the root, the groups beside it are
 * fenced one by one. The root's own processes cannot be fenced without all others.
 *
 * Closing and opening may be repeated, and end in the same state. A process that has a device open keeps it. What the
 * fence has done stays when this process ends in any way; the state file (protocol/keeper.h) says what it is.
 */

struct ll_fence {
	const struct ll_hierarchy *hierarchy;
	const char *const
	    *open; /* "/system.slice/example.service": groups that stay open besides those that always do */
	size_t open_count;
	struct ll_filter filter;

	/* of the service */
	bool is_by_config;  /* closes if the configuration has `enforce: {devices: true}`; else it does nothing */
	const char *config; /* file or folder; NULL: /etc/loadline */
	int events_fd;      /* inotify: a group appears; 0: nobody looks */
	bool is_wanted, is_closed, has_failed;
};

/* Closes all groups that are not closed, also for devices that have come since, and writes the state file. After an
 * error the fence may be closed in part. -EPERM: not root. -ENOSYS: the hierarchy has no groups. -ENOTSUP: there is no
 * hierarchy. */
int ll_fence_close(struct ll_fence *fence, struct ll_err *err);

/* Opens all groups, whoever has closed them, and removes the state file. */
int ll_fence_open(struct ll_fence *fence, struct ll_err *err);

/* Prints a line for each group: "closed GROUP", "open GROUP", "partly GROUP: N processes of its own". Returns 1 if a
 * group is not as it must be when the fence is closed, 0 if all are, or -errno. */
int ll_fence_show(struct ll_fence *fence, struct ll_err *err);

/* Reads the configuration, and closes or opens the fence as it says. A fence that cannot be closed is logged, and tried
 * again at each look. -errno: groups cannot be watched. */
int ll_fence_begin(struct ll_fence *fence, struct ll_err *err);

/* Reads the configuration again. With faults the fence stays as it is. */
void ll_fence_read_wish(struct ll_fence *fence);

/* Call it when events_fd can be read, and each LL_FENCE_AGAIN_NS: closes also groups and devices that have come. */
void ll_fence_look(struct ll_fence *fence);
#define LL_FENCE_AGAIN_NS (5 * LL_NS_PER_S)

/* Opens the fence. If the process is killed instead, the fence stays closed. */
int ll_fence_end(struct ll_fence *fence, struct ll_err *err);

/* ---- requests ---- */

/* Checks and does each request (protocol/keeper.h). */

struct ll_keeper {
	struct ll_hierarchy hierarchy;
	struct ll_fence fence;
	struct sd_bus *bus; /* LL_GROUPS_SCOPE; NULL: none now */
	const char *proc;   /* "/proc" */
	uid_t client;       /* of loadlined, whose processes get no signal from outside of a job */
	bool is_simulated;  /* simulated cards have no device files, so these are not looked for */
};

/* pidfd: the request's descriptor; -1: it has none. The caller keeps it. The reply is filled in for success and for
 * refusal. */
void ll_keeper_handle(struct ll_keeper *keeper, const struct ll_keeper_request *request, int pidfd,
		      struct ll_keeper_reply *ret_reply);

/* The name of a call, for log lines. NULL: there is no such call. */
const char *ll_keeper_call_name(uint32_t call);

/* ---- serve ---- */

/* The keeper's socket: it serves one client, loadlined, and root. */

/* Whether a peer of that uid may send requests. */
bool ll_keeper_serves(uid_t peer, uid_t client);

/*
 * Serves connections at the listening socket, and keeps the fence as the configuration says, until SIGTERM or SIGINT;
 * SIGHUP: it is read again. Logs each request that changed something, and each refusal. -errno.
 */
int ll_keeper_serve(struct ll_keeper *keeper, int listen_fd, struct ll_err *err);

#endif
