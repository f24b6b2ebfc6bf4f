#include "shim/residency/residency.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/guest.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/memory.h"
#include "shim/residency/move.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

/* ---- the connection ---- */

static bool is_ours(const struct ll_line *line, int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == line->device &&
	       st.st_ino == line->inode;
}

static void close_if_ours(struct ll_line *line)
{
	int fd = atomic_exchange(&line->fd, -1);
	if (is_ours(line, fd))
		close(fd);
}

/* Connects, and identifies this process by that message. Other threads send nothing before: loadlined would drop it.
 * -errno: no loadlined listens, or one of another user does. */
static int line_open(struct ll_line *line, const struct ll_port *port, const union ll_message *own)
{
	union ll_message hello;
	int fd;
	ll_message_init_hello(&hello, LL_ROLE_PROCESS, NULL);
	ll_fork_block();
	int rc = ll_port_connect(port, &fd);
	if (!rc) {
		rc = ll_message_send(fd, &hello, NULL, 0);
		rc = rc ? rc : ll_message_send(fd, own, NULL, 0);
		if (rc)
			close(fd);
	}
	if (!rc) {
		struct stat st = {0};
		pthread_mutex_lock(&line->lock);
		fstat(fd, &st);
		line->device = st.st_dev;
		line->inode = st.st_ino;
		atomic_store(&line->fd, fd);
		pthread_mutex_unlock(&line->lock);
	}
	ll_fork_unblock();
	return rc;
}

/* Not while another thread forks: the child would close a number that is somebody else's by then. */
static void line_close(struct ll_line *line)
{
	ll_fork_block();
	pthread_mutex_lock(&line->lock);
	close_if_ours(line);
	pthread_mutex_unlock(&line->lock);
	ll_fork_unblock();
}

int ll_line_say(struct ll_line *line, const union ll_message *message, const int *fds, size_t fd_count)
{
	pthread_mutex_lock(&line->lock);
	int fd = atomic_load(&line->fd);
	int rc = is_ours(line, fd) ? ll_message_send(fd, message, fds, fd_count) : -ENOTCONN;
	pthread_mutex_unlock(&line->lock);
	return rc;
}

/* ---- the thread ---- */

#define LOOK_MS 100
#define PREPARE_LOOK_MS 2
/* After a loadlined was killed, the next one starts within some ms. */
#define CONNECT_NS (20 * LL_NS_PER_MS)
#define ALONE_LOOK_MS 20
#define ROOM_LOOK_NS (1 * LL_NS_PER_MS)
#define DAEMON_LOOK_NS (50 * LL_NS_PER_MS)

enum { CARDS = 64, STACK_BYTES = 256 * 1024 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct ll_link *) links[CARDS];
static bool is_tried[CARDS];

/* ---- messages to loadlined ---- */

/* -ESTALE: the process has no slot now. */
static int init_evictable(struct ll_link *link, union ll_message *ret_message)
{
	struct ll_port_name name = ll_port_name_of(atomic_load(&link->dev->claim));
	if (!name.token)
		return -ESTALE;
	link->told_bytes = ll_chunks_bytes(link->dev);
	ll_link_init_message(link, LL_MESSAGE_EVICTABLE, ret_message);
	struct ll_message_move *move = &ret_message->move;
	move->job = ll_device_state_settings()->id;
	move->slot = name.slot;
	move->slot_token = name.token;
	move->value = ll_link_told_state(link);
	move->free_bytes = ll_move_free_bytes(link->dev);
	move->flags = (link->is_by_hand ? LL_MOVE_BY_HAND : 0U) |
		      (atomic_load(&link->has_said_want) ? LL_MOVE_WANTS : 0U) |
		      (link->is_held && link->state == LL_LINK_RESUMING ? LL_MOVE_HOLD : 0U);
	link->line.token = name.token;
	return 0;
}

/* A thread of the program is about to wait because the calls are shut. Called on any thread. */
static void note_waiting(void)
{
	for (unsigned i = 0; i < CARDS; i++) {
		struct ll_link *link = atomic_load(&links[i]);
		if (link)
			ll_link_say_want(link);
	}
}

static void lose_daemon(struct ll_link *link)
{
	uint64_t now_ns = ll_now_ns();
	atomic_store(&link->ended_ns, now_ns); /* first: a thread that finds no connection looks at it */
	line_close(&link->line);
	ll_link_report_again(link);
	if (link->state == LL_LINK_PREPARING && ll_move_is_stopped(link->move))
		ll_move_stop_at_once(link->move);
	if (link->state == LL_LINK_PREPARING)
		ll_link_enter(link, ll_move_is_stopped(link->move) ? LL_LINK_SUSPENDED : LL_LINK_HERE);
	if (!link->lost_ns)
		link->lost_ns = now_ns;
	atomic_store(&link->room, LL_LINK_REPLY_LOST);
}

