#include "cli/run/measured.h"

#include <string.h>

#include "base/clock.h"
#include "base/strbuf.h"
#include "base/translate.h"

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
