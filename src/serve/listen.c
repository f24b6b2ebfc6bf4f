#include "serve/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/parse.h"

enum { BACKLOG = 32 };

struct endpoint {
	char host[256]; /* empty: every address */
	char port[8];
};

/* Reads the host, which is the text up to end. An IPv6 address is in brackets. */
static int parse_host(const char *address, const char *end, struct endpoint *endpoint, struct ll_err *err)
{
	const char *host = address;
	size_t length = (size_t)(end - address);
	if (length >= 2 && host[0] == '[' && host[length - 1] == ']') {
		host++;
		length -= 2;
	} else if (memchr(host, ':', length)) {
		return ll_err_set(err, -EINVAL, "'%s': an IPv6 address goes in brackets: [::1]:9409", address);
	}
	if (length >= sizeof endpoint->host || memchr(host, '[', length) || memchr(host, ']', length) ||
	    (host != address && length == 0))
		return ll_err_set(err, -EINVAL, "'%s': not ADDR:PORT", address);
	memcpy(endpoint->host, host, length);
	endpoint->host[length] = '\0';
	return 0;
}

static int parse_endpoint(const char *address, struct endpoint *endpoint, struct ll_err *err)
{
	const char *colon = strrchr(address, ':');
	const char *port = colon ? colon + 1 : address;
	uint64_t number;
	if (!port[0] || ll_parse_uint(port, 0, 65535, &number, NULL) < 0)
		return ll_err_set(err, -EINVAL, "'%s': not ADDR:PORT with a port of 0 to 65535", address);
	snprintf(endpoint->port, sizeof endpoint->port, "%u", (unsigned)number);
	if (colon)
		return parse_host(address, colon, endpoint, err);
	snprintf(endpoint->host, sizeof endpoint->host, "127.0.0.1");
	return 0;
}

/* Returns a listening socket, or -errno. */
static int listen_on(const struct addrinfo *info)
{
	int fd = socket(info->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return -errno;
	int on = 1;
	int off = 0;
	/* With SO_REUSEADDR a restart need not wait for old connections in TIME_WAIT. On Linux it does not allow a
	 * second listener. */
	setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
	if (info->ai_family == AF_INET6)
		setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
	if (bind(fd, info->ai_addr, info->ai_addrlen) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	int code = -errno;
	close(fd);
	return code;
}

/*
 * Listens on the first address that this machine has. A port in use ends the search: "localhost" must not become ::1
 * because another program has 127.0.0.1. For "every address" it takes the any-address of IPv6, which accepts IPv4 too,
 * or that of IPv4 on a machine without IPv6.
 */
static int listen_first(const struct addrinfo *infos, bool wants_ipv6_first)
{
	int rc = -EADDRNOTAVAIL;
	for (int pass = wants_ipv6_first ? 0 : 1; pass < 2; pass++) {
		for (const struct addrinfo *info = infos; info; info = info->ai_next) {
			if (pass == 0 && info->ai_family != AF_INET6)
				continue;
			rc = listen_on(info);
			if (rc != -EAFNOSUPPORT && rc != -EADDRNOTAVAIL)
				return rc;
		}
	}
	return rc;
}

/* ---- socket files ---- */

static const char unix_mark[] = "unix:";

const char *ll_listen_path(const char *address)
{
	size_t length = strlen(unix_mark);
	return strncmp(address, unix_mark, length) == 0 ? address + length : NULL;
}

/* Removes a socket on which nobody listens any more. Other files stay, and bind then fails. */
static void remove_left(const struct sockaddr_un *place)
{
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return;
	if (lstat(place->sun_path, &st) == 0 && S_ISSOCK(st.st_mode) &&
	    connect(fd, (const struct sockaddr *)place, sizeof *place) != 0 && errno == ECONNREFUSED)
		unlink(place->sun_path);
	close(fd);
}

/* Everybody may connect: who may not is kept out by the folder. */
static int bind_path(int fd, const struct sockaddr_un *place)
{
	if (bind(fd, (const struct sockaddr *)place, sizeof *place) != 0)
		return -errno;
	if (chmod(place->sun_path, 0666) == 0 && listen(fd, BACKLOG) == 0)
		return 0;
	int code = -errno;
	unlink(place->sun_path);
	return code;
}

static int listen_at_path(const char *address, const char *path, int *ret_fd, struct ll_err *err)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	if (path[0] != '/' || strlen(path) >= sizeof place.sun_path)
		return ll_err_set(err, -EINVAL, "'%s': not a path from / on of at most %zu bytes", address,
				  sizeof place.sun_path - 1);
	memcpy(place.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int rc = fd < 0 ? -errno : 0;
	if (!rc) {
		remove_left(&place);
		rc = bind_path(fd, &place);
	}
	if (!rc) {
		*ret_fd = fd;
		return 0;
	}
	if (fd >= 0)
		close(fd);
	return ll_err_set(err, rc, "%s: %s", address, strerror(-rc));
}

int ll_listen(const char *address, int *ret_fd, struct ll_err *err)
{
	const char *path = ll_listen_path(address);
	if (path)
		return listen_at_path(address, path, ret_fd, err);
	struct endpoint endpoint = {0};
	int rc = parse_endpoint(address, &endpoint, err);
	if (rc < 0)
		return rc;
	bool is_any = !endpoint.host[0];
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
	struct addrinfo *infos = NULL;
	int gai = getaddrinfo(is_any ? NULL : endpoint.host, endpoint.port, &hints, &infos);
	if (gai != 0)
		return ll_err_set(err, -EINVAL, "'%s': %s", address, gai_strerror(gai));
	rc = listen_first(infos, is_any);
	freeaddrinfo(infos);
	if (rc == -EADDRINUSE) {
		ll_err_set(err, rc, "%s: address already in use", address);
		ll_err_hint(err, "another program listens there: choose another port");
		return rc;
	}
	if (rc < 0)
		return ll_err_set(err, rc, "%s: %s", address, strerror(-rc));
	*ret_fd = rc;
	return 0;
}

unsigned ll_listen_port(int fd)
{
	struct sockaddr_storage address = {0};
	socklen_t length = sizeof address;
	if (getsockname(fd, (struct sockaddr *)&address, &length) != 0)
		return 0;
	if (address.ss_family == AF_INET6)
		return ntohs(((const struct sockaddr_in6 *)&address)->sin6_port);
	return address.ss_family == AF_INET ? ntohs(((const struct sockaddr_in *)&address)->sin_port) : 0;
}
