#include "shim/link/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fork.h"
#include "base/process.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "protocol/run_settings.h"
#include "shim/link/claim.h"
#include "shim/link/place_uid.h"

/* HIGH_FD: the lowest number of the connection's descriptor, because programs close or reuse low descriptors. */
enum { HIGH_FD = 512 };

/* Time between two tries to connect. A daemon that starts is ready after some ms. */
#define RETRY_NS (5 * LL_NS_PER_MS)
/* So long an attempt waits in the queue of the connections. No thread of the program can fork meanwhile. */
#define QUEUE_NS (20 * LL_NS_PER_MS)
/* A daemon replies in some 20 us. If less than this time is left, no request is sent. */
#define REPLY_NS (100 * LL_NS_PER_MS)

static struct {
	pthread_once_t once;
	pthread_mutex_t request_lock; /* allows one request at a time; held while the caller of a request waits */
	pthread_mutex_t fd_lock;      /* guards the five members below; held briefly */
	int fd;                       /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t instance; /* instance number of the daemon; 0: not known yet */
	uint32_t serial;
	struct ll_process_id self; /* pid 0: not known yet; guarded by request_lock */
	_Atomic(struct ll_port_pages *) pages;
	struct ll_fork_item fork;
} connection = {.once = PTHREAD_ONCE_INIT,
		.request_lock = PTHREAD_MUTEX_INITIALIZER,
		.fd_lock = PTHREAD_MUTEX_INITIALIZER,
		.fd = -1};

struct ll_port_pages *ll_connection_pages(void)
{
	return atomic_load(&connection.pages);
}

/* ---- the descriptor ---- */

static bool is_ours(int fd)
{
	struct stat st;
	return fd >= 0 && fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && st.st_dev == connection.device &&
	       st.st_ino == connection.inode;
}

/* Forgets the connection and the pages in a forked child. The copy of the descriptor is the parent's connection, and
 * the child must not write to the parent's pages. */
static void forget_in_child(struct ll_fork_item *item)
{
	(void)item;
	if (is_ours(connection.fd))
		close(connection.fd);
	connection.fd = -1;
	pthread_mutex_init(&connection.request_lock, NULL);
	pthread_mutex_init(&connection.fd_lock, NULL);
	connection.instance = 0;
	connection.self = (struct ll_process_id){0};
	atomic_store(&connection.pages, NULL);
}

static void follow_forks(void)
{
	connection.fork.in_child = forget_in_child;
	ll_fork_add(&connection.fork);
}

static void close_connection(void)
{
	ll_fork_block();
	pthread_mutex_lock(&connection.fd_lock);
	if (is_ours(connection.fd))
		close(connection.fd);
	connection.fd = -1;
	connection.instance = 0;
	pthread_mutex_unlock(&connection.fd_lock);
	ll_fork_unblock();
}

static int open_socket(const struct ll_place *place, uint64_t until_ns, int *ret_fd)
{
	int fd, rc = ll_place_connect_any_by(place, until_ns, &fd);
	if (rc)
		return rc;
	int high_fd = fcntl(fd, F_DUPFD_CLOEXEC, HIGH_FD); /* -1: the limit of descriptors is lower than HIGH_FD */
	if (high_fd >= 0)
		close(fd);
	*ret_fd = high_fd >= 0 ? high_fd : fd;
	return 0;
}

/* Connects to the job's loadlined, or to the system's loadlined, to which the job may have moved. *ret_place: the place
 * that was reached or tried. */
static int open_either(const struct ll_run_settings *settings, struct ll_place *ret_place, int *ret_fd)
{
	struct ll_place system;
	uint64_t until_ns = ll_now_ns() + QUEUE_NS;
	memcpy(ret_place->name, settings->place, sizeof ret_place->name);
	int rc = open_socket(ret_place, until_ns, ret_fd);
	if (rc != -ECONNREFUSED || !ll_place_system_beside(settings->place, settings->folder, &system))
		return rc;
	int of_system = open_socket(&system, until_ns, ret_fd);
	if (of_system && of_system != -EAGAIN)
		return rc;
	*ret_place = system;
	return of_system;
}

