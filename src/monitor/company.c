#include "monitor/company.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "earlier/file.h"

static void describe_company(const struct ll_orders *orders, const struct ll_company *row,
			     struct ll_earlier_record *ret_record)
{
	*ret_record = (struct ll_earlier_record){.ended_s = ll_wall_ns() / LL_NS_PER_S,
						 .program = row->program,
						 .others = row->others,
						 .way = row->way,
						 .ns = row->ns,
						 .launches = row->launches};
	ll_orders_read_uuid(&orders->cards[row->card], ret_record->card);
	ll_company_read_name(orders, ret_record->name);
	memcpy(ret_record->others_names, row->names, sizeof ret_record->others_names);
}

/* Returns the rows with enough time, with all the data that the file needs. */
static size_t read_rows(const struct ll_orders *orders, struct ll_earlier_record records[LL_COMPANY_ROWS],
			uint64_t *ret_counted_ns)
{
	size_t count = 0;
	for (size_t i = 0; i < LL_COMPANY_ROWS; i++) {
		struct ll_company row;
		if (!ll_company_read(&orders->company[i], &row) || row.ns < LL_EARLIER_LEAST_NS)
			continue;
		describe_company(orders, &row, &records[count]);
		*ret_counted_ns += row.ns;
		count += records[count].card[0] && records[count].name[0] && records[count].others_names[0];
	}
	return count;
}

void ll_monitor_note_company(struct ll_monitor_company *company, int orders_fd)
{
	struct ll_earlier_record records[LL_COMPANY_ROWS];
	struct ll_orders *orders;
	char folder[PATH_MAX];
	uint64_t counted_ns = 0;
	company->noted_ns = ll_now_ns();
	if (orders_fd < 0 || ll_orders_map(orders_fd, false, &orders))
		return;
	size_t count = read_rows(orders, records, &counted_ns);
	ll_orders_unmap(orders);
	if (counted_ns == company->counted_ns || ll_earlier_folder(getenv("LOADLINE_SIM_DIR"), folder, NULL))
		return;
	if (ll_earlier_note(folder, records, count, NULL) == 0)
		company->counted_ns = counted_ns;
}
