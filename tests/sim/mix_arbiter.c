#include "mix_arbiter.h"

#include <limits.h>
#include <string.h>

#include "daemon/arbiter/choose.h"
#include "daemon/arbiter/classes.h"
#include "daemon/arbiter/contender.h"
#include "daemon/arbiter/decide.h"
#include "daemon/arbiter/time_on_card.h"
#include "rules/share/tokens.h"
#include "test.h"

#define US LL_NS_PER_US
#define MS LL_NS_PER_MS

/* ---- the library ---- */

/* src/shim/time/flow_tick.c, flow_state.h, flow_others.c */
#define PATIENCE_NS (150 * US)
#define GRACE_NS (200 * US)
#define CALM_NS (1 * MS)
#define OPEN_REST_NS (15 * MS)
#define OPEN_NS (5 * MS)
#define ABOVE_REST_NS (3 * MS / 2)
#define ABOVE_NS (500 * US)
#define HELD_NS (5 * MS)
#define OVERRUN_NS (1 * MS)
#define POLL_NS (100 * US)
#define WATCH_WAITS_NS (300 * US)
#define WATCH_LEAST_NS (200 * US)
#define WATCH_MOST_NS (400 * US)
#define PACE_NS (10 * MS)
#define IN_HAND_NS ((int64_t)MS)
#define SHORT_WORK_NS (2 * MS)
enum { PACE_LAUNCHES = 32, FEW_LAUNCHES = 16 };
/* From a ring to the decision, and from a decision to the look of the one that is told. */
#define RING_NS (20 * US)

static void read_pace(struct mix_member *member, uint64_t now_ns)
{
	const struct mix_program *program = member->program;
	uint64_t launches = program->launched - member->paced_launches, waits = program->waits - member->paced_waits;
	if (launches < PACE_LAUNCHES || now_ns - member->paced_ns < PACE_NS)
		return;
	uint64_t used_ns = mix_program_used_ns(program) - member->paced_used_ns;
	bool waits_for_each = launches < waits * FEW_LAUNCHES, is_short = used_ns < waits * SHORT_WORK_NS;
	member->said.launch_mode = waits_for_each ? LL_LAUNCH_MODE_SYNC
				   : is_short     ? LL_LAUNCH_MODE_SHORT
						  : LL_LAUNCH_MODE_ASYNC;
	member->paced_used_ns += used_ns;
	member->paced_ns = now_ns;
	member->paced_launches = program->launched;
	member->paced_waits = program->waits;
}

static bool queue_is_empty(const struct mix_member *member, uint64_t now_ns)
{
	const struct mix_program *program = member->program;
	if (!program->idle_since_ns || program->gate.waits_for_room || program->gate.is_asking)
		return false;
	return member->said.launch_mode == LL_LAUNCH_MODE_ASYNC || now_ns - program->idle_since_ns >= PATIENCE_NS;
}

static bool shall_rest(const struct mix_member *member, uint64_t now_ns)
{
	const struct ll_turn_look *look = &member->claim.look;
	uint64_t idle_ns = now_ns - member->program->idle_since_ns;
	if (member->program->gate.is_in_debt)
		return true;
	if (look->queue_bound_ns || member->job.cap_permille) /* its gate is shut */
		return idle_ns >= (look->waiting_claims ? GRACE_NS : CALM_NS);
	uint64_t open_ns = look->is_above ? ABOVE_REST_NS : OPEN_REST_NS;
	return idle_ns >= (look->is_sliced || !look->waiting_claims ? open_ns : GRACE_NS);
}

/* ---- of a cap ---- */

/* What loadlined said, what was earned since, less what was used since. */
static int64_t tokens_now_ns(const struct mix_member *member, uint64_t now_ns)
{
	int64_t tokens_ns = ll_share_tokens_ns(&member->job, now_ns);
	return tokens_ns - (int64_t)(mix_program_used_ns(member->program) - member->used_ns);
}

static int64_t in_hand_ns(const struct mix_member *member)
{
	int64_t half_ns = ll_tokens_most_ns(member->job.cap_permille) / 2;
	return half_ns < IN_HAND_NS ? half_ns : IN_HAND_NS;
}

static void note_debt(struct mix_member *member, uint64_t now_ns)
{
	struct mix_gate *gate = &member->program->gate;
	if (!member->job.cap_permille || !member->job.tokens_at_ns) /* it has no account yet */
		return;
	int64_t tokens_ns = tokens_now_ns(member, now_ns);
	gate->tokens_ns = tokens_ns > 0 ? (uint64_t)tokens_ns : 0;
	if (tokens_ns <= 0)
		gate->is_in_debt = true;
	else if (tokens_ns >= in_hand_ns(member))
		gate->is_in_debt = false;
}

