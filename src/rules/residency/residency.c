/*
 * The rules of residency.h on one card: which programs wait for room, which can be evicted, and when. Then the decision
 * for all cards.
 */
#include "rules/residency/residency.h"

uint64_t ll_residency_move_ns(uint64_t bytes)
{
	return bytes / 1000 * LL_RESIDENCY_NS_PER_KB;
}

uint64_t ll_residency_turn_ns(uint64_t evict_ns, uint64_t resume_ns)
{
	uint64_t moves_ns = evict_ns + resume_ns;
	if (moves_ns >= LL_RESIDENCY_TURN_MAX_NS / LL_RESIDENCY_TURN_MOVES)
		return LL_RESIDENCY_TURN_MAX_NS;
	uint64_t turn_ns = LL_RESIDENCY_TURN_MOVES * moves_ns;
	return turn_ns > LL_RESIDENCY_TURN_NS ? turn_ns : LL_RESIDENCY_TURN_NS;
}

/* Room of a card for a waiting program. */
struct room {
	uint64_t now_bytes;
	uint64_t sure_bytes; /* when the evictions that have begun have ended */
	uint64_t soon_bytes; /* when also the requested evictions have ended */
};

/* A card, with the programs on it. */
struct card {
	const struct ll_residency_program *programs;
	size_t count;
	uint64_t free_bytes, now_ns;
	struct room room;                         /* without what is kept for others */
	const struct ll_residency_program *front; /* the first program that waits for evictions; NULL: none */
};

/* ---- waiting programs ---- */

/* wants_resume: it is away, and one of its threads waits for the card. is_short: an allocation of it waits for room.
 * is_stuck: it is resuming and lacks room. */
static bool wants_resume(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_AWAY && program->wish == LL_RESIDENCY_WISH_NONE &&
	       (program->wants || program->short_bytes);
}

static bool is_short(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_HERE && program->short_bytes > 0;
}

/* The program goes on by itself as soon as the card has room. */
static bool is_stuck(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_RESUMING && program->lacks_room && !program->is_silent;
}

/* The room that the program needs, without the margin. A program that was evicted while an allocation of it waited
 * needs room for its memory and for the allocation. */
static uint64_t least_bytes(const struct ll_residency_program *program)
{
	if (is_stuck(program))
		return program->left_bytes;
	return (is_short(program) ? 0 : program->bytes) + program->short_bytes;
}

static uint64_t move_ns(const struct ll_residency_program *program)
{
	return program->moved_ns ? program->moved_ns : ll_residency_move_ns(program->bytes);
}

/* How long the program stays on the card before it is evicted for the waiting one. */
static uint64_t turn_between(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	return ll_residency_turn_ns(move_ns(program), is_short(waiting) ? 0 : move_ns(waiting));
}

/* The order of service: whether a is served before b. */
static bool goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->is_within != b->is_within)
		return a->is_within;
	return is_stuck(a) != is_stuck(b) ? is_stuck(a) : a->want_since_ns < b->want_since_ns;
}

/* ---- evictions ---- */

/* Memory of programs whose eviction has begun. */
static uint64_t going_bytes(const struct card *card)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		bool is_going = program->state == LL_RESIDENCY_EVICTING || program->state == LL_RESIDENCY_STAYING;
		if (is_going && !program->is_silent)
			bytes += program->left_bytes;
	}
	return bytes;
}

/* Memory of programs that were requested to evict, and may still refuse. */
static uint64_t asked_bytes(const struct card *card)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		bool is_asked = program->state == LL_RESIDENCY_PREPARING || program->state == LL_RESIDENCY_STOPPING;
		if (is_asked && !program->is_silent)
			bytes += program->bytes;
	}
	return bytes;
}

/* Memory that resuming programs still need, and memory that was granted. A resuming program that lacks room is not
 * counted: it waits in the order of service. */
static uint64_t promised_bytes(const struct card *card)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		bytes += program->granted_bytes;
		if (program->state == LL_RESIDENCY_RESUMING && !program->is_silent && !program->lacks_room)
			bytes += program->left_bytes;
	}
	return bytes;
}

/* Whether the program may be evicted for the waiting one: now, or when it is back on the card. */
static bool may_be_evicted_for(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	bool is_here = program->state == LL_RESIDENCY_HERE || program->state == LL_RESIDENCY_SUSPENDED ||
		       (program->state == LL_RESIDENCY_RESUMING && !program->is_silent);
	bool is_kin = program == waiting || (program->job && program->job == waiting->job);
	return is_here && !is_kin && !program->is_gathering && program->bytes > 0 && !program->is_within &&
	       program->priority >= waiting->priority;
}

