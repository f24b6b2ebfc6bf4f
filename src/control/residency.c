#include "control/residency.h"

struct scene {
	const struct ll_residency_program *programs;
	size_t count;
	uint64_t free_bytes, now_ns;
};

uint64_t ll_residency_move_ns(uint64_t bytes)
{
	return bytes / 1000 * LL_RESIDENCY_NS_PER_KB;
}

uint64_t ll_residency_turn_ns(uint64_t leave_ns, uint64_t return_ns)
{
	uint64_t moves_ns = leave_ns + return_ns;
	if (moves_ns >= LL_RESIDENCY_TURN_MAX_NS / LL_RESIDENCY_TURN_MOVES)
		return LL_RESIDENCY_TURN_MAX_NS;
	uint64_t turn_ns = LL_RESIDENCY_TURN_MOVES * moves_ns;
	return turn_ns > LL_RESIDENCY_TURN_NS ? turn_ns : LL_RESIDENCY_TURN_NS;
}

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
	if (program->wish == LL_RESIDENCY_EVICT && (is_here || program->state == LL_RESIDENCY_STOPPED))
		return LL_RESIDENCY_LEAVE;
	if (program->wish == LL_RESIDENCY_EVICT && program->state == LL_RESIDENCY_RETURNING && !program->is_torn)
		return LL_RESIDENCY_STAY;
	if (program->wish == LL_RESIDENCY_STOP && is_here)
		return LL_RESIDENCY_HALT;
	if (program->wish == LL_RESIDENCY_FREE && program->state == LL_RESIDENCY_STOPPED)
		return LL_RESIDENCY_RETURN;
	return LL_RESIDENCY_WAIT;
}

/* ---- who waits ---- */

static bool is_returner(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_AWAY && program->wish == LL_RESIDENCY_FREE &&
	       (program->wants || program->short_bytes);
}

static bool is_short(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_HERE && program->short_bytes > 0;
}

/* It goes on by itself as soon as there is room. */
static bool is_stuck(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_RETURNING && program->lacks_room && !program->is_silent;
}

/* One that left while an allocation of it waited comes back for both. */
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

/* How long the program stays before it leaves for the one that waits. */
static uint64_t turn_between(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	return ll_residency_turn_ns(move_ns(program), is_short(waiting) ? 0 : move_ns(waiting));
}

static bool goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	if (a->priority != b->priority)
		return a->priority < b->priority;
	if (a->is_within != b->is_within)
		return a->is_within;
	return is_stuck(a) != is_stuck(b) ? is_stuck(a) : a->want_since_ns < b->want_since_ns;
}

/* The first in the order of service that comes after `after`; count: there is none. after count: the first of all. */
static size_t next_waiting(const struct scene *scene, size_t after)
{
	size_t found = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		if (!is_returner(program) && !is_short(program) && !is_stuck(program))
			continue;
		bool is_later = after == scene->count || goes_before(&scene->programs[after], program) ||
				(!goes_before(program, &scene->programs[after]) && i > after);
		if (i != after && is_later && (found == scene->count || goes_before(program, &scene->programs[found])))
			found = i;
	}
	return found;
}

/* ---- who leaves ---- */

/* Memory of programs that have agreed to leave. */
static uint64_t going_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		bool is_going = program->state == LL_RESIDENCY_LEAVING || program->state == LL_RESIDENCY_STAYING;
		if (is_going && !program->is_silent)
			bytes += program->left_bytes;
	}
	return bytes;
}

/* Memory of programs that were asked to leave, and may refuse. */
static uint64_t asked_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		bool is_asked = program->state == LL_RESIDENCY_PREPARING || program->state == LL_RESIDENCY_STOPPING;
		if (is_asked && !program->is_silent)
			bytes += program->bytes;
	}
	return bytes;
}

/* What returning programs do not have yet, and what was granted. One that lacks room waits for it as others do. */
static uint64_t promised_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		bytes += program->granted_bytes;
		if (program->state == LL_RESIDENCY_RETURNING && !program->is_silent && !program->lacks_room)
			bytes += program->left_bytes;
	}
	return bytes;
}

/* Now, or when it is back on the card. */
static bool may_leave_for(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	bool is_here = program->state == LL_RESIDENCY_HERE || program->state == LL_RESIDENCY_STOPPED ||
		       (program->state == LL_RESIDENCY_RETURNING && !program->is_silent);
	return program != waiting && is_here && program->bytes > 0 && !program->is_within &&
	       program->priority >= waiting->priority;
}