/* ---- looks ---- */

static uint64_t watch_ns(const struct mix_member *member)
{
	uint64_t half_ns = member->program->queued_ns / 2;
	if (member->program->gate.waits_for_room || member->claim.ending_since_ns)
		return POLL_NS;
	if (member->said.launch_mode != LL_LAUNCH_MODE_ASYNC)
		return WATCH_WAITS_NS;
	return half_ns < WATCH_LEAST_NS ? WATCH_LEAST_NS : half_ns > WATCH_MOST_NS ? WATCH_MOST_NS : half_ns;
}

/* An account in debt is looked at when it may hold enough, at the latest. */
static uint64_t debt_tick_ns(const struct mix_member *member, uint64_t now_ns)
{
	uint64_t wait_ns = (uint64_t)(in_hand_ns(member) - tokens_now_ns(member, now_ns));
	return now_ns + (wait_ns < CALM_NS ? wait_ns : CALM_NS);
}

static uint64_t next_tick_ns(const struct mix_member *member, uint64_t now_ns)
{
	const struct ll_turn_look *look = &member->claim.look;
	if (member->program->gate.is_in_debt)
		return debt_tick_ns(member, now_ns);
	if (!member->is_wanting)
		return SIM_NEVER;
	if (look->is_exclusive && !look->is_holder)
		return now_ns + (member->said.overruns ? OVERRUN_NS : HELD_NS);
	if (look->is_exclusive && look->waiting_claims)
		return now_ns + watch_ns(member);
	if (look->queue_bound_ns || member->job.cap_permille)
		return now_ns + (member->program->gate.waits_for_room ? POLL_NS : CALM_NS);
	uint64_t open_ns = look->is_above ? ABOVE_NS : OPEN_NS;
	return now_ns + (look->is_sliced ? open_ns : CALM_NS);
}

/* Returns whether the daemon is to decide for what is new. */
static bool tick(struct mix_member *member, uint64_t now_ns)
{
	struct mix_program *program = member->program;
	struct ll_share_said *said = &member->said;
	const struct ll_share_said before = *said;
	bool is_shut = !(member->word & LL_VISIT_WORD_OPEN);
	bool is_stalled = program->stalled_since_ns && !program->gate.is_in_debt;
	read_pace(member, now_ns);
	note_debt(member, now_ns);
	if (!program->gate.is_in_debt && (!program->idle_since_ns || program->gate.is_asking || is_stalled))
		member->is_wanting = true;
	else if (member->is_wanting && !is_shut && shall_rest(member, now_ns))
		member->is_wanting = false;
	said->at_ns = now_ns;
	said->activity_ns = member->is_wanting ? LL_ACTIVITY_NOW : program->ended_ns;
	said->queued_ns = program->queued_ns;
	said->queued_launches = (uint32_t)(program->launched - program->completed);
	said->completed_launches = program->completed;
	said->is_wanting = member->is_wanting;
	said->is_on_card = true;
	said->queue_is_empty = queue_is_empty(member, now_ns);
	said->overruns = program->gate.is_exclusive && mix_program_overruns(program);
	said->has_launched = true;
	member->tick_ns = next_tick_ns(member, now_ns);
	return before.is_wanting != said->is_wanting || before.launch_mode != said->launch_mode ||
	       before.queue_is_empty != said->queue_is_empty || before.overruns != said->overruns;
}

/* ---- loadlined ---- */

/* src/daemon/arbiter/card_decide.c */
#define TICK_NS (1 * MS)
#define ALL_NS (10 * MS)
#define SLICES_NS (100 * MS)
enum { MOST_ROUNDS = 4 };

/* A cap pays for work; what a switch to the program takes is not its work. */
static uint64_t used_ns_of(const struct mix_program *program)
{
	if (program->kind.cap_permille)
		return mix_program_used_ns(program);
	return program->w->contexts[program->context].card_ns;
}

/* Visits are charged by their length, to those that overrun too; else what the card has done. */
static void charge(struct mix_arbiter *self, uint64_t now_ns)
{
	const struct ll_share_claim *holder = self->card.holder;
	uint64_t ns = now_ns - self->charged_ns;
	unsigned sharing = 1;
	self->charged_ns = now_ns;
	for (unsigned i = 0; i < self->count; i++)
		sharing += self->members[i].claim.overruns;
	for (unsigned i = 0; i < self->count; i++) {
		struct mix_member *member = &self->members[i];
		uint64_t used_ns = used_ns_of(member->program) - member->used_ns;
		bool is_visited = &member->claim == holder || member->claim.overruns;
		member->used_ns += used_ns;
		if (member->claim.look.is_exclusive)
			used_ns = is_visited ? ns / sharing : 0;
		if (used_ns)
			ll_share_charge(&member->job, used_ns);
	}
}