static void connect_to_daemon(struct ll_link *link)
{
	union ll_message message;
	uint64_t now_ns = ll_now_ns();
	if (now_ns < link->again_ns)
		return;
	link->again_ns = now_ns + CONNECT_NS;
	link->is_new = true;
	if (init_evictable(link, &message) || line_open(&link->line, link->dev->port, &message))
		return;
	/* The loadlined that received NO_ROOM has ended, so it cannot send RESUME. */
	if (link->lacks_room && ll_link_say_kind(link, LL_MESSAGE_NO_ROOM))
		lose_daemon(link);
}

static int handle_messages(struct ll_link *link)
{
	for (;;) {
		union ll_message message;
		int fds[LL_MESSAGE_FDS], fd = atomic_load(&link->line.fd);
		size_t count = 0;
		int rc = is_ours(&link->line, fd) ? ll_message_receive(fd, &message, fds, &count) : -ENOTCONN;
		if (rc)
			return rc == -EAGAIN ? 0 : rc;
		ll_message_close_fds(fds, count);
		if (message.header.kind != LL_MESSAGE_REFUSED) { /* loadlined knows the slot */
			link->lost_ns = 0;
			link->has_said_alone = false;
		}
		rc = ll_link_handle(link, &message);
		if (rc)
			return rc;
	}
}

/* For a program that runs: reports what it shares, and the memory that may be evicted. */
static int tell_news(struct ll_link *link)
{
	struct ll_port_name name = ll_port_name_of(atomic_load(&link->dev->claim));
	if (name.token != link->line.token)
		return -ESTALE; /* the process has another slot now, and connects for it */
	int rc = ll_shares_tell(link->dev, &link->line, link->is_new);
	link->is_new = false;
	if (rc)
		return rc;
	uint64_t bytes = ll_chunks_bytes(link->dev), pool_bytes = ll_move_pool_bytes(link->move);
	ll_move_look_ahead(link->move, bytes);
	if (bytes == link->told_bytes && pool_bytes == link->told_pool_bytes)
		return 0;
	link->told_bytes = bytes;
	link->told_pool_bytes = pool_bytes;
	return ll_link_say_kind(link, LL_MESSAGE_SIZES);
}

static void serve_link(struct ll_link *link)
{
	int rc = handle_messages(link);
	if (!rc)
		rc = ll_link_do_step(link);
	if (!rc)
		rc = ll_link_report_neighbour(link);
	if (!rc)
		rc = link->state == LL_LINK_HERE ? tell_news(link) : ll_link_look_at_card(link);
	if (!rc && ll_driver_calls_count_waiting()) /* the thread's own message may not have been sent */
		rc = ll_link_say_want(link);
	if (rc)
		lose_daemon(link);
}

/* loadlined has been away for too long: the program is resumed without it. */
static void end_alone(struct ll_link *link)
{
	if (!ll_link_is_alone(link) ||
	    (link->state != LL_LINK_AWAY && link->state != LL_LINK_SUSPENDED && !link->lacks_room && !link->is_back))
		return;
	if (!link->has_said_alone)
		ll_say("loadlined does not answer: this program's memory returns to card %d by itself",
		       link->dev->device);
	link->has_said_alone = true;
	if (link->state != LL_LINK_RESUMING)
		ll_link_resume(link, false);
	link->is_held = link->is_back = false;
	if (link->state == LL_LINK_RESUMING && !ll_move_may_have_room(link->move))
		link->lacks_room = link->moves_on =
		    true; /* without loadlined it is not known whether others use the neighbour */
}

static int look_ms(const struct ll_link *link)
{
	if (ll_link_has_step(link))
		return 0;
	if (link->state == LL_LINK_PREPARING || link->waits_for_host)
		return PREPARE_LOOK_MS;
	return link->line.fd < 0 ? ALONE_LOOK_MS : LOOK_MS;
}

static void *link_main(void *arg)
{
	struct ll_link *link = arg;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	prctl(PR_SET_NAME, "ll-evictable");
	prctl(PR_SET_TIMERSLACK, 1);
	ll_reentry_depth = 1; /* calls of this thread are the library's, not the program's */
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		ll_link_tell_page(link); /* for memory that was allocated meanwhile, and for a new slot */
		if (link->line.fd >= 0) {
			serve_link(link);
		} else {
			if (link->state == LL_LINK_HERE)
				ll_move_look_ahead(link->move, ll_chunks_bytes(link->dev));
			end_alone(link);
			ll_link_do_step(link);
			connect_to_daemon(link);
		}
		struct pollfd ready = {.fd = atomic_load(&link->line.fd), .events = POLLIN};
		int ms = look_ms(link);
		poll(&ready, 1, ms);
	}
	return NULL;
}

static void close_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < CARDS; i++) {
		struct ll_link *link = atomic_exchange(&links[i], NULL);
		is_tried[i] = false;
		if (link)
			close_if_ours(&link->line); /* the copy of the parent's connection */
	}
}

static struct ll_fork_item fork_item = {.in_child = close_in_child};

