#include "keeper/serve.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/packet.h"

/* loadlined has one connection; one that has just ended, and root's, may be beside it. */
enum { CONNECTIONS = 8 };

struct door {
	struct ll_keeper *keeper;
	uid_t client;
	struct pollfd fds[1 + CONNECTIONS]; /* the listener, then connections; fd -1: free */
};

static volatile sig_atomic_t is_ending;

static void on_signal(int number)
{
	(void)number;
	is_ending = 1;
}

bool ll_keeper_serves(uid_t peer, uid_t client)
{
	return peer == 0 || peer == client;
}

/* ---- log ---- */

static void log_request(const struct ll_keeper_request *request, const struct ll_keeper_reply *reply)
{
	const char *known = ll_keeper_call_name(request->call), *name = known ? known : "unknown";
	char process[40] = "";
	if (request->call == LL_KEEPER_PLACE)
		snprintf(process, sizeof process, " process %d", request->pid);
	else if (request->call == LL_KEEPER_SIGNAL_OUTSIDE)
		snprintf(process, sizeof process, " process %d with %d", request->pid, request->signal);
	else if (request->call == LL_KEEPER_SIGNAL_GROUP)
		snprintf(process, sizeof process, " with %d", request->signal);
	/* loadlined asks once a second until the group is empty. */
	if (request->call == LL_KEEPER_REMOVE && reply->code == -EBUSY)
		return;
	/* It asks about jobs that may have none, too. */
	if (request->call == LL_KEEPER_SIGNAL_GROUP && reply->code == -ENOENT)
		return;
	if (reply->code)
		ll_warn("refused: %s%s, job %u-%llx: %s", name, process, request->uid, (unsigned long long)request->job,
			reply->text);
	else if (request->call != LL_KEEPER_HELLO)
		ll_info("%s%s, job %u-%llx", name, process, request->uid, (unsigned long long)request->job);
}

/* ---- connections ---- */

static void refuse_peer(int fd, uid_t uid)
{
	struct ll_keeper_reply reply = {.version = LL_KEEPER_VERSION, .code = -EPERM};
	snprintf(reply.text, sizeof reply.text, "uid %u may not send requests", (unsigned)uid);
	ll_packet_send(fd, &reply, sizeof reply, NULL, 0);
	ll_warn("refused: a connection of uid %u", (unsigned)uid);
	close(fd);
}

static void accept_peer(struct door *door)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t length = sizeof peer;
	int fd = accept4(door->fds[0].fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || !ll_keeper_serves(peer.uid, door->client)) {
		refuse_peer(fd, peer.uid);
		return;
	}
	for (int i = 1; i <= CONNECTIONS; i++) {
		if (door->fds[i].fd < 0) {
			door->fds[i] = (struct pollfd){.fd = fd, .events = POLLIN};
			return;
		}
	}
	ll_warn("refused: there are %d connections", CONNECTIONS);
	close(fd);
}

/* Returns whether the connection stays. A packet of another size ends it: the sender is no loadlined. */
static bool serve_request(struct ll_keeper *keeper, int fd)
{
	struct ll_keeper_request request;
	struct ll_keeper_reply reply;
	int pidfd = -1;
	size_t count = 0;
	int rc = ll_packet_receive(fd, false, &request, sizeof request, &pidfd, 1, &count);
	if (rc == -EAGAIN)
		return true;
	if (rc) {
		if (rc != -EPIPE && rc != -ECONNRESET)
			ll_warn("refused: a packet that is no request: %s", strerror(-rc));
		return false;
	}
	ll_keeper_handle(keeper, &request, count ? pidfd : -1, &reply);
	if (count)
		close(pidfd);
	log_request(&request, &reply);
	return ll_packet_send(fd, &reply, sizeof reply, NULL, 0) == 0;
}

static void serve_ready(struct door *door)
{
	if (door->fds[0].revents)
		accept_peer(door);
	for (int i = 1; i <= CONNECTIONS; i++) {
		struct pollfd *connection = &door->fds[i];
		if (connection->fd < 0 || !connection->revents || serve_request(door->keeper, connection->fd))
			continue;
		close(connection->fd);
		connection->fd = -1;
	}
}

/* A signal comes during the wait alone: one that came between the look at is_ending and the wait would end nothing.
 * *ret_waiting is the mask of the wait. */
static void take_signals(sigset_t *ret_waiting)
{
	struct sigaction end = {.sa_handler = on_signal};
	sigset_t ours;
	sigemptyset(&ours);
	sigaddset(&ours, SIGTERM);
	sigaddset(&ours, SIGINT);
	sigprocmask(SIG_BLOCK, &ours, ret_waiting);
	sigdelset(ret_waiting, SIGTERM);
	sigdelset(ret_waiting, SIGINT);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGINT, &end, NULL);
}

int ll_keeper_serve(struct ll_keeper *keeper, int listen_fd, uid_t client)
{
	struct door door = {.keeper = keeper, .client = client, .fds[0] = {.fd = listen_fd, .events = POLLIN}};
	sigset_t waiting;
	take_signals(&waiting);
	for (int i = 1; i <= CONNECTIONS; i++)
		door.fds[i].fd = -1;
	while (!is_ending) {
		int rc = ppoll(door.fds, 1 + CONNECTIONS, NULL, &waiting);
		if (rc < 0 && errno != EINTR)
			return -errno;
		if (rc > 0)
			serve_ready(&door);
	}
	return 0;
}