static void look(struct mix_member *member, uint64_t now_ns)
{
	ll_share_look(&member->claim, now_ns);
	member->has_looked = true;
}

static bool look_at_claims(struct mix_arbiter *self, uint64_t now_ns)
{
	struct ll_share_claim *holder = self->card.holder;
	bool was_ending = holder && holder->ending_since_ns;
	for (unsigned i = 0; i < self->count; i++) {
		if (&self->members[i].claim == holder)
			look(&self->members[i], now_ns);
	}
	for (unsigned i = 0; i < self->count; i++) {
		bool is_due = self->is_changed || self->members[i].job.cap_permille;
		if (&self->members[i].claim != holder && is_due)
			look(&self->members[i], now_ns);
	}
	return self->card.holder != holder || (holder && was_ending != !!holder->ending_since_ns);
}

static void tell(struct mix_arbiter *self, uint64_t now_ns)
{
	for (unsigned i = 0; i < self->count; i++) {
		struct mix_member *member = &self->members[i];
		const struct mix_gate before = member->program->gate;
		if (member->has_looked) {
			member->program->gate.is_exclusive = member->claim.look.is_exclusive;
			member->program->gate.bound_ns = member->claim.look.queue_bound_ns;
			member->program->gate.may_launch = member->claim.look.may_launch;
		}
		member->has_looked = false;
		mix_program_set_word(member->program, member->word & LL_VISIT_WORD_OPEN);
		if (member->program->gate.is_asking && member->claim.want_since_ns && member->claim.look.may_launch)
			mix_program_answer(member->program);
		if (!member->is_wanting)
			member->program->gate.must_ask = !ll_share_is_free(&member->claim, now_ns);
		const struct mix_gate *gate = &member->program->gate;
		bool is_new = before.is_open != gate->is_open || before.is_exclusive != gate->is_exclusive ||
			      before.bound_ns != gate->bound_ns || before.may_launch != gate->may_launch;
		if (is_new && member->is_wanting && member->tick_ns > now_ns + RING_NS)
			member->tick_ns = now_ns + RING_NS;
	}
}

static uint64_t sooner_ns(uint64_t due_ns, uint64_t at_ns, uint64_t now_ns)
{
	return at_ns > now_ns && at_ns < due_ns ? at_ns : due_ns;
}

static uint64_t visit_due_ns(const struct ll_share_card *card, uint64_t now_ns)
{
	const struct ll_share_claim *holder = card->holder;
	uint64_t due_ns = now_ns + TICK_NS;
	if (!holder)
		return due_ns;
	due_ns = sooner_ns(due_ns, card->turn_since_ns + LL_VISIT_SHORT_NS, now_ns);
	due_ns = sooner_ns(due_ns, card->turn_since_ns + LL_VISIT_QUANTUM_NS, now_ns);
	if (holder->queue_empty_since_ns) {
		due_ns = sooner_ns(due_ns, holder->queue_empty_since_ns + LL_VISIT_GRACE_AHEAD_NS, now_ns);
		due_ns = sooner_ns(due_ns, holder->queue_empty_since_ns + LL_VISIT_GRACE_WAITS_NS, now_ns);
	}
	return due_ns;
}

static uint64_t find_due_ns(const struct mix_arbiter *self, uint64_t now_ns)
{
	unsigned wanting = 0;
	bool has_capped = false;
	uint64_t due_ns = UINT64_MAX;
	for (unsigned i = 0; i < self->count; i++) {
		wanting += self->members[i].claim.want_since_ns != 0;
		has_capped |= self->members[i].job.cap_permille;
	}
	if (wanting > 1 && ll_share_needs_visits(&self->card, now_ns))
		due_ns = visit_due_ns(&self->card, now_ns);
	else if (wanting > 1)
		due_ns = now_ns + SLICES_NS;
	if (has_capped)
		due_ns = sooner_ns(due_ns, now_ns + TICK_NS, now_ns);
	return sooner_ns(due_ns, self->choice_ns, now_ns);
}

