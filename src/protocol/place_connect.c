/* The part of place.h that the preloaded library needs too. */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process_id.h"
#include "protocol/place.h"

enum { NOBODY = 65534, /* the kernel's overflow uid */ MAP_SIZE = 128 };

static const char prefix[] = "loadline/", socket_name[] = "/socket";

/* The path for the real cards; and the path in the folder of a simulated world. */
static const char system_socket[] = "/run/loadline/socket", simulated_socket[] = "/system/socket";

int ll_place_beside(const struct ll_place *system, const char *name, struct ll_place *ret_place)
{
	const char *slash = strrchr(system->name, '/');
	if (system->name[0] != '/' || !slash)
		return -EINVAL;
	int length = snprintf(ret_place->name, sizeof ret_place->name, "%.*s/%s", (int)(slash - system->name),
			      system->name, name);
	return length > 0 && (size_t)length < sizeof ret_place->name ? 0 : -ENAMETOOLONG;
}

bool ll_place_is_system(const struct ll_place *place)
{
	return place->name[0] == '/';
}

const char *ll_place_mark(const struct ll_place *place)
{
	return ll_place_is_system(place) ? "" : "@";
}

/* LOADLINE_RUN separates its values by semicolons. */
static bool is_path(const char *name, size_t length)
{
	return name[0] == '/' && length > strlen(socket_name) && !strchr(name, ';') &&
	       strcmp(name + (length - strlen(socket_name)), socket_name) == 0;
}

static bool is_abstract(const char *name, size_t length)
{
	return strncmp(name, prefix, strlen(prefix)) == 0 && strspn(name, "loadine/0123456789abcdef-") == length;
}

int ll_place_read(const char *name, struct ll_place *ret_place)
{
	size_t length = strlen(name);
	if (length >= sizeof ret_place->name || (!is_path(name, length) && !is_abstract(name, length)))
		return -EINVAL;
	memcpy(ret_place->name, name, length + 1);
	return 0;
}

int ll_place_of_system(const char *sim_folder, struct ll_place *ret_place)
{
	char name[LL_PLACE_SIZE + 1];
	if (!sim_folder)
		return ll_place_read(system_socket, ret_place);
	int length = snprintf(name, sizeof name, "%s%s", sim_folder, simulated_socket);
	bool fits = length > 0 && (size_t)length < sizeof name && ll_place_read(name, ret_place) == 0;
	return fits ? 0 : -ENAMETOOLONG;
}

bool ll_place_system_beside(const char *place, const char *folder, struct ll_place *ret_place)
{
	if (place[0] == '/' || !place[0])
		return false;
	bool is_real = strchr(place, '/') == strrchr(place, '/');
	return (is_real || folder) && ll_place_of_system(is_real ? NULL : folder, ret_place) == 0;
}

unsigned ll_place_address(const char *name, struct sockaddr_un *ret_address)
{
	size_t length = strnlen(name, LL_PLACE_SIZE - 1),
	       first = name[0] != '/'; /* an abstract name begins with a NUL */
	memset(ret_address, 0, sizeof *ret_address);
	ret_address->sun_family = AF_UNIX;
	memcpy(ret_address->sun_path + first, name, length);
	return (unsigned)(offsetof(struct sockaddr_un, sun_path) + first + length + !first);
}

static bool is_own_or_root(uid_t uid)
{
	return uid == 0 || uid == geteuid();
}

static bool is_only_of_root(const char *folder)
{
	struct stat st;
	return fstatat(AT_FDCWD, folder, &st, 0) == 0 && (st.st_uid == NOBODY || is_own_or_root(st.st_uid)) &&
	       !(st.st_mode & (S_IWGRP | S_IWOTH));
}

/* Whether root of the machine is root in this process's user namespace too: its map begins with "0 0". Without /proc it
 * is not known. */
static bool has_root(void)
{
	char map[MAP_SIZE], *end;
	ssize_t length = ll_process_read_file(0, "uid_map", map, sizeof map);
	bool begins_with_0 = length > 0 && strtoul(map, &end, 10) == 0 && end != map;
	return length <= 0 || (begins_with_0 && strtoul(end, NULL, 10) == 0);
}

/* In a user namespace that does not have root of the machine, root's files are nobody's, as are those of all whom it
 * does not have. Nobody but root can make the folder, if the folder above is root's alone too. All may write into the
 * folder of a simulated world, which has no cards to keep. */
static bool is_of_nobody_here(const struct stat *folder, const char *name)
{
	char above[LL_PLACE_SIZE + 4];
	bool is_real = strncmp(system_socket, name, strlen(name)) == 0;
	snprintf(above, sizeof above, "%s/..", name);
	return folder->st_uid == NOBODY && !has_root() && (!is_real || is_only_of_root(above));
}

int ll_place_check_system(const char *path, int fd, uid_t *ret_uid)
{
	struct stat folder, file;
	struct ucred peer;
	socklen_t length = sizeof peer;
	char name[LL_PLACE_SIZE];
	size_t folder_length = strlen(path) - strlen(socket_name);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	*ret_uid = peer.uid;
	memcpy(name, path, folder_length);
	name[folder_length] = '\0';
	if (fstatat(AT_FDCWD, name, &folder, AT_SYMLINK_NOFOLLOW) ||
	    fstatat(AT_FDCWD, path, &file, AT_SYMLINK_NOFOLLOW))
		return -errno;
	bool is_good = S_ISDIR(folder.st_mode) && (is_own_or_root(folder.st_uid) || is_of_nobody_here(&folder, name)) &&
		       !(folder.st_mode & (S_IWGRP | S_IWOTH)) && S_ISSOCK(file.st_mode) &&
		       (peer.uid == 0 || peer.uid == file.st_uid);
	return is_good ? 0 : -EPERM;
}

/* ---- connecting ---- */

enum { US_PER_S = 1000000 };

/* The socket blocks for this call alone. */
static int connect_and_wait(int fd, const struct sockaddr_un *address, socklen_t length, uint64_t wait_ns)
{
	int flags = fcntl(fd, F_GETFL);
	uint64_t wait_us = wait_ns / LL_NS_PER_US + 1; /* 0 is for ever */
	struct timeval wait = {.tv_sec = (time_t)(wait_us / US_PER_S), .tv_usec = (suseconds_t)(wait_us % US_PER_S)};
	if (setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait) || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK))
		return -errno;
	int rc = connect(fd, (const struct sockaddr *)address, length) ? -errno : 0;
	return fcntl(fd, F_SETFL, flags) && !rc ? -errno : rc;
}

static int connect_until(int fd, const struct sockaddr_un *address, socklen_t length, uint64_t until_ns)
{
	int rc = connect(fd, (const struct sockaddr *)address, length) ? -errno : 0;
	while (rc == -EAGAIN || rc == -EINTR) {
		uint64_t now_ns = ll_now_ns();
		if (now_ns >= until_ns)
			return -EAGAIN;
		rc = connect_and_wait(fd, address, length, until_ns - now_ns);
	}
	return rc;
}

int ll_place_connect_any_by(const struct ll_place *place, uint64_t until_ns, int *ret_fd)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int rc = connect_until(fd, &address, length, until_ns);
	if (!rc)
		*ret_fd = fd;
	else
		close(fd);
	return rc == -ENOENT || rc == -ENOTDIR ? -ECONNREFUSED : rc; /* without the file nobody listens */
}

int ll_place_connect_any(const struct ll_place *place, int *ret_fd)
{
	return ll_place_connect_any_by(place, 0, ret_fd);
}
