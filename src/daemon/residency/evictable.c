#include "daemon/residency/evictable.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/log.h"
#include "daemon/core/connection.h"

/* How long a process may take to become quiet: its threads return from the driver, and its kernels end. A process may
 * be stopped or in a debugger, and send nothing. LATE_NS after QUIET_NS it is no longer waited for. */
#define QUIET_NS (10 * LL_NS_PER_S)
#define LATE_NS (5 * LL_NS_PER_S)
/* A program that refused was stopped in vain. The next request follows after REFUSED_TIMES the time that the stop took.
 * So requests cost the program less than a tenth of its time. */
#define REFUSED_NS (1 * LL_NS_PER_S)
#define REFUSED_TIMES 10
/* A program that had no room on the card tries again after this. */
#define NO_ROOM_NS (5 * LL_NS_PER_MS)
/* A program that reports nothing about its move for longer is taken not to run. */
#define SILENT_NS (5 * LL_NS_PER_S)
/* The time in which a program uses the room that it was granted. */
#define GRANT_NS (500 * LL_NS_PER_MS)

static const char *tenant_of(const struct ll_evictable *evictable)
{
	return evictable->claim->card->job->facts.tenant;
}

/* Closes the connection of a process that does not read its messages. The process connects again, and reports its
 * state. */
void ll_evictable_say_to(const struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value,
			 uint32_t flags, const char *uuid)
{
	union ll_message message;
	struct ll_connection *connection = evictable->connection;
	if (!connection)
		return;
	ll_message_init(&message, kind);
	message.move.value = value;
	message.move.flags = flags;
	snprintf(message.move.uuid, sizeof message.move.uuid, "%s", uuid);
	if (connection->has_pending || ll_message_send(connection->fd, &message, NULL, 0))
		shutdown(connection->fd, SHUT_RDWR);
}

void ll_evictable_say(const struct ll_evictable *evictable, enum ll_message_kind kind, uint64_t value, uint32_t flags)
{
	ll_evictable_say_to(evictable, kind, value, flags, "");
}

static void enter_state(struct ll_evictable *evictable, enum ll_residency state)
{
	static const char *const names[] = {"here",    "preparing", "stopping",  "stopping",    "stopped",
					    "leaving", "away",      "returning", "staying away"};
	ll_debug("claim %u, tenant %s: is %s", ll_card_claim_number(evictable->claim->share), tenant_of(evictable),
		 names[state]);
	evictable->rule.state = state;
	evictable->rule.lacks_room = evictable->rule.is_torn = false;
	evictable->rule.left_bytes = evictable->rule.came_bytes = 0;
	evictable->again_ns = 0;
	evictable->is_held = evictable->is_held && state == LL_RESIDENCY_RESUMING;
	evictable->is_move = evictable->is_move || state == LL_RESIDENCY_EVICTING;
}

static bool is_becoming_quiet(const struct ll_evictable *evictable)
{
	return evictable->rule.state == LL_RESIDENCY_STOPPING || evictable->rule.state == LL_RESIDENCY_SUSPENDING;
}

bool ll_evictable_is_moving(const struct ll_evictable *evictable)
{
	enum ll_residency state = evictable->rule.state;
	return is_becoming_quiet(evictable) || state == LL_RESIDENCY_EVICTING || state == LL_RESIDENCY_RESUMING ||
	       state == LL_RESIDENCY_STAYING;
}

bool ll_evictable_is_waiting(const struct ll_evictable *evictable)
{
	const struct ll_residency_program *rule = &evictable->rule;
	bool is_returner = rule->state == LL_RESIDENCY_AWAY && rule->wish == LL_RESIDENCY_WISH_NONE && rule->wants;
	return is_returner || rule->short_bytes || rule->lacks_room;
}

