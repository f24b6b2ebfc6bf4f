#include "card/mps_pipe.h"
#include "card/process.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "base/scope.h"

static const char *folder_from_env(const char *variable, const char *fallback)
{
	const char *named = getenv(variable);
	return named && *named ? named : fallback;
}

const char *sim_mps_pipe_folder(void)
{
	return folder_from_env("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
}

static const char *log_folder(void)
{
	return folder_from_env("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps");
}

static int32_t daemon_pid(void)
{
	char path[PATH_MAX];
	int pid = 0;
	snprintf(path, sizeof path, "%s/nvidia-cuda-mps-control.pid", sim_mps_pipe_folder());
	LL_SCOPE_FCLOSE FILE *file = fopen(path, "re");
	return file && fscanf(file, "%d", &pid) == 1 ? pid : 0;
}

static bool is_of_this_world(struct sim_world *w, int32_t pid)
{
	bool found = false;
	sim_lock(w);
	for (uint32_t i = 0; i < SIM_PROCS && !found; i++)
		found = w->procs[i].is_used && w->procs[i].role == SIM_ROLE_MPS_CONTROL && sim_proc_pid(w, i) == pid;
	sim_unlock(w);
	return found;
}

int sim_mps_connect(struct sim_world *w)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int32_t pid = daemon_pid();
	if (pid <= 0 || !is_of_this_world(w, pid))
		return -ENOENT;
	int n = snprintf(address.sun_path, sizeof address.sun_path, "%s/control", sim_mps_pipe_folder());
	if (n < 0 || (size_t)n >= sizeof address.sun_path)
		return -ENOENT;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0 || connect(fd, (struct sockaddr *)&address, sizeof address) == 0)
		return fd < 0 ? -ENOENT : fd;
	close(fd);
	return -ENOENT;
}

bool sim_mps_send(int fd, const char *text)
{
	ssize_t n;
	do
		n = send(fd, text, strlen(text) + 1, MSG_NOSIGNAL);
	while (n < 0 && errno == EINTR);
	return n >= 0;
}

bool sim_mps_receive(int fd, char *text, size_t size)
{
	ssize_t n;
	do
		n = recv(fd, text, size - 1, 0);
	while (n < 0 && errno == EINTR);
	text[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool sim_mps_parse_limit(const char *text, uint64_t *ret_bytes)
{
	char *end;
	unsigned long long count = strtoull(text, &end, 10);
	if (!isdigit((unsigned char)text[0]) || (*end != 'G' && *end != 'M') || end[1] || count > UINT32_MAX)
		return false;
	*ret_bytes = (uint64_t)count << (*end == 'G' ? 30 : 20);
	return true;
}

bool sim_mps_parse_percent(const char *text, uint32_t *ret_permille)
{
	char *end;
	double percent = strtod(text, &end);
	if (end == text || *end || !isfinite(percent) || percent <= 0 || percent > 100)
		return false;
	*ret_permille = (uint32_t)(percent * 10 + 0.5);
	*ret_permille += *ret_permille == 0;
	return true;
}

uint32_t sim_mps_parse_card(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count)
{
	char *end;
	unsigned long ordinal = strtoul(text, &end, 10);
	if (isdigit((unsigned char)text[0]) && !*end)
		return ordinal < count ? cards[ordinal] : SIM_NONE;
	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(w->cards[cards[i]].uuid, text) == 0)
			return cards[i];
	}
	return SIM_NONE;
}

void sim_mps_parse_limits(const struct sim_world *w, const char *text, const uint32_t *cards, uint32_t count,
			  uint64_t ret_bytes[SIM_CARDS])
{
	const size_t size = SIM_CARDS * sizeof ret_bytes[0];
	memset(ret_bytes, 0, size);
	LL_SCOPE_FREE char *copy = text ? strdup(text) : NULL;
	char *save = NULL;
	for (char *word = copy ? strtok_r(copy, ", ", &save) : NULL; word; word = strtok_r(NULL, ", ", &save)) {
		char *value = strchr(word, '=');
		uint64_t bytes = 0;
		uint32_t card = SIM_NONE;
		if (value) {
			*value++ = '\0';
			card = sim_mps_parse_card(w, word, cards, count);
		}
		if (card == SIM_NONE || !sim_mps_parse_limit(value, &bytes)) {
			memset(ret_bytes, 0, size);
			return;
		}
		ret_bytes[card] = bytes;
	}
}

/* ---- the logs ---- */

static int log_fd = -1;
static bool is_echoed;

void sim_mps_log_open(const char *name, bool echo)
{
	char path[PATH_MAX];
	const char *folder = log_folder();
	is_echoed = echo;
	if (mkdir(folder, 0755) < 0 && errno != EEXIST)
		return;
	int n = snprintf(path, sizeof path, "%s/%s", folder, name);
	if (n > 0 && (size_t)n < sizeof path)
		log_fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
}

void sim_mps_log(const char *who, const char *format, ...)
{
	char line[1024];
	struct timespec now;
	struct tm parts;
	clock_gettime(CLOCK_REALTIME, &now);
	localtime_r(&now.tv_sec, &parts);
	size_t n = strftime(line, sizeof line, "[%Y-%m-%d %H:%M:%S", &parts);
	n += (size_t)snprintf(line + n, sizeof line - n, ".%03ld %s %5d] ", now.tv_nsec / 1000000, who, (int)getpid());
	va_list args;
	va_start(args, format);
	int added = vsnprintf(line + n, sizeof line - n - 1, format, args);
	va_end(args);
	n += added > 0 ? (size_t)added : 0;
	n = n < sizeof line - 1 ? n : sizeof line - 2;
	line[n++] = '\n';
	/* A full disk does not stop the daemon. */
	if (log_fd >= 0 && write(log_fd, line, n) < 0)
		log_fd = -1;
	if (is_echoed && write(STDOUT_FILENO, line, n) < 0)
		is_echoed = false;
}
