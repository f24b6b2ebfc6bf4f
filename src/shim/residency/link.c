#include "shim/residency/link.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fork.h"
#include "base/packet.h"
#include "base/scope.h"
#include "shim/interpose/real.h"
#include "shim/interpose/reentry.h"
#include "shim/memory/backing.h"
#include "shim/memory/pieces.h"
#include "shim/residency/move.h"
#include "shim/residency/shares.h"
#include "shim/say.h"
#include "shim/time/driver_calls.h"

#define LOOK_MS 100
#define CONNECT_NS (500 * LL_NS_PER_MS)
#define ROOM_LOOK_NS (1 * LL_NS_PER_MS)
#define MOVER_LOOK_NS (50 * LL_NS_PER_MS)

enum { CARDS = 64, HIGH_FD = 512, STACK_BYTES = 256 * 1024 };

static const char no_descriptor[] = "the program has no free descriptor";

enum answer { ANSWER_NONE, ANSWER_THERE, ANSWER_COMING, ANSWER_NO_ROOM, ANSWER_LOST /* the mover has ended */ };

struct link {
	struct ll_device_state *dev;
	struct ll_move *move;
	_Atomic int fd;          /* -1: no mover. Only the link's thread changes it */
	pthread_mutex_t fd_lock; /* held by other threads while they send, and while fd changes */
	_Atomic int old_fd;      /* of a mover that has gone, until the memory is back; -1: none */
	_Atomic int came_fd;     /* came with a packet that is being handled; -1: none */
	unsigned told_claim;     /* by HELLO */
	bool is_new;             /* the mover, which has not heard of what is shared */
	bool has_said_alone;     /* on the standard error stream, that there is no mover */
	pthread_t thread;
	uint64_t told_bytes;      /* evictable, as the mover knows it */
	uint64_t evictable_bytes; /* as it is charged, when the program last ran */
	bool is_returning;        /* the mover wants the memory back on the card */
	bool is_staying;          /* it does no more: what comes is dropped */
	_Atomic bool is_away;
	_Atomic bool has_said_want; /* since the memory left */
	_Atomic int room;           /* enum answer */
	_Atomic uint64_t lost_ns;   /* when a mover was lost; 0: none was */
	pthread_mutex_t room_lock;  /* one thread asks for room at a time */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic(struct link *) links[CARDS];
static bool is_tried[CARDS];
static struct ll_fork_item fork_item;

/* ---- what is said ---- */

static int say_kind(const struct link *link, enum ll_mover_kind kind, uint64_t bytes, uint64_t value)
{
	struct ll_mover_message message = {.kind = kind, .bytes = bytes, .value = value};
	return ll_packet_send(atomic_load(&link->fd), &message, sizeof message, NULL, 0);
}

/* From any thread. The descriptor's number may be somebody else's a moment after the mover has gone. */
static int say_from_thread(struct link *link, enum ll_mover_kind kind, uint64_t bytes, uint64_t value)
{
	pthread_mutex_lock(&link->fd_lock);
	int rc = atomic_load(&link->fd) < 0 ? -ENOTCONN : say_kind(link, kind, bytes, value);
	pthread_mutex_unlock(&link->fd_lock);
	return rc;
}

static int say_busy(const struct link *link, const char *why)
{
	struct ll_mover_message message = {.kind = LL_MOVER_BUSY};
	snprintf(message.text, sizeof message.text, "%s", why);
	return ll_packet_send(atomic_load(&link->fd), &message, sizeof message, NULL, 0);
}

static int say_hello(struct link *link, int fd)
{
	link->told_claim = ll_port_index(atomic_load(&link->dev->claim));
	struct ll_mover_message message = {
	    .kind = LL_MOVER_HELLO, .number = link->told_claim, .value = LL_MOVER_VERSION};
	snprintf(message.text, sizeof message.text, "%s", ll_device_state_settings()->tenant);
	return ll_packet_send(fd, &message, sizeof message, NULL, 0);
}

static int tell_sizes(struct link *link)
{
	uint64_t bytes = ll_pieces_bytes(link->dev);
	if (bytes == link->told_bytes)
		return 0;
	struct ll_memory_view view;
	ll_port_read_memory(atomic_load(&link->dev->claim), &view);
	int rc = say_kind(link, LL_MOVER_SIZES, bytes, view.own_bytes > bytes ? view.own_bytes - bytes : 0);
	if (!rc)
		link->told_bytes = bytes;
	return rc;
}

/* Says in the program's claim where its memory is. */
static void tell_residency(struct link *link)
{
	uint64_t away_bytes = ll_move_away_bytes(link->move);
	if (!ll_move_is_stopped(link->move))
		link->evictable_bytes = ll_pieces_charged_bytes(link->dev);
	struct ll_memory_residency residency = {.state = LL_CLAIM_ON_CARD, .evictable_bytes = link->evictable_bytes};
	if (ll_move_is_stopped(link->move))
		residency.state = away_bytes && ll_move_is_all_out(link->move) ? LL_CLAIM_EVICTED : LL_CLAIM_STOPPED;
	/* Blocks that small allocations share are larger than these are charged. */
	residency.away_bytes = away_bytes < residency.evictable_bytes ? away_bytes : residency.evictable_bytes;
	ll_port_set_residency(atomic_load(&link->dev->claim), &residency);
}

/* A thread of the program is about to wait, because the calls are shut. Any thread. */
static void note_waiting(void)
{
	for (unsigned i = 0; i < CARDS; i++) {
		struct link *link = atomic_load(&links[i]);
		if (link && atomic_load(&link->is_away) && !atomic_exchange(&link->has_said_want, true))
			say_from_thread(link, LL_MOVER_WANT, 0, 0);
	}
}

/* ---- what the mover says ---- */

static int stop_program(struct link *link, const struct ll_mover_message *message, int pool_fd)
{
	char why[LL_MOVER_TEXT_SIZE] = "";
	uint64_t bytes;
	uint32_t batches;
	int rc = ll_move_is_stopped(link->move) ? 0 : tell_sizes(link);
	if (rc)
		return rc;
	if (ll_move_stop(link->move, message->value, pool_fd, &bytes, &batches, why) < 0)
		return say_busy(link, why);
	/* A thread that was late in the move before may have said it just now. */
	atomic_store(&link->has_said_want, false);
	atomic_store(&link->is_away, true);
	tell_residency(link);
	rc = say_kind(link, LL_MOVER_QUIET, bytes, batches);
	if (!rc && ll_driver_calls_count_waiting() && !atomic_exchange(&link->has_said_want, true))
		rc = say_kind(link, LL_MOVER_WANT, 0, 0);
	return rc;
}

/* error: the driver's, if the memory is not back because the card is lost. */
static int go_on(struct link *link, uint64_t error)
{
	atomic_store(&link->is_away, false);
	atomic_store(&link->has_said_want, false);
	link->is_returning = false;
	/* A program that hears of its card's loss may end at once. Else whoever hears BACK finds it in the claim. */
	int rc = error ? say_kind(link, LL_MOVER_BACK, 0, error) : 0;
	ll_move_go_on(link->move);
	tell_residency(link);
	return error ? rc : say_kind(link, LL_MOVER_BACK, 0, 0);
}

/* What came of an attempt to bring memory in. */
static int note_in(struct link *link, int rc)
{
	if (rc == -ENOMEM)
		return say_kind(link, LL_MOVER_NO_ROOM, 0, 0);
	if (rc == -EIO) {
		ll_move_give_up(link->move);
		return go_on(link, LL_CUDA_ERROR_DEVICE_UNAVAILABLE);
	}
	return !rc && ll_move_is_all_in(link->move) ? go_on(link, 0) : rc;
}

static int send_in(struct link *link)
{
	return note_in(link, ll_move_send_in(link->move, atomic_load(&link->fd)));
}

static int send_out(struct link *link)
{
	int rc = ll_move_send_out(link->move, atomic_load(&link->fd));
	return rc == -EMFILE ? say_busy(link, no_descriptor) : rc;
}

/* Ends the answer to STAY. */
static int end_stay(struct link *link)
{
	tell_residency(link);
	if (!ll_move_is_at_rest(link->move))
		return 0;
	link->is_staying = false;
	return say_kind(link, LL_MOVER_AWAY, 0, 0);
}

static int note_taken(struct link *link, const struct ll_mover_message *message, int fd)
{
	int rc = ll_move_note_taken(link->move, message, fd);
	if (rc)
		return rc;
	tell_residency(link);
	if (link->is_staying)
		return end_stay(link);
	if (link->is_returning)
		return send_in(link);
	if (!message->count && !message->value) /* RETURN follows */
		return 0;
	return ll_move_is_all_out(link->move) ? say_kind(link, LL_MOVER_AWAY, 0, 0) : send_out(link);
}

/* The program may have gone on before it heard this: then BACK is on its way. */
static int begin_stay(struct link *link)
{
	if (!link->is_returning)
		return 0;
	ll_move_stay(link->move);
	link->is_returning = false;
	link->is_staying = true;
	return end_stay(link);
}

static int note_filled(struct link *link, const struct ll_mover_message *message)
{
	if (link->is_staying) {
		int dropped = ll_move_drop(link->move, message->batch);
		return dropped ? dropped : end_stay(link);
	}
	int rc = ll_move_note_filled(link->move, message->batch, !message->value);
	return rc ? note_in(link, rc) : send_in(link);
}

static enum answer answer_of(uint64_t room)
{
	if (room == LL_MOVER_ROOM_COMING)
		return ANSWER_COMING;
	return room ? ANSWER_THERE : ANSWER_NO_ROOM;
}

/* fd: that came with it; -1: none did. */
static int handle_message(struct link *link, const struct ll_mover_message *message, int fd)
{
	switch (message->kind) {
	case LL_MOVER_LEAVE:
		return fd < 0 ? -EPROTO : stop_program(link, message, fd);
	case LL_MOVER_STOP:
		return stop_program(link, message, -1);
	case LL_MOVER_SEND:
		return send_out(link);
	case LL_MOVER_TAKEN:
		return note_taken(link, message, fd);
	case LL_MOVER_MOVED:
		return ll_move_note_moved(link->move, message);
	case LL_MOVER_RETURN:
		if (!ll_move_is_stopped(link->move)) /* it was said again while BACK was on its way */
			return 0;
		link->is_returning = true;
		return send_in(link);
	case LL_MOVER_STAY:
		return begin_stay(link);
	case LL_MOVER_FILLED:
		return note_filled(link, message);
	case LL_MOVER_ROOM_MADE:
		atomic_store(&link->room, answer_of(message->value));
		return 0;
	default:
		return -EPROTO;
	}
}

/* ---- the thread ---- */

/* Out of the way of programs that close or reuse low descriptors. */
static int move_up(int fd)
{
	int high = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD);
	if (high >= 0)
		close(fd);
	return high >= 0 ? high : fd;
}

