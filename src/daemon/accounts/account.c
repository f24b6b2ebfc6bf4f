#include "daemon/accounts/account.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "daemon/accounts/energy.h"
#include "protocol/accounts.h"

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

/* The card's memory over the time since the job came, as long as both are known. */
static uint64_t most_unit_ms(const struct ll_account *account, uint64_t now_ns)
{
	const struct ll_orders *orders = account->card->job->pages.orders;
	uint64_t bytes = orders->cards[account->card->index].usable_bytes;
	uint64_t units = bytes ? ll_memory_units(bytes) : LL_MEMORY_UNITS_MAX;
	return units * ((now_ns - account->since_ns) / LL_NS_PER_MS + MS_PER_S);
}

static void read_counters(const struct ll_account *account, uint64_t now_ns, struct ll_account_reading *ret_reading)
{
	const struct ll_page *page = account->card->job->pages.page;
	struct ll_accounts accounts;
	ll_accounts_read_card(page, account->card->index, now_ns, &accounts);
	*ret_reading = (struct ll_account_reading){
	    .used_ns = smaller_of(page->cards[account->card->index].work_ns, now_ns - account->since_ns + LL_NS_PER_S),
	    .memory_unit_ms = smaller_of(accounts.held_unit_ms, most_unit_ms(account, now_ns)),
	    .at_ns = now_ns,
	};
}

/* When the job last had work on the card; UINT64_MAX: it has some now. */
static uint64_t last_activity_ns(const struct ll_job_card *card)
{
	uint64_t activity_ns = 0;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		uint64_t own_ns = ll_claim_slot(claim)->activity_ns;
		if (own_ns == LL_ACTIVITY_NOW)
			return UINT64_MAX;
		activity_ns = later_of(activity_ns, own_ns);
	}
	return activity_ns;
}

static void count_idle(struct ll_account *account, uint64_t idle_ns)
{
	account->idle_held_ns += idle_ns;
	account->energy.all_idle_held_ns += idle_ns;
}

/* Adds a period to what was granted and held. */
static void count_time(struct ll_account *account, uint64_t from_ns, uint64_t to_ns)
{
	const struct ll_limits *limits = &account->card->job->facts.limits;
	uint64_t activity_ns = last_activity_ns(account->card);
	uint64_t permille = limits->compute_permille ? limits->compute_permille : WHOLE_PERMILLE;
	if (to_ns <= from_ns || (!account->card->claim_count && !limits->request_bytes))
		return;
	account->energy.all_on_card_ns += to_ns - from_ns;
	account->granted_ns += (to_ns - from_ns) / WHOLE_PERMILLE * permille;
	if (activity_ns < to_ns)
		count_idle(account, to_ns - later_of(activity_ns, from_ns));
}

/* A counter that has gone back was written by a program, and stands still. */
void ll_account_read(struct ll_account *account, uint64_t now_ns)
{
	struct ll_account_reading reading;
	if (!account->card || now_ns < account->last.at_ns)
		return;
	read_counters(account, now_ns, &reading);
	count_time(account, account->last.at_ns, now_ns);
	reading.used_ns = later_of(reading.used_ns, account->last.used_ns);
	reading.memory_unit_ms = later_of(reading.memory_unit_ms, account->last.memory_unit_ms);
	if (reading.used_ns > account->last.used_ns)
		account->worked_ns = now_ns;
	account->last = reading;
}

/* ---- begin, and batches ---- */

static uint32_t hash_text(const char *text)
{
	uint32_t hash = UINT32_C(2166136261); /* FNV-1a */
	while (*text)
		hash = (hash ^ (unsigned char)*text++) * UINT32_C(16777619);
	return hash;
}

/* When the first of the card's processes came, if that was within FIRST_SIGHT_NS; else now. */
static uint64_t first_claim_ns(const struct ll_job_card *card, uint64_t now_ns)
{
	uint64_t first_ns = now_ns;
	for (const struct ll_job_claim *claim = card->claims; claim; claim = claim->next) {
		uint64_t taken_ns = ll_claim_slot(claim)->taken_ns;
		if (taken_ns < first_ns && now_ns - taken_ns < FIRST_SIGHT_NS)
			first_ns = taken_ns;
	}
	return first_ns;
}

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
	account->card_hash = hash_text(account->key.card);
	account->born_ns = account->last.at_ns = first_claim_ns(card, now_ns);
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
	    .joules = account->energy.joules,
	    .knows_joules = account->energy.is_known,
	};
	struct ll_use_counter counter = {.used_ns = account->last.used_ns,
					 .memory_unit_ms = account->last.memory_unit_ms,
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
