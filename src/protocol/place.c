#include "protocol/place.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/scope.h"

enum { BACKLOG = 4096, LINE_SIZE = 128, WORLD_SIZE = 40, UNIX_LINE_SIZE = 512, RANDOM_DIGITS = 12 };
#define IS_LISTENER 0x10000U /* __SO_ACCEPTCON, in the flags of /proc/net/unix */

static const char prefix[] = "loadline/", prefix_of_cards[] = "loadline-hold/";

/* -EPERM: the user namespace does not map this uid. */
static int find_outer_uid(uid_t *ret_uid)
{
	char line[LINE_SIZE];
	uid_t own = geteuid();
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/self/uid_map", "re");
	if (!file) {
		*ret_uid = own; /* without /proc the outer uid is unknown; it nearly always equals the own one */
		return 0;
	}
	while (fgets(line, sizeof line, file)) {
		unsigned long inside, outside, count;
		if (sscanf(line, "%lu %lu %lu", &inside, &outside, &count) != 3 || own < inside ||
		    own - inside >= count)
			continue;
		*ret_uid = (uid_t)(outside + (own - inside));
		return 0;
	}
	return -EPERM;
}

/* "/fd01-1f3c-2faf080" for a simulated world: the folder's device, inode, and nanosecond of birth, because file systems
 * reuse an inode at once; "" for the real cards. */
static int name_world(const char *sim_folder, char ret_name[WORLD_SIZE], struct ll_err *err)
{
	struct statx folder;
	*ret_name = '\0';
	if (!sim_folder)
		return 0;
	if (statx(AT_FDCWD, sim_folder, 0, STATX_INO | STATX_BTIME, &folder) < 0)
		return ll_err_set(err, -errno, "%.200s: %s", sim_folder, strerror(errno));
	uint32_t born_ns = folder.stx_mask & STATX_BTIME ? folder.stx_btime.tv_nsec : 0;
	snprintf(ret_name, WORLD_SIZE, "/%jx-%jx-%" PRIx32,
		 (uintmax_t)makedev(folder.stx_dev_major, folder.stx_dev_minor), (uintmax_t)folder.stx_ino, born_ns);
	return 0;
}

int ll_place_of_user(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err)
{
	char world[WORLD_SIZE];
	uid_t uid;
	if (find_outer_uid(&uid) < 0)
		return ll_err_set(err, -EPERM, "this user namespace maps no user of the machine");
	int rc = name_world(sim_folder, world, err);
	if (rc == 0)
		snprintf(ret_place->name, sizeof ret_place->name, "%s%u%s", prefix, (unsigned)uid, world);
	return rc;
}

int ll_places_find(const char *sim_folder, struct ll_places *ret_places, struct ll_err *err)
{
	int rc = ll_place_of_user(sim_folder, &ret_places->user, err);
	if (!rc && ll_place_of_system(sim_folder, &ret_places->system))
		ret_places->system.name[0] = '\0';
	return rc;
}

const struct ll_place *ll_places_choose(const struct ll_places *places)
{
	int fd, rc = *places->system.name ? ll_place_connect(&places->system, &fd, NULL) : -ECONNREFUSED;
	if (!rc)
		close(fd);
	/* -EAGAIN: a daemon serves, and is busy. */
	return !rc || rc == -EAGAIN ? &places->system : &places->user;
}

int ll_place_find(const char *sim_folder, struct ll_place *ret_place, struct ll_err *err)
{
	struct ll_places places;
	int rc = ll_places_find(sim_folder, &places, err);
	if (!rc)
		*ret_place = *ll_places_choose(&places);
	return rc;
}

int ll_place_each(const char *prefix_text, void (*visit)(const char *name, void *arg), void *arg)
{
	char line[UNIX_LINE_SIZE];
	LL_SCOPE_FCLOSE FILE *file = fopen("/proc/net/unix", "re");
	if (!file)
		return -errno;
	while (fgets(line, sizeof line, file)) {
		unsigned flags;
		char *name = strchr(line, '@');
		line[strcspn(line, "\n")] = '\0';
		/* Each connection that a listener accepted has its name too. */
		if (name && sscanf(line, "%*s %*s %*s %x", &flags) == 1 && (flags & IS_LISTENER) &&
		    strncmp(name + 1, prefix_text, strlen(prefix_text)) == 0)
			visit(name + 1, arg);
	}
	return ferror(file) ? -EIO : 0;
}