/* Whether the program is resuming, lacks room, and comes after the waiting one in the order of service. Then its memory
 * that is back on the card can be freed at once. */
static bool can_free_room(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	return is_stuck(program) && !program->is_torn && program->came_bytes > 0 && goes_before(waiting, program);
}

/* When the program may be evicted for the waiting one. The turn of a resuming program has not begun yet. */
static uint64_t evictable_at_ns(const struct card *card, const struct ll_residency_program *program,
				const struct ll_residency_program *waiting)
{
	uint64_t turn_ns = turn_between(program, waiting);
	if (can_free_room(program, waiting))
		return card->now_ns;
	if (program->state == LL_RESIDENCY_RESUMING)
		return card->now_ns + turn_ns;
	uint64_t at_ns = program->here_since_ns + turn_ns;
	uint64_t idle_ns = program->idle_since_ns;
	if (program->state == LL_RESIDENCY_SUSPENDED)
		at_ns = 0;
	else if (idle_ns && idle_ns < program->here_since_ns) /* it was resumed in order to work */
		idle_ns = program->here_since_ns;
	if (idle_ns && idle_ns + LL_RESIDENCY_IDLE_NS < at_ns)
		at_ns = idle_ns + LL_RESIDENCY_IDLE_NS;
	if (program->priority > waiting->priority || waiting->is_within)
		at_ns = 0;
	return at_ns > program->retry_ns ? at_ns : program->retry_ns;
}

/* Returns the index of the program that is evicted first for the waiting one, and when. count: none. The program that
 * may be evicted soonest. A program that waits for room itself is not evicted for one that is behind it in the order of
 * service: they would evict each other in turn, and neither would ever get its room. */
static size_t first_to_evict(const struct card *card, const struct ll_residency_program *waiting, uint64_t *ret_at_ns)
{
	size_t found = card->count;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		bool is_in_front = is_short(program) && goes_before(program, waiting);
		bool is_resuming = program->state == LL_RESIDENCY_RESUMING && !can_free_room(program, waiting);
		if (!may_be_evicted_for(program, waiting) || is_resuming || is_in_front)
			continue;
		uint64_t at_ns = evictable_at_ns(card, program, waiting);
		if (found < card->count && at_ns >= *ret_at_ns)
			continue;
		found = i;
		*ret_at_ns = at_ns;
	}
	return found;
}

/* Memory of the program on the card: now, or when it is back. */
static uint64_t card_bytes(const struct ll_residency_program *program)
{
	return program->bytes - (is_stuck(program) && program->left_bytes < program->bytes ? program->left_bytes : 0);
}

static uint64_t movable_bytes(const struct card *card, const struct ll_residency_program *waiting)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->count; i++) {
		if (may_be_evicted_for(&card->programs[i], waiting))
			bytes += card_bytes(&card->programs[i]);
	}
	return bytes;
}

static struct room find_room(const struct card *card)
{
	uint64_t promised = promised_bytes(card), sure = card->free_bytes + going_bytes(card);
	uint64_t soon = sure + asked_bytes(card);
	return (struct room){.now_bytes = card->free_bytes > promised ? card->free_bytes - promised : 0,
			     .sure_bytes = sure > promised ? sure - promised : 0,
			     .soon_bytes = soon > promised ? soon - promised : 0};
}

/* Sets room. */
static void init_card(struct card *card)
{
	card->room = find_room(card);
}

/* The room that the waiting program needs: with the margin, if evictions can make so much room. */
static uint64_t needed_bytes(const struct card *card, const struct ll_residency_program *waiting)
{
	uint64_t least = least_bytes(waiting), most = find_room(card).soon_bytes + movable_bytes(card, waiting);
	if (is_stuck(waiting) || most <= least)
		return least;
	return most - least < LL_RESIDENCY_MARGIN_BYTES ? most : least + LL_RESIDENCY_MARGIN_BYTES;
}

/* The order among resuming programs: a program whose eviction failed comes first. */
static bool returns_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	return a->is_torn != b->is_torn ? a->is_torn : goes_before(a, b);
}

/* Returns the index of the resuming program that shall free its memory on the card again, because other resuming
 * programs lack that room. count: none. */
