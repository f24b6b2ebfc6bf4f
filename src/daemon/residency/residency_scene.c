#include "daemon/residency/evictable.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "daemon/core/connection.h"
#include "protocol/words.h"

/* A process replies to MEASURE within about 0.1 ms. A stopped process does not reply; after this time another process
 * is asked. */
#define MEASURE_NS (20 * LL_NS_PER_MS)
/* One that does not answer is asked again after this time: with a question each time its socket would be full of them.
 */
#define UNREAD_NS LL_NS_PER_S
/* How long a measurement is valid: other programs use the card too. */
#define FRESH_NS (5 * LL_NS_PER_MS)
/* The same for cards that are decided about together, because each of them must reply. */
#define FRESH_TOGETHER_NS (50 * LL_NS_PER_MS)
/* Processes connect again to a new loadlined. During this time no process is refused room. */
#define SETTLE_NS (2 * LL_NS_PER_S)

const char *ll_evictable_uuid(const struct ll_evictable *evictable)
{
	return evictable->claim->card->uuid;
}

/* ---- rooms ---- */

struct ll_card_room *ll_card_room_find(const struct ll_residency_books *books, const char *uuid)
{
	struct ll_card_room *room = books->rooms;
	while (room && strcmp(room->uuid, uuid) != 0)
		room = room->next;
	return room;
}

struct ll_card_room *ll_card_room_get(struct ll_residency_books *books, const char *uuid)
{
	struct ll_card_room *room = ll_card_room_find(books, uuid);
	if (room)
		return room;
	room = calloc(1, sizeof *room);
	if (!room)
		return NULL;
	snprintf(room->uuid, sizeof room->uuid, "%s", uuid);
	room->again_ns = UINT64_MAX;
	room->number = 1;
	room->next = books->rooms;
	books->rooms = room;
	return room;
}

void ll_card_room_drop_unused(struct ll_residency_books *books, const char *uuid)
{
	struct ll_card_room **at = &books->rooms, *room = ll_card_room_find(books, uuid);
	for (const struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(ll_evictable_uuid(evictable), uuid) == 0 || strcmp(evictable->neighbour.uuid, uuid) == 0)
			return;
	}
	if (!room)
		return;
	while (*at != room)
		at = &(*at)->next;
	*at = room->next;
	free(room);
}

void ll_card_room_request_anew(struct ll_card_room *room)
{
	room->number++;
	room->measured_ns = room->asked_ns = 0;
}

/* ---- input of the decision ---- */

static void add_room(struct ll_residency_scene *scene, struct ll_card_room *room)
{
	for (unsigned i = 0; i < scene->room_count; i++) {
		if (scene->rooms[i] == room)
			return;
	}
	if (scene->room_count == LL_RESIDENCY_CARDS)
		return;
	scene->free_bytes[scene->room_count] = room->free_bytes;
	scene->rooms[scene->room_count++] = room;
}

static bool is_on(const struct ll_evictable *evictable, const struct ll_card_room *room)
{
	return strcmp(ll_evictable_uuid(evictable), room->uuid) == 0;
}

static struct ll_job *job_of(const struct ll_evictable *evictable)
{
	return evictable->claim->card->job;
}

/* Lists the card, and the cards that have jobs in common with a listed card. */
static void list_rooms(struct ll_residency_books *books, struct ll_card_room *room, struct ll_residency_scene *scene)
{
	add_room(scene, room);
	for (unsigned i = 0; i < scene->room_count; i++) {
		for (const struct ll_evictable *here = books->evictables; here; here = here->next) {
			for (const struct ll_evictable *other = books->evictables;
			     is_on(here, scene->rooms[i]) && other; other = other->next) {
				struct ll_card_room *another = job_of(other) == job_of(here)
								   ? ll_card_room_get(books, ll_evictable_uuid(other))
								   : NULL;
				if (another)
					add_room(scene, another);
			}
		}
	}
}

/* Sets the numbers of its job and its process: those of an earlier member with the same job or process, or new ones. */
static void number_member(struct ll_residency_scene *scene, size_t at)
{
	struct ll_residency_member *member = &scene->members[at];
	const struct ll_user *user = scene->who[at]->claim->user;
	member->rule.job = (unsigned)at + 1;
	member->process = user ? (unsigned)at + 1 : 0; /* NULL: not known yet */
	for (size_t i = at; i-- > 0;) {
		if (!scene->who[i])
			continue;
		if (job_of(scene->who[i]) == job_of(scene->who[at]))
			member->rule.job = scene->members[i].rule.job;
		if (user && scene->who[i]->claim->user == user)
			member->process = scene->members[i].process;
	}
}

