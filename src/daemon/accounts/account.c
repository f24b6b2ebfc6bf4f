#include "daemon/accounts/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "protocol/accounts.h"
#include "protocol/message_rows.h"

/* A job whose counters are ahead of the clock by more than this when it is first seen was on the card before. It is
 * seen within a second. */
#define FIRST_SIGHT_NS (2 * LL_NS_PER_S)

enum { WHOLE_PERMILLE = 1000, MS_PER_S = 1000 };

void ll_account_name(const struct ll_job_facts *facts, char ret_job[LL_USE_JOB_SIZE])
{
	const uint64_t *token = facts->token;
	uint64_t mixed = (token[0] ^ token[0] >> 31) * UINT64_C(0x9e3779b97f4a7c15);
	snprintf(ret_job, LL_USE_JOB_SIZE, "%016" PRIx64 "-%" PRIu32, mixed ^ token[1], facts->uid);
}

static uint64_t later_of(uint64_t one, uint64_t other)
{
	return one > other ? one : other;
}

static uint64_t smaller_of(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

/* ---- readings ---- */

/* Adds a period to what was granted and held. */
static void count_time(struct ll_account *account, uint64_t from_ns, uint64_t to_ns)
{
	const struct ll_limits *limits = &account->card->job->facts.limits;
	uint64_t permille = limits->compute_permille ? limits->compute_permille : WHOLE_PERMILLE;
	if (to_ns <= from_ns || account->is_asleep || (!account->card->claim_count && !limits->request_bytes))
		return;
	account->energy.all_on_card_ns += to_ns - from_ns;
	account->granted_ns += (to_ns - from_ns) / WHOLE_PERMILLE * permille;
	uint64_t activity_ns =
	    0; /* when it last had work on the card; LL_ACTIVITY_NOW, the greatest: it has some now */
	for (const struct ll_job_claim *claim = account->card->claims; claim; claim = claim->next)
		activity_ns = later_of(activity_ns, ll_claim_slot(claim)->activity_ns);
	uint64_t idle_ns = activity_ns < to_ns ? to_ns - later_of(activity_ns, from_ns) : 0;
	account->idle_held_ns += idle_ns;
	account->energy.all_idle_held_ns += idle_ns;
}

/* A counter that has gone back was written by a program, and stands still. */
void ll_account_read(struct ll_account *account, uint64_t now_ns)
{
	const struct ll_job_card *card = account->card;
	struct ll_accounts accounts;
	if (!card || now_ns < account->last.at_ns)
		return;
	const struct ll_page *page = card->job->pages.page;
	ll_accounts_read_card(page, card->index, now_ns, &accounts);
	/* The card's memory over the time since the job came, as long as both are known. */
	uint64_t bytes = card->job->pages.orders->cards[card->index].usable_bytes,
		 passed_ns = now_ns - account->since_ns;
	uint64_t units = bytes ? ll_memory_units(bytes) : LL_MEMORY_UNITS_MAX;
	uint64_t memory_unit_ms = smaller_of(accounts.held_unit_ms, units * (passed_ns / LL_NS_PER_MS + MS_PER_S));
	uint64_t used_ns = smaller_of(page->cards[card->index].work_ns, passed_ns + LL_NS_PER_S);
	count_time(account, account->last.at_ns, now_ns);
	if (used_ns > account->last.used_ns)
		account->worked_ns = now_ns;
	const struct ll_account_reading before = account->last;
	account->last.used_ns = later_of(used_ns, before.used_ns);
	account->last.memory_unit_ms = later_of(memory_unit_ms, before.memory_unit_ms);
	account->last.at_ns = now_ns;
	if (account->is_lent) {
		account->last.borrowed_ns += account->last.used_ns - before.used_ns;
		account->last.borrowed_unit_ms += account->last.memory_unit_ms - before.memory_unit_ms;
	}
}

/* ---- begin, and batches ---- */

struct ll_account *ll_account_new(const struct ll_job_card *card, uint64_t now_ns)
{
	struct ll_account *account = calloc(1, sizeof *account);
	if (!account)
		return NULL;
	account->card = card;
	account->key.uid = card->job->facts.uid;
	account->key.number = card->job->number;
	const char *configured = card->job->department_tenant;
	snprintf(account->key.tenant, sizeof account->key.tenant, "%s",
		 *configured ? configured : card->job->tenant->name);
	snprintf(account->key.card, sizeof account->key.card, "%s", card->uuid);
	snprintf(account->key.project, sizeof account->key.project, "%s", card->job->project);
	ll_account_name(&card->job->facts, account->key.job);
	account->card_hash = UINT32_C(2166136261); /* FNV-1a */
	for (const char *at = account->key.card; *at; at++)
		account->card_hash = (account->card_hash ^ (unsigned char)*at) * UINT32_C(16777619);
	/* When the first of the card's processes came, if that was within FIRST_SIGHT_NS; else now. */
	account->born_ns = now_ns;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		uint64_t taken_ns = ll_claim_slot(claim)->taken_ns;
		if (taken_ns < account->born_ns && now_ns - taken_ns < FIRST_SIGHT_NS)
			account->born_ns = taken_ns;
	}
	account->last.at_ns = account->born_ns;
	account->born_used_ns = card->job->pages.page->cards[card->index].work_ns;
	account->worked_ns = now_ns; /* it is about to */
	if (account->born_used_ns <= FIRST_SIGHT_NS)
		account->since_ns = now_ns > FIRST_SIGHT_NS ? now_ns - FIRST_SIGHT_NS : 0;
	else
		account->looked_ns = account->energy.used_ns = account->born_used_ns;
	return account;
}

