#include "daemon/residency/evictable.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"
#include "daemon/core/server.h"
#include "daemon/machine/machine.h"
#include "daemon/queue/queue.h"

/* How often to decide while a process waits for room. Processes begin and stop to work without a message to
 * loadlined. */
#define CALM_LOOK_NS (100 * LL_NS_PER_MS)
enum { SHORT_MS = 2 };

/* Programs that take turns on a card leave it every few seconds: people are told once in this time. */
#define TELL_AGAIN_NS (600 * LL_NS_PER_S)

/* ---- what people are told ---- */

/* Of several processes of a job on the card, the first one counts. */
static void tell_move(const struct ll_server *server, struct ll_evictable *evictable, uint64_t now_ns)
{
	const struct ll_job_card *card = evictable->claim->card;
	const struct ll_residency_program *rule = &evictable->rule;
	struct ll_event_about about = {.job = card->job, .card = card->uuid};
	bool is_by_hand = rule->wish == LL_RESIDENCY_WISH_EVICT, is_told = false;
	for (const struct ll_evictable *other = server->residency.evictables; other; other = other->next)
		is_told |= other->claim->card == card && other->is_told;
	if (rule->state == LL_RESIDENCY_HERE && evictable->is_told) {
		evictable->is_told = false;
		ll_events_tell(server, LL_EVENT_RESUMED, &about,
			       "job %" PRIu64 " goes on, and its memory is back on card %s", card->job->number,
			       card->uuid);
	} else if (rule->state == LL_RESIDENCY_AWAY && !is_told &&
		   (is_by_hand || !evictable->told_ns || now_ns - evictable->told_ns >= TELL_AGAIN_NS)) {
		evictable->is_told = true;
		evictable->told_ns = now_ns;
		ll_events_tell(server, LL_EVENT_EVICTED, &about,
			       "job %" PRIu64 " waits, and its memory (%" PRIu64 " MiB) has left card %s: %s",
			       card->job->number, rule->bytes >> 20, card->uuid,
			       evictable->is_recalled ? "its room was lent, and its owner needs it"
			       : is_by_hand           ? "somebody evicted it"
						      : "other programs need the room");
	}
}

/* ---- steps ---- */

static void note_event(struct ll_server *server, struct ll_evictable *evictable, enum ll_evictable_event event)
{
	struct ll_residency_books *books = &server->residency;
	struct ll_residency_program *rule = &evictable->rule;
	const char *tenant = evictable->claim->card->job->facts.tenant;
	unsigned number = ll_card_claim_number(evictable->claim->share);
	if (evictable->is_recalled && event != LL_EVICTABLE_NONE && server->admission)
		ll_admission_wake(server->admission);
	if (event == LL_EVICTABLE_FAILED) {
		ll_info("claim %u, tenant %s: cannot be evicted: %s", number, tenant, evictable->why);
		if (evictable->gather) {
			ll_gather_fail(books, evictable, ll_now_ns());
			return;
		}
		ll_evictable_revert_wish(evictable);
		ll_move_requests_end(books, evictable, -EBUSY, evictable->why);
		return;
	}
	if (event == LL_EVICTABLE_NONE || event == LL_EVICTABLE_QUIET)
		return;
	uint64_t took_ns = ll_now_ns() - evictable->begun_ns;
	if (event == LL_EVICTABLE_DONE && evictable->is_move)
		rule->moved_ns = took_ns;
	evictable->moves += evictable->is_move && event == LL_EVICTABLE_DONE;
	ll_info("claim %u, tenant %s: %s: %" PRIu64 " MiB in %.3f s", number, tenant,
		event == LL_EVICTABLE_STAYED            ? "stays away: its room on the card was wanted"
		: rule->state == LL_RESIDENCY_SUSPENDED ? "suspended"
		: rule->state == LL_RESIDENCY_AWAY      ? "evicted"
							: "resumed",
		rule->bytes >> 20, (double)took_ns / (double)LL_NS_PER_S);
	if (event == LL_EVICTABLE_DONE)
		tell_move(server, evictable, ll_now_ns());
	if (ll_evictable_is_as_wished(evictable))
		ll_move_requests_end(books, evictable, 0, "");
}

