/*
 * loadline-inside: looks in a container, right before its program starts, whether the library is in force there. It is
 * static, as the container has any C library. A runtime runs it as an OCI hook (startContainer); if it fails, the
 * container does not start.
 *
 *   - loadlined must answer at the mounted socket, and know the job of this control group;
 *   - the container's own loader must take the library by /etc/ld.so.preload, with an empty environment.
 *
 * Without the loader of glibc nothing can reach NVIDIA's driver, which needs it: then there is nothing to look for.
 */
#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/process.h"
#include "protocol/client.h"

#if defined(__aarch64__)
static char loader[] = "/lib/ld-linux-aarch64.so.1";
#else
static char loader[] = "/lib64/ld-linux-x86-64.so.2";
#endif

enum { OUTPUT_SIZE = 16384 };

#define PAUSE_NS (20 * LL_NS_PER_MS)

static int ask_job_once(const struct ll_place *place, int process_fd, uint64_t deadline_ns, struct ll_err *err)
{
	struct ll_client client;
	union ll_message message;
	const struct ll_client_self self = {LOADLINE_VERSION, LL_ROLE_PROCESS, process_fd, NULL};
	int rc = ll_client_open(&client, place, &self, deadline_ns, err);
	ll_message_init(&message, LL_MESSAGE_OWN_JOB);
	if (!rc)
		rc = ll_client_request(&client, &message, NULL, 0, NULL, deadline_ns, err);
	ll_client_close(&client);
	return rc;
}

/* The job was made a moment ago. A loadlined that has started since then knows it when its monitor is back. */
static int ask_job(struct ll_err *err)
{
	struct ll_place place;
	uint64_t deadline_ns = ll_now_ns() + LL_CLIENT_RETURN_NS;
	int process_fd = ll_process_open(getpid()), rc = ll_place_of_system(NULL, &place);
	if (rc)
		return rc;
	for (;;) {
		struct ll_err why = {0};
		rc = ask_job_once(&place, process_fd, deadline_ns, &why);
		if (rc && ll_now_ns() < deadline_ns &&
		    (ll_client_is_lost(rc) || rc == -ECONNREFUSED || rc == -ENOENT)) {
			ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
			continue;
		}
		if (rc)
			*err = why;
		return rc;
	}
}

/* Has the loader list what it would load for a file, which runs nothing of it. The file is the library itself, which is
 * certainly there, by a path that is not the one of /etc/ld.so.preload. */
static int list_libraries(char ret_text[OUTPUT_SIZE])
{
	static char file[] = LL_CONTAINER_FOLDER "/lib64/../lib64/libloadline-cuda.so";
	char *const words[] = {loader, "--list", file, NULL}, *const none[] = {NULL};
	int ends[2], status;
	size_t length = 0;
	pid_t pid = 0;
	posix_spawn_file_actions_t actions;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
	posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
	if (posix_spawn(&pid, loader, &actions, NULL, words, none))
		pid = 0;
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	for (ssize_t got; pid > 0 && length < OUTPUT_SIZE - 1 &&
			  (got = read(ends[0], ret_text + length, OUTPUT_SIZE - 1 - length)) > 0;)
		length += (size_t)got;
	close(ends[0]);
	ret_text[length] = '\0';
	return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) == 0 ? 0 : -EIO;
}

/* "        /opt/loadline/$LIB/libloadline-cuda.so => /opt/loadline/lib64/libloadline-cuda.so (0x00007f...)"; a library
 * that is refused has another line. */
static int check_library(struct ll_err *err)
{
	char text[OUTPUT_SIZE], *rest = text;
	int rc = list_libraries(text);
	for (const char *line; !rc && (line = strsep(&rest, "\n"));) {
		line += strspn(line, " \t");
		if (strncmp(line, LL_CONTAINER_FOLDER "/$LIB/", strlen(LL_CONTAINER_FOLDER "/$LIB/")) == 0 &&
		    strstr(line, "/libloadline-cuda.so (0x"))
			return 0;
	}
	return ll_err_set(err, -EIO, "the loader of this image does not take the library: %.200s", text);
}

/* The runtime writes the container's state, which is not needed here. crun fails the container if nobody reads it. */
static void skip_state(void)
{
	char text[1024];
	while (read(STDIN_FILENO, text, sizeof text) > 0)
		;
}

int main(void)
{
	struct ll_err err = {0};
	skip_state();
	if (access(loader, X_OK) != 0 && errno == ENOENT)
		return LL_EXIT_OK;
	int rc = access(LL_CONTAINER_OPTIONAL, F_OK) == 0 ? 0 : ask_job(&err);
	if (!rc)
		rc = check_library(&err);
	if (rc)
		fprintf(stderr, "loadline: the container does not start: its limits would not be in force: %s\n",
			err.text);
	return rc ? LL_EXIT_FAILED : LL_EXIT_OK;
}
