#include "daemon/residency/neighbours.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/residency/evictable.h"
#include "daemon/residency/move_requests.h"
#include "rules/residency/neighbour.h"

/* Number of readings in a row that must show use. A process that has just ended or moved may be counted in one number
 * of a reading and not in the other. */
enum { LOOKS = 2 };
/* A process that reports nothing for this long is taken not to run, and is not waited for. */
#define SILENT_NS (5 * LL_NS_PER_S)

/* ---- where memory is ---- */

static uint64_t count_bytes(const struct ll_residency_books *books, const char *uuid)
{
	uint64_t bytes = 0;
	for (const struct ll_evictable *other = books->evictables; other; other = other->next)
		bytes += strcmp(other->neighbour.uuid, uuid) == 0 ? other->neighbour.bytes : 0;
	return bytes;
}

static bool is_claimed(const struct ll_server *server, const char *uuid)
{
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		const struct ll_job_card *card = job->claims ? ll_job_card_find(job, uuid) : NULL;
		if (card && card->claim_count)
			return true;
	}
	return false;
}

static struct ll_neighbour_view view_of(const struct ll_server *server, const struct ll_neighbour_card *card)
{
	return (struct ll_neighbour_view){.free_bytes = card->free_bytes,
					  .used_bytes = card->used_bytes,
					  .moved_bytes = count_bytes(&server->residency, card->uuid),
					  .is_claimed = is_claimed(server, card->uuid)};
}

size_t ll_neighbours_describe(const struct ll_residency_books *books, const char *uuid, uint64_t now_ns,
			      struct ll_residency_program *ret_program)
{
	uint64_t bytes = 0;
	for (const struct ll_evictable *other = books->evictables; other; other = other->next) {
		if (strcmp(other->neighbour.uuid, uuid) == 0 && now_ns < other->heard_ns + SILENT_NS)
			bytes += other->neighbour.bytes;
	}
	if (!bytes)
		return 0;
	*ret_program =
	    (struct ll_residency_program){.state = LL_RESIDENCY_EVICTING, .bytes = bytes, .left_bytes = bytes};
	return 1;
}

/* ---- messages to processes ---- */

/* uuid: empty: the host. If the process does not read, its connection is closed, as in evictable.c. */
static void say_destination(const struct ll_evictable *evictable, const char *uuid)
{
	union ll_message message;
	struct ll_connection *connection = evictable->connection;
	if (!connection)
		return;
	ll_message_init(&message, LL_MESSAGE_DESTINATION);
	snprintf(message.move.uuid, sizeof message.move.uuid, "%s", uuid);
	if (connection->has_pending || ll_message_send(connection->fd, &message, NULL, 0))
		shutdown(connection->fd, SHUT_RDWR);
}

static void send_on(struct ll_evictable *evictable, const char *why)
{
	if (!evictable->neighbour.is_sent_on)
		ll_info("claim %u, tenant %s: %" PRIu64 " MiB go on from card %s to the host: %s",
			ll_card_claim_number(evictable->claim->share), evictable->claim->card->job->facts.tenant,
			evictable->neighbour.bytes >> 20, evictable->neighbour.uuid, why);
	evictable->neighbour.is_sent_on = true;
	say_destination(evictable, "");
}

void ll_neighbours_clear(struct ll_server *server, const char *uuid)
{
	for (struct ll_evictable *other = server->residency.evictables; other; other = other->next) {
		if (other->neighbour.uuid[0] && strcmp(other->neighbour.uuid, uuid) == 0)
			send_on(other, "a program has come");
	}
}

/* ---- messages of processes ---- */

/* Chooses the destination. Its room is reserved from now on. */
static void choose_neighbour(const struct ll_server *server, struct ll_evictable *evictable, uint64_t bytes)
{
	struct ll_neighbour_view views[LL_NEIGHBOUR_CARDS];
	size_t count = evictable->seen_count;
	for (size_t i = 0; i < count; i++)
		views[i] = view_of(server, &evictable->seen[i]);
	size_t chosen = ll_neighbour_choose(views, count, bytes);
	const char *uuid = chosen < count ? evictable->seen[chosen].uuid : "";
	evictable->neighbour = (struct ll_evictable_neighbour){.bytes = chosen < count ? bytes : 0};
	snprintf(evictable->neighbour.uuid, sizeof evictable->neighbour.uuid, "%s", uuid);
	ll_debug("claim %u, tenant %s: %" PRIu64 " MiB go to %s%s", ll_card_claim_number(evictable->claim->share),
		 evictable->claim->card->job->facts.tenant, bytes >> 20, *uuid ? "card " : "the host", uuid);
	evictable->seen_count = 0;
	say_destination(evictable, uuid);
}

static void judge_neighbour(const struct ll_server *server, struct ll_evictable *evictable,
			    const struct ll_neighbour_card *card)
{
	struct ll_neighbour_view view = view_of(server, card);
	evictable->neighbour.wanted_looks = ll_neighbour_is_wanted(&view) ? evictable->neighbour.wanted_looks + 1 : 0;
	if (view.is_claimed || evictable->neighbour.wanted_looks >= LOOKS)
		send_on(evictable, view.is_claimed ? "a program has come" : "somebody uses it");
}

static void note_bytes(struct ll_evictable *evictable, const struct ll_message_move *message)
{
	struct ll_evictable_neighbour *neighbour = &evictable->neighbour;
	if (!message->away_bytes || strcmp(neighbour->uuid, message->uuid) != 0)
		*neighbour = (struct ll_evictable_neighbour){0};
	snprintf(neighbour->uuid, sizeof neighbour->uuid, "%s", message->away_bytes ? message->uuid : "");
	neighbour->bytes = message->away_bytes;
}

void ll_neighbours_handle(struct ll_server *server, struct ll_evictable *evictable,
			  const struct ll_message_move *message)
{
	struct ll_neighbour_card card = {.free_bytes = message->free_bytes, .used_bytes = message->value};
	bool is_read = message->flags & LL_MOVE_IS_READ;
	snprintf(card.uuid, sizeof card.uuid, "%s", message->uuid);
	if (message->flags & LL_MOVE_WANTS_DESTINATION) {
		choose_neighbour(server, evictable, message->bytes);
		return;
	}
	if (message->away_bytes || strcmp(evictable->neighbour.uuid, message->uuid) == 0) {
		uint64_t before_bytes = evictable->neighbour.bytes;
		note_bytes(evictable, message);
		if (is_read && evictable->neighbour.bytes)
			judge_neighbour(server, evictable, &card);
		if (evictable->neighbour.bytes < before_bytes)
			ll_residency_look_anew(server, message->uuid);
	} else if (is_read && evictable->seen_count < LL_NEIGHBOUR_CARDS) {
		evictable->seen[evictable->seen_count++] = card;
	}
}
