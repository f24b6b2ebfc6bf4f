#include "cli/common/sensed_cards.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/scope.h"
#include "cli/common/daemon.h"
#include "cli/common/env_sim.h"

static struct ll_card card_of(const struct ll_message_sense_card *row, int fault)
{
	struct ll_card card = {
	    .index = row->index,
	    .slice = row->slice < 0 ? 0 : (unsigned)row->slice,
	    .memory_bytes = row->memory_bytes,
	    .usable_bytes = row->usable_bytes,
	    .is_mig = row->slice >= 0,
	    .has_slices = row->flags & LL_SENSE_HAS_SLICES,
	    .fault = row->flags & LL_SENSE_IS_LOST ? -ENODEV : fault,
	};
	snprintf(card.label, sizeof card.label, row->slice < 0 ? "%u" : "%u:%u", row->index, card.slice);
	memcpy(card.uuid, row->uuid, sizeof card.uuid);
	memcpy(card.name, row->name, sizeof card.name);
	snprintf(card.pci, sizeof card.pci, "%.23s", row->bus_id);
	return card;
}

int ll_sensed_cards_open(int fault, struct ll_driver **ret_driver)
{
	struct ll_daemon_view view;
	const char *sim_folder = ll_sim_is_entered() ? getenv("LOADLINE_SIM_DIR") : NULL;
	ll_daemon_view_init(&view, sim_folder);
	const struct ll_sensed *sensed = &view.sensed;
	bool is_known = view.answer == LL_DAEMON_SERVES && sensed->end.silent_ns < LL_SENSED_FRESH_NS;
	LL_SCOPE_FREE struct ll_card *cards = calloc(sensed->card_count + 1, sizeof *cards);
	int rc = is_known && sensed->card_count && cards ? 0 : -ENOENT;
	for (size_t i = 0; !rc && i < sensed->card_count; i++)
		cards[i] = card_of(&sensed->cards[i], fault);
	if (!rc)
		rc = ll_driver_of_list(cards, sensed->card_count, sim_folder, ret_driver, NULL);
	ll_daemon_view_fini(&view);
	return rc;
}

int ll_cards_open(int fault, struct ll_driver **ret_driver, struct ll_err *err)
{
	struct ll_err why = {0};
	int rc = ll_driver_open(ret_driver, &why);
	if (!rc || ll_sensed_cards_open(fault, ret_driver) == 0)
		return 0;
	if (err)
		*err = why;
	return rc;
}
