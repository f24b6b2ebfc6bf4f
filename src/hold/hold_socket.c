#include "hold/hold.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/packet.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/pacer.h"
#include "protocol/message.h"
#include "protocol/place.h"

/* ---- the packet ---- */

#define LL_HOLD_MAGIC UINT64_C(0x00007461655f6c6c) /* "ll_hold_socket" */

struct ll_hold_packet {
	uint64_t magic;
	struct ll_hold_report report;
};

/* Of the first version that has names of this kind. A longer packet has fields that this version does not know. */
enum { LL_HOLD_PACKET_FIRST_SIZE = 184, LL_HOLD_PACKET_MAX = 2048 };
_Static_assert(sizeof(struct ll_hold_packet) == LL_HOLD_PACKET_FIRST_SIZE, "the size of the first version");

/* ---- hold socket ---- */

#define PAUSE_MS 100 /* pause when there is no descriptor or memory for a connection */

struct ll_hold_socket {
	pthread_mutex_t lock; /* guards the report and the times below */
	int fd;
	struct ll_hold_report report;
	uint64_t beat_ns;
};

struct ll_hold_sockets {
	int end_fd; /* an eventfd: the thread ends */
	bool has_thread;
	pthread_t thread;
	size_t count;
	struct ll_hold_socket sockets[];
};

/* ---- the thread that sends reports ---- */

static void fill_packet(struct ll_hold_socket *hold_socket, struct ll_hold_packet *ret_packet)
{
	uint64_t now_ns = ll_now_ns();
	*ret_packet = (struct ll_hold_packet){.magic = LL_HOLD_MAGIC};
	LL_SCOPE_LOCK(&hold_socket->lock);
	ret_packet->report = hold_socket->report;
	ret_packet->report.taken_age_ns = now_ns - ret_packet->report.taken_ns;
	ret_packet->report.beat_age_ns = now_ns > hold_socket->beat_ns ? now_ns - hold_socket->beat_ns : 0;
}

/* Sends a report to each waiting connection. A new socket has room for one packet; a client that does not read it keeps
 * it in its own memory. Returns false if there is no room for another connection. */
static bool send_reports(struct ll_hold_socket *hold_socket)
{
	for (;;) {
		struct ll_hold_packet packet;
		int fd = accept4(hold_socket->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0)
			return errno == EAGAIN;
		fill_packet(hold_socket, &packet);
		ll_packet_send(fd, &packet, sizeof packet, NULL, 0);
		close(fd);
	}
}

/* fds: one for each socket, then end_fd. */
static void serve_sockets(struct ll_hold_sockets *sockets, struct pollfd *fds)
{
	while (!fds[sockets->count].revents) {
		bool has_room = true;
		if (poll(fds, sockets->count + 1, -1) <= 0)
			continue;
		for (size_t i = 0; i < sockets->count; i++) {
			if (fds[i].revents)
				has_room = send_reports(&sockets->sockets[i]) && has_room;
		}
		if (!has_room) /* unless it must end */
			poll(&fds[sockets->count], 1, PAUSE_MS);
	}
}

static void *socket_thread_main(void *arg)
{
	struct ll_hold_sockets *sockets = arg;
	pthread_setname_np(pthread_self(), "ll-sockets");
	LL_SCOPE_FREE struct pollfd *fds = calloc(sockets->count + 1, sizeof *fds);
	if (!fds)
		return NULL;
	for (size_t i = 0; i < sockets->count; i++)
		fds[i] = (struct pollfd){.fd = sockets->sockets[i].fd, .events = POLLIN};
	fds[sockets->count] = (struct pollfd){.fd = sockets->end_fd, .events = POLLIN};
	serve_sockets(sockets, fds);
	return NULL;
}

/* ---- taking and freeing ---- */

static int refuse_held_card(const struct ll_card *card, const struct ll_hold_owner *holder, struct ll_err *err)
{
	if (holder->pid > 0)
		ll_err_set(err, -EBUSY, "card %s: pid %d already holds it", card->label, (int)holder->pid);
	else
		ll_err_set(err, -EBUSY, "card %s: another process already holds it", card->label);
	ll_err_hint(err, "end that one, or choose another card with -i; `loadline status` shows them");
	return -EBUSY;
}

