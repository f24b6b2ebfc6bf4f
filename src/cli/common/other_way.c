#include "cli/common/other_way.h"

#include <stdlib.h>
#include <time.h>

#include "base/strbuf.h"
#include "base/translate.h"
#include "earlier/file.h"

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
