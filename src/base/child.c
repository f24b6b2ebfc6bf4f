#include "base/child.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>

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

#if __GLIBC_PREREQ(2, 34)
int ll_child_close_from(posix_spawn_file_actions_t *actions, int first)
{
	return posix_spawn_file_actions_addclosefrom_np(actions, first);
}
#else
int ll_child_close_from(posix_spawn_file_actions_t *actions, int first)
{
	DIR *folder = opendir("/proc/self/fd");
	if (!folder)
		return errno;
	int rc = 0;
	for (struct dirent *entry; rc == 0 && (entry = readdir(folder));) {
		int fd = atoi(entry->d_name);
		if (fd >= first && fd != dirfd(folder))
			rc = posix_spawn_file_actions_addclose(actions, fd);
	}
	closedir(folder);
	return rc;
}
#endif
