#include <errno.h>

#include "rules/residency/grants.h"
#include "test.h"

enum { ROUNDS = 400, STEPS = 3000, MOST_MEMBERS = 9, LEAVING_STEPS = 40, PROMISE_STEPS = 20, ASKING_STEPS = 15 };

static struct ll_grants_step next(const struct ll_grants_member *members, size_t count, uint64_t limit,
				  uint64_t leaving)
{
	struct ll_grants grants = {.members = members, .count = count, .limit = limit, .leaving = leaving};
	return ll_grants_next(&grants);
}

static void assert_step(struct ll_grants_step step, enum ll_grants_action kind, size_t who, uint32_t granted)
{
	assert_int_equal(step.kind, kind);
	if (kind == LL_GRANTS_REST)
		return;
	assert_int_equal(step.who, who);
	assert_int_equal(step.granted, granted);
}

TEST(the_only_member_gets_the_whole_rest)
{
	struct ll_grants_member one = {.granted = 10, .used = 5};
	assert_step(next(&one, 1, 100, 0), LL_GRANTS_SET, 0, 100);
	assert_step(next(&one, 1, 100, 30), LL_GRANTS_SET, 0, 70);
	one.granted = 70;
	assert_step(next(&one, 1, 100, 30), LL_GRANTS_REST, 0, 0);
	assert_step(next(&one, 1, UINT64_MAX, 0), LL_GRANTS_SET, 0, LL_GRANTS_MAX);
}

TEST(nobody_has_less_than_all_without_a_limit)
{
	struct ll_grants_member members[] = {{.granted = LL_GRANTS_MAX, .used = 7}, {.used = 3, .want = 5}};
	assert_step(next(members, 2, 0, 50), LL_GRANTS_SET, 1, LL_GRANTS_MAX);
	members[1].granted = LL_GRANTS_MAX;
	assert_step(next(members, 2, 0, 50), LL_GRANTS_SERVE, 1, 8);
	members[1].want = LL_GRANTS_MAX;
	assert_step(next(members, 2, 0, 50), LL_GRANTS_REFUSE, 1, 0);
}

TEST(a_want_gets_what_is_free_and_half_of_the_rest)
{
	struct ll_grants_member members[] = {{.granted = 20, .used = 20}, {.want = 10, .want_number = 1}};
	assert_step(next(members, 2, 100, 30), LL_GRANTS_SET, 1, 30);
	members[1].granted = 30;
	assert_step(next(members, 2, 100, 30), LL_GRANTS_SERVE, 1, 10);
}

TEST(what_others_do_not_use_is_free)
{
	struct ll_grants_member members[] = {{.granted = 100, .used = 20}, {.want = 10, .want_number = 1}};
	assert_step(next(members, 2, 100, 0), LL_GRANTS_SET, 0, 60);
	members[1].want = 70;
	assert_step(next(members, 2, 100, 0), LL_GRANTS_SET, 0, 30);
	members[1].want = 80;
	assert_step(next(members, 2, 100, 0), LL_GRANTS_SET, 0, 20);
}

TEST(what_was_promised_a_moment_ago_is_waited_for)
{
	struct ll_grants_member members[] = {{.granted = 100, .used = 20, .promised = 60},
					     {.want = 50, .want_number = 1}};
	assert_step(next(members, 2, 100, 0), LL_GRANTS_REST, 0, 0);
	members[1].want = 40;
	assert_step(next(members, 2, 100, 0), LL_GRANTS_SET, 0, 60);
}

TEST(what_is_leaving_is_waited_for)
{
	struct ll_grants_member members[] = {{.granted = 20, .used = 20}, {.want = 80, .want_number = 1}};
	assert_step(next(members, 2, 100, 10), LL_GRANTS_REST, 0, 0);
	assert_step(next(members, 2, 100, 0), LL_GRANTS_SET, 1, 80);
	struct ll_grants_member one = {.granted = 50, .used = 50, .want = 50, .want_number = 1};
	assert_step(next(&one, 1, 100, 50), LL_GRANTS_REST, 0, 0);
	one.want = 51;
	assert_step(next(&one, 1, 100, 50), LL_GRANTS_REFUSE, 0, 0);
}