bool ll_evictable_is_as_wished(const struct ll_evictable *evictable)
{
	enum ll_residency state = evictable->rule.state;
	if (evictable->rule.is_gathering) /* its present step may be undone */
		return false;
	switch (evictable->rule.wish) {
	case LL_RESIDENCY_WISH_EVICT:
		return state == LL_RESIDENCY_AWAY;
	case LL_RESIDENCY_WISH_SUSPEND:
		return state == LL_RESIDENCY_SUSPENDED || state == LL_RESIDENCY_AWAY;
	default:
		return state == LL_RESIDENCY_HERE;
	}
}

#define QUIET_WORDS "waits for its work on the card to end"

const char *ll_evictable_describe(const struct ll_evictable *evictable)
{
	switch (evictable->rule.state) {
	case LL_RESIDENCY_STOPPING:
		return evictable->pool_bytes < evictable->rule.bytes ? "makes memory of the host ready" : QUIET_WORDS;
	case LL_RESIDENCY_SUSPENDING:
		return QUIET_WORDS;
	case LL_RESIDENCY_SUSPENDED:
		return evictable->gather ? "is quiet, and waits for the others" : "";
	case LL_RESIDENCY_EVICTING:
		return "leaves the card";
	case LL_RESIDENCY_RESUMING:
		return evictable->rule.lacks_room        ? "waits for room on the card"
		       : ll_evictable_is_back(evictable) ? "is back, and waits for the others"
							 : "returns to the card";
	case LL_RESIDENCY_AWAY:
		return "is away, and waits for room on the card";
	default:
		return "";
	}
}

/* ---- progress ---- */

/* Notes which part of a resuming program is on the card again. away_bytes: as the program reports. */
static void note_came(struct ll_evictable *evictable, uint64_t away_bytes)
{
	struct ll_residency_program *rule = &evictable->rule;
	uint64_t away = away_bytes < rule->bytes ? away_bytes : rule->bytes;
	rule->left_bytes = away;
	rule->came_bytes = rule->bytes - away;
}

static void note_no_room(struct ll_evictable *evictable, uint64_t now_ns)
{
	if (!evictable->rule.lacks_room)
		ll_debug("claim %u, tenant %s: finds no room", ll_card_claim_number(evictable->claim->share),
			 tenant_of(evictable));
	evictable->again_ns = now_ns + NO_ROOM_NS;
	evictable->rule.lacks_room = true;
}

void ll_evictable_put_off(struct ll_evictable *evictable, uint64_t begun_ns, uint64_t now_ns)
{
	uint64_t pause_ns = REFUSED_TIMES * (now_ns - begun_ns);
	evictable->rule.retry_ns = now_ns + (pause_ns > REFUSED_NS ? pause_ns : REFUSED_NS);
}

void ll_evictable_revert_wish(struct ll_evictable *evictable)
{
	struct ll_residency_program *rule = &evictable->rule;
	if (rule->wish != LL_RESIDENCY_WISH_NONE)
		rule->wish = evictable->was_stopped ? LL_RESIDENCY_WISH_SUSPEND : evictable->wish_before;
	if (rule->wish == LL_RESIDENCY_WISH_SUSPEND)
		rule->retry_ns = 0; /* it was stopped, and stays so */
	evictable->wish_before = LL_RESIDENCY_WISH_NONE;
}

bool ll_evictable_is_back(const struct ll_evictable *evictable)
{
	const struct ll_residency_program *rule = &evictable->rule;
	return evictable->is_held && rule->state == LL_RESIDENCY_RESUMING && !rule->left_bytes;
}

/* ---- steps ---- */

static void request_stop(struct ll_evictable *evictable, enum ll_message_kind kind, uint32_t flags, uint64_t now_ns)
{
	bool is_by_hand = evictable->rule.wish != LL_RESIDENCY_WISH_NONE;
	evictable->begun_ns = evictable->asked_ns = now_ns;
	evictable->is_late = evictable->is_move = false;
	if (!evictable->gather)
		evictable->was_stopped = evictable->rule.state == LL_RESIDENCY_SUSPENDED;
	enter_state(evictable, kind == LL_MESSAGE_SUSPEND ? LL_RESIDENCY_SUSPENDING : LL_RESIDENCY_STOPPING);
	ll_evictable_say(evictable, kind, evictable->quiet_ns ? evictable->quiet_ns : QUIET_NS,
			 flags | (is_by_hand ? LL_MOVE_BY_HAND : 0U));
}