/* The counter's times are of another boot if they are later than now. Then no page of that time exists. */
void ll_account_set_base(struct ll_account *account, const struct ll_use_counter *counter)
{
	account->has_base = true;
	if (!counter || counter->at_ns > account->born_ns)
		return;
	account->counted.used_ns = counter->used_ns;
	account->counted.memory_unit_ms = counter->memory_unit_ms;
	account->since_ns = counter->since_ns;
	account->last.used_ns = later_of(account->last.used_ns, counter->used_ns);
	account->last.memory_unit_ms = later_of(account->last.memory_unit_ms, counter->memory_unit_ms);
	/* Of what was read so far only what is new. */
	struct ll_account_reading *last = &account->last, *counted = &account->counted;
	counted->borrowed_ns = counter->borrowed_ns;
	counted->borrowed_unit_ms = counter->borrowed_unit_ms;
	last->borrowed_ns = counted->borrowed_ns + smaller_of(last->borrowed_ns, last->used_ns - counted->used_ns);
	last->borrowed_unit_ms = counted->borrowed_unit_ms +
				 smaller_of(last->borrowed_unit_ms, last->memory_unit_ms - counted->memory_unit_ms);
	struct ll_account_energy energy = account->energy;
	if (account->card) /* it was on the card between the two loadlineds */
		count_time(account, counter->at_ns, account->born_ns);
	else if (account->born_used_ns > counter->used_ns) /* until an unknown moment; at least for what it used */
		account->granted_ns +=
		    smaller_of(account->born_used_ns - counter->used_ns, account->last.used_ns - counter->used_ns);
	account->energy = energy; /* of which no energy is known */
}

uint64_t ll_account_used_ns(const struct ll_account *account)
{
	uint64_t shared_ns = account->shared_ns + account->taken_off_ns;
	return account->last.used_ns > shared_ns ? account->last.used_ns - shared_ns : 0;
}

void ll_account_end(struct ll_account *account, bool awaits_energy, uint64_t now_ns)
{
	account->card = NULL;
	account->energy.is_complete = !awaits_energy;
	account->energy.ended_ns = now_ns;
}

bool ll_account_is_over(const struct ll_account *account, uint64_t now_ns)
{
	const struct ll_account_energy *energy = &account->energy;
	return !account->card && (energy->is_complete || now_ns > energy->ended_ns + LL_ENERGY_WAIT_NS);
}

