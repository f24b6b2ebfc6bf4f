/*
 * Sends one request to loadline-keeper, as loadlined does, and prints the reply: "ok" or "refused CODE: REASON".
 *     keeper_call SOCKET CALL UID JOB [PID [SIGNAL]]
 * CALL and SIGNAL are numbers, JOB is hexadecimal. With PID a pidfd of that process goes with the request.
 * Exit status: 0 done, 1 refused, 2 the keeper cannot be reached.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/packet.h"
#include "base/process.h"
#include "protocol/keeper.h"

enum { SOCKET = 1, CALL, UID, JOB, PID, SIGNAL };

static int connect_to(const char *path)
{
	struct sockaddr_un address;
	socklen_t length = ll_place_address(path, &address);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	return fd < 0 || connect(fd, (const struct sockaddr *)&address, length) < 0 ? -1 : fd;
}

int main(int argc, char **argv)
{
	struct ll_keeper_reply reply;
	size_t count = 0;
	if (argc <= JOB)
		return 2;
	int fd = connect_to(argv[SOCKET]);
	if (fd < 0) {
		printf("unreachable: %s\n", strerror(errno));
		return 2;
	}
	struct ll_keeper_request request = {
	    .version = LL_KEEPER_VERSION,
	    .call = (uint32_t)atoi(argv[CALL]),
	    .uid = (uint32_t)strtoul(argv[UID], NULL, 10),
	    .job = strtoull(argv[JOB], NULL, 16),
	    .pid = argc > PID ? atoi(argv[PID]) : 0,
	    .signal = argc > SIGNAL ? atoi(argv[SIGNAL]) : 0,
	};
	int pidfd = request.pid ? ll_process_open_pidfd(request.pid) : -1;
	/* A keeper that refuses the peer replies before it reads. */
	ll_packet_send(fd, &request, sizeof request, &pidfd, pidfd >= 0);
	int rc = ll_packet_receive(fd, true, &reply, sizeof reply, NULL, 0, &count);
	if (rc == -ECONNRESET) /* reported first, once: the keeper did not read the request */
		rc = ll_packet_receive(fd, true, &reply, sizeof reply, NULL, 0, &count);
	if (rc) {
		printf("no reply: %s\n", strerror(-rc));
		return 2;
	}
	if (reply.code)
		printf("refused %d: %.*s\n", reply.code, (int)sizeof reply.text, reply.text);
	else
		printf("ok %u %.*s\n", reply.groups, (int)sizeof reply.text, reply.text);
	return reply.code ? 1 : 0;
}
