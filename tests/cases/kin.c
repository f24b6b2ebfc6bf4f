/* kin spawn|vfork|orphan: starts itself again in a way that loses the settings, keeps the library, and the new one
 * takes all that it gets. */
#include <fcntl.h>
#include <spawn.h>

#include "case.h"

extern char **environ;

static char *kept[8];

static void keep_library_alone(void)
{
	static const char *const names[] = {
	    "LD_PRELOAD=", "LD_LIBRARY_PATH=", "LOADLINE_SIM_DIR=", "LOADLINE_SIM_SCENARIO="};
	size_t count = 0;
	for (char **one = environ; *one; one++) {
		for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
			if (strncmp(*one, names[i], strlen(names[i])) == 0)
				kept[count++] = *one;
		}
	}
}

static void close_all(void)
{
	for (int fd = 3; fd < 4096; fd++)
		close(fd);
}

static pid_t start(const char *self, char **argv, const char *way)
{
	pid_t pid;
	if (strcmp(way, "spawn") == 0) {
		close_all();
		NEED(posix_spawn(&pid, self, NULL, NULL, argv, kept) == 0);
		return pid;
	}
	int fd = open(self, O_RDONLY);
	NEED(fd >= 0);
	pid = strcmp(way, "vfork") == 0 ? vfork() : fork();
	if (pid == 0) {
		fexecve(fd, argv, kept);
		_exit(9);
	}
	NEED(pid > 0);
	return pid;
}

/* Its own parent and session are gone, and what it inherited lies at other numbers. */
static void orphan(const char *self, char **argv)
{
	if (fork() > 0) {
		int status;
		wait(&status);
		stay();
		_exit(0);
	}
	NEED(setsid() >= 0);
	if (fork() > 0)
		_exit(0);
	while (getppid() != 1 && getppid() != getsid(0) && getppid() == getpgrp())
		usleep(1000);
	for (int fd = 3; fd < 200; fd++) {
		if (fcntl(fd, F_GETFD) >= 0 && fcntl(fd, F_DUPFD, 300) >= 0)
			close(fd);
	}
	execve(self, argv, kept);
	_exit(9);
}

int main(int argc, char **argv)
{
	char self[4096], child[] = "child", *words[] = {argv[0], child, NULL};
	ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
	NEED(argc > 1 && length > 0);
	self[length] = '\0';
	if (strcmp(argv[1], "child") == 0) {
		NEED(!getenv("LOADLINE_RUN"));
		begin();
		full();
		return 0;
	}
	keep_library_alone();
	if (strcmp(argv[1], "orphan") == 0)
		orphan(self, words);
	join(start(self, words, argv[1]));
	return 0;
}
