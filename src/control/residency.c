#include "control/residency.h"

struct scene {
	const struct ll_residency_program *programs;
	size_t count;
	uint64_t free_bytes, now_ns;
};

uint64_t ll_residency_turn_ns(uint64_t leaving_bytes, uint64_t coming_bytes)
{
	uint64_t move_ns = (leaving_bytes + coming_bytes) / 1000 * LL_RESIDENCY_NS_PER_KB;
	uint64_t turn_ns = LL_RESIDENCY_TURN_MOVES * move_ns;
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
	if (program->wish == LL_RESIDENCY_STOP && is_here)
		return LL_RESIDENCY_HALT;
	if (program->wish == LL_RESIDENCY_FREE && program->state == LL_RESIDENCY_STOPPED)
		return LL_RESIDENCY_RETURN;
	return LL_RESIDENCY_WAIT;
}

/* ---- who waits ---- */

static bool is_returner(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_AWAY && program->wish == LL_RESIDENCY_FREE && program->wants;
}

static bool is_short(const struct ll_residency_program *program)
{
	return program->state == LL_RESIDENCY_HERE && program->short_bytes > 0;
}

static uint64_t needed_bytes(const struct ll_residency_program *program)
{
	return (is_short(program) ? program->short_bytes : program->bytes) + LL_RESIDENCY_MARGIN_BYTES;
}

static bool goes_before(const struct ll_residency_program *a, const struct ll_residency_program *b)
{
	return a->priority != b->priority ? a->priority < b->priority : a->want_since_ns < b->want_since_ns;
}

/* The first in the order of service that comes after `after`; count: there is none. after count: the first of all. */
static size_t next_waiting(const struct scene *scene, size_t after)
{
	size_t found = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		if (!is_returner(program) && !is_short(program))
			continue;
		bool is_later = after == scene->count || goes_before(&scene->programs[after], program) ||
				(!goes_before(program, &scene->programs[after]) && i > after);
		if (i != after && is_later && (found == scene->count || goes_before(program, &scene->programs[found])))
			found = i;
	}
	return found;
}

/* ---- who leaves ---- */

/* Memory that comes free by itself: its programs are on their way out. */
static uint64_t leaving_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		enum ll_residency state = scene->programs[i].state;
		bool leaves_by_rule = scene->programs[i].wish != LL_RESIDENCY_STOP;
		if (state == LL_RESIDENCY_PREPARING || state == LL_RESIDENCY_LEAVING ||
		    (state == LL_RESIDENCY_STOPPING && leaves_by_rule))
			bytes += scene->programs[i].bytes;
	}
	return bytes;
}

/* Memory that returning programs still need. */
static uint64_t promised_bytes(const struct scene *scene)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		if (scene->programs[i].state == LL_RESIDENCY_RETURNING)
			bytes += scene->programs[i].bytes;
	}
	return bytes;
}

static bool may_leave_for(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	bool is_here = program->state == LL_RESIDENCY_HERE || program->state == LL_RESIDENCY_STOPPED;
	return program != waiting && is_here && program->bytes > 0 && program->priority >= waiting->priority;
}

/* When the program may leave for the one that waits. */
static uint64_t leave_ns(const struct ll_residency_program *program, const struct ll_residency_program *waiting)
{
	uint64_t turn_ns = ll_residency_turn_ns(program->bytes, needed_bytes(waiting));
	uint64_t at_ns = program->here_since_ns + turn_ns;
	bool is_idle = program->idle_since_ns || program->state == LL_RESIDENCY_STOPPED;
	if (is_idle && program->idle_since_ns + LL_RESIDENCY_IDLE_NS < at_ns)
		at_ns = program->idle_since_ns + LL_RESIDENCY_IDLE_NS;
	if (program->priority > waiting->priority)
		at_ns = 0;
	return at_ns > program->retry_ns ? at_ns : program->retry_ns;
}

/* The program that leaves first: that may soonest. count: nobody may ever. */
static size_t find_leaver(const struct scene *scene, const struct ll_residency_program *waiting, uint64_t *ret_at_ns)
{
	size_t found = scene->count;
	for (size_t i = 0; i < scene->count; i++) {
		const struct ll_residency_program *program = &scene->programs[i];
		if (!may_leave_for(program, waiting))
			continue;
		uint64_t at_ns = leave_ns(program, waiting);
		if (found < scene->count && at_ns >= *ret_at_ns)
			continue;
		found = i;
		*ret_at_ns = at_ns;
	}
	return found;
}

static uint64_t movable_bytes(const struct scene *scene, const struct ll_residency_program *waiting)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < scene->count; i++) {
		if (may_leave_for(&scene->programs[i], waiting))
			bytes += scene->programs[i].bytes;
	}
	return bytes;
}

/* What the card has for one that waits, now and when all who are leaving have left. */
struct room {
	uint64_t now_bytes, soon_bytes;
};

static struct room find_room(const struct scene *scene)
{
	uint64_t leaving = leaving_bytes(scene), promised = promised_bytes(scene);
	uint64_t all = scene->free_bytes + leaving;
	struct room room = {.soon_bytes = all > promised ? all - promised : 0};
	room.now_bytes = scene->free_bytes > promised ? scene->free_bytes - promised : 0;
	return room;
}

static struct ll_residency_decision serve(const struct scene *scene, size_t who, const struct room *room)
{
	const struct ll_residency_program *waiting = &scene->programs[who];
	uint64_t need = needed_bytes(waiting), at_ns = UINT64_MAX;
	if (need <= room->now_bytes)
		return decide_step(is_short(waiting) ? LL_RESIDENCY_GRANT : LL_RESIDENCY_RETURN, who);
	if (need <= room->soon_bytes)
		return wait_until(UINT64_MAX);
	if (need > room->soon_bytes + movable_bytes(scene, waiting))
		return is_short(waiting) ? decide_step(LL_RESIDENCY_REFUSE, who) : wait_until(UINT64_MAX);
	size_t leaver = find_leaver(scene, waiting, &at_ns);
	if (leaver < scene->count && at_ns <= scene->now_ns)
		return decide_step(LL_RESIDENCY_LEAVE, leaver);
	return wait_until(at_ns);
}

struct ll_residency_decision ll_residency_decide(const struct ll_residency_program *programs, size_t count,
						 uint64_t free_bytes, uint64_t now_ns)
{
	const struct scene scene = {programs, count, free_bytes, now_ns};
	uint64_t again_ns = UINT64_MAX;
	for (size_t i = 0; i < count; i++) {
		enum ll_residency_step step = step_by_hand(&programs[i], now_ns);
		if (step != LL_RESIDENCY_WAIT)
			return decide_step(step, i);
		if (programs[i].retry_ns > now_ns && programs[i].retry_ns < again_ns)
			again_ns = programs[i].retry_ns;
	}
	const struct room room = find_room(&scene);
	for (size_t who = next_waiting(&scene, count); who < count; who = next_waiting(&scene, who)) {
		struct ll_residency_decision decision = serve(&scene, who, &room);
		if (decision.step != LL_RESIDENCY_WAIT)
			return decision;
		again_ns = decision.again_ns < again_ns ? decision.again_ns : again_ns;
	}
	return wait_until(again_ns);
}
