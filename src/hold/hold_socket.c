#include "hold/hold_socket.h"

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
#include "base/scope.h"
#include "driver/cards.h"
#include "hold/hold_packet.h"
#include "protocol/place.h"

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

static void wait_end(const struct ll_hold_sockets *sockets, int timeout_ms)
{
	struct pollfd end = {.fd = sockets->end_fd, .events = POLLIN};
	poll(&end, 1, timeout_ms);
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
		if (!has_room)
			wait_end(sockets, PAUSE_MS);
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
	struct ll_hold_owner holder;
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
		uint64_t one = 1;
		ssize_t n = write(sockets->end_fd, &one, sizeof one);
		(void)n;
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

static void set_target(struct ll_hold_socket *hold_socket, const char *metric, unsigned permille, unsigned watts)
{
	LL_SCOPE_LOCK(&hold_socket->lock);
	snprintf(hold_socket->report.metric, sizeof hold_socket->report.metric, "%s", metric);
	hold_socket->report.target_permille = permille;
	hold_socket->report.target_watts = watts;
}

void ll_hold_socket_set_target(struct ll_hold_socket *hold_socket, const char *metric, unsigned permille)
{
	set_target(hold_socket, metric, permille, 0);
}

void ll_hold_socket_set_target_watts(struct ll_hold_socket *hold_socket, const char *metric, unsigned watts)
{
	set_target(hold_socket, metric, 0, watts);
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
