#include "shim/link/link.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/guest.h"
#include "base/process.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "protocol/keeper.h"
#include "protocol/message.h"
#include "protocol/run_settings.h"
#include "shim/link/port.h"

/* HIGH_FD: the lowest number of the connection's descriptor, because programs close or reuse low descriptors. */
enum { HIGH_FD = 512 };

/* Time between two tries to connect. A daemon that starts is ready after some ms. */
#define RETRY_NS (5 * LL_NS_PER_MS)
/* So long an attempt waits in the queue of the connections. No thread of the program can fork meanwhile. */
#define QUEUE_NS (20 * LL_NS_PER_MS)
/* A daemon replies in some 20 us. If less than this time is left, no request is sent. */
#define REPLY_NS (100 * LL_NS_PER_MS)

static struct {
	pthread_mutex_t request_lock; /* allows one request at a time; held while the caller of a request waits */
	pthread_mutex_t fd_lock;      /* guards the five members below; held briefly */
	int fd;                       /* -1: none */
	dev_t device;
	ino_t inode;
	uint64_t instance; /* instance number of the daemon; 0: not known yet */
	uint32_t serial;
	struct ll_process_id self; /* pid 0: not known yet; guarded by request_lock */
	_Atomic(struct ll_port_pages *) pages;
} connection = {.request_lock = PTHREAD_MUTEX_INITIALIZER, .fd_lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1};

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
static void forget_connection_in_child(struct ll_fork_item *item)
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

static struct ll_fork_item connection_fork_item = {.in_child = forget_connection_in_child};

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

