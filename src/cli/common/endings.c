#include "cli/common/endings.h"

#include <pthread.h>
#include <sys/signalfd.h>

int ll_endings_block(const int *signals, size_t count, sigset_t *ret_before)
{
	sigset_t set;
	sigemptyset(&set);
	for (size_t i = 0; i < count; i++) {
		struct sigaction action;
		if (sigaction(signals[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&set, signals[i]);
	}
	pthread_sigmask(SIG_BLOCK, &set, ret_before);
	return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}
