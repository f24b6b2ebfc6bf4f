#include "daemon/residency/evictable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "rules/residency/neighbour.h"

/* Number of readings in a row that must show use. A process that has just ended or moved may be counted in one number
 * of a reading and not in the other. */
enum { LOOKS = 2 };
/* A process that reports nothing for this long is taken not to run, and is not waited for. */
#define SILENT_NS (5 * LL_NS_PER_S)

/* ---- where memory is ---- */

static struct ll_neighbour_view view_of(const struct ll_server *server, const struct ll_neighbour_card *card)
{
	struct ll_neighbour_view view = {.free_bytes = card->free_bytes, .used_bytes = card->used_bytes};
	for (const struct ll_evictable *at = server->residency.evictables; at; at = at->next)
		view.moved_bytes += strcmp(at->neighbour.uuid, card->uuid) == 0 ? at->neighbour.bytes : 0;
	for (const struct ll_job *job = server->books.jobs; job; job = job->next) {
		const struct ll_job_card *its = ll_job_card_find(job, card->uuid);
		view.is_claimed |= its && its->claim_count;
	}
	return view;
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

static void send_on(struct ll_evictable *evictable, const char *why)
{
	if (!evictable->neighbour.is_sent_on)
		ll_info("claim %u, tenant %s: %" PRIu64 " MiB go on from card %s to the host: %s",
			ll_card_claim_number(evictable->claim->share), evictable->claim->card->job->facts.tenant,
			evictable->neighbour.bytes >> 20, evictable->neighbour.uuid, why);
	evictable->neighbour.is_sent_on = true;
	ll_evictable_say_to(evictable, LL_MESSAGE_DESTINATION, 0, 0, "");
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
	ll_evictable_say_to(evictable, LL_MESSAGE_DESTINATION, 0, 0, uuid);
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
	struct ll_evictable_neighbour *neighbour = &evictable->neighbour;
	if (message->away_bytes || strcmp(neighbour->uuid, message->uuid) == 0) {
		uint64_t before_bytes = neighbour->bytes;
		if (!message->away_bytes || strcmp(neighbour->uuid, message->uuid) != 0)
			*neighbour = (struct ll_evictable_neighbour){0};
		snprintf(neighbour->uuid, sizeof neighbour->uuid, "%s", message->away_bytes ? message->uuid : "");
		neighbour->bytes = message->away_bytes;
		if (is_read && neighbour->bytes) {
			struct ll_neighbour_view view = view_of(server, &card);
			neighbour->wanted_looks = ll_neighbour_is_wanted(&view) ? neighbour->wanted_looks + 1 : 0;
			if (view.is_claimed || neighbour->wanted_looks >= LOOKS)
				send_on(evictable, view.is_claimed ? "a program has come" : "somebody uses it");
		}
		if (neighbour->bytes < before_bytes)
			ll_residency_look_anew(server, message->uuid);
	} else if (is_read && evictable->seen_count < LL_NEIGHBOUR_CARDS) {
		evictable->seen[evictable->seen_count++] = card;
	}
}