/* It returns, lacks room, and comes after the one that waits: what it has had back can be freed at once. */
static bool can_make_way(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	return is_stuck(program) && !program->is_torn && program->came_bytes > 0 && goes_before(waiting, program);
}

/* When the program may leave for the one that waits. The turn of one that returns begins later than now. */
static uint64_t leave_ns(const struct scene *scene, const struct ll_residency_program *program,
			 const struct ll_residency_program *waiting)
{
	uint64_t turn_ns = turn_between(program, waiting);
	if (can_make_way(program, waiting))
		return scene->now_ns;
	if (program->state == LL_RESIDENCY_RETURNING)
		return scene->now_ns + turn_ns;
	uint64_t at_ns = program->here_since_ns + turn_ns;
	uint64_t idle_ns = program->idle_since_ns;
	if (program->state == LL_RESIDENCY_STOPPED)
		at_ns = 0;
	else if (idle_ns && idle_ns < program->here_since_ns) /* it came back to work */
		idle_ns = program->here_since_ns;
	if (idle_ns && idle_ns + LL_RESIDENCY_IDLE_NS < at_ns)
		at_ns = idle_ns + LL_RESIDENCY_IDLE_NS;
	if (program->priority > waiting->priority || waiting->is_within)
		at_ns = 0;
	return at_ns > program->retry_ns ? at_ns : program->retry_ns;
}

/* The program that leaves first: that may soonest. One that waits for room itself does not leave for one behind it:
 * they would take the card from each other, and neither would ever get its room. count: nobody may now. */
static size_t find_first_to_leave(const struct scene *scene, const struct ll_residency_program *waiting,
				  uint64_t *ret_at_ns)
{
	size_t found = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		bool is_in_front = is_short(program) && goes_before(program, waiting);
		bool is_returning = program->state == LL_RESIDENCY_RETURNING && !can_make_way(program, waiting);
		if (!may_leave_for(program, waiting) || is_returning || is_in_front)
			continue;
		uint64_t at_ns = leave_ns(scene, program, waiting);
		if (found < scene->count && at_ns >= *ret_at_ns)
			continue;
		found = i;
		*ret_at_ns = at_ns;
	}
	return found;
}

/* On the card, now or when it is back. */
static uint64_t card_bytes(const struct ll_residency_program *program)
{
	return program->bytes - (is_stuck(program) && program->left_bytes < program->bytes ? program->left_bytes : 0);
}

static uint64_t movable_bytes(const struct scene *scene, const struct ll_residency_program *waiting)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		if (may_leave_for(&scene->programs[i], waiting))
			bytes += card_bytes(&scene->programs[i]);
	}
	return bytes;
}

/* What the card has for one that waits. */
struct room {
	uint64_t now_bytes;
	uint64_t sure_bytes; /* when all that is going has gone */
	uint64_t soon_bytes; /* when also those have left that were asked to */
};

static struct room find_room(const struct scene *scene)
{
	uint64_t promised = promised_bytes(scene), sure = scene->free_bytes + going_bytes(scene);
	uint64_t soon = sure + asked_bytes(scene);
	return (struct room){.now_bytes = scene->free_bytes > promised ? scene->free_bytes - promised : 0,
			     .sure_bytes = sure > promised ? sure - promised : 0,
			     .soon_bytes = soon > promised ? soon - promised : 0};
}

/* With the margin, as far as anybody can make it. */
static uint64_t needed_bytes(const struct scene *scene, const struct ll_residency_program *waiting)
{
	uint64_t least = least_bytes(waiting), most = find_room(scene).soon_bytes + movable_bytes(scene, waiting);
	if (is_stuck(waiting) || most <= least)
		return least;
	return most - least < LL_RESIDENCY_MARGIN_BYTES ? most : least + LL_RESIDENCY_MARGIN_BYTES;
}

/* Of programs that return: one that could not leave after all comes first. */
static bool returns_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	return a->is_torn != b->is_torn ? a->is_torn : goes_before(a, b);
}

