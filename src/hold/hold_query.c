#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/packet.h"
#include "base/scope.h"
#include "hold/hold_packet.h"
#include "protocol/message.h"
#include "protocol/place.h"

#define WAIT_NS (500 * LL_NS_PER_MS)

/* Any process may bind the name, so the packet is checked. */
static bool is_valid(const struct ll_hold_packet *packet)
{
	const struct ll_hold_report *report = &packet->report;
	return packet->magic == LL_HOLD_MAGIC && report->state <= LL_CLAIM_ENDING &&
	       ll_message_text_is_valid(report->metric, sizeof report->metric) &&
	       ll_message_text_is_valid(report->payload, sizeof report->payload) &&
	       ll_message_text_is_valid(report->note, sizeof report->note);
}

static bool wait_readable(int fd, uint64_t until_ns)
{
	for (;;) {
		uint64_t now_ns = ll_now_ns();
		struct pollfd ready = {.fd = fd, .events = POLLIN};
		if (now_ns >= until_ns)
			return false;
		int rc = poll(&ready, 1, (int)((until_ns - now_ns) / LL_NS_PER_MS) + 1);
		if (rc > 0)
			return true;
		if (rc < 0 && errno != EINTR)
			return false;
	}
}

static bool read_report(int fd, uint64_t until_ns, struct ll_hold_report *ret_report)
{
	char bytes[LL_HOLD_PACKET_MAX];
	struct ll_hold_packet packet = {0};
	size_t length = 0, fd_count = 0;
	if (!wait_readable(fd, until_ns) ||
	    ll_packet_receive_up_to(fd, false, bytes, sizeof bytes, &length, NULL, 0, &fd_count) ||
	    length < LL_HOLD_PACKET_FIRST_SIZE)
		return false;
	memcpy(&packet, bytes, length < sizeof packet ? length : sizeof packet);
	if (!is_valid(&packet))
		return false;
	*ret_report = packet.report;
	return true;
}

int ll_hold_query(const char *uuid, const char *sim_folder, struct ll_hold_owner *ret_owner, struct ll_err *err)
{
	struct ll_place place;
	struct ll_hold_owner owner = {0};
	struct ucred peer;
	socklen_t size = sizeof peer;
	uint64_t until_ns = ll_now_ns() + WAIT_NS;
	LL_SCOPE_CLOSE int fd = -1;
	int rc = ll_place_of_card(uuid, sim_folder, &place, err);
	if (rc)
		return rc;
	/* A stopped hold accepts no connections, and its queue of connections may be full. */
	rc = ll_place_connect_any_by(&place, until_ns, &fd);
	rc = rc == -ECONNREFUSED ? -ENOENT : rc;
	if (rc)
		return ll_err_set(err, rc, "card %s: ask who holds it: %s", uuid, strerror(-rc));
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0) {
		owner.pid = peer.pid;
		owner.uid = peer.uid;
	}
	owner.has_report = read_report(fd, until_ns, &owner.report);
	*ret_owner = owner;
	return 0;
}
