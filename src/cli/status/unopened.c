/* Cards that this user may not open, as behind the fence: what loadlined's sensor tells of them. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "cli/status/status.h"

static const struct ll_message_sense_card *find_row(const struct ll_sensed *sensed, const char *uuid)
{
	for (size_t i = 0; sensed->end.silent_ns < LL_SENSED_FRESH_NS && i < sensed->card_count; i++) {
		if (strcmp(sensed->cards[i].uuid, uuid) == 0)
			return &sensed->cards[i];
	}
	return NULL;
}

static void take_processes(struct ll_status_card *status, const struct ll_sensed *sensed)
{
	status->processes.items = calloc(sensed->process_count + 1, sizeof *status->processes.items);
	status->processes.capacity = status->processes.items ? sensed->process_count : 0;
	for (size_t i = 0; i < status->processes.capacity; i++) {
		const struct ll_message_sense_process *row = &sensed->processes[i];
		if (strcmp(row->uuid, status->card->uuid) == 0)
			status->processes.items[status->processes.count++] = (struct ll_process){
			    .pid = (pid_t)row->pid, .kinds = LL_PROCESS_COMPUTE, .memory_bytes = row->used_bytes};
	}
	status->has_processes = status->processes.items != NULL;
}

void ll_status_card_drained(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	const struct ll_sensed *sensed = &view->sensed;
	for (size_t i = 0; i < sensed->drained_count; i++) {
		const struct ll_message_sense_drained *row = &sensed->drained[i];
		if (row->index != status->card->index || row->since_s > ll_wall_ns() / LL_NS_PER_S)
			continue;
		status->is_drained = true;
		memcpy(status->drained, row->reason, sizeof status->drained);
	}
}

bool ll_status_card_by_sensor(struct ll_status_card *status, const struct ll_daemon_view *view)
{
	const struct ll_message_sense_card *row = find_row(&view->sensed, status->card->uuid);
	if (!row || row->flags & LL_SENSE_IS_LOST)
		return false;
	status->has_memory = row->memory_bytes != 0;
	status->memory = (struct ll_memory){
	    .total_bytes = row->memory_bytes,
	    .used_bytes = row->used_bytes,
	    .free_bytes = row->memory_bytes > row->used_bytes ? row->memory_bytes - row->used_bytes : 0};
	if (ll_daemon_view_pids_are_ours(view))
		take_processes(status, &view->sensed);
	return true;
}