/* The program that shall free what has come back, because others that return lack that room. count: none. */
static size_t find_who_stays_away(const struct scene *scene)
{
	uint64_t lacked_bytes = 0;
	size_t first = scene->count, last = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		if (program->state == LL_RESIDENCY_RETURNING && !is_stuck(program) && program->is_torn)
			lacked_bytes += program->is_silent ? 0 : program->left_bytes;
		if (!is_stuck(program))
			continue;
		if (first == scene->count || returns_before(program, &scene->programs[first]))
			first = i;
		if (program->came_bytes > 0 &&
		    (last == scene->count || !returns_before(program, &scene->programs[last])))
			last = i;
	}
	if (last < scene->count && first != last)
		lacked_bytes += scene->programs[first].left_bytes;
	return lacked_bytes > scene->free_bytes + going_bytes(scene) ? last : scene->count;
}

bool ll_residency_may_go_on(const struct ll_residency_program *programs, size_t count, size_t who, uint64_t free_bytes)
{
	uint64_t front_bytes = 0;
	bool is_first = true;
	for (size_t i = 0; i < count; i++) {
		bool is_in_front = i < who ? !returns_before(&programs[who], &programs[i])
					   : returns_before(&programs[i], &programs[who]);
		if (i == who || !is_stuck(&programs[i]) || !is_in_front)
			continue;
		is_first = false;
		front_bytes += programs[i].left_bytes;
	}
	return is_first || free_bytes > front_bytes;
}

/* ---- the order ---- */

/* When programs of so many bytes may have left for the one that waits. UINT64_MAX: it is not known, for it takes a
 * program that could not leave when it was asked. */