static size_t who_stays(const struct card *card)
{
	uint64_t lacked_bytes = 0;
	size_t first = card->count, last = card->count;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		if (program->state == LL_RESIDENCY_RESUMING && !is_stuck(program) && program->is_torn)
			lacked_bytes += program->is_silent ? 0 : program->left_bytes;
		if (!is_stuck(program))
			continue;
		if (first == card->count || returns_before(program, &card->programs[first]))
			first = i;
		if (program->came_bytes > 0 && (last == card->count || !returns_before(program, &card->programs[last])))
			last = i;
	}
	if (last < card->count && first != last)
		lacked_bytes += card->programs[first].left_bytes;
	return lacked_bytes > card->free_bytes + going_bytes(card) ? last : card->count;
}

bool ll_residency_may_go_on(const struct ll_residency_program *programs, size_t count, size_t who, uint64_t free_bytes)
{
	uint64_t front_bytes = 0;
	bool is_first = true;
	for (size_t i = 0; i < count; i++) {
		bool is_in_front = i < who ? !returns_before(&programs[who], &programs[i])
					   : returns_before(&programs[i], &programs[who]);
		if (i == who || programs[i].card != programs[who].card || !is_stuck(&programs[i]) || !is_in_front)
			continue;
		is_first = false;
		front_bytes += programs[i].left_bytes;
	}
	return is_first || free_bytes > front_bytes;
}

/* ---- times ---- */

/* Returns when programs with that much memory together may be evicted for the waiting one. UINT64_MAX: unknown, because
 * a program is needed whose last eviction failed. */
static uint64_t have_left_ns(const struct card *card, const struct ll_residency_program *waiting, uint64_t bytes)
{
	uint64_t last_ns = 0, left_bytes = 0;
	for (bool is_first = true; left_bytes < bytes; is_first = false) {
		uint64_t next_ns = UINT64_MAX, next_bytes = 0;
		for (size_t i = 0; i < card->count; i++) {
			const struct ll_residency_program *program = &card->programs[i];
			if (!may_be_evicted_for(program, waiting) || program->retry_ns > card->now_ns)
				continue;
			uint64_t at_ns = evictable_at_ns(card, program, waiting);
			if (at_ns > next_ns || (!is_first && at_ns <= last_ns))
				continue;
			next_bytes = (at_ns < next_ns ? 0 : next_bytes) + card_bytes(program);
			next_ns = at_ns;
		}
		last_ns = next_ns;
		left_bytes += next_bytes;
		if (!next_bytes)
			return UINT64_MAX;
	}
	return last_ns;
}

static uint64_t have_room_ns(const struct card *card, const struct ll_residency_program *waiting, uint64_t need_bytes)
{
	uint64_t soon_bytes = card->room.soon_bytes;
	return have_left_ns(card, waiting, need_bytes > soon_bytes ? need_bytes - soon_bytes : 0);
}

/* When enough programs may be evicted for it. UINT64_MAX: it is not known, because a program is needed whose last
 * eviction failed. */
static uint64_t card_served_ns(const struct card *card, const struct ll_residency_program *waiting)
{
	return have_room_ns(card, waiting, needed_bytes(card, waiting));
}

/* Whether card->front, which can be served at served_ns, would wait longer if the program behind got room now. */
static bool delays_front_on(const struct card *card, const struct ll_residency_program *behind, uint64_t served_ns)
{
	const struct ll_residency_program *front = card->front;
	uint64_t need_bytes = needed_bytes(card, front) + needed_bytes(card, behind);
	if (have_room_ns(card, front, need_bytes) <= served_ns)
		return false;
	if (behind->is_within || behind->priority < front->priority)
		return true;
	if (is_short(behind))
		return evictable_at_ns(card, behind, front) > served_ns;
	return card->now_ns + move_ns(behind) + turn_between(behind, front) > served_ns;
}

static bool is_any(const struct card *card, enum ll_residency state)
{
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].state == state)
			return true;
	}
	return false;
}

static bool is_any_granted(const struct card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].granted_bytes)
			return true;
	}
	return false;
}

/* Whether the waiting program can use room while the memory of others is still being copied out. An allocation cannot
 * while a program resumes: both would take the same room. */
static bool begins_early(const struct card *card, const struct ll_residency_program *waiting)
{
	return wants_resume(waiting) ||
	       (is_short(waiting) && waiting->waits_by_chunk && !is_any(card, LL_RESIDENCY_RESUMING));
}

