#include "cli/mover/start.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/close_from.h"
#include "base/err.h"
#include "base/packet.h"
#include "mover/protocol.h"

enum { READY_MS = 30000, LINGER_S = 60, READY_FD = STDERR_FILENO + 1 };

static bool is_served(const struct ll_card *card, const char *folder)
{
	char name[LL_UUID_SIZE + sizeof LL_MOVER_SOCKET_SUFFIX];
	int fd;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, card->uuid);
	if (ll_packet_connect(folder, name, &fd) < 0)
		return false;
	close(fd);
	return true;
}

/* In the child's child, which nobody waits for. ready_fd: what it writes there says that programs can connect. */
static _Noreturn void become_mover(const struct ll_card *card, int ready_fd)
{
	char ready[16], linger[16];
	sigset_t none;
	snprintf(ready, sizeof ready, "%d", READY_FD);
	snprintf(linger, sizeof linger, "%ds", LINGER_S);
	setsid();
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null_fd >= 0) {
		dup2(null_fd, STDIN_FILENO);
		dup2(null_fd, STDOUT_FILENO);
	}
	/* Not the descriptor that keeps the tenant of `loadline run`. */
	if (dup2(ready_fd, READY_FD) < 0)
		_exit(LL_EXIT_FAILED);
	fcntl(READY_FD, F_SETFD, 0);
	ll_close_from(READY_FD + 1);
	execl("/proc/self/exe", "loadline", "--log-level", "warn", "mover", "-i", card->uuid, "--linger", linger,
	      "--ready-fd", ready, (char *)NULL);
	_exit(LL_EXIT_FAILED);
}

static int spawn_mover(const struct ll_card *card, int *ret_ready_fd, struct ll_err *err)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return ll_err_set(err, -errno, "card %s: start a mover: %s", card->label, strerror(errno));
	pid_t child = fork();
	if (child == 0) {
		pid_t mover = fork();
		if (mover == 0)
			become_mover(card, fds[1]);
		_exit(mover < 0 ? LL_EXIT_FAILED : LL_EXIT_OK);
	}
	int code = errno;
	close(fds[1]);
	if (child > 0) {
		waitpid(child, NULL, 0);
		*ret_ready_fd = fds[0];
		return 0;
	}
	close(fds[0]);
	return ll_err_set(err, -code, "card %s: start a mover: %s", card->label, strerror(code));
}

int ll_mover_start(const struct ll_card *card, const char *folder, struct ll_err *err)
{
	int ready_fd = -1;
	char byte;
	if (is_served(card, folder))
		return 0;
	int rc = spawn_mover(card, &ready_fd, err);
	if (rc)
		return rc;
	struct pollfd ready = {.fd = ready_fd, .events = POLLIN};
	int polled = poll(&ready, 1, READY_MS);
	bool is_ready = polled > 0 && read(ready_fd, &byte, 1) == 1;
	close(ready_fd);
	if (is_ready || is_served(card, folder)) /* another `run` may have been faster */
		return 0;
	ll_err_set(err, polled > 0 ? -ECHILD : -ETIMEDOUT, "card %s: no mover could be started", card->label);
	return ll_err_hint(err, "`loadline mover -i %s` says why; or leave --evictable out", card->label);
}
