#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "serve/http.h"
#include "serve/listen.h"

enum { REPLY_SIZE = 64, REQUEST_SIZE = 256, HOST_SIZE = 256, HTTP_LEAST = 100, HTTP_MOST = 599 };

/* Each call of the socket takes at most a second. */
static int make_socket(int family)
{
	struct timeval second = {.tv_sec = 1};
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof second);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &second, sizeof second);
	return fd;
}

static int connect_to(int family, const struct sockaddr *place, socklen_t length)
{
	int fd = make_socket(family);
	if (fd < 0 || connect(fd, place, length) == 0)
		return fd;
	int code = errno == EINPROGRESS || errno == EAGAIN ? -ETIMEDOUT : -errno;
	close(fd);
	return code;
}

static int connect_to_path(const char *path)
{
	struct sockaddr_un place = {.sun_family = AF_UNIX};
	if (strlen(path) >= sizeof place.sun_path)
		return -EINVAL;
	memcpy(place.sun_path, path, strlen(path) + 1);
	return connect_to(AF_UNIX, (const struct sockaddr *)&place, sizeof place);
}

/* An address without a host is reached on this machine. */
static int connect_to_port(const char *address)
{
	char host[HOST_SIZE] = "127.0.0.1";
	const char *colon = strrchr(address, ':');
	const char *begin = address + (address[0] == '[');
	size_t length = colon ? (size_t)(colon - begin) : 0;
	length -= length && colon[-1] == ']';
	if (length >= sizeof host)
		return -EINVAL;
	if (colon && length)
		snprintf(host, sizeof host, "%.*s", (int)length, begin);
	struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *infos = NULL;
	if (getaddrinfo(host, colon ? colon + 1 : address, &hints, &infos) != 0)
		return -EINVAL;
	int rc = -EADDRNOTAVAIL;
	for (const struct addrinfo *info = infos; info && rc < 0; info = info->ai_next)
		rc = connect_to(info->ai_family, info->ai_addr, info->ai_addrlen);
	freeaddrinfo(infos);
	return rc;
}

/* Returns the status, or a negative errno. */
static int exchange_words(int fd, const char *path)
{
	char request[REQUEST_SIZE], reply[REPLY_SIZE];
	int length =
	    snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
	if (length < 0 || (size_t)length >= sizeof request)
		return -EINVAL;
	if (send(fd, request, (size_t)length, MSG_NOSIGNAL) != length)
		return -EIO;
	ssize_t count = recv(fd, reply, sizeof reply - 1, MSG_WAITALL);
	if (count < 0)
		return errno == EAGAIN || errno == EWOULDBLOCK ? -ETIMEDOUT : -errno;
	reply[count] = '\0';
	static const char http[] = "HTTP/1.";
	if (strncmp(reply, http, strlen(http)) != 0)
		return -EPROTO;
	const char *space = strchr(reply, ' ');
	long status = space ? strtol(space, NULL, 10) : 0;
	return status >= HTTP_LEAST && status <= HTTP_MOST ? (int)status : -EPROTO;
}

int ll_http_ask(const char *address, const char *path, struct ll_err *err)
{
	const char *file = ll_listen_path(address);
	int fd = file ? connect_to_path(file) : connect_to_port(address);
	int rc = fd < 0 ? fd : exchange_words(fd, path);
	if (fd >= 0)
		close(fd);
	return rc < 0 ? ll_err_set(err, rc, "%s: %s", address, strerror(-rc)) : rc;
}