void ll_evictable_evict(struct ll_evictable *evictable, uint64_t now_ns)
{
	request_stop(evictable, LL_MESSAGE_EVICT, 0, now_ns);
}

void ll_evictable_suspend(struct ll_evictable *evictable, uint64_t now_ns)
{
	request_stop(evictable, LL_MESSAGE_SUSPEND, 0, now_ns);
}

void ll_evictable_gather(struct ll_evictable *evictable, uint64_t now_ns)
{
	request_stop(evictable, LL_MESSAGE_EVICT, LL_MOVE_HOLD, now_ns);
}

/* away_bytes: the part of its memory that is not on the card. */
static void begin_return(struct ll_evictable *evictable, uint64_t away_bytes, uint64_t now_ns)
{
	bool is_torn = evictable->rule.state != LL_RESIDENCY_AWAY;
	evictable->is_move = !is_torn || evictable->rule.state == LL_RESIDENCY_EVICTING;
	evictable->begun_ns = evictable->heard_ns = now_ns;
	enter_state(evictable, LL_RESIDENCY_RESUMING);
	note_came(evictable, away_bytes);
	evictable->rule.is_torn = is_torn;
}

static void send_resume(struct ll_evictable *evictable, uint32_t flags, uint64_t now_ns)
{
	const struct ll_residency_program *rule = &evictable->rule;
	uint64_t away_bytes = rule->state == LL_RESIDENCY_AWAY       ? rule->bytes
			      : rule->state == LL_RESIDENCY_EVICTING ? rule->bytes - rule->left_bytes
								     : 0;
	begin_return(evictable, away_bytes, now_ns);
	evictable->is_held = flags & LL_MOVE_HOLD;
	ll_evictable_say(evictable, LL_MESSAGE_RESUME, 0, flags);
}

void ll_evictable_resume(struct ll_evictable *evictable, uint64_t now_ns)
{
	send_resume(evictable, 0, now_ns);
}

void ll_evictable_resume_held(struct ll_evictable *evictable, uint64_t now_ns)
{
	send_resume(evictable, LL_MOVE_HOLD, now_ns);
}

void ll_evictable_resume_fully(struct ll_evictable *evictable)
{
	evictable->is_held = false;
	ll_evictable_say(evictable, LL_MESSAGE_RESUME, 0, 0);
}

void ll_evictable_stay(struct ll_evictable *evictable)
{
	uint64_t came_bytes = evictable->rule.came_bytes;
	enter_state(evictable, LL_RESIDENCY_STAYING);
	evictable->rule.left_bytes = came_bytes;
	ll_evictable_say(evictable, LL_MESSAGE_STAY, 0, 0);
}

void ll_evictable_reply_short(struct ll_evictable *evictable, enum ll_move_room room, uint64_t now_ns)
{
	static const char *const names[] = {"refused", "granted", "granted, while others leave"};
	ll_debug("claim %u, tenant %s: room for %" PRIu64 " MiB: %s", ll_card_claim_number(evictable->claim->share),
		 tenant_of(evictable), evictable->rule.short_bytes >> 20, names[room]);
	evictable->rule.granted_bytes = room ? evictable->rule.short_bytes : 0;
	evictable->granted_ns = now_ns;
	evictable->rule.short_bytes = 0;
	ll_evictable_say(evictable, LL_MESSAGE_ROOM, room, 0);
}

/* ---- messages of the process ---- */

