/*
 * nvidia-cuda-mps-control: with -d or -f it is the daemon, otherwise the users' end of the pipe.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "card/attach.h"
#include "card/mps_pipe.h"
#include "mps/daemon.h"

static const char usage[] = "usage: nvidia-cuda-mps-control [-d | -f] [-S | --static-partitioning] [-v]\n"
			    "Without -d and -f, commands are read from standard input.\n";

static struct sim_mps_daemon the_daemon;

static int run_daemon(bool is_partitioned, bool is_foreground, int ready_fd)
{
	struct ll_err err = {0};
	sim_mps_log_open("control.log", is_foreground);
	int rc = sim_mps_daemon_init(&the_daemon, is_partitioned, &err);
	if (rc < 0) {
		fprintf(rc == -EBUSY ? stdout : stderr, "%s\n", err.text);
		fflush(stdout);
		return EXIT_FAILURE;
	}
	if (ready_fd >= 0) {
		int null = open("/dev/null", O_RDWR | O_CLOEXEC);
		for (int fd = 0; fd < 3; fd++)
			dup2(null, fd);
		close(null);
		if (write(ready_fd, "", 1) != 1)
			return EXIT_FAILURE;
		close(ready_fd);
	}
	sim_mps_daemon_run(&the_daemon);
	return EXIT_SUCCESS;
}

/* The caller continues when the pipes are open. The daemon closes the caller's other descriptors. */
static int start_daemon(bool is_partitioned)
{
	int fds[2];
	char byte;
	if (pipe2(fds, O_CLOEXEC) < 0)
		return EXIT_FAILURE;
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		if (fds[1] != 3)
			dup2(fds[1], 3);
		fcntl(3, F_SETFD, FD_CLOEXEC);
		syscall(__NR_close_range, 4, ~0U, 0);
		_exit(run_daemon(is_partitioned, false, 3));
	}
	close(fds[1]);
	ssize_t n;
	do
		n = pid > 0 ? read(fds[0], &byte, 1) : -1;
	while (n < 0 && pid > 0 && errno == EINTR);
	return n == 1 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Removes blanks at both ends. */
static char *trim_line(char *line)
{
	size_t n = strlen(line);
	while (n && strchr(" \t\r\n", line[n - 1]))
		line[--n] = '\0';
	return line + strspn(line, " \t");
}

/* Sends each line and prints the reply. `quit` has no other reply than the daemon's end. */
static int talk_to_daemon(int fd)
{
	static char answer[SIM_MPS_MESSAGE_BYTES];
	char line[1024];
	while (fgets(line, sizeof line, stdin)) {
		char *command = trim_line(line);
		if (!*command)
			continue;
		bool is_quit = strncmp(command, "quit", 4) == 0;
		bool is_answered = sim_mps_send(fd, command) && sim_mps_receive(fd, answer, sizeof answer);
		if (!is_answered && !is_quit)
			fprintf(stderr, "Lost connection to the MPS control daemon process\n");
		if (!is_answered)
			return is_quit ? EXIT_SUCCESS : EXIT_FAILURE;
		fputs(answer, stdout);
		fflush(stdout);
	}
	return EXIT_SUCCESS;
}

enum { LISTEN_NS = 3000000 };

/* The daemon listens to one caller at a time, while that sends its command. Returns false if it listens to another
 * caller. */
static bool is_heard(void)
{
	char path[PATH_MAX];
	struct timespec listening = {.tv_nsec = LISTEN_NS};
	snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", sim_mps_pipe_folder());
	int file = open(path, O_RDONLY | O_CLOEXEC);
	bool is_free = file < 0 || flock(file, LOCK_EX | LOCK_NB) == 0;
	if (is_free)
		nanosleep(&listening, NULL);
	if (file >= 0)
		close(file);
	return is_free;
}

static int run_client(struct sim_world *w)
{
	int fd = sim_mps_connect(w);
	if (fd < 0) {
		fprintf(stderr, "Cannot find MPS control daemon process\n");
		return EXIT_FAILURE;
	}
	if (!is_heard()) {
		fprintf(stderr, "Cannot send command to MPS control daemon process\n");
		return EXIT_FAILURE;
	}
	return talk_to_daemon(fd);
}

int main(int argc, char **argv)
{
	static const struct option options[] = {
	    {"static-partitioning", no_argument, NULL, 'S'}, {"help", no_argument, NULL, 'h'}, {0}};
	bool is_daemon = false, is_foreground = false, is_partitioned = false, wants_version = false;
	for (int c; (c = getopt_long(argc, argv, "dfSvh", options, NULL)) != -1;) {
		is_daemon |= c == 'd';
		is_foreground |= c == 'f';
		is_partitioned |= c == 'S';
		wants_version |= c == 'v';
		if (c == 'h' || c == '?') {
			fputs(usage, c == 'h' ? stdout : stderr);
			return c == 'h' ? EXIT_SUCCESS : EXIT_FAILURE;
		}
	}
	if (optind < argc) {
		fputs(usage, stderr);
		return EXIT_FAILURE;
	}
	if (is_daemon)
		return start_daemon(is_partitioned);
	if (is_foreground)
		return run_daemon(is_partitioned, true, -1);
	struct ll_err err = {0};
	struct sim_world *w;
	if (sim_world_attach(&w, &err) < 0) {
		fprintf(stderr, "loadline-sim: %s\n", err.text);
		return EXIT_FAILURE;
	}
	if (wants_version) {
		printf("CUDA MPS Control binary version: %u\n", w->cuda_version);
		return EXIT_SUCCESS;
	}
	return run_client(w);
}
