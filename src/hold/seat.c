#include "hold/seat.h"

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
#include "hold/seat_packet.h"
#include "protocol/place.h"

enum { TAKE_TRIES = 100 };
#define TAKE_EVERY_NS LL_NS_PER_MS
#define PAUSE_MS 100 /* when no descriptor or memory is left for who asks */

struct ll_seat {
	pthread_mutex_t lock; /* guards the report, and what its ages count from */
	int fd;
	struct ll_hold_report report;
	uint64_t taken_ns, beat_ns;
};

struct ll_seats {
	int end_fd; /* an eventfd: the thread ends */
	bool has_thread;
	pthread_t thread;
	size_t count;
	struct ll_seat seats[];
};

/* ---- the thread that answers ---- */

static void fill_packet(struct ll_seat *seat, struct ll_seat_packet *ret_packet)
{
	uint64_t now_ns = ll_now_ns();
	*ret_packet = (struct ll_seat_packet){.magic = LL_SEAT_MAGIC};
	LL_SCOPE_LOCK(&seat->lock);
	ret_packet->report = seat->report;
	ret_packet->report.taken_age_ns = now_ns - seat->taken_ns;
	ret_packet->report.beat_age_ns = now_ns > seat->beat_ns ? now_ns - seat->beat_ns : 0;
}

/* Answers all who wait. A new socket has room for one packet, and who does not read it keeps it in his own memory.
 * False: there is no room for another connection. */
static bool answer_all(struct ll_seat *seat)
{
	for (;;) {
		struct ll_seat_packet packet;
		int fd = accept4(seat->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0 && (errno == ECONNABORTED || errno == EINTR))
			continue;
		if (fd < 0)
			return errno == EAGAIN;
		fill_packet(seat, &packet);
		ll_packet_send(fd, &packet, sizeof packet, NULL, 0);
		close(fd);
	}
}

static void wait_end(const struct ll_seats *seats, int timeout_ms)
{
	struct pollfd end = {.fd = seats->end_fd, .events = POLLIN};
	poll(&end, 1, timeout_ms);
}

/* fds: one of each seat, then end_fd. */
static void serve(struct ll_seats *seats, struct pollfd *fds)
{
	while (!fds[seats->count].revents) {
		bool has_room = true;
		if (poll(fds, seats->count + 1, -1) <= 0)
			continue;
		for (size_t i = 0; i < seats->count; i++) {
			if (fds[i].revents)
				has_room = answer_all(&seats->seats[i]) && has_room;
		}
		if (!has_room)
			wait_end(seats, PAUSE_MS);
	}
}

static void *seats_main(void *arg)
{
	struct ll_seats *seats = arg;
	pthread_setname_np(pthread_self(), "ll-seats");
	LL_SCOPE_FREE struct pollfd *fds = calloc(seats->count + 1, sizeof *fds);
	if (!fds)
		return NULL;
	for (size_t i = 0; i < seats->count; i++)
		fds[i] = (struct pollfd){.fd = seats->seats[i].fd, .events = POLLIN};
	fds[seats->count] = (struct pollfd){.fd = seats->end_fd, .events = POLLIN};
	serve(seats, fds);
	return NULL;
}

/* ---- taking and freeing ---- */

static int refuse(const struct ll_card *card, const struct ll_hold_seat *holder, struct ll_err *err)
{
	if (holder->pid > 0)
		ll_err_set(err, -EBUSY, "card %s: pid %d already holds it", card->label, (int)holder->pid);
	else
		ll_err_set(err, -EBUSY, "card %s: another process already holds it", card->label);
	ll_err_hint(err, "end that one, or choose another card with -i; `loadline status` shows them");
	return -EBUSY;
}

/* -EAGAIN: who had the seat has left it meanwhile. */
static int take_once(const struct ll_card *card, const char *sim_folder, struct ll_seat *seat, struct ll_err *err)
{
	struct ll_place place;
	struct ll_hold_seat holder;
	int rc = ll_place_of_card(card->uuid, sim_folder, &place, err);
	if (rc)
		return rc;
	rc = ll_place_listen(&place, &seat->fd);
	if (rc == 0)
		return 0;
	if (rc != -EADDRINUSE)
		return ll_err_set(err, rc, "card %s: take it: %s", card->label, strerror(-rc));
	rc = ll_seat_ask(card->uuid, sim_folder, &holder, err);
	if (rc == -ENOENT)
		return -EAGAIN;
	return rc ? rc : refuse(card, &holder, err);
}