int ll_connection_open(const struct ll_run_settings *settings, int *ret_fd)
{
	struct ll_place place;
	uid_t uid;
	int rc = open_either(settings, &place, ret_fd);
	if (!rc && (rc = ll_place_uid_check(place.name, *ret_fd, &uid)) != 0)
		close(*ret_fd);
	return rc;
}

static void keep_socket(int fd)
{
	struct stat st = {0};
	pthread_mutex_lock(&connection.fd_lock);
	fstat(fd, &st);
	connection.fd = fd;
	connection.device = st.st_dev;
	connection.inode = st.st_ino;
	connection.instance = 0;
	pthread_mutex_unlock(&connection.fd_lock);
}

static int connect_to(const struct ll_run_settings *settings, struct ll_err *err)
{
	struct ll_place place;
	uid_t uid = 0;
	int fd = -1;
	ll_fork_block();
	int rc = open_either(settings, &place, &fd);
	if (rc == 0)
		keep_socket(fd);
	ll_fork_unblock();
	if (rc)
		return ll_err_set(err, rc, "loadlined (%s%s) cannot be reached: %s", ll_place_mark(&place), place.name,
				  strerror(-rc));
	rc = ll_place_uid_check(place.name, fd, &uid);
	if (rc == 0)
		return 0;
	close_connection();
	return rc == -EPERM ? ll_err_set(err, rc, "the name %s%s is another user's (uid %u)", ll_place_mark(&place),
					 place.name, (unsigned)uid)
			    : ll_err_set(err, rc, "%s%s: %s", ll_place_mark(&place), place.name, strerror(-rc));
}

/* ---- packets ---- */

/* The check and the call are not atomic. In the some 100 ns between them the program could reuse the number for its own
 * socket. */
static int send_message(const union ll_message *message, const int *fds, size_t fd_count)
{
	pthread_mutex_lock(&connection.fd_lock);
	int rc = is_ours(connection.fd) ? ll_message_send(connection.fd, message, fds, fd_count) : -ENOTCONN;
	pthread_mutex_unlock(&connection.fd_lock);
	return rc;
}

static int receive_message(uint64_t until_ns, union ll_message *ret_message, int ret_fds[LL_MESSAGE_FDS],
			   size_t *ret_fd_count)
{
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd ready = {.fd = connection.fd, .events = POLLIN};
		int rc = is_ours(connection.fd) ? ll_message_receive(connection.fd, ret_message, ret_fds, ret_fd_count)
						: -ENOTCONN;
		if (rc != -EAGAIN)
			return rc;
		if (now_ns >= until_ns)
			return -ETIMEDOUT;
		poll(&ready, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS + 1));
	}
}

/* Sends a request, and waits for a reply of this kind. */
static int send_request(union ll_message *message, int fd, enum ll_message_kind kind, uint64_t until_ns,
			int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count, struct ll_err *err)
{
	uint32_t serial = message->header.serial = ++connection.serial;
	int rc = send_message(message, &fd, fd >= 0);
	*ret_fd_count = 0;
	while (rc == 0) {
		rc = receive_message(until_ns, message, ret_fds, ret_fd_count);
		if (rc == 0 && message->header.serial == serial && message->header.kind == kind)
			return 0;
		if (rc == 0)
			ll_message_close_fds(ret_fds, *ret_fd_count);
		if (rc == 0 && message->header.serial == serial && message->header.kind == LL_MESSAGE_REFUSED)
			return ll_err_set(err, message->refused.code, "%s", message->refused.reason);
	}
	close_connection(); /* otherwise its reply would be taken for the reply to another request */
	return ll_err_set(err, rc, "loadlined does not answer: %s", strerror(-rc));
}

static int say_hello(uint64_t until_ns, struct ll_err *err)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	ll_message_init_hello(&message, LL_ROLE_PROCESS, NULL);
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	int rc = send_request(&message, process_fd, LL_MESSAGE_WELCOME, until_ns, fds, &count, err);
	if (rc) {
		close_connection();
		return rc;
	}
	ll_message_close_fds(fds, count);
	pthread_mutex_lock(&connection.fd_lock);
	connection.instance = message.welcome.instance;
	pthread_mutex_unlock(&connection.fd_lock);
	return 0;
}

