#include "daemon/core/server.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/log.h"
#include "base/packet.h"
#include "base/scope.h"

enum { FOLDER_MODE = 0755, FILE_MODE = 0666, FIRST_PASSED_FD = 3, MODE_BITS = 07777 };

/* ---- the user ---- */

int ll_system_user_find(const char *name, struct ll_system_user *ret_user, struct ll_err *err)
{
	const struct passwd *entry = getpwnam(name);
	if (!entry) {
		ll_err_set(err, -ENOENT, "there is no user %.60s", name);
		return ll_err_hint(err, "make one (useradd --system --no-create-home %.60s), or name another by --user",
				   name);
	}
	*ret_user = (struct ll_system_user){entry->pw_uid, entry->pw_gid};
	return 0;
}

int ll_system_user_become(const struct ll_system_user *user, struct ll_err *err)
{
	if (geteuid() != 0 && user->uid == geteuid())
		return 0; /* it is that user already */
	if (setgroups(0, NULL) || setresgid(user->gid, user->gid, user->gid) ||
	    setresuid(user->uid, user->uid, user->uid) || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
		return ll_err_set(err, -errno, "become uid %u: %s", (unsigned)user->uid, strerror(errno));
	return 0;
}

/* ---- a socket from systemd ---- */

static bool is_listening(int fd)
{
	int type = 0, is_so = 0;
	socklen_t length = sizeof type;
	return getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET &&
	       getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_so, &length) == 0 && is_so;
}

/* From FIRST_PASSED_FD on. */
static int count_passed_fds(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	return pid && count && strtol(pid, NULL, 10) == getpid() ? atoi(count) : 0;
}

int ll_system_socket_passed(void)
{
	int end = FIRST_PASSED_FD + count_passed_fds(), found = -1;
	for (int fd = FIRST_PASSED_FD; fd < end; fd++) {
		fcntl(fd, F_SETFD, FD_CLOEXEC);
		if (found < 0 && is_listening(fd))
			found = fd;
	}
	if (found >= 0)
		fcntl(found, F_SETFL, fcntl(found, F_GETFL) | O_NONBLOCK);
	return found;
}

/* ---- a socket of this process ---- */

/* Whoever locks the folder may replace the socket file. The lock ends with this process. */
static int open_folder(const struct ll_place *place, int *ret_fd, struct ll_err *err)
{
	char path[LL_PLACE_SIZE];
	struct stat st;
	memcpy(path, place->name, sizeof path);
	*strrchr(path, '/') = '\0';
	if (mkdir(path, FOLDER_MODE) && errno != EEXIST)
		return ll_err_set(err, -errno, "make %s: %s", path, strerror(errno));
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st))
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	if (st.st_uid != geteuid() || st.st_mode & (S_IWGRP | S_IWOTH))
		return ll_err_set(err, -EPERM, "%s: uid %u's, mode %04o: others could take loadlined's place there",
				  path, (unsigned)st.st_uid, (unsigned)st.st_mode & MODE_BITS);
	if (flock(fd, LOCK_EX | LOCK_NB))
		return ll_err_set(err, -EADDRINUSE, "%s: another loadlined is about to serve here", path);
	if ((st.st_mode & FOLDER_MODE) != FOLDER_MODE && fchmod(fd, FOLDER_MODE)) /* umask; runtime_folder.h */
		return ll_err_set(err, -errno, "%s: %s", path, strerror(errno));
	*ret_fd = fd;
	fd = -1;
	return 0;
}

static int bind_file(const struct ll_place *place, const struct ll_system_user *owner, int fd)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	if (unlink(place->name) && errno != ENOENT)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, length) || chmod(place->name, FILE_MODE))
		return -errno;
	return owner && lchown(place->name, owner->uid, owner->gid) ? -errno : 0;
}

int ll_system_socket_bind(const struct ll_place *place, const struct ll_system_user *owner, int *ret_fd,
			  struct ll_err *err)
{
	int folder_fd = -1, other_fd;
	int rc = open_folder(place, &folder_fd, err);
	if (rc)
		return rc;
	/* A daemon that got its socket from systemd has no lock, so a connection is tried too. */
	rc = ll_place_connect_any(place, &other_fd);
	if (!rc)
		close(other_fd);
	if (!rc || rc == -EAGAIN) { /* -EAGAIN: it is flooded with connections */
		close(folder_fd);
		return ll_err_set(err, -EADDRINUSE, "%s: another loadlined serves here", place->name);
	}
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	rc = fd < 0 ? -errno : bind_file(place, owner, fd);
	if (!rc) {
		*ret_fd = fd;
		return 0; /* the folder stays open and locked */
	}
	if (fd >= 0)
		close(fd);
	close(folder_fd);
	return ll_err_set(err, rc, "%s: %s", place->name, strerror(-rc));
}

/* ---- what systemd stores ---- */

enum { NAME_SIZE = 32, FDS_OF_JOB = 4 };

/* The packet in the socket of a job: the message with which its monitor would register it, with the same descriptors.
 */
struct kept_job {
	char department_tenant[LL_NAME_SIZE]; /* which a monitor does not know */
	char message[LL_MESSAGE_MAX];
};

