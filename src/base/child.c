#include "base/child.h"

#include <signal.h>
#include <stddef.h>

static const int blocked_signals[] = {SIGHUP,  SIGINT,  SIGQUIT, SIGTERM, SIGTSTP,
				      SIGTTIN, SIGTTOU, SIGUSR1, SIGUSR2, SIGPIPE};

int ll_child_block_signals(posix_spawnattr_t *attr)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < sizeof blocked_signals / sizeof *blocked_signals; i++)
		sigaddset(&set, blocked_signals[i]);
	int rc = posix_spawnattr_setsigmask(attr, &set);
	return rc ? rc : posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK);
}