/* ---- pages ---- */

static int map_pages(const int fds[2], const struct stat *st, struct ll_port_pages **ret_pages)
{
	struct ll_orders *orders;
	struct ll_port_pages *pages = calloc(1, sizeof *pages);
	if (!pages)
		return -ENOMEM;
	int rc = ll_orders_map(fds[1], false, &orders);
	if (rc == 0 && (rc = ll_page_map(fds[0], true, &pages->page)) != 0)
		ll_orders_unmap(orders);
	if (rc) {
		free(pages);
		return rc;
	}
	pages->orders = orders;
	pages->device = st->st_dev;
	pages->inode = st->st_ino;
	pages->former = atomic_load(&connection.pages);
	atomic_store(&connection.pages, pages);
	*ret_pages = pages;
	return 0;
}

static int take_pages(const int *fds, size_t count, struct ll_port_pages **ret_pages)
{
	struct stat st;
	if (count != 2)
		return -EBADMSG;
	if (fstat(fds[0], &st) < 0)
		return -errno;
	for (struct ll_port_pages *pages = atomic_load(&connection.pages); pages; pages = pages->former) {
		if (pages->device == st.st_dev && pages->inode == st.st_ino) {
			*ret_pages = pages;
			return 0;
		}
	}
	return map_pages(fds, &st, ret_pages);
}

/* ---- a slot ---- */

static void write_claim(const struct ll_slot_request *request, union ll_message *ret_message)
{
	const struct ll_run_settings *settings = request->settings;
	bool is_first = strcmp(settings->first_card, request->uuid) == 0;
	if (!connection.self.pid)
		connection.self = ll_process_self();
	ll_message_init(ret_message, LL_MESSAGE_CLAIM);
	struct ll_message_claim *claim = &ret_message->claim;
	claim->job = settings->id;
	claim->slot_token = request->slot_token;
	claim->slot = request->slot;
	claim->namespaces = connection.self.namespaces;
	claim->start_ticks = connection.self.start_ticks;
	claim->pid = connection.self.pid;
	claim->clock_ns = ll_now_ns();
	ll_message_text_set(claim->uuid, sizeof claim->uuid, request->uuid);
	ll_message_text_set(claim->first_card, sizeof claim->first_card, is_first ? "" : settings->first_card);
}

static int request_slot(const struct ll_slot_request *request, uint64_t until_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err)
{
	union ll_message message;
	int fds[LL_MESSAGE_FDS];
	size_t count;
	struct ll_port_pages *pages = NULL;
	write_claim(request, &message);
	int rc = send_request(&message, -1, LL_MESSAGE_CLAIMED, until_ns, fds, &count, err);
	if (rc)
		return rc;
	rc = take_pages(fds, count, &pages);
	ll_message_close_fds(fds, count);
	if (rc)
		return ll_err_set(err, rc, "the page of the job: %s", strerror(-rc));
	*ret_grant = (struct ll_slot_grant){.pages = pages,
					    .token = message.claimed.slot_token,
					    .ahead_ns = message.claimed.clock_ahead_ns,
					    .slot = message.claimed.slot,
					    .card = message.claimed.card};
	return 0;
}

/* ---- slots that the process has ---- */

/* Asks for the slot of a claim again. Returns false if the caller must try again. */
static bool take_again(struct ll_claim *claim, uint64_t until_ns)
{
	struct ll_slot_grant grant = {.pages = NULL};
	struct ll_slot_request request = {.settings = claim->port->settings,
					  .uuid = claim->port->uuid,
					  .slot_token = claim->token,
					  .slot = claim->index};
	int rc = request_slot(&request, until_ns, &grant, NULL);
	bool is_same =
	    rc == 0 && grant.pages == claim->pages && grant.slot == claim->index && grant.token == claim->token;
	if (is_same) /* for messages that were sent to the former daemon */
		atomic_store(&claim->is_wake_due, true);
	else if (rc == 0 || rc == -ESTALE)
		atomic_store(&claim->is_refused, true); /* the agent takes another claim at its next heartbeat */
	return rc == 0 || rc == -ESTALE;
}