void ll_evictable_begin(struct ll_evictable *evictable, const struct ll_message_move *message, uint64_t now_ns)
{
	static const enum ll_residency states[] = {[LL_MOVE_HERE] = LL_RESIDENCY_HERE,
						   [LL_MOVE_STOPPED] = LL_RESIDENCY_SUSPENDED,
						   [LL_MOVE_EVICTING] = LL_RESIDENCY_EVICTING,
						   [LL_MOVE_AWAY] = LL_RESIDENCY_AWAY,
						   [LL_MOVE_RESUMING] = LL_RESIDENCY_RESUMING};
	struct ll_residency_program *rule = &evictable->rule;
	enum ll_residency state = message->value <= LL_MOVE_RESUMING ? states[message->value] : LL_RESIDENCY_HERE;
	/* What this loadlined was told about it counts: the process may not have received it. */
	bool is_known = evictable->begun_ns;
	bool is_held = !is_known && (message->flags & LL_MOVE_BY_HAND) && state != LL_RESIDENCY_RESUMING;
	rule->bytes = message->bytes;
	evictable->neighbour = (struct ll_evictable_neighbour){0}; /* the process reports it again */
	evictable->seen_count = 0;
	rule->granted_bytes = rule->short_bytes = 0;
	evictable->heard_ns = now_ns;
	bool goes_on = rule->state == state || is_becoming_quiet(evictable); /* it has only lost its connection */
	if (!evictable->begun_ns || !goes_on)
		evictable->begun_ns = now_ns;
	enter_state(evictable, state);
	evictable->is_held = state == LL_RESIDENCY_RESUMING && (message->flags & LL_MOVE_HOLD);
	if (state == LL_RESIDENCY_HERE && !rule->here_since_ns)
		rule->here_since_ns = now_ns;
	if (is_held)
		rule->wish = state == LL_RESIDENCY_SUSPENDED ? LL_RESIDENCY_WISH_SUSPEND : LL_RESIDENCY_WISH_EVICT;
	if (state == LL_RESIDENCY_EVICTING)
		rule->left_bytes = message->away_bytes < rule->bytes ? rule->bytes - message->away_bytes : 0;
	if (state == LL_RESIDENCY_RESUMING)
		note_came(evictable, message->away_bytes);
	bool was_waiting = is_known && rule->wants && state != LL_RESIDENCY_HERE; /* a command may have asked for it */
	rule->wants = was_waiting || (message->flags & LL_MOVE_WANTS);
	if (rule->wants || state == LL_RESIDENCY_RESUMING)
		rule->want_since_ns = rule->want_since_ns ? rule->want_since_ns : now_ns;
}

static enum ll_evictable_event handle_quiet(struct ll_evictable *evictable, const struct ll_message_move *message,
					    uint64_t now_ns)
{
	if (!is_becoming_quiet(evictable)) /* it was told to go on meanwhile */
		return LL_EVICTABLE_NONE;
	if (evictable->is_late) {
		evictable->rule.is_silent = false;
		ll_evictable_resume(evictable, now_ns);
		return LL_EVICTABLE_NONE;
	}
	if (evictable->rule.is_gathering || evictable->rule.state == LL_RESIDENCY_SUSPENDING) {
		enter_state(evictable, LL_RESIDENCY_SUSPENDED);
		return evictable->rule.is_gathering ? LL_EVICTABLE_QUIET : LL_EVICTABLE_DONE;
	}
	evictable->rule.bytes = message->bytes;
	enter_state(evictable, LL_RESIDENCY_EVICTING);
	evictable->rule.left_bytes = message->bytes;
	return LL_EVICTABLE_NONE;
}

