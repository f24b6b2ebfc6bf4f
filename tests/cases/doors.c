/* doors: opens the driver by other names than its own: libcuda.so, its absolute path, a copy under another name, a link
 * to it, and a descriptor of it. Each in a process of its own, which takes all that it gets. */
#include <fcntl.h>
#include <limits.h>
#include <sys/sendfile.h>
#include <sys/stat.h>

#include "by_name.h"

static char real[PATH_MAX], folder[] = "/tmp/loadline-doors.XXXXXX", path[PATH_MAX + 64];

static void take(const char *name)
{
	size_t took = take_by_name(name);
	printf("%s took %zu\n", name, took);
	if (took > 1600)
		GIVE_UP("past the limit");
}

/* A copy of the driver, or a link to it. */
static const char *another(bool is_copy)
{
	snprintf(path, sizeof path, "%s/%s", folder, is_copy ? "renderer.so" : "libnvcompute.so.7");
	if (!is_copy) {
		NEED(symlink(real, path) == 0);
		return path;
	}
	int from = open(real, O_RDONLY), to = open(path, O_WRONLY | O_CREAT, 0700);
	struct stat stat;
	NEED(from >= 0 && to >= 0 && fstat(from, &stat) == 0);
	for (off_t left = stat.st_size; left > 0;) {
		ssize_t sent = sendfile(to, from, NULL, (size_t)left);
		NEED(sent > 0);
		left -= sent;
	}
	close(from);
	close(to);
	return path;
}

static const char *descriptor(void)
{
	int fd = open(real, O_RDONLY);
	NEED(fd >= 0);
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	return path;
}

int main(void)
{
	const char *sim = getenv("CASE_DRIVER");
	NEED(sim && realpath(sim, real) && mkdtemp(folder));
	for (int door = 0; door < 5; door++) {
		pid_t pid = fork();
		if (pid == 0) {
			take(door == 0   ? "libcuda.so"
			     : door == 1 ? real
			     : door == 4 ? descriptor()
					 : another(door == 2));
			fflush(stdout);
			_exit(0);
		}
		join(pid);
	}
	snprintf(path, sizeof path, "rm -r %s", folder);
	NEED(system(path) == 0);
	puts("full");
	fflush(stdout);
	stay();
	return 0;
}
