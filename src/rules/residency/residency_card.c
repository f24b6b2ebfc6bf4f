#include "rules/residency/residency_card.h"

/* ---- waiting programs ---- */

bool ll_residency_wants_resume(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_AWAY && program->wish == LL_RESIDENCY_WISH_NONE &&
	       (program->wants || program->short_bytes);
}

bool ll_residency_is_short(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_HERE && program->short_bytes > 0;
}

/* The program goes on by itself as soon as the card has room. */
bool ll_residency_is_stuck(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_RESUMING && program->lacks_room && !program->is_silent;
}

/* A program that was evicted while an allocation of it waited needs room for its memory and for the allocation. */
uint64_t ll_residency_least_bytes(const struct ll_residency_program *program)
{
	if (ll_residency_is_stuck(program))
		return program->left_bytes;
	return (ll_residency_is_short(program) ? 0 : program->bytes) + program->short_bytes;
}

static uint64_t move_ns(const struct ll_residency_program *program)
{
	return program->moved_ns ? program->moved_ns : ll_residency_move_ns(program->bytes);
}

/* How long the program stays on the card before it is evicted for the waiting one. */
static uint64_t turn_between(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	return ll_residency_turn_ns(move_ns(program), ll_residency_is_short(waiting) ? 0 : move_ns(waiting));
}

bool ll_residency_goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->is_within != b->is_within)
		return a->is_within;
	return ll_residency_is_stuck(a) != ll_residency_is_stuck(b) ? ll_residency_is_stuck(a)
								    : a->want_since_ns < b->want_since_ns;
}

/* ---- evictions ---- */

/* Memory of programs whose eviction has begun. */
static uint64_t going_bytes(const struct ll_residency_card *card)
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
static uint64_t asked_bytes(const struct ll_residency_card *card)
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
static uint64_t promised_bytes(const struct ll_residency_card *card)
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
	return ll_residency_is_stuck(program) && !program->is_torn && program->came_bytes > 0 &&
	       ll_residency_goes_before(waiting, program);
}

/* When the program may be evicted for the waiting one. The turn of a resuming program has not begun yet. */
static uint64_t evictable_at_ns(const struct ll_residency_card *card, const struct ll_residency_program *program,
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

/* The program that may be evicted soonest. A program that waits for room itself is not evicted for one that is behind
 * it in the order of service: they would evict each other in turn, and neither would ever get its room. */
size_t ll_residency_card_first_to_evict(const struct ll_residency_card *card,
					const struct ll_residency_program *waiting, uint64_t *ret_at_ns)
{
	size_t found = card->count;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		bool is_in_front = ll_residency_is_short(program) && ll_residency_goes_before(program, waiting);
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
	return program->bytes -
	       (ll_residency_is_stuck(program) && program->left_bytes < program->bytes ? program->left_bytes : 0);
}

static uint64_t movable_bytes(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < card->count; i++) {
		if (may_be_evicted_for(&card->programs[i], waiting))
			bytes += card_bytes(&card->programs[i]);
	}
	return bytes;
}

static struct ll_residency_room find_room(const struct ll_residency_card *card)
{
	uint64_t promised = promised_bytes(card), sure = card->free_bytes + going_bytes(card);
	uint64_t soon = sure + asked_bytes(card);
	return (struct ll_residency_room){.now_bytes = card->free_bytes > promised ? card->free_bytes - promised : 0,
					  .sure_bytes = sure > promised ? sure - promised : 0,
					  .soon_bytes = soon > promised ? soon - promised : 0};
}

void ll_residency_card_init(struct ll_residency_card *card)
{
	card->room = find_room(card);
}

/* The room that the waiting program needs: with the margin, if evictions can make so much room. */
static uint64_t needed_bytes(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	uint64_t least = ll_residency_least_bytes(waiting),
		 most = find_room(card).soon_bytes + movable_bytes(card, waiting);
	if (ll_residency_is_stuck(waiting) || most <= least)
		return least;
	return most - least < LL_RESIDENCY_MARGIN_BYTES ? most : least + LL_RESIDENCY_MARGIN_BYTES;
}

/* The order among resuming programs: a program whose eviction failed comes first. */
static bool returns_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	return a->is_torn != b->is_torn ? a->is_torn : ll_residency_goes_before(a, b);
}

