#include "base/service.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"

/* ---- main ---- */

int ll_program_main(const struct ll_program *program, int argc, char **argv, void *options)
{
	struct ll_err err = {0};
	bool is_help = argc == 2 && strcmp(argv[1], "--help") == 0;
	if (argc == 2 && strcmp(argv[1], "--version") == 0) {
		printf("%s %s\n", program->name, program->version);
		return LL_EXIT_OK;
	}
	if (is_help || !program->read_options(argc, argv, options)) {
		fputs(program->help, is_help ? stdout : stderr);
		return is_help ? LL_EXIT_OK : LL_EXIT_USAGE;
	}
	int rc = program->run(options, &err);
	if (rc >= 0)
		return rc;
	fprintf(stderr, err.hint[0] ? "%s: %s; %s\n" : "%s: %s\n", program->name, err.text, err.hint);
	return ll_err_exit_code(rc);
}

uint64_t ll_program_seconds(const char *text, double most)
{
	char *end;
	double seconds = strtod(text, &end);
	return end != text && !*end && seconds > 0 && seconds <= most ? (uint64_t)(seconds * LL_NS_PER_S) : 0;
}

/* ---- the loop ---- */

enum { SIGNALS, LISTENER, WATCHED, FIRST };

int ll_service_init(struct ll_service *service)
{
	sigset_t set;
	sigemptyset(&set);
	for (int i = 0; i < LL_SERVICE_SIGNALS && service->signals[i]; i++)
		sigaddset(&set, service->signals[i]);
	for (int i = 0; i < LL_SERVICE_CONNECTIONS; i++)
		service->fds[i] = -1;
	sigprocmask(SIG_BLOCK, &set, NULL);
	service->signals_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return service->signals_fd < 0 ? -errno : 0;
}

static void read_signals(struct ll_service *service)
{
	struct signalfd_siginfo info;
	while (!service->is_ending && read(service->signals_fd, &info, sizeof info) == (ssize_t)sizeof info) {
		service->is_ending = info.ssi_signo == SIGTERM || info.ssi_signo == SIGINT;
		if (!service->is_ending)
			service->on_signal(service, (int)info.ssi_signo);
	}
}

static void accept_peer(struct ll_service *service)
{
	struct ucred peer = {.uid = (uid_t)-1};
	socklen_t length = sizeof peer;
	int free_place = 0, fd = accept4(service->listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0)
		peer.uid = (uid_t)-1;
	while (free_place < service->connections && service->fds[free_place] >= 0)
		free_place++;
	if (service->on_peer && !service->on_peer(service, fd, peer.uid)) {
		close(fd);
	} else if (free_place == service->connections) {
		ll_warn("refused: there are %d connections", service->connections);
		close(fd);
	} else {
		service->fds[free_place] = fd;
	}
}

static bool can_read(struct ll_service *service)
{
	return !service->has_room || service->has_room(service);
}

/* With the end of a connection poll() returns also if nothing is asked for: while no packet can be taken, connections
 * are left out. */
static int wait_for_something(struct ll_service *service, struct pollfd polled[FIRST + LL_SERVICE_CONNECTIONS])
{
	uint64_t now_ns = ll_now_ns(), left_ns = service->tick_ns > now_ns ? service->tick_ns - now_ns : 0;
	bool is_full = !can_read(service);
	polled[SIGNALS] = (struct pollfd){.fd = service->signals_fd, .events = POLLIN};
	polled[LISTENER] = (struct pollfd){.fd = service->listen_fd, .events = POLLIN};
	polled[WATCHED] = (struct pollfd){.fd = service->watched_fd, .events = service->events};
	for (int i = 0; i < LL_SERVICE_CONNECTIONS; i++)
		polled[FIRST + i] = (struct pollfd){.fd = is_full ? -1 : service->fds[i], .events = POLLIN};
	int timeout_ms = service->tick_ns == UINT64_MAX ? -1 : !left_ns ? 0 : (int)(left_ns / LL_NS_PER_MS) + 1;
	return poll(polled, FIRST + LL_SERVICE_CONNECTIONS, timeout_ms) < 0 ? -errno : 0;
}

static void serve_ready(struct ll_service *service, const struct pollfd polled[FIRST + LL_SERVICE_CONNECTIONS])
{
	if (polled[SIGNALS].revents)
		read_signals(service);
	if (service->is_ending)
		return;
	if (polled[WATCHED].revents)
		service->on_watched(service);
	for (int i = 0; i < LL_SERVICE_CONNECTIONS; i++) {
		if (!polled[FIRST + i].revents || !can_read(service) || service->on_packet(service, service->fds[i]))
			continue;
		close(service->fds[i]);
		service->fds[i] = -1;
	}
	if (polled[LISTENER].revents)
		accept_peer(service);
	if (service->on_tick && ll_now_ns() >= service->tick_ns)
		service->on_tick(service);
}

int ll_service_run(struct ll_service *service)
{
	struct pollfd polled[FIRST + LL_SERVICE_CONNECTIONS];
	int rc = 0;
	while (!rc && !service->is_ending) {
		rc = wait_for_something(service, polled);
		if (!rc)
			serve_ready(service, polled);
		else if (rc == -EINTR)
			rc = 0;
	}
	for (int i = 0; i < LL_SERVICE_CONNECTIONS; i++) {
		if (service->fds[i] >= 0)
			close(service->fds[i]);
	}
	close(service->signals_fd);
	return rc;
}