/* Evicts, resumes or keeps away the members of a unit. */
static void move_unit(struct ll_residency_books *books, struct ll_residency_scene *scene, unsigned unit,
		      enum ll_residency_step step, uint64_t now_ns)
{
	size_t members = 0;
	for (size_t i = 0; i < scene->count; i++)
		members += scene->members[i].unit == unit;
	bool is_gathered = step == LL_RESIDENCY_EVICT && members > 1;
	struct ll_gather *gather = is_gathered ? ll_gather_new(books, LL_GATHER_EVICT, false, 0, now_ns) : NULL;
	for (size_t i = 0; i < scene->count; i++) {
		struct ll_evictable *who = scene->who[i];
		if (scene->members[i].unit != unit)
			continue;
		if (gather)
			ll_gather_add(gather, who);
		else if (step == LL_RESIDENCY_EVICT)
			ll_evictable_evict(who, now_ns);
		else if (step == LL_RESIDENCY_RESUME && members > 1)
			ll_evictable_resume_held(who, now_ns);
		else if (step == LL_RESIDENCY_RESUME)
			ll_evictable_resume(who, now_ns);
		else if (who->rule.state == LL_RESIDENCY_RESUMING && !who->rule.is_torn)
			ll_evictable_stay(who);
	}
	if (gather)
		ll_gather_look(books, gather, now_ns);
}

/* Carries out the rule's step about a program. */
static void do_step(struct ll_residency_books *books, struct ll_residency_scene *scene,
		    const struct ll_residency_decision *decision, uint64_t now_ns)
{
	const struct ll_residency_program *program = &scene->programs[decision->who];
	size_t at = ll_residency_units_short(scene->members, scene->count, program->unit, program->card);
	switch (decision->step) {
	case LL_RESIDENCY_EVICT:
	case LL_RESIDENCY_RESUME:
	case LL_RESIDENCY_STAY:
		move_unit(books, scene, program->unit, decision->step, now_ns);
		break;
	case LL_RESIDENCY_REFUSE:
		ll_evictable_reply_short(scene->who[at], LL_MOVE_ROOM_NONE, now_ns);
		break;
	case LL_RESIDENCY_GRANT:
		ll_evictable_reply_short(scene->who[at],
					 program->short_bytes <= scene->free_bytes[program->card] ? LL_MOVE_ROOM_THERE
												  : LL_MOVE_ROOM_COMING,
					 now_ns);
		break;
	default:
		break;
	}
}

/* Carries out a step about one process that does not depend on the room of the card. */
static void do_step_of_one(struct ll_evictable *evictable, enum ll_residency_step step, bool is_following,
			   uint64_t now_ns)
{
	switch (step) {
	case LL_RESIDENCY_EVICT:
		ll_evictable_evict(evictable, now_ns);
		break;
	case LL_RESIDENCY_SUSPEND:
		ll_evictable_suspend(evictable, now_ns);
		break;
	case LL_RESIDENCY_RESUME:
		if (is_following)
			ll_evictable_resume_held(evictable, now_ns);
		else
			ll_evictable_resume(evictable, now_ns);
		break;
	case LL_RESIDENCY_STAY:
		ll_evictable_stay(evictable);
		break;
	case LL_RESIDENCY_RESUME_FULLY:
		ll_evictable_resume_fully(evictable);
		break;
	default:
		break;
	}
}

/* Carries out requests of a person, and the steps that follow because other members of the unit are moved by hand.
 * Returns whether another decision may follow at once. */
static bool decide_by_hand(const struct ll_server *server, struct ll_residency_scene *scene, uint64_t now_ns,
			   uint64_t *ret_again_ns)
{
	for (size_t i = 0; i < scene->count; i++)
		scene->programs[i] = scene->members[i].rule;
	struct ll_residency_decision decision = ll_residency_decide_by_hand(scene->programs, scene->count, now_ns);
	bool is_following = decision.step == LL_RESIDENCY_WAIT;
	*ret_again_ns = decision.again_ns;
	ll_residency_scene_join(scene, server, now_ns);
	if (is_following)
		decision = ll_residency_units_follow(scene->members, scene->count);
	if (decision.step == LL_RESIDENCY_WAIT)
		return false;
	do_step_of_one(scene->who[decision.who], decision.step, is_following, now_ns);
	return true;
}

/* Returns whether another decision may follow at once. */
static bool decide_once(struct ll_server *server, struct ll_card_room *room, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	struct ll_residency_decision decision = {.step = LL_RESIDENCY_WAIT, .again_ns = UINT64_MAX};
	struct ll_residency_scene scene;
	uint64_t again_ns = UINT64_MAX;
	bool has_done = false, is_waiting = false;
	if (!ll_residency_scene_init(&scene, books, room, now_ns)) {
		has_done = decide_by_hand(server, &scene, now_ns, &again_ns);
		for (size_t i = 0; i < scene.count; i++)
			is_waiting |= scene.who[i] && ll_evictable_is_waiting(scene.who[i]);
		if (!has_done && is_waiting && ll_residency_scene_know_room(&scene, books, now_ns)) {
			decision = ll_residency_decide(scene.programs, scene.program_count, scene.free_bytes, now_ns);
			if (decision.step == LL_RESIDENCY_REFUSE && !scene.is_settled)
				decision =
				    (struct ll_residency_decision){.step = LL_RESIDENCY_WAIT, .again_ns = UINT64_MAX};
			again_ns =
			    decision.again_ns < now_ns + CALM_LOOK_NS ? decision.again_ns : now_ns + CALM_LOOK_NS;
			has_done = decision.step != LL_RESIDENCY_WAIT;
			do_step(books, &scene, &decision, now_ns);
		}
		for (unsigned i = 0; i < scene.room_count; i++)
			scene.rooms[i]->again_ns = again_ns;
	}
	ll_residency_scene_fini(&scene);
	return has_done;
}

