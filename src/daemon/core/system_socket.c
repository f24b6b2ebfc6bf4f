#include "daemon/core/system_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
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

int ll_system_fds_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	return pid && count && strtol(pid, NULL, 10) == getpid() ? atoi(count) : 0;
}

int ll_system_socket_passed(void)
{
	int end = FIRST_PASSED_FD + ll_system_fds_passed(), found = -1;
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
