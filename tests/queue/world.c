#include "world.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const world_kind_names[] = {"by card", "by memory", "department"};

enum { WHOLE_PERMILLE = 1000, CARD_GIB = 80, NODE_CARDS = 4 };

/* ---- the machine ---- */

static void connect_arrays(struct world_machine *world, size_t group_count)
{
	for (size_t i = 0; i < WORLD_TENANTS; i++) {
		for (size_t j = 0; j < WORLD_GROUPS; j++)
			world->limits[i][j] = (struct ll_queue_amount){LL_QUEUE_NONE, LL_QUEUE_NONE, LL_QUEUE_NONE};
		world->tenants[i] = (struct ll_queue_tenant){
		    .guarantees = world->guarantees[i],
		    .limits = world->limits[i],
		    .weight = i + 1,
		    .each_user = {{LL_QUEUE_NONE, LL_QUEUE_NONE, LL_QUEUE_NONE}, LL_QUEUE_NONE},
		};
	}
	world->machine = (struct ll_queue_machine){.card_count = WORLD_CARDS,
						   .group_count = group_count,
						   .tenant_count = WORLD_TENANTS,
						   .cards = world->cards,
						   .groups = world->groups,
						   .tenants = world->tenants};
}

/* Four cards by card, three by memory, one for the third tenant. */
static void make_department(struct world_machine *world)
{
	enum { WHOLE, PARTS, COURSE, LAST = 7 };
	for (unsigned i = 0; i < WORLD_CARDS; i++)
		world->cards[i].group = i < NODE_CARDS ? WHOLE : i < LAST ? PARTS : COURSE;
	world->groups[WHOLE].is_whole = true;
	world->guarantees[0][WHOLE].cards = 1;
	world->guarantees[0][PARTS] = (struct ll_queue_amount){0, 120 * GIB, 1500};
	world->limits[0][WHOLE].cards = 2;
	world->guarantees[1][WHOLE].cards = 2;
	world->guarantees[1][PARTS] = (struct ll_queue_amount){0, 60 * GIB, 1000};
	world->limits[1][PARTS].memory_bytes = 200 * GIB;
	world->tenants[1].each_user = (struct ll_queue_user_limits){{2, 160 * GIB, LL_QUEUE_NONE}, 6};
	world->guarantees[2][COURSE] = (struct ll_queue_amount){0, 72 * GIB, 1000};
}

void world_machine_make(struct world_machine *world, enum world_kind kind)
{
	memset(world, 0, sizeof *world);
	connect_arrays(world, kind == WORLD_DEPARTMENT ? WORLD_GROUPS : 1);
	for (unsigned i = 0; i < WORLD_CARDS; i++)
		world->cards[i] = (struct ll_queue_card){CARD_GIB * GIB, 0, i < NODE_CARDS ? 0 : 1};
	world->groups[0].is_whole = kind == WORLD_BY_CARD;
	if (kind == WORLD_DEPARTMENT)
		make_department(world);
}

/* ---- the jobs ---- */

/* xorshift64*, by Marsaglia and Vigna. */
uint64_t world_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * UINT64_C(2685821657736338717);
}

static double random_part(uint64_t *state)
{
	return (double)(world_random(state) >> 11) * 0x1p-53;
}

/* From 5 minutes to 12 hours, as often in each octave. */
static uint64_t random_time_ns(uint64_t *state)
{
	static const double least_minutes = 5, times = 144;
	return (uint64_t)(least_minutes * pow(times, random_part(state))) * MINUTE_NS;
}

static uint64_t cards_of_group(const struct world_machine *world, uint32_t group)
{
	uint64_t cards = 0;
	for (uint32_t i = 0; i < world->machine.card_count; i++)
		cards |= (uint64_t)(world->cards[i].group == group) << i;
	return cards;
}

static void make_size(const struct world_machine *world, struct ll_queue_job *job, uint64_t *state)
{
	static const uint32_t counts[] = {1, 1, 1, 1, 2, 2, 4, 8};
	static const uint64_t gibs[] = {5, 8, 10, 16, 20, 24, 40, 60, 80};
	static const uint64_t computes[] = {0, 0, 100, 200, 300, 500, 1000};
	uint32_t group = (uint32_t)(world_random(state) % world->machine.group_count);
	job->allowed = cards_of_group(world, group);
	if (world->groups[group].is_whole) {
		job->card_count = counts[world_random(state) % (sizeof counts / sizeof *counts)];
		return;
	}
	job->card_count = world_random(state) % 8 ? 1 : 2;
	job->memory_bytes = gibs[world_random(state) % (sizeof gibs / sizeof *gibs)] * GIB;
	job->compute_permille = computes[world_random(state) % (sizeof computes / sizeof *computes)];
}

static int by_arrival(const void *a, const void *b)
{
	const struct world_job *first = a;
	const struct world_job *second = b;
	return (first->arrival_ns > second->arrival_ns) - (first->arrival_ns < second->arrival_ns);
}