/* ---- timer ---- */

static void on_timer(uv_timer_t *timer);

static bool may_go_on(struct ll_server *server, const struct ll_evictable *evictable, struct ll_card_room *room,
		      uint64_t now_ns)
{
	struct ll_residency_scene scene;
	size_t at = 0, program = 0;
	bool may = false;
	if (!ll_residency_scene_init(&scene, &server->residency, room, now_ns)) {
		ll_residency_scene_join(&scene, server, now_ns);
		while (scene.who[at] != evictable)
			at++;
		while (scene.programs[program].unit != scene.members[at].unit ||
		       scene.programs[program].card != scene.members[at].rule.card)
			program++;
		may = ll_residency_may_go_on(scene.programs, scene.program_count, program, room->free_bytes);
	}
	ll_residency_scene_fini(&scene);
	return may;
}

/* Returns when to decide about the room again; UINT64_MAX: only when something changes. */
static uint64_t due_ns(const struct ll_residency_books *books, const struct ll_card_room *room, uint64_t now_ns)
{
	uint64_t due = room->asked_ns ? now_ns + SHORT_MS * LL_NS_PER_MS : UINT64_MAX;
	for (const struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		if (strcmp(ll_evictable_uuid(evictable), room->uuid) != 0)
			continue;
		if (ll_evictable_is_moving(evictable) && now_ns + CALM_LOOK_NS < due)
			due = now_ns + CALM_LOOK_NS;
		if (evictable->again_ns && evictable->again_ns < due)
			due = evictable->again_ns;
	}
	return room->again_ns < due ? room->again_ns : due;
}

void ll_residency_set_timer(struct ll_server *server, uint64_t now_ns)
{
	struct ll_residency_books *books = &server->residency;
	uint64_t due = ll_move_requests_due_ns(books, now_ns), gather_ns = ll_gathers_due_ns(books);
	due = gather_ns < due ? gather_ns : due;
	for (const struct ll_card_room *room = books->rooms; room; room = room->next) {
		uint64_t room_ns = due_ns(books, room, now_ns);
		due = room_ns < due ? room_ns : due;
	}
	/* A message does not put the timer off: one user could stop it for all. */
	bool is_sooner = uv_is_active((uv_handle_t *)&books->timer) && books->due_ns <= due;
	if (due == UINT64_MAX) {
		uv_timer_stop(&books->timer);
	} else if (!is_sooner) {
		books->due_ns = due;
		uv_timer_start(&books->timer, on_timer, due > now_ns ? (due - now_ns) / LL_NS_PER_MS + 1 : 1, 0);
	}
}

void ll_residency_look_everywhere(struct ll_server *server, uint64_t now_ns)
{
	for (struct ll_card_room *room = server->residency.rooms; room; room = room->next) {
		while (decide_once(server, room, now_ns))
			;
	}
	ll_residency_set_timer(server, now_ns);
}

static void on_timer(uv_timer_t *timer)
{
	struct ll_server *server = timer->data;
	struct ll_residency_books *books = &server->residency;
	uint64_t now_ns = ll_now_ns();
	for (struct ll_evictable *evictable = books->evictables; evictable; evictable = evictable->next) {
		struct ll_card_room *room = ll_card_room_find(books, ll_evictable_uuid(evictable));
		bool is_due = evictable->again_ns && now_ns >= evictable->again_ns;
		bool goes_on = is_due && room && may_go_on(server, evictable, room, now_ns);
		note_event(server, evictable, ll_evictable_tick(evictable, goes_on, now_ns));
	}
	ll_gathers_tick(books, now_ns);
	ll_move_requests_retry(server, now_ns);
	ll_move_requests_tell(books, now_ns);
	ll_residency_look_everywhere(server, now_ns);
}

/* Something has changed on the card: decides again. */
static void look_at_card(struct ll_server *server, const char *uuid)
{
	uint64_t now_ns = ll_now_ns();
	struct ll_card_room *room = ll_card_room_get(&server->residency, uuid);
	while (room && decide_once(server, room, now_ns))
		;
	ll_residency_set_timer(server, now_ns);
}