static int listen_for(const struct ll_card *card, const char *sim_folder, struct ll_hold_socket *hold_socket,
		      struct ll_err *err)
{
	struct ll_place place;
	int rc = ll_place_of_hold(card->uuid, sim_folder, &place, err);
	if (rc)
		return rc;
	rc = ll_place_listen(&place, &hold_socket->fd);
	return rc ? ll_err_set(err, rc, "card %s: take it: %s", card->label, strerror(-rc)) : 0;
}

/* The first one that holds the card is this one, or another. */
static int check_free(const struct ll_card *card, const char *sim_folder, uint64_t taken_ns, struct ll_err *err)
{
	struct ll_hold_owner holder = {0};
	int rc = ll_hold_query(card, sim_folder, &holder, NULL, err);
	if (rc == 0 && holder.report.taken_ns < taken_ns)
		return refuse_held_card(card, &holder, err);
	return rc == -ENOENT ? 0 : rc;
}

static int start_thread(struct ll_hold_sockets *sockets, struct ll_err *err)
{
	sockets->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (sockets->end_fd < 0)
		return ll_err_set(err, -errno, "make an eventfd: %s", strerror(errno));
	int rc = pthread_create(&sockets->thread, NULL, socket_thread_main, sockets);
	sockets->has_thread = rc == 0;
	return rc ? ll_err_set(err, -rc, "start a thread: %s", strerror(rc)) : 0;
}

int ll_hold_sockets_bind(const struct ll_card *const *cards, size_t count, const char *sim_folder,
			 struct ll_hold_sockets **ret_sockets, struct ll_err *err)
{
	struct ll_hold_sockets *sockets = calloc(1, sizeof *sockets + count * sizeof sockets->sockets[0]);
	if (!sockets)
		return ll_err_set(err, -ENOMEM, "hold: out of memory");
	sockets->end_fd = -1;
	sockets->count = count;
	for (size_t i = 0; i < count; i++) {
		sockets->sockets[i].fd = -1;
		pthread_mutex_init(&sockets->sockets[i].lock, NULL);
	}
	int rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = listen_for(cards[i], sim_folder, &sockets->sockets[i], err);
	uint64_t taken_ns = ll_now_ns();
	for (size_t i = 0; i < count; i++)
		sockets->sockets[i].report.taken_ns = sockets->sockets[i].beat_ns = taken_ns;
	if (rc == 0)
		rc = start_thread(sockets, err);
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = check_free(cards[i], sim_folder, taken_ns, err);
	if (rc)
		ll_hold_sockets_free(sockets);
	else
		*ret_sockets = sockets;
	return rc;
}

void ll_hold_sockets_free(struct ll_hold_sockets *sockets)
{
	if (!sockets)
		return;
	if (sockets->has_thread) {
		ll_pacer_wake(sockets->end_fd);
		pthread_join(sockets->thread, NULL);
	}
	for (size_t i = 0; i < sockets->count; i++) {
		if (sockets->sockets[i].fd >= 0)
			close(sockets->sockets[i].fd);
		pthread_mutex_destroy(&sockets->sockets[i].lock);
	}
	if (sockets->end_fd >= 0)
		close(sockets->end_fd);
	free(sockets);
}

struct ll_hold_socket *ll_hold_sockets_at(struct ll_hold_sockets *sockets, size_t index)
{
	return &sockets->sockets[index];
}

/* ---- the report ---- */

void ll_hold_socket_set_state(struct ll_hold_socket *hold_socket, enum ll_claim_state state, const char *note)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	hold_socket->report.state = state;
	snprintf(hold_socket->report.note, sizeof hold_socket->report.note, "%s", note);
}

void ll_hold_socket_set_target(struct ll_hold_socket *hold_socket, const char *metric, unsigned permille,
			       unsigned watts)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	snprintf(hold_socket->report.metric, sizeof hold_socket->report.metric, "%s", metric);
	hold_socket->report.target_permille = permille;
	hold_socket->report.target_watts = watts;
}

void ll_hold_socket_set_payload(struct ll_hold_socket *hold_socket, const char *name)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	snprintf(hold_socket->report.payload, sizeof hold_socket->report.payload, "%s", name);
}

void ll_hold_socket_add_yield(struct ll_hold_socket *hold_socket)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	hold_socket->report.yields++;
}

void ll_hold_socket_account(struct ll_hold_socket *hold_socket, uint64_t busy_ns, uint64_t energy_mj,
			    uint64_t memory_bytes)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	hold_socket->beat_ns = ll_now_ns();
	hold_socket->report.gpu_time_ns += busy_ns;
	hold_socket->report.synthetic_busy_ns += busy_ns;
	hold_socket->report.energy_mj += energy_mj;
	hold_socket->report.memory_bytes = memory_bytes;
}

