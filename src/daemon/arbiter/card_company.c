/* Counts once a second how fast the jobs of a card run beside each other, and writes that into their orders
 * (protocol/company.h). */
#include <string.h>

#include "base/clock.h"
#include "daemon/arbiter/card_state.h"
#include "protocol/company.h"

/* If more jobs want one card, nothing is counted. */
enum { MOST = 16 };
/* If two looks are further apart, a job may have come and gone between them, so the time is not counted. */
#define LOOK_MOST_NS (3 * LL_NS_PER_S)

struct member {
	struct ll_card_job *job;
	uint64_t program, launches;
	enum ll_way way;
};

/* Returns the launches that the job completed since the last look. *ret_wants: it has launches that wait or run. */
static uint64_t look_at_claims(const struct ll_card_job *job, bool *ret_wants)
{
	uint64_t launches = 0;
	LL_SHARE_EACH_OF(&job->share, share)
	{
		struct ll_card_claim *claim = ll_card_claim_of(share);
		const struct ll_page_slot *slot = &job->page->slots[claim->slot];
		uint64_t completed = atomic_load_explicit(&slot->completed_launches, memory_order_relaxed);
		if (claim->was_counted && completed > claim->counted_launches)
			launches += completed - claim->counted_launches;
		claim->counted_launches = completed;
		claim->was_counted = true;
		*ret_wants |= atomic_load_explicit(&slot->want_since_ns, memory_order_relaxed) != 0;
	}
	return launches;
}

/* Finds the jobs that worked or want to work. Returns their number, which may exceed MOST. */
static size_t find_members(struct ll_served_card *card, struct member members[MOST])
{
	size_t count = 0;
	for (struct ll_share_job *share = card->share.jobs; share; share = share->next) {
		struct ll_card_job *job = ll_card_job_of(share);
		bool wants = false;
		uint64_t launches = look_at_claims(job, &wants);
		if ((launches || wants) && count++ < MOST)
			members[count - 1] = (struct member){
			    .job = job,
			    .program = ll_card_job_program(job),
			    .launches = launches,
			    .way = ll_way_of(&job->limits),
			};
	}
	return count;
}

/* Programs of different users do not learn of each other. If some jobs share by slices and others by space, the company
 * cannot be assigned to one way. */
static bool can_be_counted(const struct member *members, size_t count)
{
	if (count < 2 || count > MOST)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (!members[i].program || members[i].job->uid != members[0].job->uid ||
		    members[i].way != members[0].way)
			return false;
	}
	return true;
}

static uint64_t others_of(const struct member *members, size_t count, size_t one)
{
	uint64_t keys[MOST];
	size_t used = 0;
	for (size_t i = 0; i < count; i++) {
		if (i != one)
			keys[used++] = members[i].program;
	}
	return ll_programs_key(keys, used);
}

static void name_others(const struct member *members, size_t count, size_t one, char names[LL_COMPANY_NAMES_SIZE])
{
	size_t used = 0;
	memset(names, 0, LL_COMPANY_NAMES_SIZE);
	for (size_t i = 0; i < count && used < LL_COMPANY_NAMES_SIZE; i++) {
		char name[LL_PROGRAM_NAME_SIZE];
		if (i == one)
			continue;
		ll_company_read_name(members[i].job->orders, name);
		used += (size_t)snprintf(names + used, LL_COMPANY_NAMES_SIZE - used, "%s%s", used ? ", " : "", name);
	}
}

/* Returns the row of the same company, else an empty row, else the row with the shortest time. */
static struct ll_orders_company *find_row(const struct ll_card_job *job, const struct ll_company *company,
					  struct ll_company *ret_found)
{
	struct ll_orders_company *best = NULL;
	*ret_found = (struct ll_company){.ns = UINT64_MAX};
	for (size_t i = 0; i < LL_COMPANY_ROWS; i++) {
		struct ll_orders_company *row = &job->orders->company[i];
		struct ll_company found = {.ns = 0};
		bool is_used = ll_company_read(row, &found);
		if (is_used && found.card == company->card && found.way == company->way &&
		    found.program == company->program && found.others == company->others) {
			*ret_found = found;
			return row;
		}
		if (!best || found.ns < ret_found->ns) {
			best = row;
			*ret_found = found;
		}
	}
	*ret_found = (struct ll_company){.ns = 0};
	return best;
}

static void add_time_beside(const struct member *members, size_t count, size_t one, uint64_t ns)
{
	struct ll_card_job *job = members[one].job;
	struct ll_company company = {.card = job->index,
				     .way = members[one].way,
				     .program = members[one].program,
				     .others = job->others},
			  before;
	struct ll_orders_company *row = find_row(job, &company, &before);
	name_others(members, count, one, company.names);
	company.ns = job->company_ns = before.ns + ns;
	company.launches = job->company_launches = before.launches + members[one].launches;
	ll_company_write(row, &company);
}

static void forget_company(struct ll_card_job *job)
{
	job->others = job->company_ns = job->company_launches = 0;
}

/* Counts the time between two looks if the same jobs wanted the card at both. */
static void note_company(struct ll_served_card *card, uint64_t now_ns)
{
	struct member members[MOST];
	size_t count = find_members(card, members);
	uint64_t ns = card->company_ns ? now_ns - card->company_ns : 0;
	bool is_counted = can_be_counted(members, count);
	for (struct ll_share_job *share = card->share.jobs; share; share = share->next)
		ll_card_job_of(share)->is_in_company = false;
	for (size_t i = 0; i < count && is_counted; i++) {
		struct ll_card_job *job = members[i].job;
		uint64_t others = others_of(members, count, i);
		bool is_same = job->others == others && job->counted_program == members[i].program;
		if (!is_same)
			forget_company(job);
		job->others = others;
		job->counted_program = members[i].program;
		job->is_in_company = true;
		if (is_same && ns && ns <= LOOK_MOST_NS)
			add_time_beside(members, count, i, ns);
	}
	for (struct ll_share_job *share = card->share.jobs; share; share = share->next) {
		if (!ll_card_job_of(share)->is_in_company)
			forget_company(ll_card_job_of(share));
	}
	card->company_ns = now_ns;
}

bool ll_cards_note_company(struct ll_cards *cards, uint64_t now_ns)
{
	bool has_company = false;
	for (struct ll_served_card *card = cards->cards; card; card = card->next) {
		bool has_several = card->share.jobs && card->share.jobs->next;
		has_company |= has_several;
		if (has_several)
			note_company(card, now_ns);
		else
			card->company_ns = 0;
		if (!has_several && card->share.jobs)
			forget_company(ll_card_job_of(card->share.jobs));
	}
	return has_company;
}

uint64_t ll_card_job_program(const struct ll_card_job *job)
{
	return ll_program_under(atomic_load(&job->orders->program), &job->limits);
}