/* A mover that does not read must not hold the program's threads up. */
static void stop_blocking(int fd)
{
	int flags = fcntl(fd, F_GETFL);
	if (flags >= 0)
		fcntl(fd, F_SETFL, flags | O_NONBLOCK);
}

static int connect_to_mover(struct link *link)
{
	char name[sizeof link->dev->uuid + sizeof LL_MOVER_SOCKET_SUFFIX];
	int fd = -1;
	snprintf(name, sizeof name, "%s" LL_MOVER_SOCKET_SUFFIX, link->dev->uuid);
	link->told_bytes = 0;
	ll_fork_block();
	int rc = ll_packet_connect(ll_device_state_settings()->folder, name, &fd);
	if (!rc) {
		fd = move_up(fd);
		stop_blocking(fd);
		/* First, so that no other thread's word comes before it. */
		rc = say_hello(link, fd);
		link->is_new = true;
		atomic_store(rc ? &link->old_fd : &link->fd, fd);
	}
	ll_fork_unblock();
	return rc;
}

/* Closes what is left of a connection. Not while another thread forks: the child would close the number too. */
static void close_old(struct link *link)
{
	ll_fork_block();
	int fd = atomic_exchange(&link->old_fd, -1);
	if (fd >= 0)
		close(fd);
	ll_fork_unblock();
}

