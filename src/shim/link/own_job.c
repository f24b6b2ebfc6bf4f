/* A program that has the library and no LOADLINE_RUN: it may be in the control group of a job. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/process.h"
#include "base/scope.h"
#include "protocol/keeper.h"
#include "protocol/message.h"
#include "shim/link/connection.h"
#include "shim/link/port.h"

/* A program that is in the group of a job waits so long for loadlined, which may be starting again. */
#define WAIT_NS (1000 * LL_NS_PER_MS)
#define PAUSE_NS (20 * LL_NS_PER_MS)

static bool may_be_in_job(void)
{
	char text[LL_GROUP_TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[length > 0 ? length : 0] = '\0';
	/* It may be a name that somebody else gave, or one that is cut off here: loadlined knows. */
	return length == (ssize_t)sizeof text - 1 || strstr(text, LL_GROUP_NAME_BEGIN) != NULL;
}

static int receive_reply(int fd, uint64_t until_ns, union ll_message *ret_message)
{
	for (;;) {
		int fds[LL_MESSAGE_FDS];
		size_t count = 0;
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		uint64_t now_ns = ll_now_ns();
		int rc = ll_message_receive(fd, ret_message, fds, &count);
		if (!rc)
			ll_message_close_fds(fds, count);
		if (rc != -EAGAIN)
			return rc;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		poll(&ready, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS + 1));
	}
}

static int send_request(int fd, union ll_message *message)
{
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	ll_message_init_hello(message, LL_ROLE_PROCESS, NULL);
	int rc = ll_message_send(fd, message, &process_fd, process_fd >= 0);
	if (rc)
		return rc;
	ll_message_init(message, LL_MESSAGE_OWN_JOB);
	return ll_message_send(fd, message, NULL, 0);
}

/* A loadlined without this message, or a process that is in no group of a job: -ENOENT. */
static int ask_once(const struct ll_run_settings *system, uint64_t until_ns, struct ll_run_settings *ret_settings)
{
	union ll_message message;
	int fd;
	int rc = ll_connection_open(system, &fd);
	if (rc)
		return rc;
	rc = send_request(fd, &message);
	do {
		if (!rc)
			rc = receive_reply(fd, until_ns, &message);
	} while (!rc && message.header.kind == LL_MESSAGE_WELCOME);
	close(fd);
	if (rc)
		return rc;
	if (message.header.kind != LL_MESSAGE_OWN_SETTINGS)
		return -ENOENT;
	return ll_run_settings_read(message.own_settings.text, ret_settings);
}

static bool may_pass(int rc)
{
	return rc == -ECONNREFUSED || rc == -EAGAIN || rc == -EPIPE || rc == -ECONNRESET;
}

static int ask_system(struct ll_run_settings *ret_settings)
{
	struct ll_run_settings system = {.id = 0};
	struct ll_place place;
	uint64_t until_ns = ll_now_ns() + WAIT_NS;
	if (ll_place_of_system(getenv("LOADLINE_SIM_DIR"), &place))
		return -ENOENT;
	memcpy(system.place, place.name, sizeof system.place);
	for (;;) {
		int rc = ask_once(&system, until_ns, ret_settings);
		if (!may_pass(rc) || ll_now_ns() >= until_ns)
			return rc;
		ll_sleep_until_ns(ll_now_ns() + PAUSE_NS);
	}
}

int ll_port_find_job(struct ll_run_settings *ret_settings)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	int rc = may_be_in_job() && ask_system(ret_settings) == 0 ? 0 : -ENOENT;
	errno = code;
	return rc;
}