/* Whether the job can start on the machine while nothing else runs. */
static bool is_possible(const struct world_machine *world, const struct world_job *job)
{
	return world_place(world, NULL, 0, job, WORLD_FIRST_FIT);
}

struct world_job *world_jobs_make(const struct world_machine *world, size_t count, uint64_t seed, uint64_t spread_ns)
{
	uint64_t state = seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
	struct world_job *jobs = calloc(count, sizeof *jobs);
	for (size_t i = 0; i < count; i++) {
		struct world_job *job = &jobs[i];
		do {
			*job = (struct world_job){.start_ns = WORLD_NEVER};
			job->facts.tenant = (uint32_t)(world_random(&state) % WORLD_TENANTS);
			job->facts.uid = 1000 + job->facts.tenant;
			make_size(world, &job->facts, &state);
		} while (!is_possible(world, job));
		job->facts.duration_ns = random_time_ns(&state);
		job->facts.has_time = true;
		job->arrival_ns = spread_ns ? world_random(&state) % spread_ns : 0;
	}
	qsort(jobs, count, sizeof *jobs, by_arrival);
	for (size_t i = 0; i < count; i++)
		jobs[i].facts.number = i + 1;
	return jobs;
}

uint64_t world_job_end(const struct world_job *job)
{
	return job->start_ns == WORLD_NEVER ? WORLD_NEVER : job->start_ns + job->facts.duration_ns;
}

/* ---- what is taken ---- */

/* The sums of the running jobs. */
struct sums {
	uint64_t memory[WORLD_CARDS], compute[WORLD_CARDS], jobs[WORLD_CARDS];
	struct ll_queue_amount tenants[WORLD_TENANTS][WORLD_GROUPS], users[WORLD_TENANTS];
	uint64_t running[WORLD_TENANTS];
};

static void add_job(const struct world_machine *world, struct sums *sums, const struct world_job *job, uint64_t cards)
{
	sums->running[job->facts.tenant]++;
	for (uint32_t i = 0; i < WORLD_CARDS; i++) {
		if (!(cards >> i & 1))
			continue;
		struct ll_queue_amount *tenant = &sums->tenants[job->facts.tenant][world->cards[i].group];
		struct ll_queue_amount *user = &sums->users[job->facts.tenant];
		sums->jobs[i]++;
		if (world->groups[world->cards[i].group].is_whole) {
			tenant->cards++;
			user->cards++;
			continue;
		}
		sums->memory[i] += job->facts.memory_bytes;
		sums->compute[i] += job->facts.compute_permille;
		tenant->memory_bytes += job->facts.memory_bytes;
		tenant->compute_permille += job->facts.compute_permille;
		user->memory_bytes += job->facts.memory_bytes;
		user->compute_permille += job->facts.compute_permille;
	}
}

static struct sums sums_of(const struct world_machine *world, struct world_job *const *running, size_t count)
{
	struct sums sums = {0};
	for (size_t i = 0; i < count; i++)
		add_job(world, &sums, running[i], running[i]->cards);
	return sums;
}