/* fd: for systemd to store; -1: none. Returns false if there is no systemd, or if it does not read. */
static bool notify_systemd(const struct ll_server *server, const char *text, int fd)
{
	const char *path = getenv("NOTIFY_SOCKET");
	size_t length = path ? strlen(path) : 0;
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	if (!server->is_system || length < 2 || length >= sizeof address.sun_path)
		return false;
	memcpy(address.sun_path, path, length);
	if (path[0] == '@')
		address.sun_path[0] = '\0';
	LL_SCOPE_CLOSE int systemd_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	length += offsetof(struct sockaddr_un, sun_path);
	return systemd_fd >= 0 && connect(systemd_fd, (struct sockaddr *)&address, (socklen_t)length) == 0 &&
	       ll_packet_send(systemd_fd, text, strlen(text), &fd, fd >= 0) == 0;
}

/* The name comes from the page's file, which is the same for each daemon. It contains no part of the token, because
 * systemd shows the name to other users. It is short, because all names are in one environment variable, which may have
 * 128 KiB. */
static void name_of(const struct ll_job *job, char ret_name[NAME_SIZE])
{
	struct stat st = {0};
	fstat(job->pages.page_fd, &st);
	snprintf(ret_name, NAME_SIZE, "job-%jx", (uintmax_t)st.st_ino);
}

/* Returns a socket in which the packet of the job waits; -1: there is none. The socket is of the kind that has no
 * hang-up: systemd drops descriptors that have one. */
static int keep_in_socket(const struct ll_job *job)
{
	const int fds[FDS_OF_JOB] = {job->process_fd, job->lifeline_fd, job->pages.page_fd, job->pages.orders_fd};
	struct kept_job kept = {.message = ""};
	union ll_message message;
	int ends[2];
	if (socketpair(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) < 0)
		return -1;
	ll_job_describe(job, &message);
	memcpy(kept.department_tenant, job->department_tenant, sizeof kept.department_tenant);
	memcpy(kept.message, &message, message.header.size);
	int rc =
	    ll_packet_send(ends[0], &kept, offsetof(struct kept_job, message) + message.header.size, fds, FDS_OF_JOB);
	close(ends[0]);
	if (!rc)
		return ends[1];
	close(ends[1]);
	return -1;
}

void ll_store_add(const struct ll_server *server, const struct ll_job *job)
{
	char name[NAME_SIZE], text[NAME_SIZE + 32];
	if (!server->is_system || !getenv("NOTIFY_SOCKET"))
		return;
	name_of(job, name);
	snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s", name);
	LL_SCOPE_CLOSE int fd = keep_in_socket(job);
	if (fd < 0 || !notify_systemd(server, text, fd))
		ll_log(LL_LOG_WARN, "systemd does not take the descriptors of job %s", name);
}

static void remove_name(const struct ll_server *server, const char *name)
{
	char text[NAME_SIZE + 32];
	snprintf(text, sizeof text, "FDSTOREREMOVE=1\nFDNAME=%s", name);
	notify_systemd(server, text, -1);
}

void ll_store_remove(const struct ll_server *server, const struct ll_job *job)
{
	char name[NAME_SIZE];
	name_of(job, name);
	remove_name(server, name);
}

void ll_store_say_ready(const struct ll_server *server)
{
	notify_systemd(server, "READY=1", -1);
}

/* The packet stays in the socket, for the daemon after this one. This program wrote it, perhaps in an older version. */
static int restore_job(struct ll_server *server, int fd)
{
	struct kept_job kept;
	union ll_message message;
	char container[LL_CGROUP_SIZE] = "";
	int fds[FDS_OF_JOB];
	size_t length = 0, count = 0, before = offsetof(struct kept_job, message);
	int rc =
	    ll_packet_receive_up_to(fd, MSG_DONTWAIT | MSG_PEEK, &kept, sizeof kept, &length, fds, FDS_OF_JOB, &count);
	if (rc)
		return rc;
	rc = length < before ? -EPROTO : ll_message_decode(kept.message, length - before, &message);
	if (!rc && (count != FDS_OF_JOB || message.header.kind != LL_MESSAGE_JOB ||
		    !ll_message_text_is_valid(kept.department_tenant, sizeof kept.department_tenant)))
		rc = -EPROTO;
	struct ll_job_call call = {.facts = &message.job.job,
				   .department_tenant = kept.department_tenant,
				   .project = message.job.project,
				   .name = message.job.name,
				   .pod = message.job.pod,
				   .said = message.job.said,
				   .monitor_fd = -1,
				   .process_fd = fds[0],
				   .lifeline_fd = fds[1],
				   .container = container,
				   .page_fds = &fds[2]};
	if (!rc)
		ll_job_group_of_container(server, call.facts, fds[0], -1, container);
	rc = rc ? rc : ll_job_restore(server, &call);
	size_t owned = rc ? 0 : 2;
	ll_message_close_fds(fds + owned, count - owned);
	return rc;
}

/* Colons separate the names. */
void ll_store_restore(struct ll_server *server)
{
	const char *names = getenv("LISTEN_FDNAMES");
	int end = FIRST_PASSED_FD + count_passed_fds();
	for (int fd = FIRST_PASSED_FD; names && *names && fd < end; fd++) {
		char name[NAME_SIZE];
		size_t length = strcspn(names, ":");
		snprintf(name, sizeof name, "%.*s", (int)length, names);
		names += length + (names[length] == ':');
		if (fd == server->door.listen_fd || strncmp(name, "job-", strlen("job-")) != 0)
			continue;
		int rc = restore_job(server, fd);
		close(fd);
		if (!rc)
			continue;
		ll_log(LL_LOG_WARN, "%s cannot be taken from systemd: %s", name, strerror(-rc));
		remove_name(server, name);
	}
}