/* ---- hold query ---- */

#define WAIT_NS (500 * LL_NS_PER_MS)
#define CONNECT_NS (20 * LL_NS_PER_MS) /* for one whose queue of connections is full */

enum { CANDIDATES = 64 };

/* A process that may be the hold. */
struct candidate {
	int fd;
	bool is_on_card;
	bool is_trusted; /* a process of the asker or of root */
	struct ll_hold_owner owner;
};

struct look {
	struct ll_process_list processes;
	bool has_processes; /* NVML tells of the card's processes */
	uint64_t until_ns;
	struct ll_hold_sitter sitter; /* the first one that is not believed */
	size_t count;
	struct candidate candidates[CANDIDATES];
};

static void note_sitter(struct look *look, enum ll_hold_sitter_kind kind, const struct ll_hold_owner *who)
{
	if (look->sitter.kind > LL_HOLD_ACCEPTS_NOBODY || kind <= look->sitter.kind)
		return;
	look->sitter = (struct ll_hold_sitter){.pid = who ? who->pid : 0, .uid = who ? who->uid : 0};
	look->sitter.kind = kind;
}

/* ---- the answer ---- */

/* Any process may bind a name, so the packet is checked. */
static bool is_valid(const struct ll_hold_packet *packet)
{
	const struct ll_hold_report *report = &packet->report;
	return packet->magic == LL_HOLD_MAGIC && report->state <= LL_CLAIM_ENDING &&
	       ll_message_text_is_valid(report->metric, sizeof report->metric) &&
	       ll_message_text_is_valid(report->payload, sizeof report->payload) &&
	       ll_message_text_is_valid(report->note, sizeof report->note);
}

/* At that moment, and later, it does not wait. */
static bool wait_readable(int fd, uint64_t until_ns)
{
	struct pollfd ready = {.fd = fd, .events = POLLIN};
	int rc;
	do {
		uint64_t now_ns = ll_now_ns();
		rc = poll(&ready, 1, now_ns < until_ns ? (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1 : 0);
	} while (rc < 0 && errno == EINTR);
	return rc > 0;
}

/* *ret_is_silent: it has sent nothing, as one that is stopped, or has no descriptor to spare. */
static bool read_report(int fd, uint64_t until_ns, struct ll_hold_report *ret_report, bool *ret_is_silent)
{
	char bytes[LL_HOLD_PACKET_MAX];
	struct ll_hold_packet packet = {0};
	size_t length = 0, fd_count = 0;
	int rc = wait_readable(fd, until_ns)
		     ? ll_packet_receive_up_to(fd, MSG_DONTWAIT, bytes, sizeof bytes, &length, NULL, 0, &fd_count)
		     : -EAGAIN;
	*ret_is_silent = rc == -EAGAIN || rc == -EPIPE || rc == -ECONNRESET;
	if (rc || length < LL_HOLD_PACKET_FIRST_SIZE)
		return false;
	memcpy(&packet, bytes, length < sizeof packet ? length : sizeof packet);
	if (!is_valid(&packet))
		return false;
	*ret_report = packet.report;
	return true;
}

/* ---- who may be the hold ---- */

/* A hold's contexts are in a child of it, or in itself. */
static bool is_on_card(const struct look *look, pid_t pid)
{
	for (size_t i = 0; i < look->processes.count; i++) {
		struct ll_process_stat stat;
		pid_t listed = look->processes.items[i].pid;
		if (listed == pid || (ll_process_stat_of(listed, &stat) == 0 && stat.parent == pid))
			return true;
	}
	return false;
}

/* A trusted process may be the hold without a context; so may one that NVML does not show here. */
static bool may_be_hold(const struct look *look, const struct candidate *who)
{
	return who->is_on_card || who->is_trusted || !look->has_processes || who->owner.pid == 0;
}

/* A hold has one name for the card; a process that has several is asked once. */
static bool is_known(const struct look *look, pid_t pid)
{
	for (size_t i = 0; pid && i < look->count; i++) {
		if (look->candidates[i].owner.pid == pid)
			return true;
	}
	return false;
}

static void add_candidate(struct look *look, int fd)
{
	struct ucred peer;
	socklen_t size = sizeof peer;
	struct candidate who = {.fd = fd};
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size)) {
		close(fd);
		return;
	}
	who.owner.pid = peer.pid;
	who.owner.uid = peer.uid;
	who.is_trusted = peer.uid == 0 || peer.uid == geteuid();
	who.is_on_card = look->has_processes && peer.pid && is_on_card(look, peer.pid);
	if (look->count < CANDIDATES && may_be_hold(look, &who) && !is_known(look, peer.pid)) {
		look->candidates[look->count++] = who;
		return;
	}
	if (!is_known(look, peer.pid))
		note_sitter(look, LL_HOLD_HAS_NO_CONTEXT, &who.owner);
	close(fd);
}