static uint64_t have_left_ns(const struct scene *scene, const struct ll_residency_program *waiting, uint64_t bytes)
{
	uint64_t last_ns = 0, left_bytes = 0;
	for (bool is_first = true; left_bytes < bytes; is_first = false) {
		uint64_t next_ns = UINT64_MAX, next_bytes = 0;
		for (size_t i = 0; i < scene->count; i++) {
			const struct ll_residency_program *program = &scene->programs[i];
			if (!may_leave_for(program, waiting) || program->retry_ns > scene->now_ns)
				continue;
			uint64_t at_ns = leave_ns(scene, program, waiting);
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

static uint64_t have_room_ns(const struct scene *scene, const struct ll_residency_program *waiting, uint64_t need_bytes,
			     const struct room *room)
{
	uint64_t bytes = need_bytes > room->soon_bytes ? need_bytes - room->soon_bytes : 0;
	return have_left_ns(scene, waiting, bytes);
}

/* Whether the one in front would wait longer if the one behind got room now. */
static bool delays_front(const struct scene *scene, const struct ll_residency_program *front,
			 const struct ll_residency_program *behind, const struct room *room)
{
	uint64_t need_bytes = needed_bytes(scene, front);
	uint64_t served_ns = have_room_ns(scene, front, need_bytes, room);
	if (have_room_ns(scene, front, need_bytes + needed_bytes(scene, behind), room) <= served_ns)
		return false;
	if (behind->is_within || behind->priority < front->priority)
		return true;
	if (is_short(behind))
		return leave_ns(scene, behind, front) > served_ns;
	return scene->now_ns + move_ns(behind) + turn_between(behind, front) > served_ns;
}

static bool is_any(const struct scene *scene, enum ll_residency state)
{
	for (size_t i = 0; i < scene->count; i++) {
		if (scene->programs[i].state == state)
			return true;
	}
	return false;
}

static bool is_any_granted(const struct scene *scene)
{
	for (size_t i = 0; i < scene->count; i++) {
		if (scene->programs[i].granted_bytes)
			return true;
	}
	return false;
}

/* Whether it takes room as others' memory leaves. An allocation does not while a program returns: they would take the
 * room from each other. */
static bool begins_early(const struct scene *scene, const struct ll_residency_program *waiting)
{
	return is_returner(waiting) ||
	       (is_short(waiting) && waiting->takes_pieces && !is_any(scene, LL_RESIDENCY_RETURNING));
}

static bool can_be_served(const struct scene *scene, const struct ll_residency_program *waiting,
			  const struct room *room)
{
	return needed_bytes(scene, waiting) <= room->soon_bytes + movable_bytes(scene, waiting);
}

/* Whether it is sure that the allocation gets no room, whoever leaves. It is not while a program returns or takes what
 * was granted: what those get may leave again. The same holds for room that is kept for those in front. */
static bool is_hopeless(const struct scene *scene, const struct ll_residency_program *waiting)
{
	const struct room whole = find_room(scene);
	return waiting->short_bytes && !waiting->is_within && !is_any(scene, LL_RESIDENCY_RETURNING) &&
	       !is_any(scene, LL_RESIDENCY_STAYING) && !is_any_granted(scene) && !can_be_served(scene, waiting, &whole);
}

static struct ll_residency_decision give_room(const struct scene *scene, size_t who)
{
	const struct ll_residency_program *waiting = &scene->programs[who];
	if (is_stuck(waiting))
		return wait_until(UINT64_MAX);
	return decide_step(is_short(waiting) ? LL_RESIDENCY_GRANT : LL_RESIDENCY_RETURN, who);
}

static struct ll_residency_decision tell_to_leave(const struct scene *scene, size_t who)
{
	bool is_returning = scene->programs[who].state == LL_RESIDENCY_RETURNING;
	return decide_step(is_returning ? LL_RESIDENCY_STAY : LL_RESIDENCY_LEAVE, who);
}

static struct ll_residency_decision serve_waiting(const struct scene *scene, size_t who, const struct room *room)
{
	const struct ll_residency_program *waiting = &scene->programs[who];
	uint64_t need = needed_bytes(scene, waiting), at_ns = UINT64_MAX;
	if (need <= (begins_early(scene, waiting) ? room->sure_bytes : room->now_bytes))
		return give_room(scene, who);
	if (need <= room->soon_bytes)
		return wait_until(UINT64_MAX);
	if (!can_be_served(scene, waiting, room))
		return is_hopeless(scene, waiting) ? decide_step(LL_RESIDENCY_REFUSE, who) : wait_until(UINT64_MAX);
	uint64_t enough_ns = have_room_ns(scene, waiting, need, room);
	if (enough_ns > scene->now_ns)
		return wait_until(enough_ns);
	size_t leaving = find_first_to_leave(scene, waiting, &at_ns);
	if (leaving < scene->count && at_ns <= scene->now_ns)
		return tell_to_leave(scene, leaving);
	return wait_until(at_ns);
}

/* For one that waits until it is there, and is not the first. */
static void keep_room(struct room *room, uint64_t bytes)
{
	if (bytes > room->soon_bytes)
		return;
	room->now_bytes -= bytes < room->now_bytes ? bytes : room->now_bytes;
	room->sure_bytes -= bytes < room->sure_bytes ? bytes : room->sure_bytes;
	room->soon_bytes -= bytes;
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

struct ll_residency_decision ll_residency_decide(const struct ll_residency_program *programs, size_t count,
						 uint64_t free_bytes, uint64_t now_ns)
{
	const struct scene scene = {programs, count, free_bytes, now_ns};
	struct ll_residency_decision by_hand = ll_residency_decide_by_hand(programs, count, now_ns);
	uint64_t again_ns = by_hand.again_ns;
	if (by_hand.step != LL_RESIDENCY_WAIT)
		return by_hand;
	size_t staying = find_who_stays_away(&scene);
	if (staying < count)
		return decide_step(LL_RESIDENCY_STAY, staying);
	struct room room = find_room(&scene);
	size_t front = count; /* the first that waits for others to leave */
	for (size_t who = next_waiting(&scene, count); who < count; who = next_waiting(&scene, who)) {
		bool can_be = can_be_served(&scene, &programs[who], &room);
		if (can_be && front < count && delays_front(&scene, &programs[front], &programs[who], &room)) {
			if (is_stuck(&programs[who])) /* it takes what comes nevertheless */
				keep_room(&room, needed_bytes(&scene, &programs[who]));
			continue;
		}
		struct ll_residency_decision decision = serve_waiting(&scene, who, &room);
		bool is_behind = front < count && needed_bytes(&scene, &programs[front]) > room.soon_bytes;
		if (can_be && front == count)
			front = who;
		else if (decision.step == LL_RESIDENCY_WAIT)
			keep_room(&room, needed_bytes(&scene, &programs[who]));
		bool is_somebody_to_go = decision.step == LL_RESIDENCY_LEAVE || decision.step == LL_RESIDENCY_STAY;
		if (is_somebody_to_go && is_behind)
			continue; /* else turns would begin anew, and never end together for the one in front */
		if (decision.step != LL_RESIDENCY_WAIT)
			return decision;
		again_ns = decision.again_ns < again_ns ? decision.again_ns : again_ns;
	}
	return wait_until(again_ns);
}