int ll_account_collect(struct ll_account *account, struct ll_use_batch *batch, size_t most_rows, int64_t hour_s)
{
	uint64_t new_ns = account->last.used_ns - account->counted.used_ns;
	uint64_t shared_ns = smaller_of(account->shared_ns, new_ns);
	struct ll_use use = {
	    .granted_ns = account->granted_ns,
	    .used_ns = new_ns - shared_ns,
	    .idle_held_ns = account->idle_held_ns,
	    .memory_byte_s = (double)(account->last.memory_unit_ms - account->counted.memory_unit_ms) *
			     (double)LL_MEMORY_UNIT / MS_PER_S,
	    .borrowed_ns = smaller_of(account->last.borrowed_ns - account->counted.borrowed_ns, new_ns - shared_ns),
	    .borrowed_byte_s = (double)(account->last.borrowed_unit_ms - account->counted.borrowed_unit_ms) *
			       (double)LL_MEMORY_UNIT / MS_PER_S,
	    .joules = account->energy.joules,
	    .knows_joules = account->energy.is_known,
	};
	struct ll_use_counter counter = {.used_ns = account->last.used_ns,
					 .memory_unit_ms = account->last.memory_unit_ms,
					 .borrowed_ns = account->last.borrowed_ns,
					 .borrowed_unit_ms = account->last.borrowed_unit_ms,
					 .since_ns = account->since_ns,
					 .at_ns = account->last.at_ns,
					 .has_ended = !account->card};
	account->key.hour_s = hour_s;
	snprintf(counter.job, sizeof counter.job, "%s", account->key.job);
	snprintf(counter.card, sizeof counter.card, "%s", account->key.card);
	bool is_nothing =
	    !use.granted_ns && !use.used_ns && !use.idle_held_ns && use.memory_byte_s <= 0 && use.joules <= 0;
	int rc = is_nothing ? 0 : ll_use_batch_add(batch, &account->key, &use, most_rows);
	const struct ll_use none = {0};
	account->newest = rc ? none : use;
	if (!rc) {
		account->counted = account->last;
		account->granted_ns = account->idle_held_ns = 0;
		account->shared_ns -= shared_ns;
		account->taken_off_ns += shared_ns;
		account->energy.joules = 0;
		rc = ll_use_batch_count(batch, &counter);
	}
	return rc;
}

/* ---- time that several jobs share ---- */

#define LATE_NS (400 * LL_NS_PER_MS)
#define WORKING_NS (3 * LL_NS_PER_S)

/* So many jobs of one card are compared. */
enum { COMPARED = 64 };

struct group {
	struct ll_account *accounts[COMPARED];
	unsigned count;
};

static bool is_working(const struct ll_account *account, uint64_t now_ns)
{
	return account->card && now_ns - account->worked_ns < WORKING_NS;
}

static void share_word(const struct group *group, uint64_t number)
{
	uint64_t words[COMPARED], one = 0, several = 0;
	for (unsigned i = 0; i < group->count; i++) {
		/* By space (MPS) contexts of several jobs are on the card at once, without switches. */
		const struct ll_job_card *card = group->accounts[i]->card;
		uint64_t word = card->job->pages.page->cards[card->index].samples.words[number % LL_WORK_WORDS];
		/* Otherwise the word belongs to another time by now. */
		bool is_of_number = (uint16_t)(word >> LL_WORK_SAMPLES) == (uint16_t)number;
		words[i] = card->job->facts.limits.space_permille && is_of_number ? word & LL_WORK_BITS : 0;
		several |= one & words[i];
		one |= words[i];
	}
	/* Takes off what each job counted at one moment beyond its own part. */
	for (; several; several &= several - 1) {
		uint64_t sample = several & -several;
		unsigned jobs = 0;
		for (unsigned i = 0; i < group->count; i++)
			jobs += (words[i] & sample) != 0;
		for (unsigned i = 0; i < group->count; i++) {
			if (words[i] & sample)
				group->accounts[i]->shared_ns += LL_WORK_SAMPLE_NS - LL_WORK_SAMPLE_NS / jobs;
		}
	}
}

/* ---- no more than has passed ---- */

static struct ll_overlap_card *find_overlap_card(struct ll_overlap *overlap, const struct ll_account *account,
						 uint64_t now_ns)
{
	struct ll_overlap_card *oldest = overlap->cards;
	for (struct ll_overlap_card *card = overlap->cards; card < overlap->cards + LL_OVERLAP_CARDS; card++) {
		if (strcmp(card->uuid, account->key.card) == 0)
			return card;
		if (card->looked_ns < oldest->looked_ns)
			oldest = card;
	}
	*oldest = (struct ll_overlap_card){.looked_ns = now_ns};
	snprintf(oldest->uuid, sizeof oldest->uuid, "%s", account->key.card);
	oldest->room_ns = now_ns - account->born_ns;
	return oldest;
}