size_t ll_residency_card_who_stays(const struct ll_residency_card *card)
{
	uint64_t lacked_bytes = 0;
	size_t first = card->count, last = card->count;
	for (size_t i = 0; i < card->count; i++) {
		const struct ll_residency_program *program = &card->programs[i];
		if (program->state == LL_RESIDENCY_RESUMING && !ll_residency_is_stuck(program) && program->is_torn)
			lacked_bytes += program->is_silent ? 0 : program->left_bytes;
		if (!ll_residency_is_stuck(program))
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
		if (i == who || programs[i].card != programs[who].card || !ll_residency_is_stuck(&programs[i]) ||
		    !is_in_front)
			continue;
		is_first = false;
		front_bytes += programs[i].left_bytes;
	}
	return is_first || free_bytes > front_bytes;
}

/* ---- times ---- */

/* Returns when programs with that much memory together may be evicted for the waiting one. UINT64_MAX: unknown, because
 * a program is needed whose last eviction failed. */
static uint64_t have_left_ns(const struct ll_residency_card *card, const struct ll_residency_program *waiting,
			     uint64_t bytes)
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

static uint64_t have_room_ns(const struct ll_residency_card *card, const struct ll_residency_program *waiting,
			     uint64_t need_bytes)
{
	uint64_t soon_bytes = card->room.soon_bytes;
	return have_left_ns(card, waiting, need_bytes > soon_bytes ? need_bytes - soon_bytes : 0);
}

uint64_t ll_residency_card_served_ns(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	return have_room_ns(card, waiting, needed_bytes(card, waiting));
}

bool ll_residency_card_delays_front(const struct ll_residency_card *card, const struct ll_residency_program *behind,
				    uint64_t served_ns)
{
	const struct ll_residency_program *front = card->front;
	uint64_t need_bytes = needed_bytes(card, front) + needed_bytes(card, behind);
	if (have_room_ns(card, front, need_bytes) <= served_ns)
		return false;
	if (behind->is_within || behind->priority < front->priority)
		return true;
	if (ll_residency_is_short(behind))
		return evictable_at_ns(card, behind, front) > served_ns;
	return card->now_ns + move_ns(behind) + turn_between(behind, front) > served_ns;
}

static bool is_any(const struct ll_residency_card *card, enum ll_residency state)
{
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].state == state)
			return true;
	}
	return false;
}

static bool is_any_granted(const struct ll_residency_card *card)
{
	for (size_t i = 0; i < card->count; i++) {
		if (card->programs[i].granted_bytes)
			return true;
	}
	return false;
}

/* Whether the waiting program can use room while the memory of others is still being copied out. An allocation cannot
 * while a program resumes: both would take the same room. */
static bool begins_early(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	return ll_residency_wants_resume(waiting) ||
	       (ll_residency_is_short(waiting) && waiting->waits_by_chunk && !is_any(card, LL_RESIDENCY_RESUMING));
}

bool ll_residency_card_has_room(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	uint64_t has_bytes = begins_early(card, waiting) ? card->room.sure_bytes : card->room.now_bytes;
	return needed_bytes(card, waiting) <= has_bytes;
}

bool ll_residency_card_has_room_soon(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	return needed_bytes(card, waiting) <= card->room.soon_bytes;
}

bool ll_residency_card_can_serve(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	return needed_bytes(card, waiting) <= card->room.soon_bytes + movable_bytes(card, waiting);
}

/* The result is false while a program resumes or has an unused grant, because that memory may be evicted again. For the
 * same reason, room that is kept for programs in front counts as available. */
bool ll_residency_card_is_hopeless(const struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	struct ll_residency_card whole = *card;
	ll_residency_card_init(&whole);
	return waiting->short_bytes && !waiting->is_within && !waiting->is_unsure &&
	       !is_any(card, LL_RESIDENCY_RESUMING) && !is_any(card, LL_RESIDENCY_STAYING) && !is_any_granted(card) &&
	       !ll_residency_card_can_serve(&whole, waiting);
}

void ll_residency_card_keep_room(struct ll_residency_card *card, const struct ll_residency_program *waiting)
{
	struct ll_residency_room *room = &card->room;
	uint64_t bytes = needed_bytes(card, waiting);
	if (bytes > room->soon_bytes)
		return;
	room->now_bytes -= bytes < room->now_bytes ? bytes : room->now_bytes;
	room->sure_bytes -= bytes < room->sure_bytes ? bytes : room->sure_bytes;
	room->soon_bytes -= bytes;
}
