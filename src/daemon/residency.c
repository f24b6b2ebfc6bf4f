#include "daemon/residency.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/connection.h"
#include "daemon/evictable.h"
#include "daemon/memory.h"
#include "daemon/move_requests.h"
#include "daemon/neighbours.h"
#include "protocol/words.h"

/* While somebody waits for room. Who works and who is idle changes without a word to us. */
#define CALM_LOOK_NS (100 * LL_NS_PER_MS)
/* A process that measures the card answers in some 0.1 ms. One that is stopped does not; another one may. */
#define MEASURE_NS (20 * LL_NS_PER_MS)
/* What was measured holds for so long: others use the card too. */
#define FRESH_NS (5 * LL_NS_PER_MS)
/* Processes connect again to a loadlined that is new; before that nobody is refused room. */
#define SETTLE_NS (2 * LL_NS_PER_S)

enum { SHORT_MS = 2 };

struct ll_card_room {
	struct ll_card_room *next;
	char uuid[LL_CARD_UUID_SIZE];
	uint64_t free_bytes;
	uint64_t asked_ns;    /* when it was asked last; 0: it was answered, or never asked */
	uint64_t measured_ns; /* 0: something has changed since */
	uint64_t again_ns;    /* the next decision is due; UINT64_MAX: not by time */
};

struct scene {
	struct ll_evictable **who; /* NULL: what others have moved to this card (neighbours.h) */
	struct ll_residency_program *rules;
	size_t count;
};

static const char *uuid_of(const struct ll_evictable *evictable)
{
	return evictable->claim->card->uuid;
}

/* ---- rooms ---- */

static struct ll_card_room *find_room(const struct ll_residency_books *books, const char *uuid)
{
	struct ll_card_room *room = books->rooms;
	while (room && strcmp(room->uuid, uuid) != 0)
		room = room->next;
	return room;
}

static struct ll_card_room *get_room(struct ll_residency_books *books, const char *uuid)
{
	struct ll_card_room *room = find_room(books, uuid);
	if (room)
		return room;
	room = calloc(1, sizeof *room);
	if (!room)
		return NULL;
	snprintf(room->uuid, sizeof room->uuid, "%s", uuid);
	room->again_ns = UINT64_MAX;
	room->next = books->rooms;
	books->rooms = room;
	return room;
}

static void note_free(struct ll_card_room *room, uint64_t free_bytes)
{
	room->free_bytes = free_bytes;
	room->measured_ns = ll_now_ns();
	room->asked_ns = 0;
}

static void ask_free(const struct ll_residency_books *books, struct ll_card_room *room, uint64_t now_ns)
{
	if (room->asked_ns && now_ns - room->asked_ns < MEASURE_NS)
		return;
	room->asked_ns = now_ns;
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(uuid_of(evictable), room->uuid) == 0)
			ll_evictable_say(evictable, LL_MESSAGE_MEASURE, 0, 0);
	}
}

/* ---- what the decision needs ---- */

static void read_claim(struct ll_evictable *evictable, uint64_t now_ns)
{
	const struct ll_job_card *card = evictable->claim->card;
	const struct ll_limits *limits = &card->job->facts.limits;
	struct ll_residency_program *rule = &evictable->rule;
	struct ll_card_claim_view view;
	ll_card_claim_read(evictable->claim->share, &view);
	rule->priority = ll_priority_of_class(limits->priority);
	rule->is_within = limits->request_bytes && ll_memory_used_bytes(card) <= limits->request_bytes;
	if (view.is_wanting)
		rule->idle_since_ns = 0;
	else if (!rule->idle_since_ns)
		rule->idle_since_ns = now_ns;
}

static int list_scene(const struct ll_residency_books *books, const char *uuid, uint64_t now_ns,
		      struct scene *ret_scene)
{
	size_t count = 0;
	*ret_scene = (struct scene){.count = 0};
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next)
		count += strcmp(uuid_of(evictable), uuid) == 0;
	ret_scene->who = calloc(count + 1, sizeof *ret_scene->who);
	ret_scene->rules = calloc(count + 1, sizeof *ret_scene->rules);
	if (!ret_scene->who || !ret_scene->rules)
		return -ENOMEM;
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(uuid_of(evictable), uuid) != 0)
			continue;
		read_claim(evictable, now_ns);
		ret_scene->who[ret_scene->count] = evictable;
		ret_scene->rules[ret_scene->count++] = evictable->rule;
	}
	/* Nobody's step is ever about this: it is leaving already. */
	ret_scene->count += ll_neighbours_describe(books, uuid, now_ns, &ret_scene->rules[ret_scene->count]);
	return 0;
}

static void free_scene(struct scene *scene)
{
	free(scene->who);
	free(scene->rules);
}