/* A choice stands until another one is made, or the first measurement has confirmed it. */
static void note_choice(struct mix_arbiter *self, uint64_t now_ns)
{
	const struct ll_regime *regime = &self->card.regime;
	bool is_known = regime->why != LL_REGIME_MEASURES && regime->why != LL_REGIME_NOT_MEASURED;
	bool is_first = is_known && regime->why != LL_REGIME_NO_REASON && !self->has_measured;
	if (!is_known || (self->gives_visits == regime->gives_visits && !is_first))
		return;
	self->has_measured |= is_first;
	self->gives_visits = regime->gives_visits;
	self->chosen_ns = now_ns;
}

static void decide(struct mix_arbiter *self, uint64_t now_ns)
{
	bool is_new;
	charge(self, now_ns);
	for (unsigned i = 0; i < self->count; i++) {
		struct mix_member *member = &self->members[i];
		if (member->claim.want_since_ns || member->said.is_wanting)
			self->is_changed |= ll_share_post(&member->claim, &member->said, now_ns);
	}
	self->choice_ns = ll_share_choose(&self->card, now_ns, &is_new);
	self->is_changed |= is_new || now_ns >= self->all_ns + ALL_NS;
	if (self->is_changed)
		self->all_ns = now_ns;
	for (int i = 0; i < MOST_ROUNDS && look_at_claims(self, now_ns); i++)
		self->is_changed = true;
	self->is_changed = false;
	tell(self, now_ns);
	self->due_ns = find_due_ns(self, now_ns);
	note_choice(self, now_ns);
}

/* ---- both ---- */

void mix_arbiter_init(struct mix_arbiter *self, struct mix_program *programs, unsigned count,
		      enum ll_limit_sharing forced)
{
	memset(self, 0, sizeof *self);
	self->count = count;
	self->card.forced = forced;
	self->due_ns = UINT64_MAX;
	self->chosen_ns = MIX_BEGIN_NS;
	for (unsigned i = 0; i < count; i++) {
		struct mix_member *member = &self->members[i];
		member->program = &programs[i];
		member->job.id = i + 1;
		member->job.word = &member->word;
		member->job.rank = programs[i].kind.rank ? programs[i].kind.rank : LL_PRIORITY_NORMAL;
		member->job.cap_permille = programs[i].kind.cap_permille;
		member->job.slowdown_permille = LL_DEFAULT_SLOWDOWN_PERMILLE;
		member->job.weight_permille = programs[i].kind.weight_permille;
		member->tick_ns = SIM_NEVER;
		ll_share_add_job(&self->card, &member->job);
		assert_int_equal(ll_share_add_claim(&member->job, &member->claim), 0);
	}
}

void mix_arbiter_fini(struct mix_arbiter *self)
{
	ll_share_card_fini(&self->card);
}

static unsigned highest_rank(const struct mix_arbiter *self)
{
	unsigned rank = UINT_MAX;
	for (unsigned i = 0; i < self->count; i++)
		rank = self->members[i].job.rank < rank ? self->members[i].job.rank : rank;
	return rank;
}

double mix_arbiter_held_part(const struct mix_arbiter *self)
{
	unsigned rank = highest_rank(self);
	return rank < LL_SHARE_CLASSES ? self->card.levers[rank].part : 0;
}

double mix_arbiter_seen_slowdown(const struct mix_arbiter *self)
{
	unsigned most_permille = 0;
	for (unsigned i = 0; i < self->count; i++) {
		const struct ll_share_job *job = &self->members[i].job;
		unsigned permille = job->rank == highest_rank(self) ? ll_share_slowdown_permille(job) : 0;
		most_permille = permille > most_permille ? permille : most_permille;
	}
	return most_permille / 1000.0;
}

uint64_t mix_arbiter_next_ns(const struct mix_arbiter *self)
{
	uint64_t next_ns = self->due_ns;
	for (unsigned i = 0; i < self->count; i++)
		next_ns = self->members[i].tick_ns < next_ns ? self->members[i].tick_ns : next_ns;
	return next_ns;
}

void mix_arbiter_go_on(struct mix_arbiter *self, uint64_t now_ns)
{
	for (unsigned i = 0; i < self->count; i++) {
		struct mix_member *member = &self->members[i];
		const struct mix_program *program = member->program;
		bool comes = !member->is_wanting && !program->gate.is_in_debt &&
			     (!program->idle_since_ns || program->gate.is_asking);
		if ((comes || member->tick_ns <= now_ns) && tick(member, now_ns))
			self->due_ns = sooner_ns(self->due_ns, now_ns + RING_NS, now_ns);
	}
	if (self->due_ns <= now_ns)
		decide(self, now_ns);
}