static int take_all_again(uint64_t until_ns)
{
	for (struct ll_claim *claim = ll_claims_first(); claim; claim = claim->next) {
		if (ll_claim_slot(claim) && !take_again(claim, until_ns))
			return -EAGAIN;
	}
	return 0;
}

/* ---- requests ---- */

static int connect_anew(const struct ll_run_settings *settings, uint64_t until_ns, struct ll_err *err)
{
	close_connection();
	int rc = connect_to(settings, err);
	if (rc == 0)
		rc = say_hello(until_ns, err);
	if (rc == 0 && (rc = take_all_again(until_ns)) != 0) {
		close_connection();
		ll_err_set(err, rc, "loadlined does not know this job yet");
	}
	return rc;
}

static int connect_and_request(const struct ll_slot_request *request, uint64_t until_ns,
			       struct ll_slot_grant *ret_grant, struct ll_err *err)
{
	bool is_connected = is_ours(connection.fd) && connection.instance;
	int rc = is_connected ? 0 : connect_anew(request->settings, until_ns, err);
	return rc ? rc : request_slot(request, until_ns, ret_grant, err);
}

/* Returns whether the error may be temporary: no daemon serves yet, the daemon of the connection has ended, or the
 * job's monitor has not registered the job yet. */
static bool may_pass(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOTCONN || rc == -EAGAIN || rc == -EPIPE || rc == -ECONNRESET;
}

static int try_to_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err)
{
	uint64_t until_ns = ll_now_ns() + wait_ns;
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		uint64_t reply_ns = now_ns + REPLY_NS < until_ns ? until_ns : now_ns + REPLY_NS;
		int rc = connect_and_request(request, reply_ns, ret_grant, err);
		if (!may_pass(rc) || ll_now_ns() >= until_ns)
			return rc;
		ll_sleep_until_ns(ll_now_ns() + RETRY_NS);
	}
}

int ll_connection_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	if (!request->settings->place[0])
		return ll_err_set(err, -ENOENT, LL_RUN_VARIABLE " names no loadlined");
	pthread_once(&connection.once, follow_forks);
	pthread_mutex_lock(&connection.request_lock);
	int rc = try_to_claim(request, wait_ns, ret_grant, err);
	pthread_mutex_unlock(&connection.request_lock);
	errno = code;
	return rc;
}

/* In one iteration of its loop loadlined may reply before it notices the end of a process. In the next iteration it has
 * noticed it. So the function asks twice. */
void ll_connection_sweep(const struct ll_run_settings *settings)
{
	struct ll_slot_request request = {.settings = settings, .uuid = ""};
	struct ll_slot_grant grant;
	if (ll_connection_claim(&request, 0, &grant, NULL) == 0)
		ll_connection_claim(&request, 0, &grant, NULL);
}

static bool is_connected(void)
{
	struct pollfd gone = {.fd = connection.fd, .events = 0};
	return is_ours(connection.fd) && poll(&gone, 1, 0) == 0;
}

bool ll_connection_stands(void)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&connection.fd_lock);
	bool is_so = is_connected();
	pthread_mutex_unlock(&connection.fd_lock);
	errno = code;
	return is_so;
}

static bool is_connected_to(uint64_t instance)
{
	return connection.instance && connection.instance == instance && is_connected();
}

int ll_connection_renew(const struct ll_run_settings *settings, uint64_t instance)
{
	int code = errno, rc = 0;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&connection.request_lock);
	if (!is_connected_to(instance))
		rc = connect_anew(settings, ll_now_ns() + REPLY_NS, NULL);
	pthread_mutex_unlock(&connection.request_lock);
	errno = code;
	return rc;
}

int ll_connection_tell(enum ll_message_kind kind, unsigned slot, uint64_t token)
{
	int code = errno;
	union ll_message message;
	LL_SCOPE_NO_CANCEL;
	ll_message_init(&message, kind);
	message.slot.slot = slot;
	message.slot.slot_token = token;
	int rc = send_message(&message, NULL, 0);
	errno = code;
	return rc;
}