TEST(others_are_asked_before_a_want_is_refused)
{
	struct ll_grants_member members[] = {{.granted = 60, .used = 60}, {.want = 41, .want_number = 1}};
	struct ll_grants grants = {.members = members, .count = 2, .limit = 100};
	assert_step(ll_grants_next(&grants), LL_GRANTS_REQUEST_RESERVES, 1, 0);
	members[1].has_asked = true;
	grants.is_asking = true;
	assert_step(ll_grants_next(&grants), LL_GRANTS_REST, 0, 0);
	grants.is_asking = false;
	assert_step(ll_grants_next(&grants), LL_GRANTS_REFUSE, 1, 0);
}

TEST(one_that_waits_holds_up_nobody)
{
	struct ll_grants_member members[] = {{.want = 80, .want_number = 1}, {.want = 50, .want_number = 2}};
	assert_step(next(members, 2, 100, 50), LL_GRANTS_SET, 1, 50);
	members[1].want_number = 0;
	members[1].want = 0;
	assert_step(next(members, 2, 100, 50), LL_GRANTS_REST, 0, 0);
}

TEST(a_lower_limit_takes_what_is_not_used)
{
	struct ll_grants_member members[] = {{.granted = 60, .used = 50}, {.granted = 40, .used = 10, .promised = 40}};
	assert_step(next(members, 2, 95, 0), LL_GRANTS_SET, 0, 55);
	assert_step(next(members, 2, 50, 0), LL_GRANTS_SET, 0, 50);
	members[0].granted = 50;
	assert_step(next(members, 2, 50, 0), LL_GRANTS_SET, 1, 10);
	members[1].granted = 10;
	members[1].want = 1;
	members[1].want_number = 1;
	members[1].has_asked = true;
	assert_step(next(members, 2, 50, 0), LL_GRANTS_REFUSE, 1, 0);
}

/* ---- any interleaving ---- */

struct process {
	struct ll_grants_member member; /* as it is; the daemon sees a copy that is older */
	bool is_served;
	unsigned promised_until;
};

/* The words, as processes and the daemon change them. */
struct model {
	struct process processes[MOST_MEMBERS];
	size_t count;
	uint64_t limit;
	uint64_t leaving[LEAVING_STEPS]; /* by the step at which it goes */
	unsigned now, asking_until;
	uint64_t wants;
	unsigned served, refused;
};

static unsigned seed = 1;

static unsigned any(unsigned below)
{
	seed = seed * 1103515245 + 12345;
	return (seed >> 16) % below;
}

static uint64_t leaving_of(const struct model *model)
{
	uint64_t units = 0;
	for (unsigned i = 0; i < LEAVING_STEPS; i++)
		units += model->leaving[i];
	return units;
}

static uint64_t held_by_all(const struct model *model)
{
	uint64_t units = leaving_of(model);
	for (size_t i = 0; i < model->count; i++) {
		const struct ll_grants_member *member = &model->processes[i].member;
		assert_true(member->used <= member->granted);
		units += member->granted;
	}
	return units;
}

static uint64_t used_by_all(const struct model *model)
{
	uint64_t units = 0;
	for (size_t i = 0; i < model->count; i++)
		units += model->processes[i].member.used;
	return units;
}

/* A process takes within its grant, gives back, or wants more. */
static void do_anything(struct model *model, size_t who)
{
	struct process *process = &model->processes[who];
	struct ll_grants_member *member = &process->member;
	uint32_t slack = member->granted - member->used;
	if (member->want && process->is_served) {
		if (member->want <= slack)
			member->used += member->want;
		member->want = 0;
		process->is_served = false;
	} else if (any(3) == 0) {
		member->used -= member->used ? any(member->used + 1) : 0;
	} else if (slack && any(2)) {
		member->used += any(slack + 1);
	} else if (!member->want) {
		member->want = 1 + any((unsigned)model->limit);
		member->want_number = ++model->wants;
		member->has_asked = false;
	}
}

static void die(struct model *model, size_t who)
{
	model->leaving[(model->now + LEAVING_STEPS - 1) % LEAVING_STEPS] += model->processes[who].member.used;
	model->processes[who] = model->processes[--model->count];
}

