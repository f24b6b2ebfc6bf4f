#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/packet.h"
#include "base/process_id.h"
#include "base/scope.h"
#include "driver/cards.h"
#include "driver/readings.h"
#include "hold/hold_packet.h"
#include "protocol/message.h"
#include "protocol/place.h"

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
		     ? ll_packet_receive_up_to(fd, false, bytes, sizeof bytes, &length, NULL, 0, &fd_count)
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