/* value: the present state. */
static enum ll_evictable_event handle_busy(struct ll_evictable *evictable, const struct ll_message_move *message,
					   uint64_t now_ns)
{
	enum ll_residency state = evictable->rule.state;
	bool was_late = evictable->is_late;
	if (message->value == LL_MOVE_RESUMING) {
		if (state != LL_RESIDENCY_EVICTING)
			return LL_EVICTABLE_NONE;
		begin_return(evictable, message->away_bytes, now_ns);
	} else if (state == LL_RESIDENCY_RESUMING) { /* it was told to go on, and goes on */
		enter_state(evictable, LL_RESIDENCY_HERE);
		return LL_EVICTABLE_DONE;
	} else if (!is_becoming_quiet(evictable)) {
		return LL_EVICTABLE_NONE;
	} else {
		enter_state(evictable, message->value == LL_MOVE_STOPPED ? LL_RESIDENCY_SUSPENDED : LL_RESIDENCY_HERE);
	}
	evictable->is_late = evictable->rule.is_silent = false;
	snprintf(evictable->why, sizeof evictable->why, "%s", message->reason);
	ll_evictable_put_off(evictable, evictable->begun_ns, now_ns);
	return was_late ? LL_EVICTABLE_NONE : LL_EVICTABLE_FAILED;
}

static enum ll_evictable_event handle_copied(struct ll_evictable *evictable, const struct ll_message_move *message,
					     uint64_t now_ns)
{
	struct ll_residency_program *rule = &evictable->rule;
	evictable->pool_bytes = message->pool_bytes;
	if (rule->state == LL_RESIDENCY_STOPPING)
		evictable->asked_ns = now_ns;
	if (rule->state == LL_RESIDENCY_EVICTING)
		rule->left_bytes = message->away_bytes < rule->bytes ? rule->bytes - message->away_bytes : 0;
	if (rule->state == LL_RESIDENCY_RESUMING) {
		note_came(evictable, message->away_bytes);
		rule->lacks_room = false;
		evictable->again_ns = 0;
	}
	return LL_EVICTABLE_NONE;
}

/* After STAY, a process whose other memory never left the card waits for room as before. */
static enum ll_evictable_event handle_away(struct ll_evictable *evictable, const struct ll_message_move *message,
					   uint64_t now_ns)
{
	enum ll_residency state = evictable->rule.state;
	if (state == LL_RESIDENCY_EVICTING) {
		enter_state(evictable, LL_RESIDENCY_AWAY);
		return LL_EVICTABLE_DONE;
	}
	if (state != LL_RESIDENCY_STAYING) /* it was told to resume meanwhile */
		return LL_EVICTABLE_NONE;
	if (message->away_bytes >= evictable->rule.bytes) {
		enter_state(evictable, LL_RESIDENCY_AWAY);
		return LL_EVICTABLE_STAYED;
	}
	enter_state(evictable, LL_RESIDENCY_RESUMING);
	note_came(evictable, message->away_bytes);
	evictable->rule.is_torn = true;
	note_no_room(evictable, now_ns);
	return LL_EVICTABLE_NONE;
}

static enum ll_evictable_event handle_back(struct ll_evictable *evictable, uint64_t error, uint64_t now_ns)
{
	struct ll_residency_program *rule = &evictable->rule;
	bool was_torn = rule->is_torn;
	if (rule->state == LL_RESIDENCY_HERE)
		return LL_EVICTABLE_NONE;
	rule->wants = false;
	if (!was_torn) /* otherwise the eviction was undone, and its time on the card continues */
		rule->here_since_ns = now_ns;
	enter_state(evictable, LL_RESIDENCY_HERE);
	if (!error)
		return LL_EVICTABLE_DONE;
	snprintf(evictable->why, sizeof evictable->why,
		 "the card is lost to it (CUDA error %" PRIu64 "): it goes on without its memory", error);
	return LL_EVICTABLE_FAILED;
}

/* A want that was sent before the program was resumed arrives late. */
static void note_want(struct ll_evictable *evictable, uint64_t short_bytes, bool waits_by_chunk, uint64_t now_ns)
{
	struct ll_residency_program *rule = &evictable->rule;
	if (!short_bytes && rule->state == LL_RESIDENCY_HERE)
		return;
	if (!rule->wants && !rule->short_bytes)
		rule->want_since_ns = now_ns;
	rule->granted_bytes = 0;
	if (short_bytes) {
		rule->short_bytes = short_bytes;
		rule->waits_by_chunk = waits_by_chunk;
	} else {
		rule->wants = true;
	}
}

