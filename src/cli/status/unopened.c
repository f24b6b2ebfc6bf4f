/* Cards that this user may not open, as behind the fence: what loadlined's sensor tells of them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/common/env_sim.h"
#include "cli/status/status.h"

static struct ll_card card_of(const struct ll_message_sense_card *row)
{
	struct ll_card card = {
	    .index = row->index,
	    .slice = row->slice < 0 ? 0 : (unsigned)row->slice,
	    .memory_bytes = row->memory_bytes,
	    .usable_bytes = row->usable_bytes,
	    .is_mig = row->slice >= 0,
	    .has_slices = row->flags & LL_SENSE_HAS_SLICES,
	    .fault = row->flags & LL_SENSE_IS_LOST ? -ENODEV : -EACCES,
	};
	snprintf(card.label, sizeof card.label, row->slice < 0 ? "%u" : "%u:%u", row->index, card.slice);
	memcpy(card.uuid, row->uuid, sizeof card.uuid);
	memcpy(card.name, row->name, sizeof card.name);
	snprintf(card.pci, sizeof card.pci, "%.23s", row->bus_id);
	return card;
}

int ll_status_driver_by_sensor(struct ll_driver **ret_driver)
{
	struct ll_daemon_view view;
	const char *sim_folder = ll_sim_is_entered() ? getenv("LOADLINE_SIM_DIR") : NULL;
	ll_daemon_view_init(&view, sim_folder);
	const struct ll_sensed *sensed = &view.sensed;
	bool is_known = view.answer == LL_DAEMON_SERVES && sensed->end.silent_ns < LL_SENSED_FRESH_NS;
	LL_SCOPE_FREE struct ll_card *cards = calloc(sensed->card_count + 1, sizeof *cards);
	int rc = is_known && sensed->card_count && cards ? 0 : -ENOENT;
	for (size_t i = 0; !rc && i < sensed->card_count; i++)
		cards[i] = card_of(&sensed->cards[i]);
	if (!rc)
		rc = ll_driver_of_list(cards, sensed->card_count, sim_folder, ret_driver, NULL);
	ll_daemon_view_fini(&view);
	return rc;
}

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