static void add_members(const struct ll_residency_books *books, unsigned card, uint64_t now_ns,
			struct ll_residency_scene *scene)
{
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (!is_on(evictable, scene->rooms[card]))
			continue;
		const struct ll_job_card *own = evictable->claim->card;
		const struct ll_limits *limits = &own->job->facts.limits;
		struct ll_residency_program *rule = &evictable->rule;
		struct ll_card_claim_view view;
		ll_card_claim_read(evictable->claim->share, &view);
		rule->priority = ll_priority_of_class(limits->priority);
		rule->is_within = limits->request_bytes && ll_memory_used_bytes(own) <= limits->request_bytes;
		if (view.is_wanting)
			rule->idle_since_ns = 0;
		else if (!rule->idle_since_ns)
			rule->idle_since_ns = now_ns;
		struct ll_residency_member *member = &scene->members[scene->count];
		scene->who[scene->count] = evictable;
		member->rule = evictable->rule;
		member->rule.card = card;
		member->is_held = evictable->is_held;
		member->is_loose = evictable->is_loose;
		member->large_since_ns = evictable->large_since_ns;
		number_member(scene, scene->count++);
	}
	/* No step is ever about this member: its memory is being evicted already. */
	struct ll_residency_member *moved = &scene->members[scene->count];
	scene->count += ll_neighbours_describe(books, scene->rooms[card]->uuid, now_ns, &moved->rule);
	moved->rule.card = card;
}

int ll_residency_scene_init(struct ll_residency_scene *scene, struct ll_residency_books *books,
			    struct ll_card_room *room, uint64_t now_ns)
{
	size_t most = LL_RESIDENCY_CARDS + 1; /* with the memory that was moved to each card */
	*scene = (struct ll_residency_scene){.count = 0};
	for (const struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next)
		most++;
	scene->who = calloc(most, sizeof *scene->who);
	scene->members = calloc(most, sizeof *scene->members);
	scene->programs = calloc(most, sizeof *scene->programs);
	if (!scene->who || !scene->members || !scene->programs)
		return -ENOMEM;
	list_rooms(books, room, scene);
	for (unsigned card = 0; card < scene->room_count; card++)
		add_members(books, card, now_ns, scene);
	return 0;
}

void ll_residency_scene_fini(struct ll_residency_scene *scene)
{
	free(scene->who);
	free(scene->members);
	free(scene->programs);
}

static bool is_fresh(const struct ll_residency_scene *scene, const struct ll_card_room *room, uint64_t now_ns)
{
	uint64_t fresh_ns = scene->room_count > 1 ? FRESH_TOGETHER_NS : FRESH_NS;
	return room->measured_ns && now_ns - room->measured_ns <= fresh_ns;
}

void ll_residency_scene_join(struct ll_residency_scene *scene, const struct ll_server *server, uint64_t now_ns)
{
	scene->is_settled = now_ns - server->born_ns >= SETTLE_NS;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_job_card *card = scene->who[i] ? scene->who[i]->claim->card : NULL;
		uint64_t death_ns = !card ? 0 : card->job->pages.orders->cards[card->index].death_ns;
		if (death_ns && now_ns - death_ns < LL_LEAVING_NS) /* the driver may still free its memory */
			scene->is_settled = false;
	}
	bool are_fresh = scene->is_settled;
	for (unsigned i = 0; i < scene->room_count; i++)
		are_fresh &= is_fresh(scene, scene->rooms[i], now_ns);
	scene->program_count = ll_residency_units_join(scene->members, scene->count, scene->free_bytes, are_fresh,
						       now_ns, scene->programs);
	for (size_t i = 0; i < scene->count; i++) {
		if (!scene->who[i])
			continue;
		scene->who[i]->is_loose = scene->members[i].is_loose;
		scene->who[i]->large_since_ns = scene->members[i].large_since_ns;
	}
}

bool ll_residency_scene_know_room(const struct ll_residency_scene *scene, const struct ll_residency_books *books,
				  uint64_t now_ns)
{
	bool is_known = true;
	for (unsigned i = 0; i < scene->room_count; i++) {
		struct ll_card_room *room = scene->rooms[i];
		if (is_fresh(scene, room, now_ns))
			continue;
		is_known = false;
		if (room->asked_ns && now_ns - room->asked_ns < MEASURE_NS)
			continue;
		room->asked_ns = now_ns;
		for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
			if (!is_on(evictable, room) ||
			    (evictable->heard_ns < evictable->measure_ns && now_ns - evictable->measure_ns < UNREAD_NS))
				continue;
			evictable->measure_ns = now_ns;
			ll_evictable_say(evictable, LL_MESSAGE_MEASURE, room->number, 0);
		}
	}
	return is_known;
}