/* Whether the card has room for the program: now, or, if it can begin early, when running evictions have ended. */
static bool has_room_on(const struct card *card, const struct ll_residency_program *waiting)
{
	uint64_t has_bytes = begins_early(card, waiting) ? card->room.sure_bytes : card->room.now_bytes;
	return needed_bytes(card, waiting) <= has_bytes;
}

/* Whether the card has room for it when all requested evictions have ended. */
static bool has_room_soon_on(const struct card *card, const struct ll_residency_program *waiting)
{
	return needed_bytes(card, waiting) <= card->room.soon_bytes;
}

/* Whether the card has room for it when all programs are evicted that may be. */
static bool can_serve_on(const struct card *card, const struct ll_residency_program *waiting)
{
	return needed_bytes(card, waiting) <= card->room.soon_bytes + movable_bytes(card, waiting);
}

/* Whether its allocation cannot get room, whichever programs are evicted. The result is false while a program resumes
 * or has an unused grant, because that memory may be evicted again. For the same reason, room that is kept for programs
 * in front counts as available. */
static bool is_hopeless(const struct card *card, const struct ll_residency_program *waiting)
{
	struct card whole = *card;
	init_card(&whole);
	return waiting->short_bytes && !waiting->is_within && !waiting->is_unsure &&
	       !is_any(card, LL_RESIDENCY_RESUMING) && !is_any(card, LL_RESIDENCY_STAYING) && !is_any_granted(card) &&
	       !can_serve_on(&whole, waiting);
}

/* Keeps room of the card for the waiting program. */
static void keep_room_on(struct card *card, const struct ll_residency_program *waiting)
{
	struct room *room = &card->room;
	uint64_t bytes = needed_bytes(card, waiting);
	if (bytes > room->soon_bytes)
		return;
	room->now_bytes -= bytes < room->now_bytes ? bytes : room->now_bytes;
	room->sure_bytes -= bytes < room->sure_bytes ? bytes : room->sure_bytes;
	room->soon_bytes -= bytes;
}

/* ---- all cards ---- */

static struct ll_residency_decision decide_step(enum ll_residency_step step, size_t who)
{
	return (struct ll_residency_decision){.step = step, .who = who, .again_ns = UINT64_MAX};
}

static struct ll_residency_decision wait_until(uint64_t again_ns)
{
	return (struct ll_residency_decision){.step = LL_RESIDENCY_WAIT, .again_ns = again_ns};
}

/* ---- by hand ---- */

static enum ll_residency_step step_by_hand(const struct ll_residency_program *program, uint64_t now_ns)
{
	bool is_here = program->state == LL_RESIDENCY_HERE && now_ns >= program->retry_ns;
	if (program->is_gathering)
		return LL_RESIDENCY_WAIT;
	if (program->wish == LL_RESIDENCY_WISH_EVICT && (is_here || program->state == LL_RESIDENCY_SUSPENDED))
		return LL_RESIDENCY_EVICT;
	if (program->wish == LL_RESIDENCY_WISH_EVICT && program->state == LL_RESIDENCY_RESUMING && !program->is_torn)
		return LL_RESIDENCY_STAY;
	if (program->wish == LL_RESIDENCY_WISH_SUSPEND && is_here)
		return LL_RESIDENCY_SUSPEND;
	if (program->wish == LL_RESIDENCY_WISH_NONE && program->state == LL_RESIDENCY_SUSPENDED)
		return LL_RESIDENCY_RESUME;
	return LL_RESIDENCY_WAIT;
}

struct ll_residency_decision ll_residency_decide_by_hand(const struct ll_residency_program *programs, size_t count,
							 uint64_t now_ns)
{
	uint64_t again_ns = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		enum ll_residency_step step = step_by_hand(&programs[i], now_ns);
		if (step != LL_RESIDENCY_WAIT)
			return decide_step(step, i);
		if (programs[i].retry_ns > now_ns && programs[i].retry_ns < again_ns)
			again_ns = programs[i].retry_ns;
	}
	return wait_until(again_ns);
}

/* ---- the order of service ---- */

struct scene {
	const struct ll_residency_program *programs;
	size_t count;
	struct card cards[LL_RESIDENCY_CARDS];
	unsigned card_count;
};

/* The programs of a unit that wait, or a single waiting program. */
struct waiting {
	size_t who[LL_RESIDENCY_CARDS];
	size_t count;
};

