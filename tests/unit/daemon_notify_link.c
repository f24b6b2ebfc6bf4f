#include "daemon/machine/machine.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "test.h"

enum { SENT = 200, USER = 5 };

static char folder[] = "/tmp/loadline-notify.XXXXXX";

static void send_events(struct ll_notify_link *link, bool has_user, int count)
{
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_EVENT);
	ll_message_text_set(message.event.name, sizeof message.event.name, "stopped");
	message.event.flags = has_user ? LL_EVENT_HAS_USER : 0;
	message.event.uid = USER;
	for (int i = 0; i < count; i++)
		ll_notify_link_send(link, &message, "/etc/loadline/hook");
}

static int listen_at(const char *path)
{
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	snprintf(address.sun_path, sizeof address.sun_path, "%s", path);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

struct counts {
	int of_user, others, dropped;
};

/* Runs the loop and reads, until nothing more comes. */
static struct counts read_events(uv_loop_t *loop, int fd)
{
	struct counts counts = {0, 0, 0};
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t fd_count = 0;
	for (int quiet = 0; quiet < 20;) {
		uv_run(loop, UV_RUN_NOWAIT);
		if (ll_message_receive(fd, &message, fds, &fd_count)) {
			quiet++;
			continue;
		}
		quiet = 0;
		counts.of_user += (message.event.flags & LL_EVENT_HAS_USER) != 0;
		counts.others += !(message.event.flags & LL_EVENT_HAS_USER);
		counts.dropped += (int)message.event.dropped;
	}
	return counts;
}

TEST(a_user_has_a_part_of_the_queue_and_what_is_dropped_is_counted)
{
	uv_loop_t loop;
	struct ll_place place;
	struct ll_notify_link *link;
	char path[64];
	assert_non_null(mkdtemp(folder));
	snprintf(place.name, sizeof place.name, "%s/socket", folder);
	snprintf(path, sizeof path, "%s/notify", folder);
	uv_loop_init(&loop);
	assert_int_equal(ll_notify_link_new(&loop, &place, &link), 0);
	send_events(link, true, SENT);
	send_events(link, false, SENT);
	int listener = listen_at(path);
	/* The link tries again 2 s after the first attempt. */
	for (int fd = -1; fd < 0;) {
		uv_run(&loop, UV_RUN_ONCE);
		fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
		if (fd < 0)
			continue;
		struct counts counts = read_events(&loop, fd);
		assert_int_equal(counts.of_user, LL_NOTIFY_OF_USER);
		assert_int_equal(counts.others, LL_NOTIFY_QUEUE - LL_NOTIFY_OF_USER);
		assert_int_equal(counts.dropped, SENT - LL_NOTIFY_OF_USER);
		send_events(link, true, 1);
		assert_int_equal(read_events(&loop, fd).dropped, SENT - (LL_NOTIFY_QUEUE - LL_NOTIFY_OF_USER));
		close(fd);
	}
	ll_notify_link_free(link);
	uv_run(&loop, UV_RUN_DEFAULT);
	assert_int_equal(uv_loop_close(&loop), 0);
	close(listener);
	unlink(path);
	rmdir(folder);
}