/* The mover is gone. What it had of ours is brought back without it. A mover that lives keeps our places in the pool
 * until the connection is closed. */
static void lose_mover(struct link *link)
{
	pthread_mutex_lock(&link->fd_lock);
	atomic_store(&link->old_fd, atomic_load(&link->fd));
	atomic_store(&link->fd, -1);
	pthread_mutex_unlock(&link->fd_lock);
	if (ll_move_is_stopped(link->move)) {
		ll_move_bring_back_alone(link->move);
		atomic_store(&link->is_away, false);
		atomic_store(&link->has_said_want, false);
		link->is_returning = link->is_staying = false;
		ll_move_go_on(link->move);
	}
	close_old(link);
	atomic_store(&link->lost_ns, ll_now_ns());
	atomic_store(&link->room, ANSWER_LOST);
}

static int handle_packet(struct link *link)
{
	struct ll_mover_message message = {0};
	int came_fd = -1;
	size_t fd_count = 0;
	ll_fork_block();
	int rc = ll_packet_receive(atomic_load(&link->fd), false, &message, sizeof message, &came_fd, 1, &fd_count);
	if (!rc && fd_count)
		atomic_store(&link->came_fd, came_fd);
	ll_fork_unblock();
	if (rc == -EAGAIN)
		return 0;
	/* Without the descriptor of a neighbour's memory the batch is not safe there: it never left. */
	if (rc == -EMFILE)
		return message.kind == LL_MOVER_LEAVE ? say_busy(link, no_descriptor) : rc;
	if (!rc)
		rc = handle_message(link, &message, fd_count ? came_fd : -1);
	if (fd_count) {
		ll_fork_block();
		atomic_store(&link->came_fd, -1);
		close(came_fd);
		ll_fork_unblock();
	}
	return rc;
}