/* until_ns: 0 does not wait. *ret_is_full: it may take a connection later. */
static int connect_one(struct look *look, const struct ll_place *place, uint64_t until_ns, bool *ret_is_full)
{
	int fd, rc = ll_place_connect_any_by(place, until_ns < look->until_ns ? until_ns : look->until_ns, &fd);
	*ret_is_full = rc == -EAGAIN;
	if (!rc)
		add_candidate(look, fd);
	return rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM ? rc : 0;
}

/* First those that take a connection at once: one whose queue is full cannot keep the look from the others. */
static int connect_to_all(struct look *look, const struct ll_place *places, size_t count, bool *are_full)
{
	int rc = 0;
	for (size_t i = 0; i < count && !rc; i++)
		rc = connect_one(look, &places[i], 0, &are_full[i]);
	for (size_t i = 0; i < count && !rc; i++) {
		if (are_full[i])
			rc = connect_one(look, &places[i], ll_now_ns() + CONNECT_NS, &are_full[i]);
		if (are_full[i])
			note_sitter(look, LL_HOLD_ACCEPTS_NOBODY, NULL);
	}
	return rc;
}

/* Reads the answer, and closes the connection. Returns whether it is the hold of the card: a stopped one says nothing,
 * but it is on the card. */
static bool is_believed(struct look *look, struct candidate *who)
{
	bool is_silent;
	who->owner.has_report = read_report(who->fd, look->until_ns, &who->owner.report, &is_silent);
	close(who->fd);
	if (who->owner.has_report || (is_silent && (who->is_on_card || (who->is_trusted && !look->has_processes))))
		return true;
	note_sitter(look, LL_HOLD_DOES_NOT_ANSWER, &who->owner);
	return false;
}

/* Of those that are believed, the first one to have taken the card. */
static bool choose_first(struct look *look, struct ll_hold_owner *ret_owner)
{
	bool has_owner = false;
	for (size_t i = 0; i < look->count; i++) {
		struct candidate *who = &look->candidates[i];
		if (!is_believed(look, who) || (has_owner && who->owner.report.taken_ns >= ret_owner->report.taken_ns))
			continue;
		*ret_owner = who->owner;
		has_owner = true;
	}
	return has_owner;
}

int ll_hold_query(const struct ll_card *card, const char *sim_folder, struct ll_hold_owner *ret_owner,
		  struct ll_hold_sitter *ret_sitter, struct ll_err *err)
{
	LL_SCOPE_FREE struct ll_place *places = NULL;
	size_t count = 0;
	if (ret_sitter)
		*ret_sitter = (struct ll_hold_sitter){0};
	int rc = ll_places_of_holds(card->uuid, sim_folder, &places, &count, err);
	if (rc)
		return rc;
	LL_SCOPE_FREE struct look *look = calloc(1, sizeof *look);
	LL_SCOPE_FREE bool *are_full = calloc(count + 1, sizeof *are_full);
	if (!look || !are_full)
		return ll_err_set(err, -ENOMEM, "card %s: ask who holds it: %s", card->label, strerror(ENOMEM));
	look->until_ns = ll_now_ns() + WAIT_NS;
	look->has_processes =
	    count && card->nvml && !card->fault && ll_read_processes(card, LL_PROCESS_ALL, &look->processes, NULL) == 0;
	rc = connect_to_all(look, places, count, are_full);
	bool has_owner = choose_first(look, ret_owner);
	if (ret_sitter)
		*ret_sitter = look->sitter;
	ll_process_list_fini(&look->processes);
	if (!rc && has_owner)
		return 0;
	rc = rc ? rc : -ENOENT;
	return ll_err_set(err, rc, "card %s: ask who holds it: %s", card->label, strerror(-rc));
}