static void live_a_moment(struct model *model)
{
	model->leaving[model->now % LEAVING_STEPS] = 0;
	model->now++;
	for (unsigned i = any(4); i > 0 && model->count; i--)
		do_anything(model, any((unsigned)model->count));
}

/* What the daemon does after it has looked; meanwhile processes went on. */
static void make_step(struct model *model, struct ll_grants_step step)
{
	struct process *who = &model->processes[step.who];
	struct ll_grants_member *member = &who->member;
	switch (step.kind) {
	case LL_GRANTS_SET:
		member->granted = step.granted > member->used ? step.granted : member->used;
		break;
	case LL_GRANTS_SERVE:
		member->promised = step.granted;
		who->promised_until = model->now + PROMISE_STEPS;
		who->is_served = true;
		model->served++;
		break;
	case LL_GRANTS_REQUEST_RESERVES:
		member->has_asked = true;
		model->asking_until = model->now + ASKING_STEPS;
		break;
	case LL_GRANTS_REFUSE:
		member->want = 0;
		model->refused++;
		break;
	case LL_GRANTS_REST:
		break;
	}
}

/* The daemon sees no want that it has answered. */
static void look(struct model *model, struct ll_grants_member *ret_members)
{
	for (size_t i = 0; i < model->count; i++) {
		struct process *process = &model->processes[i];
		if (model->now >= process->promised_until)
			process->member.promised = 0;
		ret_members[i] = process->member;
		if (process->is_served)
			ret_members[i].want = 0;
	}
}

static void decide(struct model *model)
{
	struct ll_grants_member seen[MOST_MEMBERS];
	struct ll_grants grants = {.members = seen,
				   .count = model->count,
				   .limit = model->limit,
				   .leaving = leaving_of(model),
				   .is_asking = model->now < model->asking_until};
	look(model, seen);
	uint64_t used = used_by_all(model);
	struct ll_grants_step step = ll_grants_next(&grants);
	if (step.kind == LL_GRANTS_REFUSE)
		assert_true(used + seen[step.who].want > model->limit);
	live_a_moment(model);
	make_step(model, step);
}

TEST(never_over_at_any_interleaving)
{
	unsigned served = 0, refused = 0;
	uint64_t most = 0;
	for (unsigned round = 0; round < ROUNDS; round++) {
		struct model model = {.limit = 1 + any(1000)};
		seed = round + 1;
		for (unsigned i = 0; i < STEPS; i++) {
			if (model.count < MOST_MEMBERS && any(20) == 0)
				model.processes[model.count++] = (struct process){0};
			if (model.count && any(100) == 0)
				die(&model, any((unsigned)model.count));
			decide(&model);
			assert_true(held_by_all(&model) <= model.limit);
			uint64_t permille = used_by_all(&model) * 1000 / model.limit;
			most = permille > most ? permille : most;
		}
		served += model.served;
		refused += model.refused;
	}
	printf("%u wants served, %u refused, filled to %u permille\n", served, refused, (unsigned)most);
	assert_true(served > ROUNDS && refused > ROUNDS);
	assert_int_equal(most, 1000);
}

/* When processes stand still, the daemon comes to an end. */
TEST(every_want_is_answered)
{
	for (unsigned round = 0; round < ROUNDS * 20; round++) {
		struct ll_grants_member members[MOST_MEMBERS] = {0};
		size_t count = 1 + any(MOST_MEMBERS), open = 0;
		struct model model = {.limit = any(4) ? 100 + any(1000) : 0, .count = count};
		for (size_t i = 0; i < count; i++) {
			members[i].granted = any(300);
			members[i].used = any(members[i].granted + (any(10) ? 1 : 50));
			members[i].want = any(2) ? any(200) : 0;
			members[i].want_number = i + 1;
			members[i].has_asked = true;
			open += members[i].want > 0;
		}
		for (unsigned steps = 0;; steps++) {
			struct ll_grants_step step = next(members, count, model.limit, 0);
			assert_true(steps < 1000);
			if (step.kind == LL_GRANTS_REST)
				break;
			struct ll_grants_member *who = &members[step.who];
			if (step.kind == LL_GRANTS_SET) {
				who->granted = step.granted > who->used ? step.granted : who->used;
				continue;
			}
			assert_true(who->want > 0);
			who->want = 0;
			open--;
		}
		assert_int_equal(open, 0);
	}
}