/* The part that the names of all holds of the card have in common. */
static int name_holds(const char *uuid, const char *sim_folder, struct ll_place *ret_common, struct ll_err *err)
{
	char world[WORLD_SIZE];
	int rc = name_world(sim_folder, world, err);
	if (rc)
		return rc;
	int length = snprintf(ret_common->name, sizeof ret_common->name, "%s%s%s/", prefix_of_cards, uuid, world);
	if (length < 0 || (size_t)length + RANDOM_DIGITS >= sizeof ret_common->name)
		return ll_err_set(err, -ENAMETOOLONG, "card %.100s: its UUID is too long", uuid);
	return 0;
}

int ll_place_of_hold(const char *uuid, const char *sim_folder, struct ll_place *ret_place, struct ll_err *err)
{
	struct ll_place place;
	uint64_t number;
	int rc = name_holds(uuid, sim_folder, &place, err);
	if (rc)
		return rc;
	if (getrandom(&number, sizeof number, 0) != sizeof number)
		return ll_err_set(err, -errno, "random number: %s", strerror(errno));
	size_t length = strlen(place.name);
	snprintf(place.name + length, sizeof place.name - length, "%0*" PRIx64, RANDOM_DIGITS,
		 number >> (64 - 4 * RANDOM_DIGITS));
	*ret_place = place;
	return 0;
}

struct found {
	struct ll_place *places;
	size_t count, capacity, common_length;
	bool has_failed;
};

/* The names of holds of another world of the card begin alike. */
static void add_found(const char *name, void *arg)
{
	struct found *found = arg;
	if (strlen(name) != found->common_length + RANDOM_DIGITS ||
	    strspn(name + found->common_length, "0123456789abcdef") != RANDOM_DIGITS)
		return;
	if (found->count == found->capacity) {
		size_t capacity = found->capacity ? 2 * found->capacity : 8;
		struct ll_place *places = reallocarray(found->places, capacity, sizeof *places);
		found->has_failed = found->has_failed || !places;
		if (!places)
			return;
		found->places = places;
		found->capacity = capacity;
	}
	snprintf(found->places[found->count++].name, LL_PLACE_SIZE, "%s", name);
}

int ll_places_of_holds(const char *uuid, const char *sim_folder, struct ll_place **ret_places, size_t *ret_count,
		       struct ll_err *err)
{
	struct ll_place common;
	int rc = name_holds(uuid, sim_folder, &common, err);
	if (rc)
		return rc;
	struct found found = {.common_length = strlen(common.name)};
	rc = ll_place_each(common.name, add_found, &found);
	rc = rc ? rc : found.has_failed ? -ENOMEM : 0;
	if (rc) {
		free(found.places);
		return ll_err_set(err, rc, "card %s: who holds it: /proc/net/unix: %s", uuid, strerror(-rc));
	}
	*ret_places = found.places;
	*ret_count = found.count;
	return 0;
}

int ll_place_listen(const struct ll_place *place, int *ret_fd)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(place->name, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	if (bind(fd, (const struct sockaddr *)&address, length) == 0 && listen(fd, BACKLOG) == 0) {
		*ret_fd = fd;
		return 0;
	}
	int rc = -errno;
	close(fd);
	return rc;
}

int ll_place_check_peer(int fd, uid_t *ret_uid)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	*ret_uid = peer.uid;
	return peer.uid == geteuid() ? 0 : -EPERM;
}

int ll_place_connect(const struct ll_place *place, int *ret_fd, uid_t *ret_uid)
{
	return ll_place_connect_by(place, 0, ret_fd, ret_uid);
}

int ll_place_connect_by(const struct ll_place *place, uint64_t until_ns, int *ret_fd, uid_t *ret_uid)
{
	uid_t uid = 0;
	int fd = -1, rc = ll_place_connect_any_by(place, until_ns, &fd);
	if (rc)
		return rc;
	rc = ll_place_is_system(place) ? ll_place_check_system(place->name, fd, &uid) : ll_place_check_peer(fd, &uid);
	if (rc)
		close(fd);
	else
		*ret_fd = fd;
	if (rc == -EPERM && ret_uid)
		*ret_uid = uid;
	return rc;
}
