#include "card/mps_pipe.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/scope.h"
#include "card/population.h"

static const char *folder(const char *variable, const char *fallback)
{
	const char *named = getenv(variable);
	return named && *named ? named : fallback;
}

const char *sim_mps_pipe_folder(void)
{
	return folder("CUDA_MPS_PIPE_DIRECTORY", "/tmp/nvidia-mps");
}

const char *sim_mps_log_folder(void)
{
	return folder("CUDA_MPS_LOG_DIRECTORY", "/var/log/nvidia-mps");
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
		found = w->procs[i].is_used && w->procs[i].role == SIM_ROLE_MPS_CONTROL && w->procs[i].pid == pid;
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

uint32_t sim_mps_uid(void)
{
	const char *text = getenv("LOADLINE_SIM_UID");
	return text ? (uint32_t)strtoul(text, NULL, 10) : (uint32_t)getuid();
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