void ll_residency_look_anew(struct ll_server *server, const char *uuid)
{
	struct ll_card_room *room = ll_card_room_find(&server->residency, uuid);
	if (!room)
		return;
	room->measured_ns = 0;
	look_at_card(server, uuid);
}

/* ---- processes connect and end ---- */

int ll_residency_init(struct ll_server *server)
{
	server->residency.timer.data = server;
	return uv_timer_init(&server->loop, &server->residency.timer);
}

void ll_residency_fini(struct ll_server *server)
{
	struct ll_residency_books *books = &server->residency;
	ll_move_requests_drop(books, NULL);
	ll_gathers_fini(books);
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
	if (connection->evictable)
		connection->evictable->connection = NULL;
	if (evictable->connection)
		evictable->connection->evictable = NULL;
	evictable->connection = connection;
	connection->evictable = evictable;
	ll_evictable_begin(evictable, message, ll_now_ns());
	if (ll_evictable_is_as_wished(evictable))
		ll_move_requests_end(books, evictable, 0, "");
	if (evictable->gather) /* it may not have received the last request */
		ll_gather_look(books, evictable->gather, ll_now_ns());
	if (ll_lending_is_recalled(server, job))
		ll_residency_recall(server, job);
	look_at_card(server, ll_evictable_uuid(evictable));
	return 0;
}

/* The process may not have received the last request. If it is moving, it continues the move. If it had not begun, it
 * does not begin. */
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
	ll_debug("claim %u, tenant %s: has ended", ll_card_claim_number(claim->share), claim->card->job->facts.tenant);
	if (evictable->gather)
		ll_gather_forget(books, evictable, ll_now_ns());
	while (*at != evictable)
		at = &(*at)->next;
	*at = evictable->next;
	struct ll_card_room *neighbour = ll_card_room_find(books, evictable->neighbour.uuid);
	if (neighbour)
		neighbour->measured_ns = neighbour->again_ns = 0;
	if (evictable->connection)
		evictable->connection->evictable = NULL;
	ll_move_requests_end(books, evictable, -ESRCH, "the program has ended");
	struct ll_card_room *room = ll_card_room_find(books, claim->card->uuid);
	if (room) {
		ll_card_room_request_anew(room);
		room->again_ns = 0;
	}
	if (neighbour)
		ll_card_room_drop_unused(books, neighbour->uuid);
	free(evictable);
	ll_card_room_drop_unused(books, claim->card->uuid);
	if (!uv_is_closing((uv_handle_t *)&books->timer))
		ll_residency_set_timer(server, ll_now_ns());
}

/* ---- messages of processes ---- */

void ll_residency_handle(struct ll_server *server, struct ll_connection *connection, enum ll_message_kind kind,
			 const struct ll_message_move *message)
{
	struct ll_evictable *evictable = connection->evictable;
	if (!evictable) /* its claim has just ended */
		return;
	struct ll_card_room *room = ll_card_room_get(&server->residency, ll_evictable_uuid(evictable));
	if (!room)
		return;
	if (kind == LL_MESSAGE_NEIGHBOUR) {
		evictable->heard_ns = ll_now_ns();
		ll_neighbours_handle(server, evictable, message);
		return;
	}
	bool does_measure = kind == LL_MESSAGE_MEASURED || kind == LL_MESSAGE_NO_ROOM || kind == LL_MESSAGE_AWAY;
	/* MEASURED has the number of the request. An older library sends none. */
	bool is_old = kind == LL_MESSAGE_MEASURED && message->value && message->value != room->number;
	if (kind == LL_MESSAGE_BACK) {
		ll_card_room_request_anew(room);
	} else if (!does_measure || !message->free_bytes) {
		room->measured_ns = 0;
	} else if (!is_old) {
		room->free_bytes = message->free_bytes;
		room->measured_ns = ll_now_ns();
		room->asked_ns = 0;
	}
	note_event(server, evictable, ll_evictable_handle(evictable, kind, message, ll_now_ns()));
	if (evictable->gather)
		ll_gather_look(&server->residency, evictable->gather, ll_now_ns());
	if (kind != LL_MESSAGE_COPIED || ll_evictable_is_back(evictable))
		look_at_card(server, ll_evictable_uuid(evictable));
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

void ll_residency_read_waits(const struct ll_server *server, const struct ll_job_claim *claim, bool *ret_is_by_hand,
			     bool *ret_waits)
{
	const struct ll_evictable *evictable = ll_residency_find(&server->residency, claim);
	*ret_is_by_hand = evictable && evictable->rule.wish != LL_RESIDENCY_WISH_NONE;
	*ret_waits = evictable && (evictable->rule.wants || evictable->rule.short_bytes);
}
