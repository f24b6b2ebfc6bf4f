#include "shim/link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/scope.h"
#include "protocol/place.h"

enum { MAP_SIZE = 4096 };

/* Reads a line of /proc/self/uid_map: "inside outside count". Returns the text after the line; NULL: there is no
 * further line. */
static const char *read_line(const char *text, unsigned long ret_numbers[3])
{
	for (int i = 0; i < 3; i++) {
		char *end;
		ret_numbers[i] = strtoul(text, &end, 10);
		if (end == text)
			return NULL;
		text = end;
	}
	return text;
}

/* Converts a user id of the first user namespace, as in the place's name, to the id in this namespace. Returns false if
 * this namespace has no such user. */
static bool find_inner(unsigned long outer, unsigned long *ret_inner)
{
	char text[MAP_SIZE];
	unsigned long numbers[3];
	LL_SCOPE_CLOSE int fd = open("/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	*ret_inner = outer;
	if (length < 0) /* without /proc the map is not known; the two ids are nearly always the same */
		return true;
	text[length] = '\0';
	for (const char *line = text; (line = read_line(line, numbers));) {
		if (outer < numbers[1] || outer - numbers[1] >= numbers[2])
			continue;
		*ret_inner = numbers[0] + (outer - numbers[1]);
		return true;
	}
	return false;
}

int ll_place_uid_check(const char *place, int fd, uid_t *ret_uid)
{
	struct ucred peer;
	socklen_t length = sizeof peer;
	const char *number = strchr(place, '/');
	unsigned long inner;
	if (place[0] == '/')
		return ll_place_check_system(place, fd, ret_uid);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		return -errno;
	*ret_uid = peer.uid;
	if (peer.uid == geteuid())
		return 0;
	return number && find_inner(strtoul(number + 1, NULL, 10), &inner) && peer.uid == inner ? 0 : -EPERM;
}