static void list_cards(struct scene *scene, const uint64_t *free_bytes, uint64_t now_ns)
{
	size_t at = 0;
	for (scene->card_count = 0; at < scene->count && scene->card_count < LL_RESIDENCY_CARDS; scene->card_count++) {
		size_t first = at;
		unsigned number = scene->programs[at].card;
		while (at < scene->count && scene->programs[at].card == number)
			at++;
		struct card *card = &scene->cards[scene->card_count];
		*card = (struct card){.programs = &scene->programs[first],
				      .count = at - first,
				      .free_bytes = free_bytes[number],
				      .now_ns = now_ns};
		init_card(card);
	}
	scene->count = at;
}

static struct card *card_of(struct scene *scene, const struct ll_residency_program *program)
{
	struct card *card = scene->cards;
	while (card->programs[0].card != program->card)
		card++;
	return card;
}

static size_t number_of(const struct scene *scene, const struct card *card, size_t at)
{
	return (size_t)(&card->programs[at] - scene->programs);
}

static bool is_waiting(const struct ll_residency_program *program)
{
	return wants_resume(program) || is_short(program) || is_stuck(program);
}

/* Returns the next waiting program in the order of service after `after`; count: there is none. If after is count, it
 * returns the first. */
static size_t next_waiting(const struct scene *scene, size_t after)
{
	const struct ll_residency_program *programs = scene->programs;
	size_t found = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		if (!is_waiting(&programs[i]))
			continue;
		bool is_later = after == scene->count || goes_before(&programs[after], &programs[i]) ||
				(!goes_before(&programs[i], &programs[after]) && i > after);
		if (i != after && is_later && (found == scene->count || goes_before(&programs[i], &programs[found])))
			found = i;
	}
	return found;
}

/* Lists a waiting program. A unit that wants to resume waits on all cards on which it has memory. Returns false if the
 * unit was already listed by another of its programs. */
static bool list_waiting(const struct scene *scene, size_t who, struct waiting *ret_waiting)
{
	const struct ll_residency_program *programs = scene->programs;
	*ret_waiting = (struct waiting){.who = {who}, .count = 1};
	if (!programs[who].unit || !wants_resume(&programs[who]))
		return true;
	size_t count = 0;
	for (size_t i = 0; i < scene->count; i++) {
		if (programs[i].unit != programs[who].unit)
			continue;
		if (i < who)
			return false;
		if (least_bytes(&programs[i]) && count < LL_RESIDENCY_CARDS)
			ret_waiting->who[count++] = i;
	}
	ret_waiting->count = count ? count : 1;
	return true;
}

static bool can_be_served(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		if (!can_serve_on(card_of(scene, program), program))
			return false;
	}
	return true;
}

/* Returns when the waiting programs can be served on all of their cards. */
static uint64_t served_ns(struct scene *scene, const struct waiting *waiting)
{
	uint64_t latest_ns = 0;
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		uint64_t card_ns = card_served_ns(card_of(scene, program), program);
		latest_ns = card_ns > latest_ns ? card_ns : latest_ns;
	}
	return latest_ns;
}

static uint64_t front_served_ns(struct scene *scene, const struct ll_residency_program *front)
{
	struct waiting waiting;
	list_waiting(scene, (size_t)(front - scene->programs), &waiting);
	return served_ns(scene, &waiting);
}

/* Whether a program in front would wait longer on any of the cards. */
static bool delays_front(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		const struct card *card = card_of(scene, program);
		if (card->front && delays_front_on(card, program, front_served_ns(scene, card->front)))
			return true;
	}
	return false;
}

static struct ll_residency_decision give_room(const struct scene *scene, size_t who)
{
	const struct ll_residency_program *waiting = &scene->programs[who];
	if (is_stuck(waiting))
		return wait_until(UINT64_MAX);
	return decide_step(is_short(waiting) ? LL_RESIDENCY_GRANT : LL_RESIDENCY_RESUME, who);
}

static struct ll_residency_decision decide_evict(const struct scene *scene, size_t who)
{
	bool is_resuming = scene->programs[who].state == LL_RESIDENCY_RESUMING;
	return decide_step(is_resuming ? LL_RESIDENCY_STAY : LL_RESIDENCY_EVICT, who);
}

