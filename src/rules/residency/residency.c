#include "rules/residency/residency_card.h"

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
	struct ll_residency_card cards[LL_RESIDENCY_CARDS];
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
		struct ll_residency_card *card = &scene->cards[scene->card_count];
		*card = (struct ll_residency_card){.programs = &scene->programs[first],
						   .count = at - first,
						   .free_bytes = free_bytes[number],
						   .now_ns = now_ns};
		ll_residency_card_init(card);
	}
	scene->count = at;
}

static struct ll_residency_card *card_of(struct scene *scene, const struct ll_residency_program *program)
{
	struct ll_residency_card *card = scene->cards;
	while (card->programs[0].card != program->card)
		card++;
	return card;
}

static size_t number_of(const struct scene *scene, const struct ll_residency_card *card, size_t at)
{
	return (size_t)(&card->programs[at] - scene->programs);
}

static bool is_waiting(const struct ll_residency_program *program)
{
	return ll_residency_wants_resume(program) || ll_residency_is_short(program) || ll_residency_is_stuck(program);
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
		bool is_later = after == scene->count || ll_residency_goes_before(&programs[after], &programs[i]) ||
				(!ll_residency_goes_before(&programs[i], &programs[after]) && i > after);
		if (i != after && is_later &&
		    (found == scene->count || ll_residency_goes_before(&programs[i], &programs[found])))
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
	if (!programs[who].unit || !ll_residency_wants_resume(&programs[who]))
		return true;
	size_t count = 0;
	for (size_t i = 0; i < scene->count; i++) {
		if (programs[i].unit != programs[who].unit)
			continue;
		if (i < who)
			return false;
		if (ll_residency_least_bytes(&programs[i]) && count < LL_RESIDENCY_CARDS)
			ret_waiting->who[count++] = i;
	}
	ret_waiting->count = count ? count : 1;
	return true;
}

static bool can_be_served(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		if (!ll_residency_card_can_serve(card_of(scene, program), program))
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
		uint64_t card_ns = ll_residency_card_served_ns(card_of(scene, program), program);
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
		const struct ll_residency_card *card = card_of(scene, program);
		if (card->front && ll_residency_card_delays_front(card, program, front_served_ns(scene, card->front)))
			return true;
	}
	return false;
}

static struct ll_residency_decision give_room(const struct scene *scene, size_t who)
{
	const struct ll_residency_program *waiting = &scene->programs[who];
	if (ll_residency_is_stuck(waiting))
		return wait_until(UINT64_MAX);
	return decide_step(ll_residency_is_short(waiting) ? LL_RESIDENCY_GRANT : LL_RESIDENCY_RESUME, who);
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
		const struct ll_residency_card *card = card_of(scene, program);
		uint64_t at_ns = UINT64_MAX;
		if (ll_residency_card_has_room_soon(card, program))
			continue;
		size_t leaving = ll_residency_card_first_to_evict(card, program, &at_ns);
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
		const struct ll_residency_card *card = card_of(scene, program);
		has_room &= ll_residency_card_has_room(card, program);
		has_soon &= ll_residency_card_has_room(card, program) || ll_residency_card_has_room_soon(card, program);
		if (!ll_residency_card_can_serve(card, program) && ll_residency_card_is_hopeless(card, program))
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
		const struct ll_residency_card *card = card_of(scene, &scene->programs[waiting->who[i]]);
		if (card->front && !ll_residency_card_has_room_soon(card, card->front))
			return true;
	}
	return false;
}

/* Keeps room for the waiting programs: programs behind them do not get it. */
static void keep_room(struct scene *scene, const struct waiting *waiting)
{
	for (size_t i = 0; i < waiting->count; i++) {
		const struct ll_residency_program *program = &scene->programs[waiting->who[i]];
		struct ll_residency_card *card = card_of(scene, program);
		if (card->front)
			ll_residency_card_keep_room(card, program);
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
		if (ll_residency_is_stuck(&scene->programs[who])) /* even so, it uses memory that becomes free */
			ll_residency_card_keep_room(card_of(scene, &scene->programs[who]), &scene->programs[who]);
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
		size_t staying = ll_residency_card_who_stays(&scene.cards[i]);
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