static int serve_mover(struct link *link)
{
	struct pollfd ready = {.fd = atomic_load(&link->fd), .events = POLLIN};
	if (poll(&ready, 1, LOOK_MS) < 0 && errno != EINTR)
		return -errno;
	if (ready.revents & POLLNVAL) /* the program has closed it */
		return -EBADF;
	int rc = ready.revents ? handle_packet(link) : 0;
	if (rc || ll_move_is_stopped(link->move))
		return rc;
	if (ll_port_index(atomic_load(&link->dev->claim)) != link->told_claim)
		return -ESTALE; /* the program has another claim now, and says so */
	rc = ll_shares_tell(link->dev, atomic_load(&link->fd), link->is_new);
	link->is_new = false;
	return rc ? rc : tell_sizes(link);
}

static void say_alone(struct link *link)
{
	if (link->has_said_alone)
		return;
	link->has_said_alone = true;
	ll_say(
	    "no mover serves card %d: this program's memory stays there until one does (`loadline evict` starts one)",
	    link->dev->device);
}

static void *link_main(void *arg)
{
	struct link *link = arg;
	enum ll_cu_capture_mode mode = LL_CU_STREAM_CAPTURE_MODE_RELAXED;
	pthread_setname_np(pthread_self(), "ll-mover");
	prctl(PR_SET_TIMERSLACK, 1);
	ll_reentry_depth = 1; /* all that this thread calls is ours */
	ll_real()->cuThreadExchangeStreamCaptureMode(&mode);
	for (;;) {
		tell_residency(link); /* of what was allocated meanwhile, and to a claim that was taken anew */
		if (atomic_load(&link->fd) >= 0 && serve_mover(link) < 0)
			lose_mover(link);
		if (atomic_load(&link->fd) >= 0)
			continue;
		if (connect_to_mover(link) == 0) {
			link->has_said_alone = false;
			continue;
		}
		close_old(link);
		atomic_store(&link->room, ANSWER_LOST);
		say_alone(link);
		ll_sleep_until_ns(ll_now_ns() + CONNECT_NS);
	}
	return NULL;
}

static void close_if_open(int fd)
{
	if (fd >= 0)
		close(fd);
}

static void close_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&lock, NULL);
	for (unsigned i = 0; i < CARDS; i++) {
		struct link *link = atomic_exchange(&links[i], NULL);
		is_tried[i] = false;
		if (!link)
			continue;
		close_if_open(atomic_load(&link->fd));
		close_if_open(atomic_load(&link->old_fd));
		close_if_open(atomic_load(&link->came_fd));
		ll_move_close_in_child(link->move);
	}
}

static int start_thread(struct link *link)
{
	pthread_attr_t attr;
	sigset_t all, before;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int rc = pthread_create(&link->thread, &attr, link_main, link);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return -rc;
}

static struct link *new_link(struct ll_device_state *dev)
{
	struct link *link = calloc(1, sizeof *link);
	struct ll_move *move = ll_move_new(dev);
	if (!link || !move) {
		free(link);
		free(move);
		return NULL;
	}
	*link = (struct link){.dev = dev, .move = move};
	pthread_mutex_init(&link->room_lock, NULL);
	pthread_mutex_init(&link->fd_lock, NULL);
	atomic_store(&link->fd, -1);
	atomic_store(&link->old_fd, -1);
	atomic_store(&link->came_fd, -1);
	return link;
}