static bool is_over(const struct ll_queue_amount *used, const struct ll_queue_amount *limit)
{
	return used->cards > limit->cards || used->memory_bytes > limit->memory_bytes ||
	       used->compute_permille > limit->compute_permille;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

/* The sum over the tenants of the larger one of guarantee and use. */
static struct ll_queue_amount claimed_of(const struct world_machine *world, const struct sums *sums, uint32_t group)
{
	struct ll_queue_amount claimed = {0};
	for (uint32_t i = 0; i < WORLD_TENANTS; i++) {
		const struct ll_queue_amount *used = &sums->tenants[i][group];
		const struct ll_queue_amount *guarantee = &world->guarantees[i][group];
		claimed.cards += larger(used->cards, guarantee->cards);
		claimed.memory_bytes += larger(used->memory_bytes, guarantee->memory_bytes);
		claimed.compute_permille += larger(used->compute_permille, guarantee->compute_permille);
	}
	return claimed;
}

static const char *fault_of_sums(const struct world_machine *world, const struct sums *sums)
{
	for (uint32_t i = 0; i < WORLD_CARDS; i++) {
		bool is_whole = world->groups[world->cards[i].group].is_whole;
		if (is_whole ? sums->jobs[i] > 1 : sums->memory[i] > world->cards[i].memory_bytes)
			return "memory of a card";
		if (sums->compute[i] > WHOLE_PERMILLE)
			return "compute of a card";
	}
	for (uint32_t group = 0; group < world->machine.group_count; group++) {
		uint64_t cards = (uint64_t)__builtin_popcountll(cards_of_group(world, group));
		struct ll_queue_amount size = {cards, cards * CARD_GIB * GIB, cards * WHOLE_PERMILLE};
		struct ll_queue_amount claimed = claimed_of(world, sums, group);
		if (is_over(&claimed, &size))
			return "guarantee of another tenant";
		for (uint32_t i = 0; i < WORLD_TENANTS; i++) {
			if (is_over(&sums->tenants[i][group], &world->limits[i][group]))
				return "limit of a tenant";
		}
	}
	for (uint32_t i = 0; i < WORLD_TENANTS; i++) {
		if (is_over(&sums->users[i], &world->tenants[i].each_user.most) ||
		    sums->running[i] > world->tenants[i].each_user.running)
			return "limit of a user";
	}
	return NULL;
}

const char *world_fault(const struct world_machine *world, struct world_job *const *running, size_t count)
{
	struct sums sums = sums_of(world, running, count);
	return fault_of_sums(world, &sums);
}

double world_work_ns(const struct world_machine *world, const struct world_job *jobs, size_t count)
{
	double sum = 0;
	for (size_t i = 0; i < count; i++) {
		uint32_t first = (uint32_t)__builtin_ctzll(jobs[i].facts.allowed);
		double share = fmax((double)jobs[i].facts.memory_bytes / (double)(CARD_GIB * GIB),
				    (double)jobs[i].facts.compute_permille / WHOLE_PERMILLE);
		share = world->groups[world->cards[first].group].is_whole ? 1 : share;
		sum += share * jobs[i].facts.card_count * (double)jobs[i].facts.duration_ns;
	}
	return sum;
}

/* ---- placing ---- */

static bool card_has_room(const struct world_machine *world, const struct sums *sums, const struct world_job *job,
			  uint32_t card)
{
	if (world->groups[world->cards[card].group].is_whole)
		return !sums->jobs[card];
	return sums->memory[card] + job->facts.memory_bytes <= world->cards[card].memory_bytes &&
	       sums->compute[card] + job->facts.compute_permille <= WHOLE_PERMILLE;
}

static uint32_t count_node(uint64_t cards, uint32_t node)
{
	uint64_t of_node = ((UINT64_C(1) << NODE_CARDS) - 1) << (node * NODE_CARDS);
	return (uint32_t)__builtin_popcountll(cards & of_node);
}

/* Which NUMA node is used first: of those with enough cards the one with fewer, else the one with more. */
static uint32_t first_node(uint64_t free_cards, uint32_t wanted)
{
	uint32_t zero = count_node(free_cards, 0), one = count_node(free_cards, 1);
	if (!zero || !one)
		return zero ? 0 : 1;
	if (zero >= wanted && one >= wanted)
		return zero <= one ? 0 : 1;
	if (zero >= wanted || one >= wanted)
		return zero >= wanted ? 0 : 1;
	return zero >= one ? 0 : 1;
}

/* The card with the least memory left; the first of equal ones. */
static uint32_t tightest_of(const struct sums *sums, uint64_t cards)
{
	uint32_t best = WORLD_CARDS;
	for (uint32_t i = 0; i < WORLD_CARDS; i++) {
		if (cards >> i & 1 && (best == WORLD_CARDS || sums->memory[i] > sums->memory[best]))
			best = i;
	}
	return best;
}

static uint64_t choose_best(const struct world_machine *world, const struct sums *sums, const struct world_job *job,
			    uint64_t free_cards)
{
	bool is_whole = world->groups[world->cards[__builtin_ctzll(free_cards)].group].is_whole;
	uint32_t missing = job->facts.card_count;
	uint64_t chosen = 0;
	while (missing) {
		uint64_t near = free_cards;
		if (is_whole || missing > 1)
			near &= ((UINT64_C(1) << NODE_CARDS) - 1) << (first_node(free_cards, missing) * NODE_CARDS);
		free_cards &= ~near;
		for (; missing && near; missing--) {
			uint64_t card = UINT64_C(1) << tightest_of(sums, near);
			chosen |= card;
			near &= ~card;
		}
	}
	return chosen;
}

uint64_t world_place(const struct world_machine *world, struct world_job *const *running, size_t count,
		     const struct world_job *job, enum world_choice choice)
{
	struct sums sums = sums_of(world, running, count);
	uint64_t free_cards = 0, chosen = 0;
	for (uint32_t i = 0; i < WORLD_CARDS; i++) {
		if (job->facts.allowed >> i & 1 && card_has_room(world, &sums, job, i))
			free_cards |= UINT64_C(1) << i;
	}
	if ((uint32_t)__builtin_popcountll(free_cards) < job->facts.card_count)
		return 0;
	if (choice == WORLD_BEST_FIT)
		chosen = choose_best(world, &sums, job, free_cards);
	for (uint32_t i = 0; choice == WORLD_FIRST_FIT && i < WORLD_CARDS; i++) {
		if (free_cards >> i & 1 && (uint32_t)__builtin_popcountll(chosen) < job->facts.card_count)
			chosen |= UINT64_C(1) << i;
	}
	add_job(world, &sums, job, chosen);
	return fault_of_sums(world, &sums) ? 0 : chosen;
}
