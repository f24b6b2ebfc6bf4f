/* Memory on a neighbour (neighbours.h): the link requests a destination from loadlined. loadlined also commands when
 * the memory must be copied on to the host. */
#include "shim/residency/link_state.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "shim/memory/chunks.h"

/* loadlined replies within some 0.1 ms, on a busy host sometimes after more than 100 ms. Without a reply memory goes to
 * the host. If loadlined has ended, the link does not wait. */
#define REPLY_NS (1 * LL_NS_PER_S)
/* Time between two readings of a neighbour that has memory of the program. */
#define READ_NS (100 * LL_NS_PER_MS)
/* No report was sent yet. */
#define UNTOLD UINT64_MAX

static void init_report(const struct ll_link *link, const char *uuid, union ll_message *ret_message)
{
	ll_link_init_message(link, LL_MESSAGE_NEIGHBOUR, ret_message);
	ret_message->move.away_bytes = 0;
	snprintf(ret_message->move.uuid, sizeof ret_message->move.uuid, "%s", uuid);
}

static void add_reading(union ll_message *message)
{
	uint64_t free_bytes, used_bytes;
	if (!ll_neighbour_read(message->move.uuid, &free_bytes, &used_bytes))
		return;
	message->move.flags |= LL_MOVE_IS_READ;
	message->move.free_bytes = free_bytes;
	message->move.value = used_bytes;
}

/* ---- the destination ---- */

static void look_for_neighbours(struct ll_link *link)
{
	if (!link->has_looked)
		link->neighbour_count = ll_neighbours_find(link->dev, link->neighbours);
	link->has_looked = true;
}

int ll_link_request_destination(struct ll_link *link)
{
	union ll_message message;
	bool has_any = false;
	int rc = 0;
	ll_move_set_destination(link->move, LL_MOVE_TO_HOST);
	link->is_to_neighbour = link->moves_on = link->waits_for_host = false;
	link->reply_ns = 0;
	if (ll_device_state_settings()->avoids_neighbours)
		return 0;
	look_for_neighbours(link);
	for (size_t i = 0; i < link->neighbour_count && !rc; i++) {
		init_report(link, link->neighbours[i].uuid, &message);
		add_reading(&message);
		if (!(message.move.flags & LL_MOVE_IS_READ))
			continue;
		has_any = true;
		rc = ll_line_say(&link->line, &message, NULL, 0);
	}
	if (rc || !has_any)
		return rc;
	init_report(link, "", &message);
	message.move.flags = LL_MOVE_WANTS_DESTINATION;
	message.move.bytes = ll_chunks_bytes(link->dev); /* the last report may be lower */
	link->reply_ns = ll_now_ns() + REPLY_NS;
	return ll_line_say(&link->line, &message, NULL, 0);
}

bool ll_link_awaits_destination(const struct ll_link *link)
{
	return link->reply_ns && ll_now_ns() < link->reply_ns;
}

static const struct ll_neighbour *find_neighbour(const struct ll_link *link, const char *uuid)
{
	for (size_t i = 0; i < link->neighbour_count; i++) {
		if (strcmp(link->neighbours[i].uuid, uuid) == 0)
			return &link->neighbours[i];
	}
	return NULL;
}

void ll_link_set_destination(struct ll_link *link, const struct ll_message_move *message)
{
	bool is_reply = ll_link_awaits_destination(link);
	const struct ll_neighbour *neighbour = is_reply ? find_neighbour(link, message->uuid) : NULL;
	link->reply_ns = 0;
	if (message->uuid[0]) { /* if the reply is late, the next report says that the neighbour has nothing */
		snprintf(link->neighbour, sizeof link->neighbour, "%s", message->uuid);
		link->told_neighbour_bytes = UNTOLD;
	}
	link->is_to_neighbour = neighbour;
	if (neighbour) {
		ll_move_set_destination(link->move, neighbour->device);
	} else if (!message->uuid[0]) {
		link->moves_on = !is_reply;
		ll_move_set_destination(link->move, LL_MOVE_TO_HOST);
	}
}

/* ---- on to the host ---- */

bool ll_link_may_move_on(const struct ll_link *link)
{
	bool is_away = link->state == LL_LINK_AWAY || (link->state == LL_LINK_RESUMING && link->lacks_room);
	return is_away && link->moves_on && ll_move_neighbour_bytes(link->move);
}

int ll_link_move_on(struct ll_link *link)
{
	int rc = ll_move_on(link->move);
	link->waits_for_host = rc == -EAGAIN || rc == -ENOSPC;
	if (rc == 0 || rc == -EIO) /* a batch that cannot be copied stays on the neighbour */
		link->moves_on = false;
	return 0;
}

/* ---- reports to loadlined ---- */

int ll_link_report_neighbour(struct ll_link *link)
{
	union ll_message message;
	uint64_t bytes = ll_move_neighbour_bytes(link->move), now_ns = ll_now_ns();
	bool is_settled = link->state != LL_LINK_PREPARING && link->state != LL_LINK_EVICTING;
	bool is_due = bytes && now_ns - link->read_ns >= READ_NS;
	if (!link->neighbour[0] || !is_settled || (bytes == link->told_neighbour_bytes && !is_due))
		return 0;
	init_report(link, link->neighbour, &message);
	message.move.away_bytes = bytes;
	if (is_due) {
		add_reading(&message);
		link->read_ns = now_ns;
	}
	link->told_neighbour_bytes = bytes;
	if (!bytes)
		link->neighbour[0] = '\0';
	return ll_line_say(&link->line, &message, NULL, 0);
}

void ll_link_report_again(struct ll_link *link)
{
	link->told_neighbour_bytes = UNTOLD;
	link->reply_ns = 0;
}