enum ll_evictable_event ll_evictable_handle(struct ll_evictable *evictable, enum ll_message_kind kind,
					    const struct ll_message_move *message, uint64_t now_ns)
{
	evictable->heard_ns = now_ns;
	switch (kind) {
	case LL_MESSAGE_SIZES: {
		struct ll_residency_program *rule = &evictable->rule;
		/* Memory that the program has gained uses up the room that it was granted. */
		uint64_t more = message->bytes > rule->bytes ? message->bytes - rule->bytes : 0;
		evictable->pool_bytes = message->pool_bytes;
		rule->granted_bytes -= more < rule->granted_bytes ? more : rule->granted_bytes;
		if (more)
			evictable->granted_ns = now_ns;
		if (rule->state == LL_RESIDENCY_HERE || is_becoming_quiet(evictable))
			rule->bytes = message->bytes;
		return LL_EVICTABLE_NONE;
	}
	case LL_MESSAGE_QUIET:
		return handle_quiet(evictable, message, now_ns);
	case LL_MESSAGE_BUSY:
		return handle_busy(evictable, message, now_ns);
	case LL_MESSAGE_COPIED:
		return handle_copied(evictable, message, now_ns);
	case LL_MESSAGE_AWAY:
		return handle_away(evictable, message, now_ns);
	case LL_MESSAGE_NO_ROOM:
		if (evictable->rule.state == LL_RESIDENCY_RESUMING)
			note_no_room(evictable, now_ns);
		return LL_EVICTABLE_NONE;
	case LL_MESSAGE_BACK:
		return handle_back(evictable, message->value, now_ns);
	case LL_MESSAGE_WANT:
		note_want(evictable, 0, false, now_ns);
		return LL_EVICTABLE_NONE;
	case LL_MESSAGE_SHORT:
		ll_debug("claim %u, tenant %s: an allocation of %" PRIu64 " MiB waits for room",
			 ll_card_claim_number(evictable->claim->share), tenant_of(evictable), message->bytes >> 20);
		note_want(evictable, message->bytes, message->flags & LL_MOVE_BY_CHUNKS, now_ns);
		return LL_EVICTABLE_NONE;
	default:
		return LL_EVICTABLE_NONE;
	}
}

/* ---- timer ---- */

static bool is_silent(const struct ll_evictable *evictable, uint64_t now_ns)
{
	if (is_becoming_quiet(evictable))
		return evictable->is_late;
	return ll_evictable_is_moving(evictable) && !evictable->rule.lacks_room && !ll_evictable_is_back(evictable) &&
	       now_ns > evictable->heard_ns + SILENT_NS;
}

enum ll_evictable_event ll_evictable_tick(struct ll_evictable *evictable, bool may_go_on, uint64_t now_ns)
{
	uint64_t quiet_ns = evictable->quiet_ns ? evictable->quiet_ns : QUIET_NS;
	if (is_becoming_quiet(evictable) && !evictable->is_late && now_ns > evictable->asked_ns + quiet_ns + LATE_NS) {
		snprintf(evictable->why, sizeof evictable->why, "the program does not answer: is it stopped?");
		evictable->is_late = evictable->rule.is_silent = true;
		return LL_EVICTABLE_FAILED;
	}
	evictable->rule.is_silent = is_silent(evictable, now_ns);
	if (now_ns > evictable->granted_ns + GRANT_NS)
		evictable->rule.granted_bytes = 0;
	if (evictable->again_ns && now_ns >= evictable->again_ns) {
		evictable->again_ns = may_go_on ? 0 : now_ns + NO_ROOM_NS;
		if (may_go_on)
			ll_evictable_say(evictable, LL_MESSAGE_RESUME, 0, evictable->is_held ? LL_MOVE_HOLD : 0);
	}
	return LL_EVICTABLE_NONE;
}
