/* What metrics tell of the queue. */
#include <string.h>

#include "base/clock.h"
#include "daemon/core/server.h"
#include "daemon/queue/state.h"

void ll_admission_refresh(const struct ll_server *server)
{
	if (ll_admission_is_possible(server))
		(void)ll_admission_describe(server->admission); /* without memory there is no queue */
}

/* A clock that was set back makes no wait longer. */
static uint64_t wait_s(const struct ll_admission_entry *entry)
{
	uint64_t now_s = ll_wall_ns() / LL_NS_PER_S;
	return now_s > entry->came_s ? now_s - entry->came_s : 0;
}

void ll_admission_count_waiting(const struct ll_server *server, const char *tenant, uint32_t *ret_count,
				uint64_t *ret_oldest_s)
{
	const struct ll_admission *admission = server->admission;
	*ret_count = 0;
	*ret_oldest_s = 0;
	for (const struct ll_admission_entry *entry = admission->entries; entry; entry = entry->next) {
		if (!ll_admission_is_waiting(entry) || strcmp(entry->tenant, tenant) != 0)
			continue;
		++*ret_count;
		if (wait_s(entry) > *ret_oldest_s)
			*ret_oldest_s = wait_s(entry);
	}
}

bool ll_admission_out_of_use(const struct ll_server *server, uint64_t *ret_indices)
{
	const struct ll_admission *admission = server->admission;
	const struct ll_queue_machine *machine = &admission->described.machine;
	uint64_t now_ns = ll_now_ns(), cards = 0;
	*ret_indices = 0;
	if (!admission->has_queue)
		return false;
	for (size_t i = 0; i < machine->interval_count; i++) {
		const struct ll_queue_interval *interval = &machine->intervals[i];
		if (interval->tenant == LL_QUEUE_NOBODY && interval->begin_ns <= now_ns && now_ns < interval->end_ns)
			cards |= UINT64_C(1) << interval->card;
	}
	*ret_indices = ll_admission_indices(&admission->described, cards);
	return true;
}