/* Evicts the first program on a card that lacks room. */
static struct ll_residency_decision make_room(struct scene *scene, const struct waiting *waiting, uint64_t now_ns)
{
	uint64_t again_ns = UINT64_MAX;
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		const struct card *card = card_of(scene, program);
		uint64_t at_ns = UINT64_MAX;
		if (has_room_soon_on(card, program))
			continue;
		size_t leaving = first_to_evict(card, program, &at_ns);
		if (leaving < card->count && at_ns <= now_ns)
			return decide_evict(scene, number_of(scene, card, leaving));
		again_ns = at_ns < again_ns ? at_ns : again_ns;
	}
	return wait_until(again_ns);
}

/* No program is evicted before there can be room on all cards of the waiting programs. */
static struct ll_residency_decision serve_waiting(struct scene *scene, const struct waiting *waiting, uint64_t now_ns)
{
	bool has_room = true, has_soon = true;
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		const struct card *card = card_of(scene, program);
		has_room &= has_room_on(card, program);
		has_soon &= has_room_on(card, program) || has_room_soon_on(card, program);
		if (!can_serve_on(card, program) && is_hopeless(card, program))
			return decide_step(LL_RESIDENCY_REFUSE, waiting->who[i]);
	}
	if (has_room)
		return give_room(scene, waiting->who[0]);
	if (has_soon || !can_be_served(scene, waiting))
		return wait_until(UINT64_MAX);
	uint64_t enough_ns = served_ns(scene, waiting);
	return enough_ns > now_ns ? wait_until(enough_ns) : make_room(scene, waiting, now_ns);
}

/* Whether a program in front waits for evictions that are not requested yet. */
static bool is_behind(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct card *card = card_of(scene, &scene->programs[waiting->who[i]]);
		if (card->front && !has_room_soon_on(card, card->front))
			return true;
	}
	return false;
}

/* Keeps room for the waiting programs: programs behind them do not get it. */
static void keep_room(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		struct card *card = card_of(scene, program);
		if (card->front)
			keep_room_on(card, program);
		else
			card->front = program;
	}
}

/* The decision about one waiting program. */
static struct ll_residency_decision decide_about(struct scene *scene, size_t who, uint64_t now_ns)
{
	struct waiting waiting;
	if (!list_waiting(scene, who, &waiting))
		return wait_until(UINT64_MAX);
	bool can_be = can_be_served(scene, &waiting);
	if (can_be && delays_front(scene, &waiting)) {
		if (is_stuck(&scene->programs[who])) /* even so, it uses memory that becomes free */
			keep_room_on(card_of(scene, &scene->programs[who]), &scene->programs[who]);
		return wait_until(UINT64_MAX);
	}
	struct ll_residency_decision decision = serve_waiting(scene, &waiting, now_ns);
	bool is_somebody_to_go = decision.step == LL_RESIDENCY_EVICT || decision.step == LL_RESIDENCY_STAY;
	bool is_too_early = is_somebody_to_go && is_behind(scene, &waiting);
	if (can_be && (decision.step == LL_RESIDENCY_WAIT || is_too_early))
		keep_room(scene, &waiting);
	if (is_too_early) /* an eviction now would begin new turns, and the program in front would wait longer */
		return wait_until(UINT64_MAX);
	return decision;
}

struct ll_residency_decision ll_residency_decide(const struct ll_residency_program *programs, size_t count,
						 const uint64_t *free_bytes, uint64_t now_ns)
{
	struct scene scene = {.programs = programs, .count = count};
	struct ll_residency_decision by_hand = ll_residency_decide_by_hand(programs, count, now_ns);
	uint64_t again_ns = by_hand.again_ns;
	if (by_hand.step != LL_RESIDENCY_WAIT)
		return by_hand;
	list_cards(&scene, free_bytes, now_ns);
	for (unsigned i = 0; i < scene.card_count; i++) {
		size_t staying = who_stays(&scene.cards[i]);
		if (staying < scene.cards[i].count)
			return decide_step(LL_RESIDENCY_STAY, number_of(&scene, &scene.cards[i], staying));
	}
	for (size_t who = next_waiting(&scene, scene.count); who < scene.count; who = next_waiting(&scene, who)) {
		struct ll_residency_decision decision = decide_about(&scene, who, now_ns);
		if (decision.step != LL_RESIDENCY_WAIT)
			return decision;
		again_ns = decision.again_ns < again_ns ? decision.again_ns : again_ns;
	}
	return wait_until(again_ns);
}