/* The lock is held. NULL: ret_why says why. */
static struct ll_link *open_link(struct ll_device_state *dev, const char **ret_why)
{
	if (!ll_backing_is_possible(dev->device)) {
		*ret_why = "the driver or the card cannot map memory";
		return NULL;
	}
	struct ll_link *link = calloc(1, sizeof *link);
	struct ll_move *move = ll_move_new(dev);
	*ret_why = "the program has no memory";
	if (link && move) {
		*link = (struct ll_link){.dev = dev, .move = move, .line = {.fd = -1}, .lost_ns = ll_now_ns()};
		pthread_mutex_init(&link->room_lock, NULL);
		pthread_mutex_init(&link->line.lock, NULL);
		connect_to_daemon(link);
		if (ll_guest_thread_start(STACK_BYTES, link_main, link, NULL) == 0)
			return link;
		*ret_why = "the program can start no thread";
		line_close(&link->line);
	}
	free(move);
	free(link);
	return NULL;
}

static struct ll_link *link_of(struct ll_device_state *dev)
{
	struct ll_link *link = atomic_load(&links[dev->device]);
	const char *why = NULL;
	if (link || is_tried[dev->device])
		return link;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	link = atomic_load(&links[dev->device]);
	if (link || is_tried[dev->device])
		return link;
	ll_fork_add(&fork_item);
	link = open_link(dev, &why);
	is_tried[dev->device] = true;
	atomic_store(&links[dev->device], link);
	ll_driver_calls_tell_waiting(note_waiting);
	if (!link)
		ll_say("this program's memory stays on card %d, and cannot be evicted: %s", dev->device, why);
	return link;
}

bool ll_residency_backs(struct ll_device_state *dev)
{
	if (!dev || !ll_device_state_settings()->is_evictable || dev->device < 0 || dev->device >= CARDS)
		return false;
	return link_of(dev) != NULL;
}

void ll_residency_link_join(ll_cu_device device)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	if (settings && settings->is_evictable)
		ll_residency_backs(ll_device_state_get(device));
}

bool ll_residency_is_served(struct ll_device_state *dev)
{
	return ll_residency_backs(dev) && link_of(dev)->line.fd >= 0;
}

/* ---- room for an allocation ---- */

static enum ll_link_reply request_room(struct ll_link *link, uint64_t bytes, bool waits_by_chunk, uint64_t deadline_ns)
{
	int reply;
	uint64_t now_ns = ll_now_ns();
	union ll_message message;
	ll_message_init(&message, LL_MESSAGE_SHORT);
	message.move.bytes = ll_footprint_round(bytes, LL_FOOTPRINT_BLOCK_BYTES); /* the driver allocates no less */
	message.move.flags = waits_by_chunk ? LL_MOVE_BY_CHUNKS : 0;
	atomic_store(&link->room, LL_LINK_REPLY_NONE);
	if (ll_line_say(&link->line, &message, NULL, 0))
		return LL_LINK_REPLY_LOST;
	while (!(reply = atomic_load(&link->room)) && now_ns < deadline_ns) {
		ll_sleep_until_ns(now_ns + ROOM_LOOK_NS);
		now_ns = ll_now_ns();
	}
	return (enum ll_link_reply)reply;
}

enum ll_move_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool waits_by_chunk,
					 unsigned *grants)
{
	if (!ll_residency_backs(dev))
		return LL_MOVE_ROOM_NONE;
	if (*grants == LL_RESIDENCY_GRANTS) {
		ll_say("card %d has room, and the driver refuses an allocation of %" PRIu64 " MiB all the same",
		       dev->device, bytes >> 20);
		return LL_MOVE_ROOM_NONE;
	}
	struct ll_link *link = link_of(dev);
	LL_SCOPE_NO_CANCEL;
	/* The program itself may be evicted meanwhile. */
	ll_driver_call_step_out();
	pthread_mutex_lock(&link->room_lock);
	enum ll_link_reply reply;
	uint64_t deadline_ns = ll_now_ns() + LL_RESIDENCY_ROOM_NS;
	for (;;) { /* if loadlined ends, sends the request to the next one */
		reply = request_room(link, bytes, waits_by_chunk, deadline_ns);
		uint64_t now_ns = ll_now_ns(), ended_ns = atomic_load(&link->ended_ns);
		if (reply != LL_LINK_REPLY_LOST || !ended_ns || now_ns > ended_ns + LL_RESIDENCY_DAEMON_NS)
			break;
		ll_sleep_until_ns(now_ns + DAEMON_LOOK_NS);
	}
	pthread_mutex_unlock(&link->room_lock);
	ll_driver_call_step_in();
	if (reply != LL_LINK_REPLY_THERE && reply != LL_LINK_REPLY_COMING)
		return LL_MOVE_ROOM_NONE;
	++*grants;
	return reply == LL_LINK_REPLY_THERE ? LL_MOVE_ROOM_THERE : LL_MOVE_ROOM_COMING;
}