/* ---- steps ---- */

static void note_event(struct ll_server *server, struct ll_evictable *evictable, enum ll_evictable_event event)
{
	struct ll_residency_books *books = &server->residency;
	struct ll_residency_program *rule = &evictable->rule;
	const char *tenant = evictable->claim->card->job->facts.tenant;
	unsigned number = ll_card_claim_number(evictable->claim->share);
	if (event == LL_EVICTABLE_FAILED) {
		ll_info("claim %u, tenant %s: cannot leave the card: %s", number, tenant, evictable->why);
		if (rule->wish != LL_RESIDENCY_FREE)
			rule->wish = evictable->was_stopped ? LL_RESIDENCY_STOP : evictable->wish_before;
		if (rule->wish == LL_RESIDENCY_STOP)
			rule->retry_ns = 0; /* it was stopped, and stays so */
		evictable->wish_before = LL_RESIDENCY_FREE;
		ll_move_requests_end(books, evictable, -EBUSY, evictable->why);
		return;
	}
	if (event == LL_EVICTABLE_NONE)
		return;
	uint64_t took_ns = ll_now_ns() - evictable->begun_ns;
	if (event == LL_EVICTABLE_DONE && rule->state != LL_RESIDENCY_STOPPED)
		rule->moved_ns = took_ns;
	evictable->moves += rule->state != LL_RESIDENCY_STOPPED && event == LL_EVICTABLE_DONE;
	ll_info("claim %u, tenant %s: %s: %" PRIu64 " MiB in %.3f s", number, tenant,
		event == LL_EVICTABLE_STAYED          ? "stays away: its room on the card was wanted"
		: rule->state == LL_RESIDENCY_STOPPED ? "stopped"
		: rule->state == LL_RESIDENCY_AWAY    ? "away"
						      : "back on the card",
		rule->bytes >> 20, (double)took_ns / (double)LL_NS_PER_S);
	if (ll_evictable_is_as_wished(evictable))
		ll_move_requests_end(books, evictable, 0, "");
}

static void do_step(struct ll_evictable *evictable, enum ll_residency_step step, const struct ll_card_room *room,
		    uint64_t now_ns)
{
	uint64_t short_bytes = evictable->rule.short_bytes;
	switch (step) {
	case LL_RESIDENCY_LEAVE:
		ll_evictable_evict(evictable, now_ns);
		break;
	case LL_RESIDENCY_HALT:
		ll_evictable_suspend(evictable, now_ns);
		break;
	case LL_RESIDENCY_RETURN:
		ll_evictable_resume(evictable, now_ns);
		break;
	case LL_RESIDENCY_STAY:
		ll_evictable_stay(evictable);
		break;
	case LL_RESIDENCY_REFUSE:
		ll_evictable_answer_short(evictable, LL_MOVE_ROOM_NONE, now_ns);
		break;
	case LL_RESIDENCY_GRANT:
		ll_evictable_answer_short(
		    evictable, short_bytes <= room->free_bytes ? LL_MOVE_ROOM_THERE : LL_MOVE_ROOM_COMING, now_ns);
		break;
	case LL_RESIDENCY_GO_ON:
	case LL_RESIDENCY_WAIT:
		break;
	}
}

/* The driver has not given back all that a process had which ended just now. */
static bool is_death_fresh(const struct scene *scene, uint64_t now_ns)
{
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_job_card *card = scene->who[i] ? scene->who[i]->claim->card : NULL;
		uint64_t death_ns = !card ? 0 : card->job->pages.orders->cards[card->index].death_ns;
		if (death_ns && now_ns - death_ns < LL_LEAVING_NS)
			return true;
	}
	return false;
}

/* Returns whether another decision may follow at once. */
static bool decide_once(const struct ll_server *server, struct ll_card_room *room, bool is_by_hand, uint64_t now_ns)
{
	struct scene scene;
	struct ll_residency_decision decision = {.step = LL_RESIDENCY_WAIT, .again_ns = UINT64_MAX};
	int rc = list_scene(&server->residency, room->uuid, now_ns, &scene);
	if (!rc && is_by_hand)
		decision = ll_residency_decide_by_hand(scene.rules, scene.count, now_ns);
	else if (!rc)
		decision = ll_residency_decide(scene.rules, scene.count, &room->free_bytes, now_ns);
	bool is_early = now_ns - server->born_ns < SETTLE_NS || (!rc && is_death_fresh(&scene, now_ns));
	if (decision.step == LL_RESIDENCY_REFUSE && is_early)
		decision = (struct ll_residency_decision){.step = LL_RESIDENCY_WAIT, .again_ns = UINT64_MAX};
	room->again_ns = decision.again_ns;
	if (decision.step != LL_RESIDENCY_WAIT)
		do_step(scene.who[decision.who], decision.step, room, now_ns);
	free_scene(&scene);
	return decision.step != LL_RESIDENCY_WAIT;
}

