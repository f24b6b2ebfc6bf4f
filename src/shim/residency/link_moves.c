#include "shim/residency/move.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "shim/interpose/real.h"
#include "shim/memory/memory.h"
#include "shim/time/driver_calls.h"

/* ---- memory on other cards ---- */

/* Memory on a neighbour (places.c): the link requests a destination from loadlined. loadlined also commands when
 * the memory must be copied on to the host. */

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

/* Before an eviction: reports the neighbours, and requests a destination for the memory. Without a reply it is the
 * host. */
static int link_request_destination(struct ll_link *link)
{
	union ll_message message;
	bool has_any = false;
	int rc = 0;
	ll_move_set_destination(link->move, LL_MOVE_TO_HOST);
	link->is_to_neighbour = link->moves_on = link->waits_for_host = false;
	link->reply_ns = 0;
	if (ll_device_state_settings()->avoids_neighbours)
		return 0;
	if (!link->has_looked)
		link->neighbour_count = ll_neighbours_find(link->dev, link->neighbours);
	link->has_looked = true;
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

static bool link_awaits_destination(const struct ll_link *link)
{
	return link->reply_ns && ll_now_ns() < link->reply_ns;
}

/* Handles the reply with the destination, or the command to copy memory on a neighbour on to the host. */
static void link_set_destination(struct ll_link *link, const struct ll_message_move *message)
{
	bool is_reply = link_awaits_destination(link);
	const struct ll_neighbour *neighbour = NULL;
	for (size_t i = 0; i < link->neighbour_count && is_reply && !neighbour; i++) {
		if (strcmp(link->neighbours[i].uuid, message->uuid) == 0)
			neighbour = &link->neighbours[i];
	}
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

/* Whether memory on a neighbour can be copied on to the host now. */
static bool link_may_move_on(const struct ll_link *link)
{
	bool is_away = link->state == LL_LINK_AWAY || (link->state == LL_LINK_RESUMING && link->lacks_room);
	return is_away && link->moves_on && ll_move_neighbour_bytes(link->move);
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

/* ---- moves ---- */

/* After this time without loadlined, memory is resumed without a command. */
#define ALONE_NS (5 * LL_NS_PER_S)
#define CARD_LOOK_NS (1 * LL_NS_PER_S)
#define QUIET_NS (10 * LL_NS_PER_S)

/* ---- what is said ---- */

void ll_link_init_message(const struct ll_link *link, enum ll_message_kind kind, union ll_message *ret_message)
{
	ll_message_init(ret_message, kind);
	ret_message->move.bytes = ll_move_is_stopped(link->move) ? ll_move_bytes(link->move) : link->told_bytes;
	ret_message->move.away_bytes = ll_move_away_bytes(link->move);
	ret_message->move.pool_bytes = ll_move_pool_bytes(link->move);
}

int ll_link_say_kind(struct ll_link *link, enum ll_message_kind kind)
{
	union ll_message message;
	ll_link_init_message(link, kind, &message);
	return ll_line_say(&link->line, &message, NULL, 0);
}

static int say_free_to(struct ll_link *link, enum ll_message_kind kind, uint64_t value)
{
	union ll_message message;
	ll_link_init_message(link, kind, &message);
	message.move.value = value;
	message.move.free_bytes = ll_move_free_bytes(link->dev);
	return ll_line_say(&link->line, &message, NULL, 0);
}

static int say_free(struct ll_link *link, enum ll_message_kind kind)
{
	return say_free_to(link, kind, 0);
}

enum ll_move_state ll_link_told_state(const struct ll_link *link)
{
	static const enum ll_move_state states[] = {
	    [LL_LINK_HERE] = LL_MOVE_HERE,         [LL_LINK_PREPARING] = LL_MOVE_HERE,
	    [LL_LINK_SUSPENDED] = LL_MOVE_STOPPED, [LL_LINK_EVICTING] = LL_MOVE_EVICTING,
	    [LL_LINK_AWAY] = LL_MOVE_AWAY,         [LL_LINK_RESUMING] = LL_MOVE_RESUMING};
	return states[link->state];
}

static int say_busy(struct ll_link *link, const char *why)
{
	union ll_message message;
	ll_link_init_message(link, LL_MESSAGE_BUSY, &message);
	message.move.value = ll_link_told_state(link);
	ll_message_text_set(message.move.reason, sizeof message.move.reason, why);
	return ll_line_say(&link->line, &message, NULL, 0);
}

void ll_link_tell_page(struct ll_link *link)
{
	uint64_t now_ns = ll_now_ns();
	if (link->stopped_ns)
		ll_port_note_wait(atomic_load(&link->dev->claim), LL_WAIT_MOVE, now_ns - link->stopped_ns);
	link->stopped_ns = ll_move_is_stopped(link->move) ? now_ns : 0;
	uint64_t away_bytes = ll_move_away_bytes(link->move);
	if (!ll_move_is_stopped(link->move))
		link->evictable_bytes = ll_chunks_charged_bytes(link->dev);
	struct ll_memory_residency residency = {.state = LL_CLAIM_ON_CARD, .evictable_bytes = link->evictable_bytes};
	if (ll_move_is_stopped(link->move))
		residency.state = link->state == LL_LINK_AWAY ? LL_CLAIM_EVICTED : LL_CLAIM_STOPPED;
	/* Blocks that small allocations share are larger than these are charged. */
	residency.away_bytes = away_bytes < residency.evictable_bytes ? away_bytes : residency.evictable_bytes;
	ll_port_set_residency(atomic_load(&link->dev->claim), &residency);
}

/* ---- stopping and going on ---- */

void ll_link_enter(struct ll_link *link, enum ll_link_state state)
{
	link->state = state;
	link->lacks_room = link->waits_for_host = link->is_back = false;
	ll_link_tell_page(link);
}

int ll_link_say_want(struct ll_link *link)
{
	union ll_message message;
	if (!atomic_load(&link->is_away) || atomic_exchange(&link->has_said_want, true))
		return 0;
	ll_message_init(&message, LL_MESSAGE_WANT);
	int rc = ll_line_say(&link->line, &message, NULL, 0);
	if (rc)
		atomic_store(&link->has_said_want, false);
	return rc;
}

static int note_stopped(struct ll_link *link, enum ll_link_state state)
{
	/* A thread that was late in the move before may have set it just now. */
	atomic_store(&link->has_said_want, false);
	atomic_store(&link->is_away, true);
	ll_link_enter(link, state);
	int rc = ll_link_say_kind(link, LL_MESSAGE_QUIET);
	return !rc && ll_driver_calls_count_waiting() ? ll_link_say_want(link) : rc;
}

/* error: the error of the driver, if the memory is not back because the card is lost; else 0. */
static int resume_program(struct ll_link *link, uint64_t error)
{
	union ll_message message;
	atomic_store(&link->is_away, false);
	atomic_store(&link->has_said_want, false);
	link->is_by_hand = false;
	ll_link_init_message(link, LL_MESSAGE_BACK, &message);
	message.move.value = error;
	/* If the card is lost, the program may end at once, so BACK is sent first. Else BACK is sent last, so the page
	 * is up to date when loadlined receives it. */
	int rc = error ? ll_line_say(&link->line, &message, NULL, 0) : 0;
	ll_move_resume(link->move);
	if (error)
		ll_move_end(link->move); /* no memory is away any more */
	ll_link_enter(link, LL_LINK_HERE);
	if (!error)
		rc = ll_line_say(&link->line, &message, NULL, 0);
	ll_move_end(link->move);
	return rc;
}

static int refuse_move(struct ll_link *link, const char *why)
{
	atomic_store(&link->is_away, false);
	link->is_by_hand = false;
	ll_move_resume(link->move);
	ll_move_end(link->move);
	ll_link_enter(link, LL_LINK_HERE);
	return say_busy(link, why);
}

/* The eviction failed. A program that was suspended before stays suspended. */
static int refuse_eviction(struct ll_link *link, const char *why)
{
	if (ll_move_is_stopped(link->move))
		ll_move_stop_at_once(link->move);
	ll_link_enter(link, ll_move_is_stopped(link->move) ? LL_LINK_SUSPENDED : LL_LINK_HERE);
	return say_busy(link, why);
}

/* Stops the program and begins the copy. The host memory is ready. */
static int evict_now(struct ll_link *link)
{
	char why[LL_MOVE_REASON_SIZE] = "";
	bool was_stopped = ll_move_is_stopped(link->move);
	if (ll_move_suspend(link->move, link->wait_ns, why, sizeof why))
		return was_stopped && !ll_move_stop_at_once(link->move) ? refuse_eviction(link, why)
									: refuse_move(link, why);
	int rc = ll_move_cut(link->move, why, sizeof why);
	if (rc == -EAGAIN) { /* the program runs while more host memory is made ready */
		ll_move_resume(link->move);
		link->told_pool_bytes = 0;
		return 0;
	}
	if (rc)
		return refuse_move(link, why);
	return note_stopped(link, link->is_held ? LL_LINK_SUSPENDED : LL_LINK_EVICTING);
}

static int tell_prepared(struct ll_link *link)
{
	uint64_t pool_bytes = ll_move_pool_bytes(link->move);
	if (pool_bytes == link->told_pool_bytes)
		return 0;
	link->told_pool_bytes = pool_bytes;
	return ll_link_say_kind(link, LL_MESSAGE_COPIED);
}

static int prepare_eviction(struct ll_link *link)
{
	char why[LL_MOVE_REASON_SIZE] = "";
	int rc = ll_move_prepare(link->move, why, sizeof why);
	bool is_early = link_awaits_destination(link) || (rc == -EAGAIN && !link->is_to_neighbour);
	if (is_early && (!rc || rc == -EAGAIN))
		return tell_prepared(link);
	if (rc == -EAGAIN) /* host memory is needed only if the neighbour has no room */
		rc = 0;
	return rc ? refuse_eviction(link, why) : evict_now(link);
}

/* ---- steps of a move ---- */

static int evict_batch(struct ll_link *link)
{
	int rc = ll_move_evict_batch(link->move);
	link->waits_for_host = rc == -EAGAIN;
	ll_link_tell_page(link);
	if (rc > 0)
		return ll_link_say_kind(link, LL_MESSAGE_COPIED);
	if (rc == -EAGAIN)
		return tell_prepared(link);
	if (rc < 0) {
		ll_link_enter(link, LL_LINK_RESUMING);
		return say_busy(link, rc == -ENOSPC ? "the host has no memory for what the neighbour has no room for"
						    : "the driver cannot copy its memory");
	}
	ll_link_enter(link, LL_LINK_AWAY);
	return say_free(link, LL_MESSAGE_AWAY);
}

static int lose_card(struct ll_link *link)
{
	ll_move_give_up(link->move);
	return resume_program(link, LL_CUDA_ERROR_DEVICE_UNAVAILABLE);
}

static int resume_batch(struct ll_link *link)
{
	int rc = ll_move_resume_batch(link->move);
	ll_link_tell_page(link);
	if (rc == -EIO)
		return lose_card(link);
	if (rc == 0 && !link->is_held)
		return resume_program(link, 0);
	link->is_back = rc == 0;
	if (rc >= 0)
		return ll_link_say_kind(link, LL_MESSAGE_COPIED);
	link->lacks_room = true;
	return say_free(link, LL_MESSAGE_NO_ROOM);
}

bool ll_link_is_alone(const struct ll_link *link)
{
	return link->lost_ns && ll_now_ns() - link->lost_ns >= ALONE_NS;
}

bool ll_link_has_step(const struct ll_link *link)
{
	bool is_copying = link->state == LL_LINK_EVICTING || link_may_move_on(link);
	bool is_resuming = link->state == LL_LINK_RESUMING && !link->lacks_room && !link->is_back;
	return (is_copying && !link->waits_for_host) || is_resuming;
}

int ll_link_do_step(struct ll_link *link)
{
	switch (link->state) {
	case LL_LINK_PREPARING:
		return prepare_eviction(link);
	case LL_LINK_EVICTING:
		return evict_batch(link);
	case LL_LINK_RESUMING:
		if (!link->lacks_room && !link->is_back)
			return resume_batch(link);
		/* Without loadlined the program resumes only if the card has room for all of its memory. Otherwise two
		 * programs, each with half of its memory on the card, would wait for each other for ever. */
		if (link->lacks_room && ll_link_is_alone(link)) {
			ll_move_settle(link->move); /* a copy to the host may be in flight */
			if (ll_move_may_have_room(link->move))
				link->lacks_room = false;
			else
				ll_move_stay(link->move);
		}
		break;
	default:
		break;
	}
	if (!link_may_move_on(link))
		return 0;
	int rc = ll_move_on(link->move);
	link->waits_for_host = rc == -EAGAIN || rc == -ENOSPC;
	if (rc == 0 || rc == -EIO) /* a batch that cannot be copied stays on the neighbour */
		link->moves_on = false;
	return 0;
}

/* ---- messages of loadlined ---- */

static void note_wish(struct ll_link *link, const struct ll_message_move *message)
{
	link->is_by_hand = message->flags & LL_MOVE_BY_HAND;
	link->is_held = message->flags & LL_MOVE_HOLD;
	link->wait_ns = message->value ? message->value : QUIET_NS;
}

static int begin_evict(struct ll_link *link, const struct ll_message_move *message)
{
	if (link->state != LL_LINK_HERE && link->state != LL_LINK_SUSPENDED)
		return 0;
	note_wish(link, message);
	ll_move_go_on_card(link->move);
	ll_link_enter(link, LL_LINK_PREPARING);
	int rc = link_request_destination(link);
	return rc ? rc : prepare_eviction(link);
}

static int begin_suspend(struct ll_link *link, const struct ll_message_move *message)
{
	if (link->state != LL_LINK_HERE)
		return 0;
	char why[LL_MOVE_REASON_SIZE] = "";
	note_wish(link, message);
	if (ll_move_stop_at_once(link->move) && ll_move_suspend(link->move, link->wait_ns, why, sizeof why))
		return refuse_move(link, why);
	return note_stopped(link, LL_LINK_SUSPENDED);
}

int ll_link_resume(struct ll_link *link, bool is_held)
{
	link->is_by_hand = false;
	link->is_held = is_held;
	switch (link->state) {
	case LL_LINK_PREPARING:
		if (!ll_move_is_stopped(link->move)) {
			ll_link_enter(link, LL_LINK_HERE);
			return ll_link_say_kind(link, LL_MESSAGE_BACK);
		}
		return resume_program(link, 0);
	case LL_LINK_SUSPENDED:
		return resume_program(link, 0);
	case LL_LINK_EVICTING: /* batches that could not be copied are on the card */
	case LL_LINK_AWAY:     /* a copy from a neighbour to the host may be in flight */
		ll_move_settle(link->move);
		ll_link_enter(link, LL_LINK_RESUMING);
		return 0;
	case LL_LINK_RESUMING:
		if (link->lacks_room)
			ll_move_settle(link->move);
		link->lacks_room = link->is_back = false;
		return 0;
	default: /* RESUME was sent again while BACK was on its way */
		return 0;
	}
}

/* If the program already runs, BACK is on its way, and STAY is ignored. */
static int begin_stay(struct ll_link *link)
{
	if (link->state != LL_LINK_RESUMING)
		return 0;
	if (ll_move_settle(link->move))
		return lose_card(link);
	ll_move_stay(link->move);
	ll_link_enter(link, LL_LINK_AWAY);
	return say_free(link, LL_MESSAGE_AWAY);
}

/* Whether the card of a program that is away is lost. */
static bool has_lost_card(const struct ll_link *link)
{
	bool is_away = link->state == LL_LINK_AWAY || (link->state == LL_LINK_RESUMING && link->lacks_room);
	return is_away && !ll_move_free_bytes(link->dev) && ll_move_is_card_lost(link->move);
}

int ll_link_look_at_card(struct ll_link *link)
{
	uint64_t now_ns = ll_now_ns();
	if (now_ns - link->looked_ns < CARD_LOOK_NS)
		return 0;
	link->looked_ns = now_ns;
	return has_lost_card(link) ? lose_card(link) : 0;
}

int ll_link_handle(struct ll_link *link, const union ll_message *message)
{
	switch (message->header.kind) {
	case LL_MESSAGE_EVICT:
		return begin_evict(link, &message->move);
	case LL_MESSAGE_SUSPEND:
		return begin_suspend(link, &message->move);
	case LL_MESSAGE_RESUME:
		return ll_link_resume(link, message->move.flags & LL_MOVE_HOLD);
	case LL_MESSAGE_STAY:
		return begin_stay(link);
	case LL_MESSAGE_ROOM:
		atomic_store(&link->room, message->move.value == LL_MOVE_ROOM_COMING ? LL_LINK_REPLY_COMING
					  : message->move.value                      ? LL_LINK_REPLY_THERE
										     : LL_LINK_REPLY_NO_ROOM);
		return 0;
	case LL_MESSAGE_MEASURE:
		return has_lost_card(link) ? lose_card(link)
					   : say_free_to(link, LL_MESSAGE_MEASURED, message->move.value);
	case LL_MESSAGE_DESTINATION:
		link_set_destination(link, &message->move);
		return 0;
	case LL_MESSAGE_WELCOME:
		return 0;
	default: /* REFUSED: loadlined does not know the slot yet */
		return -EPROTO;
	}
}