static int take_seat(const struct ll_card *card, const char *sim_folder, struct ll_seat *seat, struct ll_err *err)
{
	int rc = -EAGAIN;
	for (int i = 0; i < TAKE_TRIES && rc == -EAGAIN; i++) {
		if (i)
			ll_sleep_until_ns(ll_now_ns() + TAKE_EVERY_NS);
		rc = take_once(card, sim_folder, seat, err);
	}
	if (rc == -EAGAIN) /* a name that is bound, and on which nobody listens */
		rc = refuse(card, &(struct ll_hold_seat){0}, err);
	seat->taken_ns = seat->beat_ns = ll_now_ns();
	return rc;
}

static int start_thread(struct ll_seats *seats, struct ll_err *err)
{
	seats->end_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (seats->end_fd < 0)
		return ll_err_set(err, -errno, "make an eventfd: %s", strerror(errno));
	int rc = pthread_create(&seats->thread, NULL, seats_main, seats);
	seats->has_thread = rc == 0;
	return rc ? ll_err_set(err, -rc, "start a thread: %s", strerror(rc)) : 0;
}

int ll_seats_take(const struct ll_card *const *cards, size_t count, const char *sim_folder, struct ll_seats **ret_seats,
		  struct ll_err *err)
{
	struct ll_seats *seats = calloc(1, sizeof *seats + count * sizeof seats->seats[0]);
	if (!seats)
		return ll_err_set(err, -ENOMEM, "hold: out of memory");
	seats->end_fd = -1;
	seats->count = count;
	for (size_t i = 0; i < count; i++) {
		seats->seats[i].fd = -1;
		pthread_mutex_init(&seats->seats[i].lock, NULL);
	}
	int rc = 0;
	for (size_t i = 0; i < count && rc == 0; i++)
		rc = take_seat(cards[i], sim_folder, &seats->seats[i], err);
	if (rc == 0)
		rc = start_thread(seats, err);
	if (rc)
		ll_seats_free(seats);
	else
		*ret_seats = seats;
	return rc;
}

void ll_seats_free(struct ll_seats *seats)
{
	if (!seats)
		return;
	if (seats->has_thread) {
		uint64_t one = 1;
		ssize_t n = write(seats->end_fd, &one, sizeof one);
		(void)n;
		pthread_join(seats->thread, NULL);
	}
	for (size_t i = 0; i < seats->count; i++) {
		if (seats->seats[i].fd >= 0)
			close(seats->seats[i].fd);
		pthread_mutex_destroy(&seats->seats[i].lock);
	}
	if (seats->end_fd >= 0)
		close(seats->end_fd);
	free(seats);
}

struct ll_seat *ll_seats_at(struct ll_seats *seats, size_t index)
{
	return &seats->seats[index];
}

/* ---- the report ---- */

void ll_seat_set_state(struct ll_seat *seat, enum ll_claim_state state, const char *note)
{
	LL_SCOPE_LOCK(&seat->lock);
	seat->report.state = state;
	snprintf(seat->report.note, sizeof seat->report.note, "%s", note);
}

static void set_target(struct ll_seat *seat, const char *metric, unsigned permille, unsigned watts)
{
	LL_SCOPE_LOCK(&seat->lock);
	snprintf(seat->report.metric, sizeof seat->report.metric, "%s", metric);
	seat->report.target_permille = permille;
	seat->report.target_watts = watts;
}

void ll_seat_set_target(struct ll_seat *seat, const char *metric, unsigned permille)
{
	set_target(seat, metric, permille, 0);
}

void ll_seat_set_target_watts(struct ll_seat *seat, const char *metric, unsigned watts)
{
	set_target(seat, metric, 0, watts);
}

void ll_seat_set_payload(struct ll_seat *seat, const char *name)
{
	LL_SCOPE_LOCK(&seat->lock);
	snprintf(seat->report.payload, sizeof seat->report.payload, "%s", name);
}

void ll_seat_add_yield(struct ll_seat *seat)
{
	LL_SCOPE_LOCK(&seat->lock);
	seat->report.yields++;
}

void ll_seat_account(struct ll_seat *seat, uint64_t busy_ns, uint64_t energy_mj, uint64_t memory_bytes)
{
	LL_SCOPE_LOCK(&seat->lock);
	seat->beat_ns = ll_now_ns();
	seat->report.gpu_time_ns += busy_ns;
	seat->report.synthetic_busy_ns += busy_ns;
	seat->report.energy_mj += energy_mj;
	seat->report.memory_bytes = memory_bytes;
}