/* The lock is held. If there is no mover yet the thread says so, and looks for one. NULL: ret_why says why. */
static struct link *open_link(struct ll_device_state *dev, const char **ret_why)
{
	if (!ll_backing_is_possible(dev->device)) {
		*ret_why = "the driver or the card cannot share memory between processes";
		return NULL;
	}
	struct link *link = new_link(dev);
	*ret_why = "the program has no memory";
	if (!link)
		return NULL;
	connect_to_mover(link);
	if (start_thread(link) == 0)
		return link;
	*ret_why = "the program can start no thread";
	close_if_open(atomic_load(&link->fd));
	close_if_open(atomic_load(&link->old_fd));
	free(link->move);
	free(link);
	return NULL;
}

static struct link *link_of(struct ll_device_state *dev)
{
	struct link *link = atomic_load(&links[dev->device]);
	const char *why = NULL;
	if (link || is_tried[dev->device])
		return link;
	LL_SCOPE_NO_CANCEL;
	LL_SCOPE_LOCK(&lock);
	link = atomic_load(&links[dev->device]);
	if (link || is_tried[dev->device])
		return link;
	if (!fork_item.in_child) {
		fork_item.in_child = close_in_child;
		ll_fork_add(&fork_item);
	}
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

void ll_residency_join(ll_cu_device device)
{
	const struct ll_run_settings *settings = ll_device_state_settings();
	if (settings && settings->is_evictable)
		ll_residency_backs(ll_device_state_take(device));
}

bool ll_residency_has_mover(struct ll_device_state *dev)
{
	return ll_residency_backs(dev) && atomic_load(&link_of(dev)->fd) >= 0;
}

static enum answer ask_for_room(struct link *link, uint64_t bytes, bool takes_pieces, uint64_t deadline_ns)
{
	int answer;
	uint64_t now_ns = ll_now_ns();
	atomic_store(&link->room, ANSWER_NONE);
	if (say_from_thread(link, LL_MOVER_SHORT, bytes, takes_pieces))
		return ANSWER_LOST;
	while (!(answer = atomic_load(&link->room)) && now_ns < deadline_ns) {
		ll_sleep_until_ns(now_ns + ROOM_LOOK_NS);
		now_ns = ll_now_ns();
	}
	return (enum answer)answer;
}

/* Asks the next mover if the one that was asked has ended. */
static enum answer await_room(struct link *link, uint64_t bytes, bool takes_pieces)
{
	uint64_t deadline_ns = ll_now_ns() + LL_RESIDENCY_ROOM_NS;
	for (;;) {
		enum answer answer = ask_for_room(link, bytes, takes_pieces, deadline_ns);
		uint64_t now_ns = ll_now_ns(), lost_ns = atomic_load(&link->lost_ns);
		if (answer != ANSWER_LOST || !lost_ns || now_ns > lost_ns + LL_RESIDENCY_MOVER_NS)
			return answer;
		ll_sleep_until_ns(now_ns + MOVER_LOOK_NS);
	}
}

enum ll_mover_room ll_residency_make_room(struct ll_device_state *dev, uint64_t bytes, bool takes_pieces,
					  unsigned *grants)
{
	if (!ll_residency_backs(dev))
		return LL_MOVER_ROOM_NONE;
	if (*grants == LL_RESIDENCY_GRANTS) {
		ll_say("card %d has room, and the driver refuses an allocation of %" PRIu64 " MiB all the same",
		       dev->device, bytes >> 20);
		return LL_MOVER_ROOM_NONE;
	}
	struct link *link = link_of(dev);
	LL_SCOPE_NO_CANCEL;
	/* The program may have to leave itself meanwhile. */
	ll_driver_call_step_out();
	pthread_mutex_lock(&link->room_lock);
	enum answer answer = await_room(link, bytes, takes_pieces);
	pthread_mutex_unlock(&link->room_lock);
	ll_driver_call_step_in();
	if (answer != ANSWER_THERE && answer != ANSWER_COMING)
		return LL_MOVER_ROOM_NONE;
	++*grants;
	return answer == ANSWER_THERE ? LL_MOVER_ROOM_THERE : LL_MOVER_ROOM_COMING;
}