static int connect_to(const struct ll_run_settings *settings, struct ll_err *err)
{
	struct ll_place place;
	uid_t uid = 0;
	struct stat st = {0};
	int fd = -1;
	ll_fork_block();
	int rc = open_either(settings, &place, &fd);
	if (rc == 0) {
		pthread_mutex_lock(&connection.fd_lock);
		fstat(fd, &st);
		connection.fd = fd;
		connection.device = st.st_dev;
		connection.inode = st.st_ino;
		connection.instance = 0;
		pthread_mutex_unlock(&connection.fd_lock);
	}
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

/* is_shared: fd is the connection's, which the program may have closed. */
static int receive_message(int fd, bool is_shared, uint64_t until_ns, union ll_message *ret_message,
			   int ret_fds[LL_MESSAGE_FDS], size_t *ret_fd_count)
{
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		int rc =
		    !is_shared || is_ours(fd) ? ll_message_receive(fd, ret_message, ret_fds, ret_fd_count) : -ENOTCONN;
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
		rc = receive_message(connection.fd, true, until_ns, message, ret_fds, ret_fd_count);
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

/* ---- requests ---- */

static int connect_anew(const struct ll_run_settings *settings, uint64_t until_ns, struct ll_err *err)
{
	close_connection();
	int rc = connect_to(settings, err);
	if (rc == 0)
		rc = say_hello(until_ns, err);
	for (struct ll_claim *claim = ll_claims_first(); claim && rc == 0; claim = claim->next) {
		if (!ll_claim_slot(claim) || take_again(claim, until_ns))
			continue;
		close_connection();
		rc = ll_err_set(err, -EAGAIN, "loadlined does not know this job yet");
	}
	return rc;
}

/* Returns whether the error may be temporary: no daemon serves yet, the daemon of the connection has ended, or the
 * job's monitor has not registered the job yet. */
static bool may_pass(int rc)
{
	return rc == -ECONNREFUSED || rc == -ENOTCONN || rc == -EAGAIN || rc == -EPIPE || rc == -ECONNRESET;
}

int ll_connection_claim(const struct ll_slot_request *request, uint64_t wait_ns, struct ll_slot_grant *ret_grant,
			struct ll_err *err)
{
	int rc, code = errno;
	LL_SCOPE_NO_CANCEL;
	if (!request->settings->place[0])
		return ll_err_set(err, -ENOENT, LL_RUN_VARIABLE " names no loadlined");
	ll_fork_add(&connection_fork_item);
	pthread_mutex_lock(&connection.request_lock);
	uint64_t until_ns = ll_now_ns() + wait_ns;
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		uint64_t reply_ns = now_ns + REPLY_NS < until_ns ? until_ns : now_ns + REPLY_NS;
		bool is_connected = is_ours(connection.fd) && connection.instance;
		rc = is_connected ? 0 : connect_anew(request->settings, reply_ns, err);
		rc = rc ? rc : request_slot(request, reply_ns, ret_grant, err);
		if (!may_pass(rc) || ll_now_ns() >= until_ns)
			break;
		ll_sleep_until_ns(ll_now_ns() + RETRY_NS);
	}
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

int ll_connection_renew(const struct ll_run_settings *settings, uint64_t instance)
{
	int code = errno, rc = 0;
	LL_SCOPE_NO_CANCEL;
	pthread_mutex_lock(&connection.request_lock);
	if (!connection.instance || connection.instance != instance || !is_connected())
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

/* ---- a program that has the library and no LOADLINE_RUN: it may be in the control group of a job ---- */

/* A program that is in the group of a job waits so long for loadlined, which may be starting again. One in a container
 * has a job for certain; a loadlined that has just started may not know it yet, until its monitor is back. */
#define JOB_WAIT_NS (1000 * LL_NS_PER_MS)
#define CONTAINER_WAIT_NS (5000 * LL_NS_PER_MS)
#define JOB_PAUSE_NS (20 * LL_NS_PER_MS)

static bool may_be_in_job(void)
{
	char text[LL_GROUP_TEXT_SIZE];
	LL_SCOPE_CLOSE int fd = open("/proc/self/cgroup", O_RDONLY | O_CLOEXEC);
	ssize_t length = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	text[length > 0 ? length : 0] = '\0';
	/* It may be a name that somebody else gave, or one that is cut off here: loadlined knows. Slurm of several
	 * nodes on one machine has the node's name before its own. */
	return length == (ssize_t)sizeof text - 1 || strstr(text, LL_GROUP_NAME_BEGIN) != NULL ||
	       strstr(text, "slurm") != NULL;
}

/* A loadlined without this message, or a process that is in no group of a job: -ENOENT. */
static int ask_once(const struct ll_run_settings *system, uint64_t until_ns, struct ll_run_settings *ret_settings)
{
	union ll_message message;
	int fd, fds[LL_MESSAGE_FDS];
	size_t count;
	int rc = ll_connection_open(system, &fd);
	if (rc)
		return rc;
	LL_SCOPE_CLOSE int process_fd = ll_process_open(getpid());
	ll_message_init_hello(&message, LL_ROLE_PROCESS, NULL);
	rc = ll_message_send(fd, &message, &process_fd, process_fd >= 0);
	ll_message_init(&message, LL_MESSAGE_OWN_JOB);
	rc = rc ? rc : ll_message_send(fd, &message, NULL, 0);
	do {
		if (!rc && (rc = receive_message(fd, false, until_ns, &message, fds, &count)) == 0)
			ll_message_close_fds(fds, count);
	} while (!rc && message.header.kind == LL_MESSAGE_WELCOME);
	close(fd);
	if (rc)
		return rc;
	if (message.header.kind != LL_MESSAGE_OWN_SETTINGS)
		return -ENOENT;
	return ll_run_settings_read(message.own_settings.text, ret_settings);
}

static int ask_for_job(const char *sim_folder, bool is_certain, struct ll_run_settings *ret_settings)
{
	struct ll_run_settings system = {.id = 0};
	struct ll_place place;
	uint64_t until_ns = ll_now_ns() + (is_certain ? CONTAINER_WAIT_NS : JOB_WAIT_NS);
	if (ll_place_of_system(sim_folder, &place))
		return -ENOENT;
	memcpy(system.place, place.name, sizeof system.place);
	for (;;) {
		int rc = ask_once(&system, until_ns, ret_settings);
		if (!(may_pass(rc) || (is_certain && rc == -ENOENT)) || ll_now_ns() >= until_ns)
			return rc ? -ENOENT : 0;
		ll_sleep_until_ns(ll_now_ns() + JOB_PAUSE_NS);
	}
}

int ll_port_find_job(struct ll_run_settings *ret_settings)
{
	int code = errno;
	LL_SCOPE_NO_CANCEL;
	int rc = may_be_in_job() ? ask_for_job(getenv("LOADLINE_SIM_DIR"), false, ret_settings) : -ENOENT;
	errno = code;
	return rc;
}

/* ---- a container ---- */

/* A runtime that mounts the probe where the machine's own /opt is in sight leaves an empty file there. */
bool ll_port_is_in_container(void)
{
	int code = errno;
	char byte;
	LL_SCOPE_CLOSE int fd = open(LL_CONTAINER_PROBE, O_RDONLY | O_CLOEXEC);
	bool is_there = fd >= 0 && read(fd, &byte, 1) == 1;
	errno = code;
	return is_there;
}

int ll_port_find_container_job(struct ll_run_settings *ret_settings, bool *ret_may_go_on)
{
	int code = errno;
	struct ll_place place;
	struct ll_run_settings settings;
	LL_SCOPE_NO_CANCEL;
	bool may_go_on = access(LL_CONTAINER_OPTIONAL, F_OK) == 0;
	int rc = ask_for_job(NULL, !may_go_on, &settings);
	if (!rc && !ll_place_of_system(NULL, &place)) {
		/* loadlined tells where its socket is outside. */
		memcpy(settings.place, place.name, sizeof settings.place);
		memcpy(settings.folder, place.name, sizeof place.name);
		*strrchr(settings.folder, '/') = '\0';
		*ret_settings = settings;
	}
	*ret_may_go_on = may_go_on;
	errno = code;
	return rc;
}

/* ---- the thread and what it keeps ---- */

enum { STACK_BYTES = 128 * 1024 };

#define CALM_NS (1000 * LL_NS_PER_MS)
/* Time between two tries to connect; after TRIES_FAST of them: CALM_NS. */
#define RENEW_NS (10 * LL_NS_PER_MS)
enum { TRIES_FAST = 500 };

static struct {
	pthread_mutex_t lock; /* guards adding */
	_Atomic bool is_started;
	_Atomic bool is_asked;    /* the thread must check at once */
	_Atomic bool is_watching; /* the thread checks every LL_BEAT_NS */
	_Atomic(struct ll_claim *) claims;
} thread = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- the claims of this process ---- */

static void forget_claims_in_child(struct ll_fork_item *item)
{
	(void)item;
	pthread_mutex_init(&thread.lock, NULL);
	for (struct ll_claim *claim = atomic_load(&thread.claims); claim; claim = claim->next)
		atomic_store(&claim->slot, NULL);
	atomic_store(&thread.claims, NULL);
	atomic_store(&thread.is_started, false);
	atomic_store(&thread.is_watching, false);
}

static struct ll_fork_item claims_fork_item = {.in_child = forget_claims_in_child};

struct ll_claim *ll_claims_first(void)
{
	return atomic_load(&thread.claims);
}

/* ---- WAKE messages ---- */

void ll_claim_wake_daemon(struct ll_claim *claim)
{
	if (!ll_claim_slot(claim))
		return;
	bool is_sent = ll_connection_tell(LL_MESSAGE_WAKE, claim->index, claim->token) == 0;
	atomic_store(&claim->is_wake_due, !is_sent);
	if (!is_sent)
		ll_link_thread_look();
}

void ll_claim_wake_daemon_if_due(struct ll_claim *claim)
{
	if (atomic_load_explicit(&claim->is_wake_due, memory_order_relaxed))
		ll_claim_wake_daemon(claim);
}

/* ---- the lease ---- */

/* Returns whether the claim's launches wait or may have to wait. */
static bool is_held(const struct ll_claim *claim)
{
	const struct ll_page_slot *slot = ll_claim_slot(claim);
	return slot && (!(atomic_load_explicit(claim->card_word, memory_order_relaxed) & LL_VISIT_WORD_OPEN) ||
			(atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed) &&
			 atomic_load_explicit(&slot->gate, memory_order_relaxed) == LL_GATE_SHUT));
}

/* Opens all words on the card, so that streams continue, and wakes the threads that wait. */
static void open_all(void)
{
	for (struct ll_claim *claim = ll_claims_first(); claim; claim = claim->next) {
		struct ll_page_slot *slot = ll_claim_slot(claim);
		if (!slot || !is_held(claim))
			continue;
		uint32_t word = atomic_load(claim->card_word);
		if (!(word & LL_VISIT_WORD_OPEN)) /* an increment opens it: a shut word is even, an open one is odd */
			atomic_compare_exchange_strong(claim->card_word, &word, word + 1);
		ll_page_wake(&slot->wake_count);
	}
}

/* ---- the life of the program ---- */

/* What the kernel reads when the thread ends. It marks the word at the node's address plus the offset, which is in the
 * slot of one of the process's claims. */
static struct {
	struct robust_list_head head;
	struct robust_list node;
	_Atomic uint32_t *word; /* NULL: none */
	uint32_t thread;
} life;

static void begin_life(void)
{
	life.word = NULL;
	life.head.list.next = &life.head.list;
	life.head.list_op_pending = NULL;
	life.thread = (uint32_t)syscall(SYS_gettid);
	/* This thread has no robust lock of the C library. Where the kernel refuses, the words say nothing. */
	if (syscall(SYS_set_robust_list, &life.head, sizeof life.head) != 0)
		life.thread = 0;
}

/* By this loadlined sees that the process has executed another program, which has none of its memory on a card. */
static void show_life(void)
{
	struct ll_page_slot *slot = NULL;
	for (const struct ll_claim *claim = ll_claims_first(); claim && !slot; claim = claim->next)
		slot = ll_claim_slot(claim);
	if (!life.thread || !slot || (life.word == &slot->life && atomic_load(&slot->life) == life.thread))
		return;
	life.head.list.next = &life.head.list; /* the slot before may be another process's now */
	life.head.futex_offset = (long)((uintptr_t)&slot->life - (uintptr_t)&life.node);
	life.node.next = &life.head.list;
	life.word = &slot->life;
	atomic_store(life.word, life.thread);
	atomic_signal_fence(memory_order_seq_cst);
	life.head.list.next = &life.node;
}

/* ---- the thread ---- */

void ll_link_thread_look(void)
{
	const struct ll_port_pages *pages = ll_connection_pages();
	if (!pages || atomic_load_explicit(&thread.is_watching, memory_order_relaxed))
		return;
	int code = errno;
	atomic_store(&thread.is_asked, true);
	/* This process must not write the orders, so the count does not change. Each sleeper on the count makes one
	 * needless check. */
	syscall(SYS_futex, &pages->orders->wake_count, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
	errno = code;
}

static void *link_main(void *arg)
{
	struct ll_lease lease = {.since_ns = 0};
	unsigned tries = 0;
	pthread_setname_np(pthread_self(), "ll-link");
	prctl(PR_SET_TIMERSLACK, 1);
	begin_life();
	for (;;) {
		const struct ll_orders *orders = ll_connection_pages()->orders;
		uint32_t count = atomic_load(&orders->wake_count);
		atomic_store(&thread.is_asked, false);
		struct ll_claim *first = ll_claims_first();
		uint64_t instance = atomic_load_explicit(&orders->instance, memory_order_relaxed);
		bool has_failed = ll_connection_renew(first->port->settings, instance) != 0, is_watching = false;
		for (struct ll_claim *claim = first; claim && !has_failed; claim = claim->next)
			ll_claim_wake_daemon_if_due(claim);
		tries = has_failed ? tries + 1 : 0;
		show_life();
		uint64_t now_ns = ll_now_ns();
		for (const struct ll_claim *claim = ll_claims_first(); claim && !is_watching; claim = claim->next)
			is_watching = is_held(claim);
		atomic_store(&thread.is_watching, is_watching);
		if (ll_lease_look(&lease, orders, 0, is_watching, now_ns) && is_watching)
			open_all();
		uint64_t pause_ns = is_watching ? LL_BEAT_NS : CALM_NS;
		if (has_failed && tries < TRIES_FAST)
			pause_ns = RENEW_NS;
		if (!atomic_load(&thread.is_asked))
			ll_page_sleep(&orders->wake_count, count, now_ns + pause_ns);
	}
	return arg;
}

void ll_claims_add(struct ll_claim *claim)
{
	ll_fork_add(&claims_fork_item);
	ll_fork_block(); /* so that the list of a forked child has every claim */
	pthread_mutex_lock(&thread.lock);
	claim->next = atomic_load(&thread.claims);
	atomic_store(&thread.claims, claim);
	pthread_mutex_unlock(&thread.lock);
	ll_fork_unblock();
	pthread_mutex_lock(&thread.lock);
	if (!atomic_load(&thread.is_started))
		atomic_store(&thread.is_started, ll_guest_thread_start(STACK_BYTES, link_main, NULL, NULL) == 0);
	pthread_mutex_unlock(&thread.lock);
	ll_link_thread_look(); /* show_life */
}