/* Work that is reported late has the room of the time before. */
static void bound_group(struct ll_overlap *overlap, const struct group *group, const uint64_t *found_ns,
			uint64_t now_ns)
{
	uint64_t fresh_ns[COMPARED], sum_ns = 0;
	struct ll_overlap_card *card = find_overlap_card(overlap, group->accounts[0], now_ns);
	card->room_ns += now_ns - card->looked_ns;
	card->looked_ns = now_ns;
	for (unsigned i = 0; i < group->count; i++) {
		struct ll_account *account = group->accounts[i];
		uint64_t used_ns = account->last.used_ns, looked_ns = account->looked_ns;
		uint64_t gross_ns = used_ns > looked_ns ? used_ns - looked_ns : 0;
		fresh_ns[i] = gross_ns > found_ns[i] ? gross_ns - found_ns[i] : 0;
		account->looked_ns = looked_ns + gross_ns;
		sum_ns += fresh_ns[i];
	}
	uint64_t above_ns = sum_ns > card->room_ns ? sum_ns - card->room_ns : 0;
	card->room_ns -= sum_ns - above_ns;
	for (unsigned i = 0; i < group->count && above_ns; i++)
		group->accounts[i]->shared_ns += (uint64_t)((double)fresh_ns[i] * ((double)above_ns / (double)sum_ns));
}

static void look_at_group(struct ll_overlap *overlap, const struct group *group, uint64_t from, uint64_t until,
			  uint64_t now_ns)
{
	uint64_t found_ns[COMPARED];
	for (unsigned i = 0; i < group->count; i++)
		found_ns[i] = group->accounts[i]->shared_ns;
	for (uint64_t number = from; group->count > 1 && number < until; number++)
		share_word(group, number);
	for (unsigned i = 0; i < group->count; i++) {
		found_ns[i] = group->accounts[i]->shared_ns - found_ns[i];
		group->accounts[i]->compared = until;
	}
	bound_group(overlap, group, found_ns, now_ns);
}

void ll_overlap_read(struct ll_overlap *overlap, struct ll_account *accounts, uint64_t now_ns)
{
	struct group group;
	uint64_t until = (now_ns - LATE_NS) / LL_WORK_WORD_NS, from = overlap->next;
	if (until - from > LL_WORK_WORDS * 3 / 4)
		from = until - LL_WORK_WORDS * 3 / 4;
	for (struct ll_account *first = accounts; first; first = first->next) {
		if (!is_working(first, now_ns) || first->compared == until)
			continue;
		/* The accounts of the same card that have had GPU time lately, the first one included. */
		group.count = 0;
		for (struct ll_account *at = first; at && group.count < COMPARED; at = at->next) {
			if (is_working(at, now_ns) && at->card_hash == first->card_hash &&
			    strcmp(at->key.card, first->key.card) == 0)
				group.accounts[group.count++] = at;
		}
		look_at_group(overlap, &group, from, until, now_ns);
	}
	overlap->next = until;
}

#define MJ_PER_J 1e3

/* ---- energy in one period ---- */

double ll_energy_divide(double joules, uint64_t period_ns, struct ll_energy_part *parts, size_t count)
{
	double used_ns = 0, idle_held_ns = 0, all_on_card_ns = 0, longest_ns = 0;
	double period = (double)period_ns;
	for (size_t i = 0; i < count; i++) {
		double on_card_ns = (double)smaller_of(parts[i].on_card_ns, period_ns);
		used_ns += (double)parts[i].used_ns;
		idle_held_ns += (double)parts[i].idle_held_ns;
		all_on_card_ns += on_card_ns;
		longest_ns = on_card_ns > longest_ns ? on_card_ns : longest_ns;
	}
	if (!period_ns)
		return joules;
	double busy_ns = used_ns < period ? used_ns : period;
	double held_ns = longest_ns > busy_ns ? longest_ns - busy_ns : 0;
	double busy = joules * (busy_ns / period), held = joules * (held_ns / period);
	for (size_t i = 0; i < count; i++) {
		double on_card_ns = (double)smaller_of(parts[i].on_card_ns, period_ns);
		parts[i].joules = busy_ns > 0 ? busy * ((double)parts[i].used_ns / used_ns) : 0;
		if (held_ns > 0 && idle_held_ns > 0)
			parts[i].joules += held * ((double)parts[i].idle_held_ns / idle_held_ns);
		else if (held_ns > 0)
			parts[i].joules += held * (on_card_ns / all_on_card_ns);
	}
	return joules - busy - held;
}

