#include "advice/advice.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/translate.h"

bool ll_earlier_date(const struct ll_earlier_record *record, char ret_date[LL_DATE_SIZE])
{
	time_t ended = (time_t)record->ended_s;
	struct tm tm;
	return localtime_r(&ended, &tm) && strftime(ret_date, LL_DATE_SIZE, "%Y-%m-%d", &tm);
}

/* 0: it is not known. */
static double rate_now(const struct ll_earlier *earlier, const struct ll_message_card_row *row, enum ll_way way)
{
	if (row->company_ns >= LL_EARLIER_LEAST_NS)
		return ll_earlier_rate(row->company_launches, row->company_ns);
	const struct ll_earlier_record *record = ll_earlier_find(earlier, row->uuid, row->program, row->others, way);
	return record ? ll_earlier_rate(record->launches, record->ns) : 0;
}

bool ll_other_way_find(const struct ll_earlier *earlier, const struct ll_message_card_row *row, enum ll_way way,
		       struct ll_other_way *ret_other)
{
	if (!row->program || !row->others)
		return false;
	const struct ll_earlier_record *record = ll_earlier_find(earlier, row->uuid, row->program, row->others,
								 way == LL_WAY_SPACE ? LL_WAY_SLICES : LL_WAY_SPACE);
	if (!record)
		return false;
	double now = rate_now(earlier, row, way), then = ll_earlier_rate(record->launches, record->ns);
	if (!(now > 0) || !(then > 0))
		return false;
	*ret_other = (struct ll_other_way){.record = record, .times = then / now};
	return ll_earlier_date(record, ret_other->date);
}

void ll_other_way_add(struct ll_strbuf *text, const struct ll_other_way *other)
{
	const struct ll_earlier_record *record = other->record;
	ll_strbuf_addf(text,
		       _("%s beside %s: by %s it completed %.2f times as many launches a second on %s; programs "),
		       record->name, record->others_names, ll_way_name(record->way), other->times, other->date);
	ll_strbuf_adds(text, record->way == LL_WAY_SPACE
				 ? _("that share by space share a fault domain")
				 : _("that share by slices share no fault domain, as those that share by space do"));
}

struct ll_earlier *ll_other_way_read(const char *sim_folder)
{
	char folder[PATH_MAX];
	struct ll_earlier *earlier = calloc(1, sizeof *earlier);
	if (earlier && ll_earlier_folder(sim_folder, folder, NULL) == 0)
		ll_earlier_read(folder, earlier, NULL);
	return earlier;
}

enum { MOST = 16 };

#define LATELY_NS (10 * LL_NS_PER_S)

static bool has_worked(const struct ll_list *list, const char *uuid, uint64_t job_number)
{
	for (size_t i = 0; i < list->claim_count; i++) {
		const struct ll_message_claim_row *row = &list->claims[i];
		if (row->job_number == job_number && strcmp(row->uuid, uuid) == 0 && row->idle_ns < LATELY_NS)
			return true;
	}
	return false;
}

/* Finds the programs on the card. Returns how many; 0 also if one of them is not known, or they do not all share the
 * card in one way. */
static size_t find_others(const struct ll_list *list, const char *uuid, uid_t uid, uint64_t keys[MOST],
			  enum ll_way *ret_way)
{
	size_t count = 0;
	for (size_t i = 0; i < list->card_count; i++) {
		const struct ll_message_card_row *row = &list->cards[i];
		const struct ll_message_job_row *job = ll_list_job(list, row->job_number);
		if (!job || strcmp(row->uuid, uuid) != 0 || !has_worked(list, uuid, row->job_number))
			continue;
		enum ll_way way = ll_way_of(&job->job.limits);
		if (!row->program || job->job.uid != uid || count == MOST || (count && way != *ret_way))
			return 0;
		keys[count++] = row->program;
		*ret_way = way;
	}
	return count;
}

static double rate_of(const struct ll_earlier_record *record)
{
	return record ? ll_earlier_rate(record->launches, record->ns) : 0;
}

bool ll_run_measured_find(const struct ll_earlier *earlier, const struct ll_list *list, const char *uuid,
			  uint64_t program, uid_t uid, struct ll_run_measured *ret_measured)
{
	uint64_t keys[MOST];
	enum ll_way way = LL_WAY_NONE;
	size_t count = find_others(list, uuid, uid, keys, &way);
	uint64_t others = ll_programs_key(keys, count);
	if (!program || !others)
		return false;
	const struct ll_earlier_record *record = ll_earlier_find(earlier, uuid, program, others, way);
	double rate = rate_of(record);
	double other = rate_of(
	    ll_earlier_find(earlier, uuid, program, others, way == LL_WAY_SPACE ? LL_WAY_SLICES : LL_WAY_SPACE));
	if (!(other > 0) || rate < LL_MEASURED_BETTER * other)
		return false;
	*ret_measured = (struct ll_run_measured){.record = record, .times = rate / other};
	return ll_earlier_date(record, ret_measured->date);
}

void ll_run_measured_add(struct ll_strbuf *text, const struct ll_run_measured *measured)
{
	const struct ll_earlier_record *record = measured->record;
	ll_strbuf_addf(text, _("beside %s it completed %.2f times as many launches a second so on %s as by %s"),
		       record->others_names, measured->times, measured->date,
		       ll_way_name(record->way == LL_WAY_SPACE ? LL_WAY_SLICES : LL_WAY_SPACE));
}