static bool is_anybody(const struct ll_residency_books *books, const char *uuid,
		       bool (*is)(const struct ll_evictable *evictable))
{
	for (const struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(uuid_of(evictable), uuid) == 0 && is(evictable))
			return true;
	}
	return false;
}

static void decide(struct ll_server *server, struct ll_card_room *room, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	while (decide_once(server, room, true, now_ns))
		;
	if (!is_anybody(books, room->uuid, ll_evictable_is_waiting))
		return;
	if (!room->measured_ns || now_ns - room->measured_ns > FRESH_NS) {
		ask_free(books, room, now_ns);
		return;
	}
	while (decide_once(server, room, false, now_ns))
		;
	uint64_t look_ns = now_ns + CALM_LOOK_NS;
	room->again_ns = room->again_ns < look_ns ? room->again_ns : look_ns;
}

/* ---- as time passes ---- */

static void on_timer(uv_timer_t *timer);

static bool may_go_on(const struct ll_server *server, const struct ll_evictable *evictable,
		      const struct ll_card_room *room, uint64_t now_ns)
{
	struct scene scene;
	size_t at = 0;
	int rc = list_scene(&server->residency, room->uuid, now_ns, &scene);
	while (at < scene.count && scene.who[at] != evictable)
		at++;
	bool may = !rc && at < scene.count && ll_residency_may_go_on(scene.rules, scene.count, at, room->free_bytes);
	free_scene(&scene);
	return may;
}

/* When the room has to be looked at; UINT64_MAX: not by time. */
static uint64_t due_ns(const struct ll_residency_books *books, const struct ll_card_room *room, uint64_t now_ns)
{
	uint64_t due = UINT64_MAX;
	if (is_anybody(books, room->uuid, ll_evictable_is_moving))
		due = now_ns + CALM_LOOK_NS;
	if (room->asked_ns)
		due = now_ns + SHORT_MS * LL_NS_PER_MS;
	for (const struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(uuid_of(evictable), room->uuid) == 0 && evictable->again_ns && evictable->again_ns < due)
			due = evictable->again_ns;
	}
	return room->again_ns < due ? room->again_ns : due;
}

void ll_residency_set_timer(struct ll_server *server, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	uint64_t due = books->requests ? now_ns + CALM_LOOK_NS : UINT64_MAX;
	for (const struct ll_card_room *room = books->rooms; room; room = room->next) {
		uint64_t room_ns = due_ns(books, room, now_ns);
		due = room_ns < due ? room_ns : due;
	}
	if (due == UINT64_MAX)
		uv_timer_stop(&books->timer);
	else
		uv_timer_start(&books->timer, on_timer, due > now_ns ? (due - now_ns) / LL_NS_PER_MS + 1 : 1, 0);
}

static void tick(struct ll_server *server, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		const struct ll_card_room *room = find_room(books, uuid_of(evictable));
		bool is_due = evictable->again_ns && now_ns >= evictable->again_ns;
		bool goes_on = is_due && room && may_go_on(server, evictable, room, now_ns);
		note_event(server, evictable, ll_evictable_tick(evictable, goes_on, now_ns));
	}
	ll_move_requests_retry(server, now_ns);
	ll_move_requests_tell(books, now_ns);
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	uint64_t now_ns = ll_now_ns();
	tick(server, now_ns);
	for (struct ll_card_room *room = server->residency.rooms; room; room = room->next) {
		decide(server, room, now_ns);
	}
	ll_residency_set_timer(server, now_ns);
}

/* Something has happened on the card. */
void ll_residency_look(struct ll_server *server, const char *uuid)
{
	uint64_t now_ns = ll_now_ns();
	struct ll_card_room *room = get_room(&server->residency, uuid);
	if (room)
		decide(server, room, now_ns);
	ll_residency_set_timer(server, now_ns);
}

void ll_residency_look_anew(struct ll_server *server, const char *uuid)
{
	struct ll_card_room *room = find_room(&server->residency, uuid);
	if (!room)
		return;
	room->measured_ns = 0;
	ll_residency_look(server, uuid);
}

/* ---- who comes and goes ---- */

int ll_residency_init(struct ll_server *server)
{
	server->residency.timer.data = server;
	return uv_timer_init(&server->loop, &server->residency.timer);
}

void ll_residency_fini(struct ll_server *server)
{
	struct ll_residency_books *books = &server->residency;
	ll_move_requests_drop(books, NULL);
	while (books->rooms) {
		struct ll_card_room *room = books->rooms;
		books->rooms = room->next;
		free(room);
	}
	ll_shares_fini(&books->shares);
	uv_close((uv_handle_t *)&books->timer, NULL);
}