/* ---- energy of the accounts ---- */

static void begin_period(struct ll_account *account)
{
	struct ll_account_energy *energy = &account->energy;
	uint64_t used_ns = ll_account_used_ns(account);
	if (used_ns > energy->used_ns)
		energy->used_ns = used_ns;
	energy->idle_held_ns = energy->all_idle_held_ns;
	energy->on_card_ns = energy->all_on_card_ns;
	energy->is_complete = !account->card;
}

static bool is_on(const struct ll_account *account, const char *uuid)
{
	return strcmp(account->key.card, uuid) == 0;
}

/* Without memory the period goes on until the next reading. */
static bool divide_energy(const struct ll_energy_card *card, uint64_t energy_mj, struct ll_account *accounts,
			  uint64_t now_ns)
{
	size_t count = 0, at = 0;
	for (const struct ll_account *account = accounts; account; account = account->next)
		count += is_on(account, card->uuid) && !account->energy.is_complete;
	if (!count)
		return true;
	struct ll_energy_part *parts = calloc(count, sizeof *parts);
	if (!parts)
		return false;
	for (const struct ll_account *account = accounts; account; account = account->next) {
		const struct ll_account_energy *energy = &account->energy;
		if (!is_on(account, card->uuid) || energy->is_complete)
			continue;
		/* What it has since the last reading. Used time that is found to be shared later lowers a sum. */
		uint64_t used_ns = ll_account_used_ns(account);
		parts[at++] = (struct ll_energy_part){
		    .used_ns = used_ns > energy->used_ns ? used_ns - energy->used_ns : 0,
		    .idle_held_ns = energy->all_idle_held_ns - energy->idle_held_ns,
		    .on_card_ns = energy->all_on_card_ns - energy->on_card_ns,
		};
	}
	ll_energy_divide((double)(energy_mj - card->energy_mj) / MJ_PER_J, now_ns - card->at_ns, parts, count);
	at = 0;
	for (struct ll_account *account = accounts; account; account = account->next) {
		if (!is_on(account, card->uuid) || account->energy.is_complete)
			continue;
		account->energy.joules += parts[at++].joules;
		account->energy.is_known = true;
		begin_period(account);
	}
	free(parts);
	return true;
}

/* ---- readings of energy ---- */

static size_t place_of(const struct ll_energy *energy, const char *uuid)
{
	size_t place = 0;
	while (place < energy->count && strcmp(energy->cards[place].uuid, uuid) != 0)
		place++;
	return place;
}

bool ll_energy_has_card(const struct ll_energy *energy, const char *uuid)
{
	return place_of(energy, uuid) < energy->count;
}

/* Returns NULL if it is the card's first reading, which is taken. */
static struct ll_energy_card *find_energy_card(struct ll_energy *energy, const struct ll_message_sense_card *row,
					       uint64_t now_ns)
{
	size_t place = place_of(energy, row->uuid);
	if (place < energy->count)
		return &energy->cards[place];
	if (place < LL_ENERGY_CARDS) {
		struct ll_energy_card *card = &energy->cards[energy->count++];
		*card = (struct ll_energy_card){.energy_mj = row->energy_mj, .at_ns = now_ns};
		snprintf(card->uuid, sizeof card->uuid, "%s", row->uuid);
	}
	return NULL;
}

static void read_card(struct ll_energy *energy, const struct ll_message_sense_card *row, struct ll_account *accounts,
		      uint64_t now_ns)
{
	struct ll_energy_card *card = find_energy_card(energy, row, now_ns);
	bool has_period = card && row->energy_mj >= card->energy_mj && now_ns > card->at_ns;
	for (struct ll_account *account = has_period ? NULL : accounts; account; account = account->next) {
		if (is_on(account, row->uuid))
			begin_period(account);
	}
	if (has_period && !divide_energy(card, row->energy_mj, accounts, now_ns))
		return;
	if (card) {
		card->energy_mj = row->energy_mj;
		card->at_ns = now_ns;
	}
}

void ll_energy_read(struct ll_energy *energy, const struct ll_message_sense_card *rows, size_t count,
		    struct ll_account *accounts, uint64_t now_ns)
{
	for (size_t i = 0; i < count; i++) {
		if (rows[i].energy_mj)
			read_card(energy, &rows[i], accounts, now_ns);
	}
}
