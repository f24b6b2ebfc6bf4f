#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/scope.h"
#include "base/utf8.h"
#include "cli/common/user.h"
#include "cli/status/status.h"

enum { STATUS_SIZE = 2048 };

ssize_t ll_status_read_proc(pid_t pid, const char *name, char *text, size_t size)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/%s", (int)pid, name);
	LL_SCOPE_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t used = 0;
	while (fd >= 0 && used < size - 1) {
		ssize_t n = read(fd, text + used, size - 1 - used);
		if (n <= 0)
			break;
		used += (size_t)n;
	}
	text[used] = '\0';
	return fd < 0 ? -1 : (ssize_t)used;
}

/* The owner of the folder is root if the process cannot be dumped. */
static void read_user(pid_t pid, char *user, size_t size)
{
	char text[STATUS_SIZE];
	ll_status_read_proc(pid, "status", text, sizeof text);
	const char *line = strstr(text, "\nUid:");
	if (!line)
		return;
	ll_user_name((uid_t)strtoul(line + strlen("\nUid:"), NULL, 10), user, size);
}

/* Goes without the folder of the program, which would fill the column. A process without a command line has a name. */
static void read_command(pid_t pid, char *command, size_t size)
{
	char text[LL_STATUS_COMMAND_SIZE + 256];
	ssize_t length = ll_status_read_proc(pid, "cmdline", text, sizeof text);
	if (length <= 0)
		length = ll_status_read_proc(pid, "comm", text, sizeof text);
	const char *slash = strrchr(text, '/'); /* in the first word, which a NUL ends */
	for (ssize_t i = 0; i < length; i++)
		text[i] = !text[i] || text[i] == '\n' || text[i] == '\t' ? ' ' : text[i];
	while (length > 0 && text[length - 1] == ' ')
		text[--length] = '\0';
	snprintf(command, size, "%.*s", LL_STATUS_COMMAND_SIZE - 1, slash ? slash + 1 : text);
}

void ll_status_process_read(pid_t pid, struct ll_status_process *ret_process)
{
	*ret_process = (struct ll_status_process){.user = ""};
	read_user(pid, ret_process->user, sizeof ret_process->user);
	read_command(pid, ret_process->command, sizeof ret_process->command);
	ll_utf8_clean(ret_process->user);
	ll_utf8_clean(ret_process->command);
}