struct ll_evictable *ll_residency_find(const struct ll_residency_books *books, const struct ll_job_claim *claim)
{
	struct ll_evictable *evictable = books->evictables;
	while (evictable && evictable->claim != claim)
		evictable = evictable->next;
	return evictable;
}

static void attach(struct ll_evictable *evictable, struct ll_connection *connection)
{
	if (connection->evictable)
		connection->evictable->connection = NULL;
	if (evictable->connection)
		evictable->connection->evictable = NULL;
	evictable->connection = connection;
	connection->evictable = evictable;
}

int ll_residency_join(struct ll_server *server, struct ll_connection *connection, const struct ll_message_move *message)
{
	struct ll_residency_books *books = &server->residency;
	const struct ll_job *job = ll_books_find_id(&server->books, message->job);
	struct ll_job_claim *claim = job ? ll_claims_find(job, message->slot, message->slot_token) : NULL;
	if (!claim)
		return job ? -ESTALE : -EAGAIN;
	struct ll_evictable *evictable = ll_residency_find(books, claim);
	if (!evictable) {
		evictable = calloc(1, sizeof *evictable);
		if (!evictable)
			return -ENOMEM;
		evictable->claim = claim;
		evictable->next = books->evictables;
		books->evictables = evictable;
	}
	attach(evictable, connection);
	ll_evictable_begin(evictable, message, ll_now_ns());
	if (ll_evictable_is_as_wished(evictable))
		ll_move_requests_end(books, evictable, 0, "");
	ll_residency_look(server, uuid_of(evictable));
	return 0;
}

/* What was asked of it may not have reached it. A process that moves goes on, and one that was to begin does not. */
void ll_residency_disconnect(struct ll_server *server, struct ll_connection *connection)
{
	struct ll_residency_books *books = &server->residency;
	ll_move_requests_drop(books, connection);
	ll_shares_end(&books->shares, connection);
	if (!connection->evictable)
		return;
	connection->evictable->connection = NULL;
	connection->evictable = NULL;
}

void ll_residency_end(struct ll_server *server, const struct ll_job_claim *claim)
{
	struct ll_residency_books *books = &server->residency;
	struct ll_evictable *evictable = ll_residency_find(books, claim);
	struct ll_evictable **at = &books->evictables;
	if (!evictable)
		return;
	while (*at != evictable)
		at = &(*at)->next;
	*at = evictable->next;
	struct ll_card_room *neighbour = find_room(books, evictable->neighbour.uuid);
	if (neighbour)
		neighbour->measured_ns = neighbour->again_ns = 0;
	if (evictable->connection)
		evictable->connection->evictable = NULL;
	ll_move_requests_end(books, evictable, -ESRCH, "the program has ended");
	struct ll_card_room *room = find_room(books, claim->card->uuid);
	if (room) {
		room->measured_ns = 0;
		room->again_ns = 0;
	}
	free(evictable);
	if (!uv_is_closing((uv_handle_t *)&books->timer))
		ll_residency_set_timer(server, ll_now_ns());
}

/* ---- what they say ---- */

static bool does_measure(enum ll_message_kind kind)
{
	return kind == LL_MESSAGE_MEASURED || kind == LL_MESSAGE_NO_ROOM || kind == LL_MESSAGE_AWAY;
}

void ll_residency_handle(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			 const struct ll_message_move *message)
{
	struct ll_evictable *evictable = connection->evictable;
	if (!evictable) /* its claim has ended a moment ago */
		return;
	struct ll_card_room *room = get_room(&server->residency, uuid_of(evictable));
	if (!room)
		return;
	if (kind == LL_MESSAGE_NEIGHBOUR) {
		evictable->heard_ns = ll_now_ns();
		ll_neighbours_handle(server, evictable, message);
		return;
	}
	if (does_measure(kind) && message->free_bytes)
		note_free(room, message->free_bytes);
	else
		room->measured_ns = 0;
	note_event(server, evictable, ll_evictable_handle(evictable, kind, message, ll_now_ns()));
	if (kind != LL_MESSAGE_COPIED)
		ll_residency_look(server, uuid_of(evictable));
}

void ll_residency_describe(const struct ll_server *server, const struct ll_job_claim *claim,
			   struct ll_message_claim_row *row)
{
	const struct ll_evictable *evictable = ll_residency_find(&server->residency, claim);
	row->host_bytes = evictable ? evictable->pool_bytes : 0;
	row->moves = evictable ? evictable->moves : 0;
	row->neighbour_bytes = evictable ? evictable->neighbour.bytes : 0;
	ll_message_text_set(row->neighbour, sizeof row->neighbour, evictable ? evictable->neighbour.uuid : "");
}
