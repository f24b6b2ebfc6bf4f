#include "protocol/service_socket.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "protocol/place.h"

enum { PASSED_FD = 3, BACKLOG = 16, SOCKET_MODE = 0600, FOLDER_MODE = 0755 };

int ll_service_socket_passed(void)
{
	const char *pid = getenv("LISTEN_PID"), *count = getenv("LISTEN_FDS");
	if (!pid || !count || strtol(pid, NULL, 10) != getpid() || strcmp(count, "1") != 0)
		return -1;
	fcntl(PASSED_FD, F_SETFD, FD_CLOEXEC);
	fcntl(PASSED_FD, F_SETFL, fcntl(PASSED_FD, F_GETFL) | O_NONBLOCK);
	return PASSED_FD;
}

/* Nobody may connect before the owner and the mode are set: the socket listens after that. */
int ll_service_socket_bind(const char *name, const char *sim_folder, uid_t client, int *ret_fd, struct ll_err *err)
{
	struct ll_place system, place;
	struct sockaddr_un address;
	char folder[LL_PLACE_SIZE];
	int rc = ll_place_of_system(sim_folder, &system);
	if (!rc)
		rc = ll_place_beside(&system, name, &place);
	if (rc)
		return ll_err_set(err, rc, "LOADLINE_SIM_DIR: %s", strerror(-rc));
	memcpy(folder, place.name, sizeof folder);
	*strrchr(folder, '/') = '\0';
	if (mkdir(folder, FOLDER_MODE) && errno != EEXIST)
		return ll_err_set(err, -errno, "make %s: %s", folder, strerror(errno));
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	unsigned length = ll_place_address(place.name, &address);
	mode_t before = umask(~(mode_t)SOCKET_MODE & (S_IRWXU | S_IRWXG | S_IRWXO));
	bool is_good = fd >= 0 && (unlink(place.name) == 0 || errno == ENOENT) &&
		       bind(fd, (const struct sockaddr *)&address, length) == 0 &&
		       lchown(place.name, client, (gid_t)-1) == 0 && listen(fd, BACKLOG) == 0;
	int code = errno;
	umask(before);
	if (is_good) {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return ll_err_set(err, -code, "%s: %s", place.name, strerror(code));
}

int ll_service_socket_connect(const char *path, int *ret_fd)
{
	struct sockaddr_un address;
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t length = sizeof peer;
	int rc = 0, fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0 || connect(fd, (const struct sockaddr *)&address, ll_place_address(path, &address)) < 0 ||
	    getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		rc = -errno;
	else if (peer.uid != 0 && peer.uid != geteuid())
		rc = -EPERM;
	if (rc && fd >= 0)
		close(fd);
	else if (!rc)
		*ret_fd = fd;
	return rc;
}

int ll_service_client_find(const char *name, uid_t *ret_uid, struct ll_err *err)
{
	if (!name && geteuid() != 0) {
		*ret_uid = geteuid();
		return 0;
	}
	const struct passwd *entry = getpwnam(name ? name : "loadline");
	if (!entry)
		return ll_err_set(err, -ENOENT, "there is no user %.60s", name ? name : "loadline");
	*ret_uid = entry->pw_uid;
	return 0;
}
